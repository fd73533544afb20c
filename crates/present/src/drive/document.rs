//! The sections of a report on a drive: write amplification and its causes first.

use prism_base::Latencies;
use prism_contract::what_if::figures::P99_REQUESTS;
use prism_nand::Cause;
use prism_replay::{Lifetime, SteadyState};
use prism_report::{Block, Chart, Document, Figure, Section, Segment, Stacked, Unit};
use prism_ssd::{DriveSpec, HostOp, InitialState};
use prism_trace::{Op, TraceInfo};
use prism_workload::Measured;

use super::{Facts, Run, faults, limits, tables, wear};
use crate::pace::describe;

/// Title and subtitle: the trace and the drive.
#[must_use]
pub fn head(facts: &Facts) -> Document {
    let subtitle = format!("{} {}", requests(facts), drive(&facts.described));
    Document::new(facts.trace.name.clone(), subtitle)
}

/// The remaining sections: latency, cleaning and wear, faults, and last the notes.
#[must_use]
pub fn sections(facts: &Facts) -> Vec<Section> {
    let mut sections = vec![latency(facts), cleaning(facts)];
    sections.extend(faults::section(facts.run()));
    sections.push(limits::section(facts));
    sections
}

/// The figures that a terminal shows: write amplification, lifetime, latencies, throughput.
#[must_use]
pub fn brief(facts: &Facts) -> Section {
    let (window, timed) = (&facts.outcome.window, facts.timed());
    let mut section = Section::new("On this drive", lead(facts));
    let causes = window.flash.units.iter().filter(|&(_, units)| units > 0);
    let written = window.written().max(1);
    let unit = facts.scaled.device.ftl.mapping_unit.0;
    let shares: Vec<String> = causes
        .map(|(cause, units)| {
            let share = (units * unit) as f64 / written as f64;
            format!("{} {}", cause.name(), Unit::Ratio.format(share))
        })
        .collect();
    let amplification = if facts.is_estimate() {
        wear::estimate_note()
    } else if shares.is_empty() {
        "nothing reached the flash".to_owned()
    } else {
        format!("flash bytes per byte written: {}{}", shares.join(", "), wear::deviation(facts))
    };
    let mut figures = vec![
        Figure::new("Write amplification", Unit::Ratio, facts.write_amplification())
            .note(amplification),
        Figure::new("Lifetime at this rate", Unit::Nanos, facts.lifetime_ns())
            .note(wear::lifetime_note(facts)),
    ];
    figures.extend(latencies(timed));
    figures.push(Figure::new("Throughput", Unit::BytesPerSec, timed.bytes_per_second()).note(
        format!(
            "{} requests/s, {} in flight on average",
            Unit::Count.format(timed.iops()),
            Unit::Ratio.format(timed.in_flight_mean())
        ),
    ));
    section.push(figures);
    section
}

/// The p99 of reads, of writes, and of both if there are both.
fn latencies(timed: &Measured) -> Vec<Figure> {
    let of = |name: &str, latencies: &Latencies| {
        let show = |q| Unit::Nanos.format(latencies.quantile(q).0 as f64);
        let mean = Unit::Nanos.format(latencies.mean_ns());
        // The same requests again are no more evidence.
        let few = match latencies.count() / u64::from(timed.passes.max(1)) {
            count if count < P99_REQUESTS => format!("; of only {count}"),
            _ => String::new(),
        };
        let note = format!("mean {mean}, p50 {}, p99.9 {}{few}", show(0.5), show(0.999));
        Figure::new(format!("p99 of {name}"), Unit::Nanos, latencies.quantile(0.99)).note(note)
    };
    let one = |op| timed.latency_of(op);
    let each = [("reads", one(HostOp::Read)), ("writes", one(HostOp::Write))];
    let some = each.into_iter().filter(|(_, latencies)| latencies.count() > 0);
    let mut figures: Vec<Figure> = some.map(|(name, latencies)| of(name, latencies)).collect();
    if figures.len() == 2 {
        figures.push(of("both", &timed.reads_and_writes()));
    }
    figures
}

/// A sentence about the drive.
#[must_use]
pub fn drive(device: &DriveSpec) -> String {
    let spare = device.over_provisioning();
    let slc = device.slc.as_ref().map_or(String::new(), |slc| {
        let what = match slc.below {
            Some(below) => format!("for the first {below}"),
            None => format!("as a {}", slc.usage.name()),
        };
        format!(" {} with SLC, {what}.", device.geometry().slc_raw())
    });
    format!(
        "Drive {}: {}, {} for the host, over-provisioning {:.1} % nominal, {:.1} % \
         effective.{slc}",
        device.name,
        device.title,
        device.capacity(),
        100.0 * spare.nominal,
        100.0 * spare.effective
    )
}

/// A sentence about the requests of the trace.
fn requests(facts: &Facts) -> String {
    let TraceInfo { summary, facts: recording, phase, source, .. } = &facts.trace;
    let count = |n: u64| Unit::Count.format(n as f64);
    let size = |n: u64| Unit::Bytes.format(n as f64);
    let mut parts = Vec::new();
    for (name, op) in [
        ("reads", Op::Read),
        ("writes", Op::Write),
        ("discards", Op::Discard),
        ("write-zeroes", Op::WriteZeroes),
    ] {
        let of = summary.op(op);
        if of.count > 0 {
            // "write-zeroes" is the name of the command.
            let name = match (of.count, op) {
                (1, Op::Read | Op::Write | Op::Discard) => name.trim_end_matches('s'),
                _ => name,
            };
            parts.push(format!("{} {name} ({})", count(of.count), size(of.bytes)));
        }
    }
    if summary.flushes > 0 {
        let name = if summary.flushes == 1 { "flush" } else { "flushes" };
        parts.push(format!("{} {name}", count(summary.flushes)));
    }
    let selected = [("phase", phase), ("device", source)];
    let only: String = selected
        .iter()
        .filter_map(|(what, name)| Some(format!(", only {what} {}", name.as_ref()?)))
        .collect();
    format!(
        "Trace: {}{only}, {} in {}; distinct 4 KiB units written: {}.",
        recording.format,
        parts.join(", "),
        Unit::Nanos.format(summary.duration_ns as f64),
        size(summary.unique_written_bytes)
    )
}

/// Write amplification, its causes, and lifetime.
#[must_use]
pub fn summary(facts: &Facts) -> Section {
    let mut section = Section::new("Write amplification", lead(facts));
    section.push(trace_figures(facts));
    push_causes(&mut section, facts.run());
    section
}

/// The key figures of a trace on a drive.
fn trace_figures(facts: &Facts) -> Block {
    let (timed, life) = (facts.timed(), facts.lifetime());
    let note = if facts.is_estimate() {
        wear::estimate_note()
    } else {
        format!("data programmed to flash / data the host wrote{}", wear::deviation(facts))
    };
    let mut figures = vec![
        Figure::new("Write amplification", Unit::Ratio, facts.write_amplification()).note(note),
        Figure::new("Lifetime at this rate", Unit::Nanos, facts.lifetime_ns())
            .note(wear::lifetime_note(facts)),
    ];
    figures.extend(host_figures(timed, life));
    Block::KeyFigures(figures)
}

/// The key figures of a run.
#[must_use]
pub fn key_figures(run: Run<'_>) -> Block {
    let (Run { measured, device, .. }, life) = (run, run.lifetime());
    let mut figures = vec![
        Figure::new("Write amplification", Unit::Ratio, measured.write_amplification())
            .note("data programmed to flash / data the host wrote"),
        Figure::new("Lifetime at this rate", Unit::Nanos, run.lifetime_ns()).note(format!(
            "of a drive of {}: {} per block, even wear",
            device.capacity(),
            wear::cycles(device)
        )),
    ];
    figures.extend(host_figures(measured, life));
    Block::KeyFigures(figures)
}

/// The figures that a host sees.
fn host_figures(measured: &Measured, life: Option<Lifetime>) -> [Figure; 7] {
    [
        Figure::new("Terabytes written", Unit::Ratio, life.map(|l| l.tbw))
            .note("TBW: what the host may write in total, in 10^12 bytes"),
        Figure::new("Drive writes per day", Unit::Ratio, life.map(|l| l.dwpd))
            .note("DWPD: multiples of its capacity per day, for five years"),
        Figure::new("Host writes", Unit::Bytes, measured.written()),
        Figure::new("Host reads", Unit::Bytes, measured.bytes_of(HostOp::Read)),
        Figure::new("Throughput", Unit::BytesPerSec, measured.bytes_per_second()),
        Figure::new("Requests per second", Unit::PerSec, measured.iops()),
        Figure::new("Requests in flight", Unit::Ratio, measured.in_flight_mean())
            .note(format!("on average; at most {}", measured.in_flight_max)),
    ]
}

/// Flash operations by cause, as a bar of shares and as a table.
pub fn push_causes(section: &mut Section, run: Run<'_>) {
    let Run { measured, device, .. } = run;
    let unit = device.ftl.mapping_unit;
    let segments: Vec<_> = measured
        .flash
        .units
        .iter()
        .filter(|&(_, units)| units > 0)
        .map(|(cause, units)| Segment { name: cause.name().into(), value: (units * unit.0) as f64 })
        .collect();
    // A bar of a single segment shows no more than the table.
    if segments.len() > 1 {
        section.push(Chart::Stacked(Stacked {
            title: "Data programmed to flash, by cause".into(),
            caption: legend(measured),
            unit: Unit::Bytes,
            segments,
        }));
    }
    section.push(tables::causes(measured, unit));
}

/// Explains the causes that occur.
fn legend(measured: &Measured) -> String {
    let occurring = measured.flash.units.iter().filter(|&(_, units)| units > 0);
    let meanings: Vec<_> =
        occurring.map(|(cause, _)| format!("{}: {}", cause.name(), meaning(cause))).collect();
    format!("{}.", meanings.join("; "))
}

fn meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::Host => "what the host wrote, in whole mapping units",
        Cause::Gc => "copies that cleaning made to free blocks",
        Cause::Wear => "copies that even out wear",
        Cause::Map => "pages of the map, and records of trims",
        Cause::Merge => "copies that merge blocks",
        Cause::Scrub => "data refreshed because it aged",
        Cause::Parity => "parity over dies",
        Cause::Pad => {
            "filler in program units that a flush or the end of a cleaned block closed early"
        }
        Cause::Rmw => "the rest of units that the host wrote in part",
        Cause::Fold => "moves out of the SLC write cache",
        Cause::Retire => "data moved out of failed blocks",
    }
}

/// Says on which drive and in which passes write amplification was measured, and where latency
/// comes from.
fn lead(facts: &Facts) -> String {
    let outcome = &facts.outcome;
    let passes = |n: u32| if n == 1 { "one pass".to_owned() } else { format!("{n} passes") };
    let fitted = if facts.scaled.device.capacity() == facts.described.capacity() {
        "this drive".to_owned()
    } else {
        format!("a drive of {}, fitted to the trace", facts.scaled.device.capacity())
    };
    let worn = match outcome.steady {
        SteadyState::Reached => format!(
            "Write amplification is the mean over {} on {fitted}, steady after {} from the state \
             {}.",
            passes(outcome.window.passes),
            passes((outcome.warm_up_passes + outcome.measured.passes) - outcome.window.passes),
            facts.state.name
        ),
        SteadyState::NotReached => format!(
            "Write amplification did NOT become steady in {} on {fitted} and may still change.",
            passes(outcome.warm_up_passes)
        ),
        SteadyState::OutOfReach => format!(
            "The trace writes so little that about {} passes would be needed for a steady state \
             of {fitted}; two were replayed{}.",
            Unit::Count.format(outcome.passes_needed as f64),
            if facts.is_estimate() { "" } else { ", and write amplification is too low" }
        ),
        SteadyState::NotTested => format!(
            "Write amplification is that of {} on {fitted}, which was {} at the start; not tested \
             for steady state.",
            passes(outcome.measured.passes),
            facts.state.name
        ),
        SteadyState::NoWrites => "The trace writes nothing.".to_owned(),
    };
    match &facts.speed {
        None if facts.lacks_dies() => format!(
            "{worn} Latency and throughput are of that drive too, with {} of the {} dies.",
            facts.scaled.device.geometry().dies(),
            facts.described.geometry().dies()
        ),
        None => worn,
        Some(speed) => format!(
            "{worn} Latency and throughput are those of {} on all {} dies{}.",
            passes(speed.outcome.measured.passes),
            speed.scaled.device.geometry().dies(),
            match speed.run.initial_state() {
                InitialState::SteadyAt { .. } => ", in the steady state with this amplification",
                _ => "",
            }
        ),
    }
}

fn latency(facts: &Facts) -> Section {
    let (pace, meaning) = describe(facts.options.pace);
    let lead = format!("Requests arrive with pace {pace}: {meaning}.");
    Section::new("Latency", lead).with(tables::latency(facts.timed()))
}

fn cleaning(facts: &Facts) -> Section {
    let mut section = Section::new("Cleaning and wear", "");
    section.push(tables::passes(facts));
    wear::push(&mut section, facts.run());
    section
}
