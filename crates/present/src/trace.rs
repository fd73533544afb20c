//! The content of a trace: the JSON object `trace`, the same in every command that reads one, and
//! a document with the content of the trace and the limits of its format.

use prism_base::{Bytes, Nanos};
use prism_report::{Block, Document, Figure, Listing, Section, Table, Unit};
use prism_trace::{Capabilities, CountedFrom, Op, Tally, TraceInfo};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::json::without_null;

/// The content of a trace, after selection by phase and device. The order of keys is stable.
#[must_use]
pub fn json(trace: &TraceInfo) -> Json {
    let (facts, summary) = (&trace.facts, &trace.summary);
    let (can, op) = (facts.capabilities, |op| summary.op(op));
    let object = json!({
        // The first file.
        "file": trace.name,
        "format": facts.format,
        "lines": facts.lines,
        "counted_from": facts.counted_from,
        // For NVMe commands, the assumed size of a logical block.
        "nvme_block_bytes": facts.nvme_block_bytes,
        "phase": trace.phase,
        "source": trace.source,
        // Reads, writes, discards and write-zeroes.
        "requests": summary.requests,
        "reads": op(Op::Read).count,
        "writes": op(Op::Write).count,
        "discards": op(Op::Discard).count,
        "write_zeroes": op(Op::WriteZeroes).count,
        "flushes": summary.flushes,
        "bytes_read": op(Op::Read).bytes,
        "bytes_written": op(Op::Write).bytes,
        "bytes_discarded": op(Op::Discard).bytes,
        // No data is transferred for these.
        "bytes_zeroed": op(Op::WriteZeroes).bytes,
        "bytes_written_metadata": metadata(trace),
        // Bytes of the distinct 4 KiB units written; a lower bound where it is not exact.
        "unique_bytes_written": summary.unique_written_bytes,
        "unique_bytes_written_exact": summary.unique_written_exact,
        "read_bytes_p50": op(Op::Read).size_p50_bytes,
        "write_bytes_p50": op(Op::Write).size_p50_bytes,
        "discard_bytes_p50": op(Op::Discard).size_p50_bytes,
        "write_zeroes_bytes_p50": op(Op::WriteZeroes).size_p50_bytes,
        // Whether the median sizes are exact; else they are rounded down by at most 1/128.
        "sizes_exact": summary.ops.iter().all(|figures| figures.size_p50_exact),
        "aligned_4k": summary.aligned_4k,
        "address_end": summary.span_bytes,
        // From the first issue to the last issue or completion of the selected requests. The
        // length of a phase from mark to mark is in `phases`.
        "duration_ns": summary.duration_ns,
        "queue_depth_max": depth(trace),
        // Requests whose completion is not in the trace although it has completions.
        "unpaired": facts.unpaired,
        // Phases and devices of the whole recording, the others of the selected requests.
        "phases": phases(trace),
        "devices": devices(trace),
        "processes": processes(trace),
        "files": files(trace),
        "skipped": facts.skipped,
        "capabilities": can,
    });
    without_null(object, &["nvme_block_bytes"])
}

/// Bytes of the writes marked as metadata; `None` if the format has no such mark.
fn metadata(trace: &TraceInfo) -> Option<u64> {
    trace.facts.capabilities.sync_meta.then_some(trace.summary.metadata_write_bytes)
}

/// Most requests issued and not yet completed, except flushes; `None` if the trace has no
/// completions.
fn depth(trace: &TraceInfo) -> Option<u64> {
    trace.summary.queue_depth_max.filter(|_| trace.facts.capabilities.completion)
}

/// The requests of each device.
#[must_use]
pub fn devices(trace: &TraceInfo) -> Vec<Tally> {
    trace.devices.rows(&trace.symbols)
}

/// The requests of each command, most data first.
#[must_use]
pub fn processes(trace: &TraceInfo) -> Vec<Tally> {
    if trace.facts.capabilities.process {
        trace.processes.largest(&trace.symbols)
    } else {
        Vec::new()
    }
}

/// Most files that are listed: a trace may name a million of them.
const FILES_MAX: usize = 1000;

/// The requests of each file that is known, most data first.
fn files(trace: &TraceInfo) -> Vec<Tally> {
    let mut files = trace.files.largest(&trace.symbols);
    files.truncate(FILES_MAX);
    files
}

/// A phase: its start and length, and its requests.
#[derive(Serialize)]
struct Phase {
    /// Where it starts (ns since trace start); null if the trace has no mark of it.
    start_ns: Option<i64>,
    /// Its length (ns); null if the trace has no mark of it.
    duration_ns: Option<u64>,
    /// Its requests.
    #[serde(flatten)]
    tally: Tally,
}

fn phases(trace: &TraceInfo) -> Vec<Phase> {
    let mut tallies = trace.phases.rows(&trace.symbols);
    let mut rows = Vec::new();
    for name in trace.facts.phase_names() {
        let place = tallies.iter().position(|tally| tally.name == name);
        let tally = match place {
            Some(place) => tallies.remove(place),
            None => Tally { name: name.clone(), ..Tally::default() },
        };
        let first = trace.facts.phases.iter().find(|phase| phase.name == name);
        rows.push(Phase {
            start_ns: first.map(|phase| phase.start_ns),
            duration_ns: trace.facts.phase_ns(&name),
            tally,
        });
    }
    // Requests before the first mark have no phase, and need no row of that name.
    tallies.retain(|tally| !tally.name.is_empty());
    rows.extend(tallies.into_iter().map(|tally| Phase {
        start_ns: None,
        duration_ns: None,
        tally,
    }));
    rows
}

/// The content of a trace as a document.
#[must_use]
pub fn document(trace: &TraceInfo) -> Document {
    let facts = &trace.facts;
    let mut subtitle = format!("{} trace, {} lines read", facts.format, facts.lines);
    subtitle.push_str(match facts.counted_from {
        CountedFrom::Issue => "",
        CountedFrom::Queue => {
            ", counted where requests enter the block layer: no issue is recorded"
        }
        CountedFrom::Nvme => ", counted by the commands of the NVMe driver",
    });
    let selected = [("phase", &trace.phase), ("device", &trace.source)];
    for (what, name) in selected {
        if let Some(name) = name {
            subtitle.push_str(&format!(", only {what} {name}"));
        }
    }
    let mut document = Document::new(trace.name.clone(), subtitle);
    document.sections.push(requests(trace));
    document.sections.extend(phase_section(trace));
    document.sections.extend(issuers(trace));
    document.sections.extend(limits(trace));
    document
}

/// The devices, processes and files of the requests.
#[must_use]
pub fn issuers(trace: &TraceInfo) -> Vec<Section> {
    let all = [
        ("Devices", "device", devices(trace)),
        ("Processes", "process", processes(trace)),
        ("Files", "file", files(trace)),
    ];
    let section =
        |(title, column, tallies): (_, _, Vec<Tally>)| tally_section(title, column, &tallies);
    all.into_iter().filter_map(section).collect()
}

fn requests(trace: &TraceInfo) -> Section {
    let mut section = Section::new("Requests", "");
    let summary = &trace.summary;
    let requests = summary.requests as f64;
    let seconds = summary.duration_ns as f64 / 1e9;
    let rate = (seconds > 0.0).then(|| requests / seconds);
    let aligned = (requests > 0.0).then(|| summary.aligned_4k as f64 / requests);
    section.push(vec![
        Figure::new("Requests", Unit::Count, summary.requests),
        Figure::new("Time", Unit::Nanos, summary.duration_ns),
        Figure::new("Requests per second", Unit::PerSec, rate),
        Figure::new("Unique data written", Unit::Bytes, summary.unique_written_bytes).note(
            if summary.unique_written_exact {
                "distinct 4 KiB units"
            } else {
                "a lower bound; too many addresses to count exactly"
            },
        ),
        Figure::new("Aligned to 4 KiB", Unit::Percent, aligned),
        Figure::new("Metadata writes", Unit::Bytes, metadata(trace)),
        Figure::new("Deepest queue", Unit::Count, depth(trace))
            .note("issued and not yet completed"),
        Figure::new("Highest address", Unit::Bytes, summary.span_bytes),
    ]);
    let can = trace.facts.capabilities;
    let of = |name, op: Op, known: bool| {
        let of = summary.op(op);
        (name, known.then_some(of.count), known.then_some(of.bytes), of.size_p50_bytes)
    };
    let rows = [
        of("read", Op::Read, true),
        of("write", Op::Write, can.operation),
        of("discard", Op::Discard, can.discard),
        of("write zeroes", Op::WriteZeroes, can.write_zeroes),
        ("flush", can.flush.then_some(summary.flushes), None, None),
    ];
    let table = Table::listing(&rows)
        .text("operation", |row| row.0)
        .number("requests", Unit::Count, |row| row.1)
        .number("data", Unit::Bytes, |row| row.2)
        .number("median size", Unit::Bytes, |row| row.3);
    section.with(table.table("By operation"))
}

fn phase_section(trace: &TraceInfo) -> Option<Section> {
    let phases = phases(trace);
    if phases.is_empty() {
        return None;
    }
    let table = Table::listing(&phases).text("phase", |phase| name(&phase.tally)).number(
        "time",
        Unit::Nanos,
        |phase| phase.duration_ns,
    );
    let has_zeroes = phases.iter().any(|phase| phase.tally.write_zeroes > 0);
    let table = tallied(table, has_zeroes, |phase| &phase.tally);
    let caption = "Phases of the whole recording; choose one with --phase";
    Some(Section::new("Phases", "").with(table.table(caption)))
}

fn tally_section(title: &str, column: &str, tallies: &[Tally]) -> Option<Section> {
    if tallies.is_empty() {
        return None;
    }
    let caption = match column {
        "device" => "Devices of the whole recording; choose one with --source",
        "file" => "Files of the requests, most data first",
        _ => "Commands that issued the requests, most data first",
    };
    let shown = &tallies[..tallies.len().min(ROWS_SHOWN)];
    let has_zeroes = shown.iter().any(|tally| tally.write_zeroes > 0);
    let table = tallied(Table::listing(shown).text(column, name), has_zeroes, |tally| tally);
    let section = Section::new(title, "").with(table.table(caption));
    Some(match tallies.len() - shown.len() {
        0 => section,
        more => {
            let note = format!("{more} more rows are in the JSON (--json).");
            section.with(Block::Notes(vec![note]))
        }
    })
}

/// Rows of a table on the screen; the rest is in the JSON.
const ROWS_SHOWN: usize = 12;

fn name(tally: &Tally) -> &str {
    if tally.name.is_empty() { "(unknown)" } else { &tally.name }
}

/// `listing` with the requests and bytes of each row; the bytes of write-zeroes, which few traces
/// have, only if `has_zeroes`.
fn tallied<'a, R>(
    listing: Listing<'a, R>,
    has_zeroes: bool,
    of: impl Fn(&'a R) -> &'a Tally,
) -> Listing<'a, R> {
    let listing = listing
        .number("reads", Unit::Count, |row| of(row).reads)
        .number("writes", Unit::Count, |row| of(row).writes)
        .number("read", Unit::Bytes, |row| of(row).bytes_read)
        .number("written", Unit::Bytes, |row| of(row).bytes_written);
    let listing = if has_zeroes {
        listing.number("zeroed", Unit::Bytes, |row| of(row).bytes_zeroed)
    } else {
        listing
    };
    listing.number("flushes", Unit::Count, |row| of(row).flushes).number(
        "discards",
        Unit::Count,
        |row| of(row).discards,
    )
}

/// A clock whose steps are longer than most requests take.
const CLOCK_COARSE: Nanos = Nanos(1_000_000);

/// Notes on what was not counted, and on what the trace does not record.
#[must_use]
pub fn limit_notes(trace: &TraceInfo) -> Vec<String> {
    let facts = &trace.facts;
    let mut notes = Vec::new();
    for skip in &facts.skipped {
        let were = if skip.count == 1 { "line or record was" } else { "lines or records were" };
        notes.push(format!(
            "{} {were} skipped, the first at {}: {}.",
            skip.count, skip.first_line, skip.reason
        ));
    }
    let missing = missing(&facts.capabilities);
    if !missing.is_empty() {
        notes.push(format!("This trace does not record: {}.", missing.join(", ")));
    }
    let step = Nanos(facts.capabilities.clock_ns);
    if step >= CLOCK_COARSE {
        notes.push(format!(
            "Its clock has steps of {step}: requests within one step arrive at the same time, and \
             latency under load means little."
        ));
    }
    if let Some(size) = facts.nvme_block_bytes {
        notes.push(format!(
            "NVMe commands count in logical blocks, and the trace lacks their size: {} was assumed \
             (--block-size), and every address and size follows from it.",
            Bytes(size)
        ));
    }
    if facts.reordered > 0 {
        let (lines, were) = if facts.reordered == 1 { ("line", "was") } else { ("lines", "were") };
        notes.push(format!(
            "{} {lines} came more than a second after later ones and {were} sorted in by time.",
            facts.reordered
        ));
    }
    if facts.unpaired > 0 {
        let requests = if facts.unpaired == 1 { "request" } else { "requests" };
        notes.push(format!("For {} {requests} no completion is recorded.", facts.unpaired));
    }
    notes
}

/// The notes as a section; `None` if there are none.
#[must_use]
pub fn limits(trace: &TraceInfo) -> Option<Section> {
    let notes = limit_notes(trace);
    (!notes.is_empty()).then(|| Section::new("Limits", "").with(Block::Notes(notes)))
}

fn missing(can: &Capabilities) -> Vec<&'static str> {
    let recorded = [
        (can.operation, "operations (every request counts as a read)"),
        (can.address, "addresses (named objects are laid out in the order of first use)"),
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
    recorded.into_iter().filter(|(recorded, _)| !recorded).map(|(_, what)| what).collect()
}
