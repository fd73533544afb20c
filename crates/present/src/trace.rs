//! The JSON object `trace`: what a trace is, the same in every command that reads one.

use prism_trace::{Capabilities, CountedFrom, Op, SkipRow, Tally, TraceInfo};
use serde::Serialize;

/// What is in a trace, after selection by phase and device. Keys stay in this order.
#[derive(Clone, Debug, Serialize)]
pub struct TraceObject {
    /// The first file.
    pub file: String,
    /// The format of the recording.
    pub format: String,
    /// Lines (or binary records) of the recording.
    pub lines: u64,
    /// The event that was counted as the request.
    pub counted_from: CountedFrom,
    /// Where these are NVMe commands, the size of a logical block that was assumed (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvme_block_bytes: Option<u64>,
    /// The phase that was selected.
    pub phase: Option<String>,
    /// The device of the trace that was selected.
    pub source: Option<String>,
    /// Reads, writes, discards and write-zeroes.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Discards.
    pub discards: u64,
    /// Write-zeroes.
    pub write_zeroes: u64,
    /// Flushes, which are no requests.
    pub flushes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes discarded.
    pub bytes_discarded: u64,
    /// Bytes of write-zeroes, which no data is sent for.
    pub bytes_zeroed: u64,
    /// Bytes of the writes marked as metadata; null where the format has no such mark.
    pub bytes_written_metadata: Option<u64>,
    /// Bytes of the distinct 4 KiB units written.
    pub unique_bytes_written: u64,
    /// Whether that is exact; else it is a lower bound.
    pub unique_bytes_written_exact: bool,
    /// Median size of a read (bytes).
    pub read_bytes_p50: Option<u64>,
    /// Median size of a write (bytes).
    pub write_bytes_p50: Option<u64>,
    /// Median size of a discard (bytes).
    pub discard_bytes_p50: Option<u64>,
    /// Median size of a write-zeroes (bytes).
    pub write_zeroes_bytes_p50: Option<u64>,
    /// Whether the median sizes are exact; else they are rounded down by at most 1/128.
    pub sizes_exact: bool,
    /// Requests whose address and size are multiples of 4 KiB.
    pub aligned_4k: u64,
    /// First byte after the highest request.
    pub address_end: u64,
    /// From the first issue to the last issue or completion of the selected requests. The
    /// length of a phase from mark to mark stands in `phases`.
    pub duration_ns: u64,
    /// Most requests issued and not yet completed, flushes apart; null where the trace
    /// has no completions.
    pub queue_depth_max: Option<u64>,
    /// Requests whose completion is not in the trace although it has completions.
    pub unpaired: u64,
    /// Phases of the whole recording.
    pub phases: Vec<PhaseObject>,
    /// Devices of the whole recording.
    pub devices: Vec<Tally>,
    /// Commands of the processes, over the selected requests.
    pub processes: Vec<Tally>,
    /// Files, over the selected requests whose file is known, most data first; at most 1000.
    pub files: Vec<Tally>,
    /// Lines that did not become a request, by reason.
    pub skipped: Vec<SkipRow>,
    /// What the source could tell.
    pub capabilities: Capabilities,
}

/// A phase: where it lies, and what was asked in it.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseObject {
    /// Where it starts (ns since trace start); null if the trace has no mark of it.
    pub start_ns: Option<i64>,
    /// Its length (ns); null if the trace has no mark of it.
    pub duration_ns: Option<u64>,
    /// Its requests.
    #[serde(flatten)]
    pub tally: Tally,
}

/// The object for `trace`.
#[must_use]
pub fn trace_object(trace: &TraceInfo) -> TraceObject {
    let (facts, summary) = (&trace.facts, &trace.summary);
    let (can, op) = (facts.capabilities, |op| summary.op(op));
    TraceObject {
        file: trace.name.clone(),
        format: facts.format.clone(),
        lines: facts.lines,
        counted_from: facts.counted_from,
        nvme_block_bytes: facts.nvme_block_bytes,
        phase: trace.phase.clone(),
        source: trace.source.clone(),
        requests: summary.requests,
        reads: op(Op::Read).count,
        writes: op(Op::Write).count,
        discards: op(Op::Discard).count,
        write_zeroes: op(Op::WriteZeroes).count,
        flushes: summary.flushes,
        bytes_read: op(Op::Read).bytes,
        bytes_written: op(Op::Write).bytes,
        bytes_discarded: op(Op::Discard).bytes,
        bytes_zeroed: op(Op::WriteZeroes).bytes,
        bytes_written_metadata: can.sync_meta.then_some(summary.metadata_write_bytes),
        unique_bytes_written: summary.unique_written_bytes,
        unique_bytes_written_exact: summary.unique_written_exact,
        read_bytes_p50: op(Op::Read).size_p50_bytes,
        write_bytes_p50: op(Op::Write).size_p50_bytes,
        discard_bytes_p50: op(Op::Discard).size_p50_bytes,
        write_zeroes_bytes_p50: op(Op::WriteZeroes).size_p50_bytes,
        sizes_exact: summary.ops.iter().all(|figures| figures.size_p50_exact),
        aligned_4k: summary.aligned_4k,
        address_end: summary.span_bytes,
        duration_ns: summary.duration_ns,
        queue_depth_max: summary.queue_depth_max.filter(|_| can.completion),
        unpaired: facts.unpaired,
        phases: phases(trace),
        devices: trace.devices.rows(&trace.symbols),
        processes: if can.process { trace.processes.largest(&trace.symbols) } else { vec![] },
        files: files(trace),
        skipped: facts.skipped.clone(),
        capabilities: can,
    }
}

/// Files listed at most: a trace may name a million of them.
const FILES_MAX: usize = 1000;

fn files(trace: &TraceInfo) -> Vec<Tally> {
    let mut files = trace.files.largest(&trace.symbols);
    files.truncate(FILES_MAX);
    files
}

fn phases(trace: &TraceInfo) -> Vec<PhaseObject> {
    let mut tallies = trace.phases.rows(&trace.symbols);
    let mut rows = Vec::new();
    for name in trace.facts.phase_names() {
        let place = tallies.iter().position(|tally| tally.name == name);
        let tally = match place {
            Some(place) => tallies.remove(place),
            None => Tally { name: name.clone(), ..Tally::default() },
        };
        let first = trace.facts.phases.iter().find(|phase| phase.name == name);
        rows.push(PhaseObject {
            start_ns: first.map(|phase| phase.start_ns),
            duration_ns: trace.facts.phase_ns(&name),
            tally,
        });
    }
    // Requests before the first mark have no phase, and need no row of that name.
    tallies.retain(|tally| !tally.name.is_empty());
    rows.extend(tallies.into_iter().map(|tally| PhaseObject {
        start_ns: None,
        duration_ns: None,
        tally,
    }));
    rows
}
