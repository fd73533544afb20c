//! Theory and data sheets beside the simulation: the checks of `prism validate`.

use prism_experiments::{Check, Group};
use prism_report::{Document, Section, Table, Unit};
use serde_json::{Value as Json, json};

/// How many checks failed.
#[must_use]
pub fn failed(done: &[Check]) -> usize {
    done.iter().filter(|check| !check.passed()).count()
}

/// The checks that were made with `seed`, as JSON.
#[must_use]
pub fn json(done: &[Check], seed: u64) -> Json {
    let row = |check: &Check| {
        json!({
            "what": check.what,
            "expected": check.expected,
            "ours": check.ours,
            "difference": check.difference(),
            "tolerance": check.tolerance,
            "passed": check.passed(),
            "unit": check.unit,
            "source": check.source,
        })
    };
    let rows: Vec<Json> = done.iter().map(row).collect();
    json!({"checks": rows, "failed": failed(done), "seed": seed})
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
    let checks: Vec<&Check> = checks.collect();
    let table = Table::listing(&checks)
        .text("what", |check| match check.unit {
            "" => check.what.clone(),
            unit => format!("{} [{unit}]", check.what),
        })
        .number(known, Unit::Ratio, |check| check.expected)
        .number("ours", Unit::Ratio, |check| check.ours)
        .number("difference", Unit::Percent, |check| check.difference())
        .text("verdict", |check| match check.tolerance {
            None => "",
            Some(_) if check.passed() => "ok",
            Some(_) => "FAILED",
        })
        .text("source", |check| check.source.as_str())
        .table("")
        .whole();
    (!checks.is_empty()).then(|| Section::new(title, lead).with(table))
}
