//! `prism validate`: theory and data sheets beside the simulation.

use clap::Args as ClapArgs;
use prism_experiments::{Check, Group, Scale, checks, datasheet, oracles, tiers};
use prism_host::Progress;
use prism_host::jobs::run_all;
use prism_report::{Block, Column, Document, Section, Table, Unit, Value, json, terminal};
use prism_ssd::Device;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{JsonArg, screen};

/// Arguments of `prism validate`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism validate --json validate.json")]
pub struct Args {
    /// Only checks whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
struct Validation {
    checks: Vec<Row>,
    failed: usize,
    seed: u64,
}

/// Runs every check on all cores and prints the table.
///
/// # Errors
/// [`Failure::Finding`] if a check fails, others if the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut pending = checks(args.seed, Scale::Full);
    pending.extend(tiers::checks(args.seed, Scale::Full));
    pending.extend(oracles::checks(args.seed, Scale::Full));
    for name in Device::preset_names() {
        let device = Device::preset(name).map_err(|e| Failure::Usage(e.to_string()))?;
        pending.extend(datasheet::checks(&device, args.seed));
    }
    if let Some(part) = &args.only {
        pending.retain(|check| check.what.contains(part));
        if pending.is_empty() {
            return Err(Failure::Usage(format!("no check's name contains {part:?}")));
        }
    }
    let progress = Progress::on_stderr();
    progress.start_count("checking:", "checks", Some(pending.len() as u64));
    let jobs = pending.into_iter().map(|check| || check.run()).collect();
    let done: Vec<Vec<Check>> = run_all(jobs, |finished| progress.reached(finished as u64));
    let done: Vec<Check> = done.into_iter().flatten().collect();
    progress.clear();
    let failed = done.iter().filter(|check| !check.passed()).count();
    let (width, style) = screen();
    let text = terminal::render(&document(&done), width, style);
    let rows = done.iter().map(row).collect();
    args.json.write(&Validation { checks: rows, failed, seed: args.seed }, &text)?;
    if failed > 0 {
        return Err(Failure::Finding(format!("{failed} checks failed")));
    }
    Ok(())
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

fn document(done: &[Check]) -> Document {
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
