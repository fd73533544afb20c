//! The results of jobs with fio options: as a document and as JSON, in Prism's own format and in
//! fio's.

pub mod fio_json;
pub mod json;

use prism_base::Latencies;
use prism_nand::Cause;
use prism_report::{Block, Document, Section, Table, Unit};
use prism_ssd::HostOp;
use prism_workload::Measured;
use prism_workload::fio::Job;
use prism_workload::fio::job::Engine;
use prism_workload::fio::stats::{Dir, JobStats};

pub use json::json;

use crate::drive::charts::{Charts, with_charts};
use crate::drive::{document as drive, faults, limits, tables, wear};
use crate::simulation::Simulated;

/// The report as a document: the jobs first.
#[must_use]
pub fn document(facts: &Simulated) -> Document {
    let names: Vec<_> = facts.outcome.rows.iter().map(|row| facts.row_name(row)).collect();
    let title = match names.as_slice() {
        [one] => format!("Job {one}"),
        [first, rest @ ..] => format!("Jobs {first} and {} more", rest.len()),
        [] => unreachable!("a run has at least one job"),
    };
    let mut document = Document::new(title, drive::drive(&facts.scaled.device))
        .with(jobs(facts))
        .with(summary(facts))
        .with(cleaning(facts));
    document.sections.extend(faults::section(facts.run()));
    document.with(limits(facts))
}

/// The HTML page: `document` with `charts`, if the requests were watched.
#[must_use]
pub fn page(document: Document, charts: Option<Charts>) -> Document {
    let Some(charts) = charts else { return document };
    let (mut sections, first) = charts.sections();
    sections[0].blocks.splice(1..1, first.into_iter().map(Block::Chart));
    sections[0].lead = "All measured requests, in simulated time.".into();
    with_charts(document, sections)
}

fn jobs(facts: &Simulated) -> Section {
    let lead = format!(
        "On a drive {} at the start, in simulated time; latencies count from the issue by the job.",
        facts.state.name
    );
    let mut rows: Vec<JobRow> = Vec::new();
    for row in &facts.outcome.rows {
        let name = facts.row_name(row);
        let mut push = |what, bytes, latency| {
            rows.push(JobRow { name: name.clone(), what, bytes, latency, stats: &row.stats });
        };
        for dir in Dir::ALL {
            if let Some(stats) = row.stats.dir(dir) {
                push(dir.name(), Some(stats.bytes), &stats.latency);
            }
        }
        if let Some(flushes) = &row.stats.flushes {
            push("flush", None, flushes);
        }
    }
    let named =
        || Table::listing(&rows).text("job", |row| row.name.as_str()).text("what", |row| row.what);
    let rates = named()
        .number("I/Os", Unit::Count, |row| row.latency.count())
        .number("data", Unit::Bytes, |row| row.bytes)
        .number("IOPS", Unit::PerSec, |row| row.stats.per_second(row.latency.count()))
        .number("bandwidth", Unit::BytesPerSec, |row| {
            row.bytes.map(|bytes| row.stats.per_second(bytes))
        });
    let mut times = named().number("mean", Unit::Nanos, |row| row.latency.mean_ns());
    for (name, q) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)] {
        times = times.number(name, Unit::Nanos, |row| row.latency.quantile(q));
    }
    let times = times.number("max", Unit::Nanos, |row| row.latency.max());
    Section::new("Jobs", lead).with(rates.table("I/Os by job")).with(times.table("Latency by job"))
}

/// The I/Os of a job in one direction, or its flushes.
struct JobRow<'a> {
    name: String,
    what: &'static str,
    bytes: Option<u64>,
    latency: &'a Latencies,
    stats: &'a JobStats,
}

fn summary(facts: &Simulated) -> Section {
    let mut section = Section::new(
        "Write amplification",
        "Over the whole measured time; not tested for steady state.",
    );
    section.push(drive::key_figures(facts.run()));
    if facts.outcome.stages.len() > 1 {
        section.push(stages(facts));
    }
    drive::push_causes(&mut section, facts.run());
    section.push(tables::latency(&facts.outcome.total));
    section
}

/// The figures of the drive between stonewalls.
fn stages(facts: &Simulated) -> Table {
    Table::listing(&facts.outcome.stages)
        .text("jobs", |stage| {
            let jobs = facts.jobs[stage.jobs.clone()].iter();
            let mut names: Vec<&str> = jobs.map(|job| job.name.as_str()).collect();
            names.dedup();
            names.join(", ")
        })
        .number("write amplification", Unit::Ratio, |of| of.measured.write_amplification())
        .number("host writes", Unit::Bytes, |of| of.measured.bytes_of(HostOp::Write))
        .number("host reads", Unit::Bytes, |of| of.measured.bytes_of(HostOp::Read))
        .number("IOPS", Unit::PerSec, |of| of.measured.iops())
        .number("blocks erased", Unit::Count, |of| of.measured.flash.erases.total())
        .number("time", Unit::Nanos, |of| of.measured.simulated)
        .table("Between stonewalls")
}

fn cleaning(facts: &Simulated) -> Section {
    let mut section = Section::new("Cleaning and wear", "");
    wear::push(&mut section, facts.run());
    section
}

fn limits(facts: &Simulated) -> Section {
    let total = &facts.outcome.total;
    let mut notes = Vec::new();
    if !facts.scaled.changes.is_empty() {
        notes.push(format!(
            "The drive is scaled to fit: {}. Bandwidth and latency under load are those of the \
             scaled drive.",
            facts.scaled.changes.join("; ")
        ));
    }
    let (full, capacity) = (facts.scaled.full_capacity, facts.scaled.device.capacity());
    if full > capacity && !facts.chosen {
        notes.push(format!(
            "--capacity device simulates the full {full}, which takes longer to fill and to settle."
        ));
    }
    if total.held_back > 0 {
        notes.push(format!(
            "The jobs issue more I/Os than the drive's queue of {} holds: {} I/Os waited up to {} \
             for a free entry; their latencies include that wait.",
            facts.scaled.device.drive.queue_depth, total.held_back, total.behind_max
        ));
    }
    let mut files: Vec<&str> =
        facts.jobs.iter().filter_map(|job| job.filename.as_deref()).collect();
    files.sort_unstable();
    files.dedup();
    if files.len() > 1 {
        notes.push(format!(
            "The jobs name different files ({}), but share one drive and its addresses; use \
             offset to separate them.",
            files.join(", ")
        ));
    }
    notes.extend(depth_notes(&facts.jobs));
    notes.extend(stall_note(total));
    notes.extend(limits::measured_notes(facts.run()));
    notes.push(
        "The host takes no time: latencies of a real fio also include the software between it \
         and the drive."
            .into(),
    );
    for job in &facts.jobs {
        if let Some(description) = &job.description {
            let note = format!("{}: {description}.", job.name);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes.push(format!("Initial state {}, seed {}.", facts.state.name, facts.seed));
    notes.extend(facts.state.note(&facts.prepared));
    Section::new("What to keep in mind", "").with(Block::Notes(notes))
}

/// Writes that take this many times the median have stalled.
const STALL: u64 = 100;

/// A note on writes that waited for cleaning.
fn stall_note(total: &Measured) -> Option<String> {
    let writes = total.latency_of(HostOp::Write);
    let copied = total.flash.units[Cause::Gc] + total.flash.units[Cause::Merge];
    if writes.count() == 0 || copied == 0 {
        return None;
    }
    let median = writes.quantile(0.5);
    let slow = writes.buckets().filter(|&(latency, _)| latency.0 > STALL * median.0);
    let stalled: u64 = slow.map(|(_, count)| count).sum();
    (stalled > 0).then(|| {
        format!(
            "{stalled} of {} writes took over {STALL} times the median of {median}, at most {}: \
             when no erased block is left, a write waits until cleaning has copied the valid data \
             of a block and erased it.",
            writes.count(),
            writes.max()
        )
    })
}

/// Notes where the depth in flight may differ from the iodepth of a job.
fn depth_notes(jobs: &[Job]) -> Vec<String> {
    let waiting = jobs.iter().find_map(|job| match job.engine {
        Engine::Waiting { asked } if asked > 1 => Some((&job.name, asked)),
        _ => None,
    });
    let unnamed = jobs.iter().find(|job| job.engine == Engine::Unnamed && job.depth > 1);
    let waiting = waiting.map(|(name, asked)| {
        format!(
            "The ioengine of job {name} is synchronous: one I/O is in flight, and iodepth={asked} \
             has no effect."
        )
    });
    let unnamed = unnamed.map(|job| {
        format!(
            "Job {} names no ioengine: its iodepth={} applies as with libaio; fio's default engine \
             would keep one I/O in flight.",
            job.name, job.depth
        )
    });
    waiting.into_iter().chain(unnamed).collect()
}
