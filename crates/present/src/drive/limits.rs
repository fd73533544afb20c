//! Notes of a report on a drive: what its figures leave out or assume.

use prism_base::Bytes;
use prism_nand::Cause;
use prism_replay::Layout;
use prism_report::{Block, Section, Unit};

use super::{Facts, Run};
use crate::trace::limit_notes;

/// Notes on what limits the figures.
#[must_use]
pub fn section(facts: &Facts) -> Section {
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

/// Bytes programmed for the host per byte that it writes from which the difference is explained.
const PARTIAL: f64 = 1.02;

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
    let (flash, unit) = (&measured.flash, run.device.ftl.mapping_unit);
    let of_host = (flash.units[Cause::Host] * unit.0) as f64 / measured.written().max(1) as f64;
    if of_host >= PARTIAL && flash.reads[Cause::Rmw] > 0 {
        notes.push(format!(
            "Of write amplification, {} is what the host writes: some writes cover a mapping unit \
             of {unit} only in part, and the drive reads and programs whole units.",
            Unit::Ratio.format(of_host)
        ));
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
