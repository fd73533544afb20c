//! The sections of a report on a drive: write amplification and its causes first.

use prism_base::{Bytes, Latencies};
use prism_nand::Cause;
use prism_replay::{Layout, Lifetime, SteadyState};
use prism_report::{Block, Chart, Document, Figure, Section, Segment, Stacked, Unit};
use prism_ssd::spec::SlcUsage;
use prism_ssd::{DriveSpec, HostOp, InitialState};
use prism_trace::{Op, TraceInfo};
use prism_workload::Measured;

use super::{Facts, Run, faults, tables};
use crate::pace::describe;
use crate::trace::limit_notes;

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
    sections.push(limits(facts));
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
        estimate_note()
    } else if shares.is_empty() {
        "nothing reached the flash".to_owned()
    } else {
        format!("flash bytes per byte written: {}{}", shares.join(", "), deviation(facts))
    };
    let mut figures = vec![
        Figure::new("Write amplification", Unit::Ratio, facts.write_amplification())
            .note(amplification),
        Figure::new("Lifetime at this rate", Unit::Nanos, facts.lifetime_ns())
            .note(lifetime_note(facts)),
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
        let few = match latencies.count() {
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

/// With fewer requests than this, fewer than ten are beyond the 99th percentile.
const P99_REQUESTS: u64 = 1000;

/// Write amplification and lifetime as a sentence; empty if the trace determines neither.
#[must_use]
pub fn wear_sentence(facts: &Facts) -> String {
    let Some(ratio) = facts.write_amplification() else { return String::new() };
    let ratio = match facts.is_estimate() {
        true => format!("about {} ({})", Unit::Ratio.format(ratio), estimate_note()),
        false => Unit::Ratio.format(ratio),
    };
    if let Some(why) = facts.too_short() {
        return format!("Write amplification {ratio}. {why}.");
    }
    let life = facts.lifetime_ns().map(|life| {
        let (life, capacity) = (Unit::Nanos.format(life), facts.described.capacity());
        format!(", lifetime {life} of the {capacity} drive {}", even_wear(facts))
    });
    format!("Write amplification {ratio}{}.", life.unwrap_or_default())
}

/// What a lifetime assumes, and what it would be otherwise.
fn even_wear(facts: &Facts) -> String {
    let unlevelled = facts.unlevelled_ns().map(|first| {
        let first = Unit::Nanos.format(first);
        format!(" ({first} until its first block is worn out, if it does not level wear)")
    });
    let brief = facts.brief_pass().map(|pass| format!(", extrapolated from {pass}"));
    format!("with even wear{}{}", unlevelled.unwrap_or_default(), brief.unwrap_or_default())
}

/// Why write amplification is an estimate.
fn estimate_note() -> String {
    "an estimate: as if the trace wrote its addresses at random for long".to_owned()
}

/// How much write amplification varies, as the end of a sentence.
fn deviation(facts: &Facts) -> String {
    match facts.outcome.steady_write_amplification() {
        Some((_, deviation)) if deviation >= 0.005 => format!(
            "; varies by {} over {} rounds",
            Unit::Ratio.format(deviation),
            facts.outcome.window_rounds
        ),
        _ => String::new(),
    }
}

/// What a lifetime refers to.
fn lifetime_note(facts: &Facts) -> String {
    if let Some(why) = facts.too_short() {
        return why;
    }
    let Some(life) = facts.lifetime() else { return "nothing reaches the flash".into() };
    format!(
        "of the {} drive, {} cycles, {}; lasts 5 years at {} drive writes a day",
        facts.described.capacity(),
        facts.described.flash.endurance,
        even_wear(facts),
        Unit::Ratio.format(life.dwpd)
    )
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
        estimate_note()
    } else {
        format!("data programmed to flash / data the host wrote{}", deviation(facts))
    };
    let mut figures = vec![
        Figure::new("Write amplification", Unit::Ratio, facts.write_amplification()).note(note),
        Figure::new("Lifetime at this rate", Unit::Nanos, facts.lifetime_ns())
            .note(lifetime_note(facts)),
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
            "of a drive of {}: {} cycles per block, even wear",
            device.capacity(),
            device.flash.endurance
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
        Cause::Host => "what the host wrote",
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
    push_wear(&mut section, facts.run());
    section
}

/// Pushes the figures of cleaning and wear, and those of SLC blocks.
pub fn push_wear(section: &mut Section, run: Run<'_>) {
    section.push(wear_figures(run));
    section.blocks.extend(slc_figures(run));
}

/// The use of SLC blocks, if the drive has some.
fn slc_figures(run: Run<'_>) -> Option<Block> {
    let Run { measured, device, end } = run;
    let slc = device.slc.as_ref()?;
    let (flash, unit) = (&measured.flash, device.ftl.mapping_unit.0);
    let in_slc = flash.slc_units[Cause::Host];
    let share = |units: u64| {
        let of_host = units as f64 / flash.units[Cause::Host].max(1) as f64;
        format!("{} of what the host wrote to flash", Unit::Percent.format(of_host))
    };
    let overflow = flash.slc_overflow;
    let mut figures = vec![
        Figure::new("Written to SLC blocks", Unit::Bytes, in_slc * unit).note(share(in_slc)),
        Figure::new("Did not fit there", Unit::Bytes, overflow * unit).note(share(overflow)),
    ];
    if slc.usage == SlcUsage::Cache {
        let folded = flash.units[Cause::Fold];
        figures.push(
            Figure::new("Folded", Unit::Bytes, folded * unit)
                .note("moved from the SLC write cache to the other blocks"),
        );
    }
    if let Some(wear) = end.slc_wear {
        figures.push(Figure::new("Erases of an SLC block", Unit::Count, wear.mean).note(format!(
            "since the start; between {} and {}; rated for {}",
            wear.min, wear.max, slc.endurance
        )));
    }
    Some(Block::KeyFigures(figures))
}

/// Copies, erases, hits of the buffer and the map cache, and merges.
fn wear_figures(run: Run<'_>) -> Block {
    let Run { measured, device, end } = run;
    let wear = end.wear;
    let flash = &measured.flash;
    let geometry = device.geometry();
    // Erases are counted in blocks of one plane of one die.
    let upb = u64::from(geometry.units_per_block())
        / u64::from(geometry.planes_ganged * geometry.dies_per_superblock);
    let erased = flash.erases.total() - flash.erases[Cause::Fold];
    let copied = flash.units[Cause::Gc];
    // Blocks of an SLC region hold fewer units, so erases of both kinds do not add up.
    let alike = device.slc.as_ref().is_none_or(|slc| slc.usage == SlcUsage::Cache);
    let share = (erased > 0 && alike).then(|| copied as f64 / (erased * upb) as f64);
    let mut figures = vec![
        Figure::new("Still valid in cleaned blocks", Unit::Percent, share)
            .note("data that cleaning had to copy"),
        Figure::new("Erases of a block", Unit::Count, wear.mean)
            .note(format!("since the start; between {} and {}", wear.min, wear.max)),
        Figure::new("Found in the write buffer", Unit::Count, measured.buffer_hits)
            .note("mapping units read from it or overwritten in it"),
    ];
    if let Some(map) = measured.map {
        figures.push(Figure::new("Misses of the map cache", Unit::Percent, map.miss_ratio()).note(
            format!(
                "{} translation pages read for them, {} to be rewritten",
                map.loads, map.writebacks
            ),
        ));
    }
    if let Some(merges) = measured.merges {
        let all = merges.switches + merges.partial + merges.full;
        figures.push(Figure::new("Merges", Unit::Count, all).note(format!(
            "{} switches, {} partial, {} full; {} blocks erased with nothing left in them",
            merges.switches, merges.partial, merges.full, merges.empty
        )));
    }
    Block::KeyFigures(figures)
}

/// Notes on what limits the figures.
#[must_use]
pub fn limits(facts: &Facts) -> Section {
    let mut notes = Vec::new();
    if !facts.scaled.changes.is_empty() {
        notes.push(format!(
            "Write amplification and wear are of a drive of {}: {}.",
            facts.scaled.device.capacity(),
            facts.scaled.changes.join("; ")
        ));
    }
    if let Some(speed) = &facts.speed {
        notes.push(format!(
            "Latency and throughput are of a drive of {} with all dies and buffers{}{}.",
            speed.scaled.device.capacity(),
            if speed.scaled.changes.is_empty() { "" } else { "; " },
            speed.scaled.changes.join("; ")
        ));
    }
    if facts.lacks_dies() {
        notes.push(format!(
            "Latency and throughput come from that drive, as the steady state of this kind of \
             drive cannot be laid out on all dies: with {} instead of {} dies it is slower under \
             load. A larger --capacity has more dies.",
            facts.scaled.device.geometry().dies(),
            facts.described.geometry().dies()
        ));
    }
    if let Some(pass) = facts.brief_pass() {
        notes.push(format!(
            "The lifetime is extrapolated from {pass} of requests, and holds only if the load goes \
             on like that."
        ));
    }
    notes.extend(layout_notes(facts));
    let timed = facts.timed();
    if timed.held_back > 0 {
        notes.push(format!(
            "The drive does not keep up: {} requests found its queue full, and submission fell \
             up to {} behind the trace. Latencies include that wait; --pace {}closed:N avoids it.",
            timed.held_back,
            timed.behind_max,
            if facts.trace.facts.capabilities.completion { "dependent or " } else { "" }
        ));
    }
    if !facts.is_estimate() {
        notes.extend(measured_notes(facts.run()));
    }
    notes.extend(limit_notes(&facts.trace));
    let state = &facts.state.name;
    let of = if facts.speed.is_some() { " of the fitted drive" } else { "" };
    notes.push(format!("Initial state{of} {state}, seed {}.", facts.seed));
    notes.extend(facts.state.note(&facts.prepared));
    Section::new("What to keep in mind", "").with(Block::Notes(notes))
}

/// Notes on where the addresses of the trace are on the drive.
fn layout_notes(facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    let places = facts.layout.ranges();
    if places.len() > 1 {
        let names: Vec<_> =
            places.iter().take(4).map(|p| facts.trace.symbols.name(p.device)).collect();
        let more = if places.len() > names.len() { ", ..." } else { "" };
        notes.push(format!(
            "The trace has {} devices ({}{more}), which are laid out one after another on this \
             drive; --source NAME selects one of them.",
            places.len(),
            names.join(", ")
        ));
    }
    let addressed = Bytes(Layout::whole(&facts.trace.touched).span());
    if addressed > facts.described.capacity() {
        notes.push(format!(
            "The trace addresses {addressed}, more than the {} of the described drive: it comes \
             from a larger one.",
            facts.described.capacity()
        ));
    }
    notes.extend(cold_note(facts));
    if let Some((bytes, unit)) = facts.layout.left_out() {
        notes.push(format!(
            "{} of addresses, which no request reads or writes, are not on the simulated drive: \
             whole units of {}.{}",
            Bytes(bytes),
            Bytes(unit),
            match facts.left_out_discards() {
                0 => String::new(),
                1 => " 1 discard of such addresses is not replayed.".to_owned(),
                discards => format!(" {discards} discards of such addresses are not replayed."),
            }
        ));
    }
    notes
}

/// A pass that overwrites a small part of the drive leaves the rest cold, which an application that
/// moves on to other addresses does not.
fn cold_note(facts: &Facts) -> Option<String> {
    let device = &facts.scaled.device;
    let distinct = Bytes(facts.trace.summary.unique_written_bytes);
    let share = distinct.0 as f64 / device.capacity().0 as f64;
    let all = device.cleaning_of_uniform_writes(device.capacity())?;
    (distinct.0 > 0 && share < COLD_SHARE).then(|| {
        format!(
            "Each pass overwrites the same {} of the drive and leaves the rest cold. If the \
             application moves on to other addresses with time, write amplification is higher: \
             {} for random writes everywhere.",
            Unit::Percent.format(share),
            Unit::Ratio.format(all)
        )
    })
}

/// The share of the drive below which what a pass overwrites is said.
const COLD_SHARE: f64 = 0.25;

/// Notes on the figures of any run.
#[must_use]
pub fn measured_notes(run: Run<'_>) -> Vec<String> {
    let (measured, buffered) = (run.measured, run.end.buffered);
    let mut notes = Vec::new();
    let reached = measured.flash_bytes + buffered.0;
    // A difference that the figure does not show needs no reason.
    if (reached as f64) < 0.995 * measured.written() as f64 {
        notes.push(
            "Write amplification is below 1 because some data was overwritten or trimmed in the \
             write buffer and never programmed to flash."
                .into(),
        );
    }
    if measured.unmapped > 0 {
        notes.push(format!(
            "{} unmapped units were read (never written, or trimmed); the drive answers these \
             reads without reading flash.",
            measured.unmapped
        ));
    }
    let written = measured.written();
    if buffered.0 * 100 > written && written > 0 {
        notes.push(format!(
            "{} were still in the write buffer at the end and do not count in the write \
             amplification.",
            buffered
        ));
    }
    notes
}
