//! What `prism reproduce atc09` found, as a document and as JSON.

mod charts;
mod later_tables;
mod tables;
mod term_tables;

use prism_experiments::Scale;
use prism_experiments::atc09::Results;
use prism_report::json::{chart, table};
use prism_report::{Block, Document, Section, Table};
use serde_json::Value;

use super::{comparison_tables, scale_name};

/// Everything that was computed, and how.
pub struct Atc09 {
    /// Seed of everything random.
    pub seed: u64,
    /// How large the drives were and how long the runs.
    pub scale: Scale,
    /// The experiments.
    pub results: Results,
}

/// A part of the document: an experiment with its tables, charts and notes.
struct Experiment {
    /// The key in JSON.
    key: &'static str,
    title: &'static str,
    lead: &'static str,
    tables: Vec<(&'static str, Table)>,
    charts: Vec<prism_report::Chart>,
    notes: Vec<String>,
}

fn experiments(results: &Results) -> Vec<Experiment> {
    vec![
        table_1(results),
        table_2(results),
        scheduling(results),
        figure_2(results),
        table_3(results),
        table_4(results),
        table_5(results),
        figure_3(results),
    ]
}

fn table_1(results: &Results) -> Experiment {
    Experiment {
        key: "table_1",
        title: "Table 1: the six terms of the unwritten contract",
        lead: "Disk, RAID, MEMS and SSD are quoted; the others are drives simulated here, each \
               judged as a report judges it for a trace of random writes of 4 KiB.",
        tables: vec![
            ("terms", tables::terms(&results.terms)),
            ("ends", tables::ends(&results.ends)),
            ("reads_when_idle", tables::idle_reads(&results.idle_reads)),
        ],
        charts: Vec::new(),
        notes: tables::term_notes(&results.terms),
    }
}

fn table_2(results: &Results) -> Experiment {
    Experiment {
        key: "table_2",
        title: "Table 2: sequential and random bandwidth",
        lead: "10^6 bytes a second. The paper gives neither depth nor size: those that come \
               closest are named, and below is every one that was tried.",
        tables: vec![
            ("closest", tables::bandwidths(&results.bandwidths)),
            ("random", tables::random(&results.bandwidths)),
            ("sequential", tables::sequential(&results.bandwidths)),
        ],
        charts: vec![charts::ratios(&results.bandwidths)],
        notes: vec!["Settings are requests in flight times their size.".into()],
    }
}

fn scheduling(results: &Results) -> Experiment {
    Experiment {
        key: "scheduling",
        title: "Section 3.2: shortest wait time first",
        lead: "Random requests of 4 KiB, two thirds reads, on the drive of the paper's \
               simulator (preset atc08, 2 GiB), eight in service, by load: requests over what \
               all dies together could serve.",
        tables: vec![("loads", tables::loads(&results.scheduling))],
        charts: vec![charts::responses(&results.scheduling)],
        notes: Vec::new(),
    }
}

fn figure_2(results: &Results) -> Experiment {
    Experiment {
        key: "figure_2",
        title: "Figure 2: bandwidth over the size of writes",
        lead: "S2 (preset atc09-s2), one write at a time, each from the beginning of a stripe \
               of 1 MiB on. The closed form is size over the stripes that it touches; it \
               leaves out that the rest of a stripe has to be read.",
        tables: vec![("sizes", tables::stripes(&results.stripes))],
        charts: vec![charts::saw_tooth(&results.stripes)],
        notes: Vec::new(),
    }
}

fn table_3(results: &Results) -> Experiment {
    Experiment {
        key: "table_3",
        title: "Table 3: writes merged and aligned to stripes",
        lead: "Writes of 4 KiB to one gang of eight packages with logical pages of 32 KiB \
               (preset atc09-gang), as they arrive and merged and aligned, by the probability \
               that one follows the last. How they arrive and how long one may wait for its \
               neighbours is not given: the nearest setting is shown, and the range of gains \
               over all.",
        tables: vec![
            ("closest", tables::alignment(&results.alignment)),
            ("settings", tables::settings(&results.alignment)),
        ],
        charts: charts::alignment(&results.alignment).into_iter().collect(),
        notes: Vec::new(),
    }
}

fn table_4(results: &Results) -> Experiment {
    Experiment {
        key: "table_4",
        title: "Table 4: macro benchmarks with aligned writes",
        lead: "Lower mean response by alignment on the same drive, for mixtures of requests in \
               the place of the paper's traces, by requests outstanding.",
        tables: vec![("improvements", tables::macros(&results.macros))],
        charts: Vec::new(),
        notes: tables::macro_notes(),
    }
}

fn table_5(results: &Results) -> Experiment {
    Experiment {
        key: "table_5",
        title: "Table 5: informed cleaning",
        lead: "Postmark on a model of ext3 on a drive of 8 GB (preset atc08) that listens to \
               freed blocks or does not. Files and directories are swept; the nearest pool \
               comes first.",
        tables: vec![
            ("closest", tables::informed(&results.cleaning)),
            ("pools", tables::pools(&results.cleaning)),
        ],
        charts: charts::informed(&results.cleaning).into_iter().collect(),
        notes: vec![
            "Printed are 88,159 to 284,409 thousand pages and 49,147 to 116,185 seconds for \
             the default drive; taken as pages and milliseconds, since 88 million pages are \
             336 GiB."
                .into(),
        ],
    }
}

fn figure_3(results: &Results) -> Experiment {
    Experiment {
        key: "figure_3",
        title: "Figure 3 and Table 6: priority-aware cleaning",
        lead: "Requests of 4 KiB, 0 to 0.1 ms apart, a tenth with priority, on the drive of the \
               paper's simulator (preset atc08). Where they go is not given: the nearest of \
               what was tried is drawn.",
        tables: vec![("runs", tables::priority(&results.priority))],
        charts: charts::priority(&results.priority).into_iter().collect(),
        notes: vec![
            "Places are the part of the addresses that is used, and the order. Missing is a \
             drive that cannot keep up. Responses of other requests improve here as well, where \
             the paper's became longer: as many blocks are erased, but in steps, and probably a \
             step that waits for a moment without priority requests meets fewer requests of \
             either kind."
                .into(),
        ],
    }
}

/// The result for programs.
#[must_use]
pub fn json(found: &Atc09) -> Value {
    let mut all = serde_json::Map::new();
    all.insert("id".into(), "atc09".into());
    all.insert("seed".into(), found.seed.into());
    all.insert("scale".into(), scale_name(found.scale).into());
    all.insert("comparisons".into(), comparison_tables::json(&found.results.lines()));
    for experiment in experiments(&found.results) {
        let mut part = serde_json::Map::new();
        for (key, one) in &experiment.tables {
            part.insert((*key).into(), table(one));
        }
        part.insert("charts".into(), experiment.charts.iter().map(chart).collect());
        all.insert(experiment.key.into(), Value::Object(part));
    }
    Value::Object(all)
}

/// What was found, for people.
#[must_use]
pub fn document(found: &Atc09) -> Document {
    let subtitle = format!(
        "Rajimwale, Prabhakaran, Davis, USENIX ATC 2009, at {} scale, seed {}",
        scale_name(found.scale),
        found.seed
    );
    let mut document = Document::new("Block management in solid-state devices", subtitle);
    let lead = "Every number that the paper prints, in its order. Agreement is within 15 %.";
    let lines = found.results.lines();
    document.sections.push(comparison_tables::section("Published and ours", lead, &lines));
    for experiment in experiments(&found.results) {
        let mut section = Section::new(experiment.title, experiment.lead);
        section.blocks.extend(experiment.tables.into_iter().map(|(_, table)| Block::Table(table)));
        section.blocks.extend(experiment.charts.into_iter().map(Block::Chart));
        if !experiment.notes.is_empty() {
            section.push(Block::Notes(experiment.notes));
        }
        document.sections.push(section);
    }
    document
}
