//! What `prism reproduce atc09` found, as a document and as JSON.

mod charts;
mod tables;

use prism_experiments::Scale;
use prism_experiments::atc09::{Line, Results, Why};
use prism_report::json::{chart, table};
use prism_report::{Block, Document, Figure, Section, Table, Unit};
use serde_json::{Value, json};

use super::scale_name;

/// Everything that was computed, and how.
pub struct Found {
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
        },
        Experiment {
            key: "scheduling",
            title: "Section 3.2: shortest wait time first",
            lead: "Random requests of 4 KiB, two thirds reads, on the drive of the paper's \
                   simulator (preset atc08, 2 GiB), eight in service, by load: requests over what \
                   all dies together could serve.",
            tables: vec![("loads", tables::loads(&results.scheduling))],
            charts: vec![charts::responses(&results.scheduling)],
            notes: Vec::new(),
        },
        Experiment {
            key: "figure_2",
            title: "Figure 2: bandwidth over the size of writes",
            lead: "S2 (preset atc09-s2), one write at a time, each from the beginning of a stripe \
                   of 1 MiB on. The closed form is size over the stripes that it touches; it \
                   leaves out that the rest of a stripe has to be read.",
            tables: vec![("sizes", tables::stripes(&results.stripes))],
            charts: vec![charts::saw_tooth(&results.stripes)],
            notes: Vec::new(),
        },
    ]
}

/// The result for programs.
#[must_use]
pub fn json(found: &Found) -> Value {
    let lines = found.results.lines();
    let mut all = serde_json::Map::new();
    all.insert("id".into(), "atc09".into());
    all.insert("seed".into(), found.seed.into());
    all.insert("scale".into(), scale_name(found.scale).into());
    all.insert("comparisons".into(), lines.iter().map(comparison).collect());
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

fn comparison(line: &Line) -> Value {
    let (verdict, reason) = verdict(line);
    json!({
        "source": line.source,
        "what": line.what,
        "unit": line.quantity.name(),
        "published": line.published,
        "ours": line.ours,
        "verdict": verdict,
        "reason": reason,
    })
}

fn verdict(line: &Line) -> (&'static str, Option<&'static str>) {
    match line.why {
        Why::Near => ("near", None),
        Why::Explained(reason) => ("explained", Some(reason)),
        Why::Unexplained => ("unexplained", None),
    }
}

/// What was found, for people.
#[must_use]
pub fn document(found: &Found) -> Document {
    let subtitle = format!(
        "Rajimwale, Prabhakaran, Davis, USENIX ATC 2009, at {} scale, seed {}",
        scale_name(found.scale),
        found.seed
    );
    let mut document = Document::new("Block management in solid-state devices", subtitle);
    document.sections.push(comparisons(&found.results.lines()));
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

fn comparisons(lines: &[Line]) -> Section {
    let mut section = Section::new(
        "Published and ours",
        "Every number that the paper prints, in its order. Near is within 15 %; other \
         differences have a reason below, or none that is known.",
    );
    let count =
        |verdict_is: &str| lines.iter().filter(|line| verdict(line).0 == verdict_is).count();
    let figure = |name: &str| {
        Figure::new(name, Unit::Count, count(name) as u64).note(format!("of {}", lines.len()))
    };
    let figures = ["near", "explained", "unexplained"].map(figure);
    section.push(Block::KeyFigures(figures.into()));
    let mut reasons: Vec<&'static str> = Vec::new();
    for reason in lines.iter().filter_map(|line| verdict(line).1) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    section.push(Block::Table(tables::comparisons(lines, &reasons)));
    let note = |(number, reason): (usize, &&str)| format!("({}) {reason}.", number + 1);
    section.push(Block::Notes(reasons.iter().enumerate().map(note).collect()));
    section
}
