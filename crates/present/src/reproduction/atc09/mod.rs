//! The results of `prism reproduce atc09`, as a document and as JSON.

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

/// The results, and how they were computed.
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
        lead: "Disk, RAID, MEMS and SSD are quoted; the others are simulated drives, for which \
               the terms are decided as in a report on a trace of random writes of 4 KiB.",
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
        lead: "10^6 bytes per second. The paper gives neither depth nor request size: the \
               settings that come closest are named, and all that were tried are listed below.",
        tables: vec![
            ("closest", tables::bandwidths(&results.bandwidths)),
            ("random", tables::random(&results.bandwidths)),
            ("sequential", tables::sequential(&results.bandwidths)),
        ],
        charts: vec![charts::ratios(&results.bandwidths)],
        notes: vec!["A setting is the number of requests in flight times their size.".into()],
    }
}

fn scheduling(results: &Results) -> Experiment {
    Experiment {
        key: "scheduling",
        title: "Section 3.2: shortest wait time first",
        lead: "Random requests of 4 KiB, two thirds of them reads, on the drive of the paper's \
               simulator (preset atc08, 2 GiB), eight in service. Load is the request rate over \
               the rate that all dies together can serve.",
        tables: vec![("loads", tables::loads(&results.scheduling))],
        charts: vec![charts::responses(&results.scheduling)],
        notes: Vec::new(),
    }
}

fn figure_2(results: &Results) -> Experiment {
    Experiment {
        key: "figure_2",
        title: "Figure 2: bandwidth over the size of writes",
        lead: "S2 (preset atc09-s2), one write at a time, each starting at a stripe of 1 MiB. \
               The closed form is the size of a write over that of the stripes it touches; it \
               ignores that the rest of a stripe has to be read.",
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
               (preset atc09-gang), unchanged and merged and aligned, by the probability that \
               a write is sequential to the one before. The paper does not give the arrival \
               process or how long a write may wait to be merged: the nearest setting is \
               shown, and the range of gains over all settings.",
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
        lead: "How much alignment lowers the mean response on the same drive, for synthetic \
               mixtures of requests instead of the paper's traces, by requests outstanding.",
        tables: vec![("improvements", tables::macros(&results.macros))],
        charts: Vec::new(),
        notes: tables::macro_notes(),
    }
}

fn table_5(results: &Results) -> Experiment {
    Experiment {
        key: "table_5",
        title: "Table 5: informed cleaning",
        lead: "Postmark on a model of ext3 on a drive of 8 GB (preset atc08), which uses the \
               trims of freed blocks (informed) or ignores them (default). The numbers of files \
               and directories are swept; the pool nearest to the paper comes first.",
        tables: vec![
            ("closest", tables::informed(&results.cleaning)),
            ("pools", tables::pools(&results.cleaning)),
        ],
        charts: charts::informed(&results.cleaning).into_iter().collect(),
        notes: vec![
            "For the default drive the paper prints 88,159 to 284,409 thousand pages and 49,147 \
             to 116,185 seconds; we take these as pages and milliseconds, since 88 million \
             pages are 336 GiB."
                .into(),
        ],
    }
}

fn figure_3(results: &Results) -> Experiment {
    Experiment {
        key: "figure_3",
        title: "Figure 3 and Table 6: priority-aware cleaning",
        lead: "Requests of 4 KiB, 0 to 0.1 ms apart, a tenth of them with priority, on the drive \
               of the paper's simulator (preset atc08). The paper does not give the addresses: \
               the chart shows the nearest of the address patterns that were tried.",
        tables: vec![("runs", tables::priority(&results.priority))],
        charts: charts::priority(&results.priority).into_iter().collect(),
        notes: vec![
            "Places are the part of the addresses that is used, and the order. A value is \
             missing where the drive cannot keep up. Here the responses of other requests \
             improve as well; in the paper they became longer. As many blocks are erased, but \
             in steps; probably a step that waits until no priority request is outstanding \
             also delays fewer other requests."
                .into(),
        ],
    }
}

/// The results as JSON.
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

/// The results as a document.
#[must_use]
pub fn document(found: &Atc09) -> Document {
    let subtitle = format!(
        "Rajimwale, Prabhakaran, Davis, USENIX ATC 2009, at {} scale, seed {}",
        scale_name(found.scale),
        found.seed
    );
    let mut document = Document::new("Block management in solid-state devices", subtitle);
    let lead = "Every number of the paper, in its order. Agreement means within 15 %.";
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
