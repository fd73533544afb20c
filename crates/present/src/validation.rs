//! Theory and data sheets beside the simulation: the checks of `prism validate`.

use prism_experiments::{Check, Group};
use prism_report::{Block, Column, Document, Section, Table, Unit, Value, json};
use serde::Serialize;

#[derive(Debug, Serialize)]
struct Row {
    what: String,
    expected: serde_json::Value,
    ours: serde_json::Value,
    difference: serde_json::Value,
    tolerance: Option<f64>,
    passed: bool,
    unit: &'static str,
    source: String,
}

/// The checks as JSON.
#[derive(Debug, Serialize)]
pub struct Validation {
    checks: Vec<Row>,
    failed: usize,
    seed: u64,
}

impl Validation {
    /// Of the checks that were made with `seed`.
    #[must_use]
    pub fn new(done: &[Check], seed: u64) -> Self {
        Self { checks: done.iter().map(row).collect(), failed: failed(done), seed }
    }
}

/// How many checks failed.
#[must_use]
pub fn failed(done: &[Check]) -> usize {
    done.iter().filter(|check| !check.passed()).count()
}

fn row(check: &Check) -> Row {
    Row {
        what: check.what.clone(),
        expected: json::number(check.expected),
        ours: json::number(check.ours),
        difference: json::number(check.difference()),
        tolerance: check.tolerance,
        passed: check.passed(),
        unit: check.unit,
        source: check.source.clone(),
    }
}

/// The checks as a document.
#[must_use]
pub fn document(done: &[Check]) -> Document {
    let of = |group: Group| done.iter().filter(move |check| check.group == group);
    let theory = section(
        "Theory",
        "Write amplification of uniform random writes, simulated on 16,384 blocks of 64 units; \
         OP is effective over-provisioning, trims are a share of the requests, hot 90/10 is 90 % \
         of the writes to 10 % of the units. Bandwidth and latency are those of drives of two \
         kinds of flash.",
        "theory",
        of(Group::Theory),
    );
    let others = section(
        "Oracles",
        "What other simulators give for drives of the same parameters; without a verdict where \
         the models differ, for the reason given.",
        "published",
        of(Group::Oracle),
    );
    let sheets = section(
        "Data sheets",
        "Nothing is claimed: how near a preset comes to what its maker says.",
        "data sheet",
        of(Group::DataSheet),
    );
    let mut document = Document::new("prism validate", "what is known beside what is simulated");
    document.sections.extend([theory, others, sheets].into_iter().flatten());
    document
}

fn section<'a>(
    title: &str,
    lead: &str,
    known: &str,
    checks: impl Iterator<Item = &'a Check>,
) -> Option<Section> {
    let columns = vec![
        Column::text("what"),
        Column::number(known, Unit::Ratio),
        Column::number("ours", Unit::Ratio),
        Column::number("difference", Unit::Percent),
        Column::text("verdict"),
        Column::text("source"),
    ];
    let mut table = Table::new("", columns).whole();
    for check in checks {
        let verdict = match check.tolerance {
            None => "",
            Some(_) if check.passed() => "ok",
            Some(_) => "FAILED",
        };
        let what = match check.unit {
            "" => check.what.clone(),
            unit => format!("{} [{unit}]", check.what),
        };
        table.rows.push(vec![
            what.into(),
            check.expected.into(),
            check.ours.into(),
            check.difference().into(),
            verdict.into(),
            Value::from(check.source.clone()),
        ]);
    }
    if table.rows.is_empty() {
        return None;
    }
    let mut section = Section::new(title, lead);
    section.push(Block::Table(table));
    Some(section)
}
