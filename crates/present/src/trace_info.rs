//! A trace in numbers: what is in it, and what its format cannot tell.

use prism_base::{Bytes, Nanos};
use prism_report::{Block, Column, Document, Figure, Section, Table, Unit, Value};
use prism_trace::{Capabilities, CountedFrom, Tally};

use crate::trace::TraceObject;

/// What is in a trace, as a document.
#[must_use]
pub fn document(object: &TraceObject) -> Document {
    let mut subtitle = format!("{} trace, {} lines read", object.format, object.lines);
    subtitle.push_str(match object.counted_from {
        CountedFrom::Issue => "",
        CountedFrom::Queue => {
            ", counted where requests enter the block layer: no issue is recorded"
        }
        CountedFrom::Nvme => ", counted by the commands of the NVMe driver",
    });
    let selected = [("phase", &object.phase), ("device", &object.source)];
    for (what, name) in selected {
        if let Some(name) = name {
            subtitle.push_str(&format!(", only {what} {name}"));
        }
    }
    let mut document = Document::new(object.file.clone(), subtitle);
    document.sections.push(requests(object));
    let who = [
        ("Devices", "device", &object.devices),
        ("Processes", "process", &object.processes),
        ("Files", "file", &object.files),
    ];
    document.sections.extend(phases(object));
    for (title, column, tallies) in who {
        document.sections.extend(people(title, column, tallies));
    }
    document.sections.extend(limits(object));
    document
}

fn requests(object: &TraceObject) -> Section {
    let mut section = Section::new("Requests", "");
    let seconds = object.duration_ns as f64 / 1e9;
    let rate = (seconds > 0.0).then(|| object.requests as f64 / seconds);
    let aligned = (object.requests > 0).then(|| object.aligned_4k as f64 / object.requests as f64);
    section.push(Block::KeyFigures(vec![
        Figure::new("Requests", Unit::Count, object.requests),
        Figure::new("Time", Unit::Nanos, object.duration_ns),
        Figure::new("Requests a second", Unit::PerSec, rate),
        Figure::new("Unique data written", Unit::Bytes, object.unique_bytes_written).note(
            if object.unique_bytes_written_exact {
                "distinct 4 KiB units"
            } else {
                "at least; the written addresses are too many to count"
            },
        ),
        Figure::new("Aligned to 4 KiB", Unit::Percent, aligned),
        Figure::new("Metadata writes", Unit::Bytes, object.bytes_written_metadata),
        Figure::new("Deepest queue", Unit::Count, object.queue_depth_max)
            .note("issued and not yet completed"),
        Figure::new("Highest address", Unit::Bytes, object.address_end),
    ]));
    let columns = vec![
        Column::text("operation"),
        Column::number("requests", Unit::Count),
        Column::number("data", Unit::Bytes),
        Column::number("median size", Unit::Bytes),
    ];
    let can = object.capabilities;
    let mut table = Table::new("By operation", columns);
    let known = |can: bool, value: u64| if can { Value::Int(value) } else { Value::Missing };
    let mut row = |name: &str, can, count, bytes: Option<u64>, p50: Option<u64>| {
        table.rows.push(vec![name.into(), known(can, count), bytes.into(), p50.into()]);
    };
    row("read", true, object.reads, Some(object.bytes_read), object.read_bytes_p50);
    let written = can.operation.then_some(object.bytes_written);
    row("write", can.operation, object.writes, written, object.write_bytes_p50);
    let discarded = can.discard.then_some(object.bytes_discarded);
    row("discard", can.discard, object.discards, discarded, object.discard_bytes_p50);
    let zeroed = can.write_zeroes.then_some(object.bytes_zeroed);
    let zeroed_p50 = object.write_zeroes_bytes_p50;
    row("write zeroes", can.write_zeroes, object.write_zeroes, zeroed, zeroed_p50);
    row("flush", can.flush, object.flushes, None, None);
    section.push(Block::Table(table));
    section
}

fn phases(object: &TraceObject) -> Option<Section> {
    if object.phases.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("phase"),
        Column::number("time", Unit::Nanos),
        Column::number("reads", Unit::Count),
        Column::number("writes", Unit::Count),
        Column::number("read", Unit::Bytes),
        Column::number("written", Unit::Bytes),
        Column::number("flushes", Unit::Count),
        Column::number("discards", Unit::Count),
    ];
    let mut table = Table::new("Phases of the whole recording; choose one with --phase", columns);
    for phase in &object.phases {
        let mut row = tally_row(&phase.tally);
        row.insert(1, phase.duration_ns.into());
        table.rows.push(row);
    }
    let mut section = Section::new("Phases", "");
    section.push(Block::Table(table));
    Some(section)
}

/// The requests of devices, processes or files, `column` says of which; none if there are none.
#[must_use]
pub fn people(title: &str, column: &str, tallies: &[Tally]) -> Option<Section> {
    if tallies.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text(column),
        Column::number("reads", Unit::Count),
        Column::number("writes", Unit::Count),
        Column::number("read", Unit::Bytes),
        Column::number("written", Unit::Bytes),
        Column::number("flushes", Unit::Count),
        Column::number("discards", Unit::Count),
    ];
    let caption = match column {
        "device" => "Devices of the whole recording; choose one with --source",
        "file" => "Files whose data it was, most data first",
        _ => "Commands that asked for the requests, most data first",
    };
    let mut table = Table::new(caption, columns);
    table.rows = tallies.iter().take(ROWS_SHOWN).map(tally_row).collect();
    let mut section = Section::new(title, "");
    section.push(Block::Table(table));
    if let Some(more) = tallies.len().checked_sub(ROWS_SHOWN).filter(|&more| more > 0) {
        section.push(Block::Notes(vec![format!("{more} more rows are in the JSON (--json).")]));
    }
    Some(section)
}

/// Rows of a table on the screen; the rest is in the JSON.
const ROWS_SHOWN: usize = 12;

fn tally_row(tally: &Tally) -> Vec<Value> {
    let name = if tally.name.is_empty() { "(unknown)" } else { &tally.name };
    vec![
        name.into(),
        tally.reads.into(),
        tally.writes.into(),
        tally.bytes_read.into(),
        tally.bytes_written.into(),
        tally.flushes.into(),
        tally.discards.into(),
    ]
}

/// A clock whose steps are longer than most requests take.
const CLOCK_COARSE: Nanos = Nanos(1_000_000);

/// What was not counted, and what the trace cannot tell, in sentences.
#[must_use]
pub fn limit_notes(object: &TraceObject) -> Vec<String> {
    let mut notes = Vec::new();
    for skip in &object.skipped {
        let were = if skip.count == 1 { "line or record was" } else { "lines or records were" };
        notes.push(format!(
            "{} {were} skipped, the first at {}: {}.",
            skip.count, skip.first_line, skip.reason
        ));
    }
    let missing = missing(&object.capabilities);
    if !missing.is_empty() {
        notes.push(format!("This trace does not tell: {}.", missing.join(", ")));
    }
    let step = Nanos(object.capabilities.clock_ns);
    if step >= CLOCK_COARSE {
        notes.push(format!(
            "Its clock has steps of {step}: what happens within one comes at the same moment, and \
             latency under load means little."
        ));
    }
    if let Some(size) = object.nvme_block_bytes {
        notes.push(format!(
            "NVMe commands count in logical blocks without saying how large these are: {} was \
             assumed (--block-size), and every address and size follows from it.",
            Bytes(size)
        ));
    }
    if object.unpaired > 0 {
        let requests = if object.unpaired == 1 { "request" } else { "requests" };
        notes.push(format!("For {} {requests} no completion is recorded.", object.unpaired));
    }
    notes
}

fn limits(object: &TraceObject) -> Option<Section> {
    let notes = limit_notes(object);
    if notes.is_empty() {
        return None;
    }
    let mut section = Section::new("Limits", "");
    section.push(Block::Notes(notes));
    Some(section)
}

fn missing(can: &Capabilities) -> Vec<&'static str> {
    let told = [
        (can.operation, "operations (every request counts as a read)"),
        (can.address, "addresses (what it names is laid out in the order of first use)"),
        (can.discard, "discards"),
        (can.write_zeroes, "write-zeroes"),
        (can.flush, "flushes"),
        (can.fua, "forced unit access"),
        (can.sync_meta, "sync and metadata marks"),
        (can.completion, "completions"),
        (can.queue, "queue times"),
        (can.process, "processes"),
        (can.file, "files"),
        (can.stream, "write hints and streams"),
    ];
    told.into_iter().filter(|(told, _)| !told).map(|(_, what)| what).collect()
}
