//! The checks of `prism validate`: the simulation compared with theory and data sheets.

use prism_experiments::{Check, Group};
use prism_report::{Document, Section, Table, Unit};
use serde_json::{Value as Json, json};

/// The number of failed checks.
#[must_use]
pub fn failed(done: &[Check]) -> usize {
    done.iter().filter(|check| !check.passed()).count()
}

/// The checks made with `seed`, as JSON.
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
         of the writes to 10 % of the units. Bandwidth and latency are those of drives with \
         two kinds of flash.",
        "theory",
        of(Group::Theory),
    );
    let others = section(
        "Oracles",
        "The results of other simulators for drives of the same parameters; without a verdict \
         where the models differ, for the reason given.",
        "published",
        of(Group::Oracle),
    );
    let sheets = section(
        "Data sheets",
        "How near a preset comes to the data sheet of its drive; there is no pass or fail.",
        "data sheet",
        of(Group::DataSheet),
    );
    let subtitle = "the simulation compared with theory, other simulators and data sheets";
    let mut document = Document::new("prism validate", subtitle);
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
