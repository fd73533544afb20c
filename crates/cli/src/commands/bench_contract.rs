//! `prism bench contract`: measures time and memory of the contract's rules.

use clap::Args as ClapArgs;
use prism_experiments::judging::{Pattern, Trace};
use prism_host::{Progress, clock, memory};
use prism_report::{Document, Section, Table, Unit};
use prism_trace::Symbols;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::JsonArg;

/// Arguments of `prism bench contract`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism bench contract --requests 1000000 --runs 1")]
pub struct Args {
    /// Only traces whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Runs of each trace; the median is printed
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Requests of each trace
    #[arg(long, value_name = "N", default_value_t = 10_000_000,
          value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Row {
    trace: &'static str,
    requests: u64,
    units_written: u64,
    requests_per_cpu_second: f64,
    cpu_seconds: Vec<f64>,
    /// Peak memory beyond that in use before; null if unknown.
    peak_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Bench {
    contract: Vec<Row>,
    seed: u64,
}

/// Evaluates the rules on each trace, one after another, on one core.
///
/// # Errors
/// [`Failure`] if the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let progress = Progress::on_stderr();
    progress.start_count("running:", "traces", Some(Pattern::ALL.len() as u64));
    let part = args.only.as_deref().unwrap_or_default();
    let mut rows = Vec::new();
    for pattern in Pattern::ALL.into_iter().filter(|pattern| pattern.name().contains(part)) {
        rows.push(measure(args, pattern)?);
        progress.reached(rows.len() as u64);
    }
    progress.clear();
    if rows.is_empty() {
        return Err(Failure::Usage(format!("no trace's name contains {part:?}")));
    }
    let document = document(&rows);
    args.json.show(&Bench { contract: rows, seed: args.seed }, &document)
}

fn measure(args: &Args, pattern: Pattern) -> Result<Row, Failure> {
    let mut row = Row {
        trace: pattern.name(),
        requests: args.requests,
        units_written: 0,
        requests_per_cpu_second: 0.0,
        cpu_seconds: Vec::new(),
        peak_bytes: None,
    };
    let mut symbols = Symbols::new();
    for name in ["one", "two", "three"] {
        symbols.intern(name);
    }
    let mut batch = Vec::new();
    for _ in 0..args.runs {
        let mut trace = Trace::new(pattern, args.requests, args.seed);
        let bare = memory::held_and_peak().map(|(held, _)| held);
        let counted = memory::forget_peak();
        let mut rules = Trace::rules().map_err(Failure::usage)?;
        let mut seconds = 0.0;
        loop {
            trace.next_batch(&mut batch);
            if batch.is_empty() {
                break;
            }
            let start = clock::cpu_seconds();
            rules.add_all(&batch);
            seconds += clock::cpu_seconds() - start;
        }
        let start = clock::cpu_seconds();
        let findings = rules.finish(&symbols);
        seconds += clock::cpu_seconds() - start;
        row.units_written = findings.lifetime.writes;
        row.cpu_seconds.push(seconds);
        let peak = memory::held_and_peak().map(|(_, peak)| peak).filter(|_| counted);
        row.peak_bytes = peak.zip(bare).map(|(peak, bare)| peak.saturating_sub(bare));
    }
    row.cpu_seconds.sort_by(f64::total_cmp);
    row.requests_per_cpu_second = args.requests as f64 / row.cpu_seconds[row.cpu_seconds.len() / 2];
    Ok(row)
}

fn document(rows: &[Row]) -> Document {
    let table = Table::listing(rows)
        .text("trace", |row| row.trace)
        .number("requests", Unit::Count, |row| row.requests)
        .number("units written", Unit::Count, |row| row.units_written)
        .number("requests/CPU s", Unit::Count, |row| row.requests_per_cpu_second.round())
        .number("peak memory", Unit::Bytes, |row| row.peak_bytes)
        .table("Medians of all runs, one core");
    let lead = "All five rules on traces in memory, without reading and simulating.";
    let section = Section::new("The contract's rules", lead).with(table);
    Document::new("prism bench contract", "how fast the rules are evaluated on this machine")
        .with(section)
}
