//! What is known about a trace once all of it is read.

use crate::capabilities::Capabilities;
use crate::intake::Intake;
use crate::options::CountFrom;
use crate::pair::Totals;
use crate::sink::Sink;
use crate::skips::Skips;

/// A phase of the experiment, between two markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Its name.
    pub name: String,
    /// Where it starts (ns since trace start).
    pub start_ns: i64,
    /// Where the next phase starts, or the trace ends.
    pub end_ns: i64,
}

/// What is known once all of a trace is read.
#[derive(Clone, Debug)]
pub struct ReadReport {
    /// Lines (or binary records) read.
    pub lines: u64,
    /// What the trace contains: `completion` is false if the format has completions but the
    /// trace has none.
    pub capabilities: Capabilities,
    /// Lines that were no request.
    pub skips: Skips,
    /// Phases, in order.
    pub phases: Vec<PhaseSpan>,
    /// There was no issue event but there were queue events: read again with
    /// [`CountFrom::Queue`].
    pub only_queue_events: bool,
    /// There were no block events but commands of the NVMe driver: read again with
    /// [`CountFrom::Nvme`].
    pub only_nvme_commands: bool,
    /// Requests whose completion was not found although the source has completions.
    pub unpaired: u64,
    /// Lines that came more than a second after later ones and were sorted in.
    pub reordered: u64,
}

/// What a trace of an event format contains.
pub(crate) fn event_capabilities(totals: &Totals, intake: &Intake) -> Capabilities {
    let by_command = matches!(intake.count_from(), CountFrom::Nvme { .. });
    Capabilities {
        operation: true,
        address: true,
        discard: !by_command,
        write_zeroes: true,
        flush: true,
        fua: true,
        sync_meta: !by_command,
        completion: totals.completed > 0,
        queue: totals.queued > 0,
        process: true,
        file: false,
        stream: by_command,
        clock_ns: intake.clock_ns(),
    }
}

/// The report, and whether there was any event.
pub(crate) fn of_events(
    lines: u64,
    capabilities: Capabilities,
    totals: Totals,
    intake: &mut Intake,
) -> (ReadReport, bool) {
    let ends = totals.phases.iter().skip(1).map(|&(_, start_ns)| start_ns);
    let phases = totals
        .phases
        .iter()
        .zip(ends.chain([totals.end_ns]))
        .map(|(&(name, start_ns), end_ns)| PhaseSpan {
            name: intake.names.symbols.name(name).to_owned(),
            start_ns,
            end_ns,
        })
        .collect();
    let only_queue_events =
        totals.records == 0 && totals.issue_events == 0 && totals.queue_events > 0;
    let only_nvme_commands = totals.records == 0
        && totals.issue_events + totals.queue_events == 0
        && totals.commands > 0;
    let report = ReadReport {
        lines,
        capabilities,
        skips: std::mem::take(&mut intake.skips),
        phases,
        only_queue_events,
        only_nvme_commands,
        unpaired: totals.unpaired,
        reordered: intake.reordered(),
    };
    (report, totals.records > 0 || only_queue_events || only_nvme_commands)
}

pub(crate) fn of_lines(lines: u64, can: Capabilities, sink: &mut Sink) -> (ReadReport, bool) {
    let seen = sink.seen();
    let capabilities = Capabilities {
        completion: can.completion && seen.completed > 0,
        queue: can.queue && seen.queued > 0,
        ..can
    };
    let report = ReadReport {
        lines,
        capabilities,
        skips: std::mem::take(&mut sink.skips),
        phases: Vec::new(),
        only_queue_events: false,
        only_nvme_commands: false,
        unpaired: if capabilities.completion { seen.records - seen.completed } else { 0 },
        reordered: sink.reordered(),
    };
    (report, seen.records > 0)
}
