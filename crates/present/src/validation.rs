//! The checks of `prism validate`: the simulation compared with theory and data sheets.

use prism_experiments::{Check, Group, Scale, checks, datasheet, oracles, tiers};
use prism_report::{Document, Section, Table, Unit};
use prism_ssd::DriveSpec;
use serde_json::{Value as Json, json};

use crate::env::{Env, run_all};
use crate::error::PresentError;

/// Runs every check, or those whose names contain `only`, on all cores.
///
/// # Errors
/// [`PresentError::Refused`] if there is no such check.
pub fn run(seed: u64, only: Option<&str>, env: &impl Env) -> Result<Vec<Check>, PresentError> {
    let mut pending = checks(seed, Scale::Full);
    pending.extend(tiers::checks(seed, Scale::Full));
    pending.extend(oracles::checks(seed, Scale::Full));
    for name in DriveSpec::preset_names() {
        let device = DriveSpec::preset(name);
        let device = device.map_err(|error| PresentError::refused(error.to_string()))?;
        pending.extend(datasheet::checks(&device, seed));
    }
    if let Some(part) = only {
        pending.retain(|check| check.what.contains(part));
        if pending.is_empty() {
            return Err(PresentError::refused(format!("no check's name contains {part:?}")));
        }
    }
    let jobs = pending.into_iter().map(|check| || check.run()).collect();
    Ok(run_all(env, "checking:", "checks", jobs).into_iter().flatten().collect())
}

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
        .whole("");
    (!checks.is_empty()).then(|| Section::new(title, lead).with(table))
}
