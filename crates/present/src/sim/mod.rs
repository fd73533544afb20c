//! What a drive made of jobs with fio options: as a document and as JSON, Prism's own
//! and fio's.

pub mod fio_json;
pub mod json;

use prism_base::{Bytes, Latencies};
use prism_replay::Lifetime;
use prism_report::{Block, Column, Document, Section, Table, Unit, Value};
use prism_ssd::HostOp;
use prism_ssd::scale::Scaled;
use prism_ssd::{DriveHealth, Preparation};
use prism_workload::fio::job::Engine;
use prism_workload::fio::run::Row;
use prism_workload::fio::stats::Dir;
use prism_workload::fio::{Job, Outcome};

pub use json::SimObject;

use crate::drive::{Wear, document as drive, faults, lifetime, tables};
use crate::initial_state::State;

/// Everything that a report is made from.
pub struct Facts<'a> {
    /// The jobs, clones counted.
    pub jobs: &'a [Job],
    /// The drive, and what was changed to make it fit.
    pub scaled: &'a Scaled,
    /// Whether its capacity was asked for.
    pub chosen: bool,
    /// What it held at the start.
    pub state: State,
    /// What it took to bring that about.
    pub prepared: &'a Preparation,
    /// Seed of everything random.
    pub seed: u64,
    /// What came out.
    pub outcome: &'a Outcome,
    /// What the host wrote and the drive had not yet programmed at the end.
    pub buffered: Bytes,
    /// Erases at the end.
    pub wear: Wear,
    /// The same of SLC blocks, where the drive has such beside others.
    pub slc_wear: Option<Wear>,
    /// What age had left of the drive at the end, if it ages.
    pub health: Option<DriveHealth>,
}

impl Facts<'_> {
    /// Endurance at the measured rate.
    #[must_use]
    pub fn lifetime(&self) -> Option<Lifetime> {
        lifetime(&self.outcome.total, &self.scaled.device)
    }

    /// The name of a row: its job's, and how many there are.
    #[must_use]
    pub fn row_name(&self, row: &Row) -> String {
        let name = &self.jobs[row.first].name;
        if row.jobs > 1 { format!("{name} (and {} more)", row.jobs - 1) } else { name.clone() }
    }
}

/// The report as a document: the jobs first.
#[must_use]
pub fn document(facts: &Facts<'_>) -> Document {
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
    let (total, device) = (&facts.outcome.total, &facts.scaled.device);
    document.sections.extend(faults::section(total, device, facts.health));
    document.with(limits(facts))
}

fn jobs(facts: &Facts<'_>) -> Section {
    let lead = format!(
        "Over a drive {} at the start, in simulated time; latencies from the issue by the job.",
        facts.state.name
    );
    let mut section = Section::new("Jobs", lead);
    let nanos = |name: &str| Column::number(name, Unit::Nanos);
    let mut rates = Table::new(
        "I/Os by job",
        vec![
            Column::text("job"),
            Column::text("what"),
            Column::number("I/Os", Unit::Count),
            Column::number("data", Unit::Bytes),
            Column::number("IOPS", Unit::PerSec),
            Column::number("bandwidth", Unit::BytesPerSec),
        ],
    );
    let mut times = Table::new(
        "Latency by job",
        vec![
            Column::text("job"),
            Column::text("what"),
            nanos("mean"),
            nanos("p50"),
            nanos("p99"),
            nanos("p99.9"),
            nanos("p99.99"),
            nanos("max"),
        ],
    );
    for row in &facts.outcome.rows {
        let name = facts.row_name(row);
        let mut push = |what: &str, bytes: Option<u64>, latency: &Latencies| {
            let count = latency.count();
            rates.rows.push(vec![
                name.as_str().into(),
                what.into(),
                count.into(),
                bytes.into(),
                row.stats.per_second(count).into(),
                bytes.map(|bytes| row.stats.per_second(bytes)).into(),
            ]);
            let mut cells: Vec<Value> = vec![name.as_str().into(), what.into()];
            cells.push(latency.mean_ns().into());
            cells.extend([0.5, 0.99, 0.999, 0.9999].map(|q| Value::from(latency.quantile(q))));
            cells.push(latency.max().into());
            times.rows.push(cells);
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
    section.push(Block::Table(rates));
    section.push(Block::Table(times));
    section
}

fn summary(facts: &Facts<'_>) -> Section {
    let total = &facts.outcome.total;
    let device = &facts.scaled.device;
    let mut section = Section::new(
        "Write amplification",
        "Of everything that was measured; nobody tested whether it is steady.",
    );
    section.push(drive::key_figures(total, device, facts.lifetime()));
    if facts.outcome.stages.len() > 1 {
        section.push(Block::Table(stages(facts)));
    }
    drive::push_causes(&mut section, total, device);
    section.push(Block::Table(tables::latency(total)));
    section
}

/// What the drive did between stonewalls.
fn stages(facts: &Facts<'_>) -> Table {
    let columns = vec![
        Column::text("jobs"),
        Column::number("write amplification", Unit::Ratio),
        Column::number("host writes", Unit::Bytes),
        Column::number("host reads", Unit::Bytes),
        Column::number("IOPS", Unit::PerSec),
        Column::number("blocks erased", Unit::Count),
        Column::number("time", Unit::Nanos),
    ];
    let mut table = Table::new("Between stonewalls", columns);
    for stage in &facts.outcome.stages {
        let mut names: Vec<&str> =
            facts.jobs[stage.jobs.clone()].iter().map(|job| job.name.as_str()).collect();
        names.dedup();
        let measured = &stage.measured;
        table.rows.push(vec![
            names.join(", ").into(),
            measured.write_amplification().into(),
            measured.bytes_of(HostOp::Write).into(),
            measured.bytes_of(HostOp::Read).into(),
            measured.iops().into(),
            measured.flash.erases.total().into(),
            measured.simulated.into(),
        ]);
    }
    table
}

fn cleaning(facts: &Facts<'_>) -> Section {
    let mut section = Section::new("Cleaning and wear", "");
    let figures = drive::wear_figures(&facts.outcome.total, &facts.scaled.device, facts.wear);
    section.push(figures);
    let (total, device) = (&facts.outcome.total, &facts.scaled.device);
    if let Some(figures) = drive::slc_figures(total, device, facts.slc_wear) {
        section.push(figures);
    }
    section
}

fn limits(facts: &Facts<'_>) -> Section {
    let total = &facts.outcome.total;
    let mut notes = Vec::new();
    if !facts.scaled.changes.is_empty() {
        notes.push(format!("The drive is made to fit: {}.", facts.scaled.changes.join("; ")));
    }
    let (full, capacity) = (facts.scaled.full_capacity, facts.scaled.device.capacity());
    if full > capacity && !facts.chosen {
        notes.push(format!(
            "--capacity device has the full {full}, which takes longer to fill and to settle."
        ));
    }
    if total.held_back > 0 {
        notes.push(format!(
            "The jobs issue more than the drive's queue of {} takes: {} I/Os waited up to {} for \
             a place, which their latencies contain.",
            facts.scaled.device.drive.queue_depth, total.held_back, total.behind_max
        ));
    }
    let mut files: Vec<&str> =
        facts.jobs.iter().filter_map(|job| job.filename.as_deref()).collect();
    files.sort_unstable();
    files.dedup();
    if files.len() > 1 {
        notes.push(format!(
            "The jobs name different files ({}): here they share one drive and its addresses; \
             offset keeps them apart.",
            files.join(", ")
        ));
    }
    notes.extend(depth_notes(facts.jobs));
    notes.extend(drive::measured_notes(total, facts.buffered));
    notes.push(
        "The host takes no time: what a real fio shows above these latencies is the software \
         between it and the drive."
            .into(),
    );
    for job in facts.jobs {
        if let Some(description) = &job.description {
            let note = format!("{}: {description}.", job.name);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes.push(format!("Initial state {}, seed {}.", facts.state.name, facts.seed));
    notes.extend(facts.state.note(facts.prepared));
    let mut section = Section::new("What to keep in mind", "");
    section.push(Block::Notes(notes));
    section
}

/// Where the depth in flight may not be the one that the reader expects.
fn depth_notes(jobs: &[Job]) -> Vec<String> {
    let waiting = jobs.iter().find_map(|job| match job.engine {
        Engine::Waiting { asked } if asked > 1 => Some((&job.name, asked)),
        _ => None,
    });
    let unnamed = jobs.iter().find(|job| job.engine == Engine::Unnamed && job.depth > 1);
    let waiting = waiting.map(|(name, asked)| {
        format!(
            "The ioengine of job {name} waits for each I/O: one is in flight, and iodepth={asked} \
             does not count."
        )
    });
    let unnamed = unnamed.map(|job| {
        format!(
            "Job {} names no ioengine: its iodepth={} holds as with libaio; fio's default engine \
             would keep one I/O in flight.",
            job.name, job.depth
        )
    });
    waiting.into_iter().chain(unnamed).collect()
}
