//! The results of `prism reproduce`, as documents and as JSON. Those of the unwritten contract
//! are in this module; each other source has a module.

pub mod atc09;
mod comparison_tables;
mod contract_run;
mod contract_tables;
mod document;
pub mod linkedin;
mod micro_tables;
pub mod prism_ssd;
mod run;
pub mod sfs;
mod sfs_run;

use prism_experiments::Scale;
use prism_experiments::contract_micro::Comparison;
use prism_experiments::unwritten::{Judged, ObservationVerdict, Observed, Pair};
use prism_report::json::table;
use serde_json::{Value, json};

pub use document::document;
pub use run::{LoadTrace, Paper, Repetition, Traces, parse_scale};

/// The results for the unwritten contract.
pub struct Reproduced {
    /// Seed of everything random.
    pub seed: u64,
    /// How large the drive of the micro-benchmarks was.
    pub scale: Scale,
    /// The micro-benchmarks.
    pub comparisons: Vec<Comparison>,
    /// The traces that were found.
    pub observed: Vec<Observed>,
    /// The traces that are missing.
    pub missing: Vec<Pair>,
    /// The observations.
    pub judged: Vec<Judged>,
}

impl Reproduced {
    /// The number of observations with `outcome`.
    #[must_use]
    pub fn count(&self, outcome: ObservationVerdict) -> u64 {
        self.judged.iter().filter(|judged| judged.outcome == outcome).count() as u64
    }

    /// The names of the traces that were found.
    fn used(&self) -> Vec<String> {
        self.observed.iter().map(|observed| observed.facts.pair.name()).collect()
    }

    /// The names of the missing traces.
    fn missing_names(&self) -> Vec<String> {
        self.missing.iter().map(|pair| pair.name()).collect()
    }
}

/// The name of `scale` in options and JSON.
#[must_use]
pub fn scale_name(scale: Scale) -> &'static str {
    match scale {
        Scale::Full => "full",
        Scale::Quarter => "quarter",
    }
}

/// The results as JSON.
#[must_use]
pub fn json(found: &Reproduced) -> Value {
    let observations: Vec<Value> = found.judged.iter().map(observation).collect();
    json!({
        "id": "unwritten-contract",
        "seed": found.seed,
        "scale": scale_name(found.scale),
        "traces": found.used(),
        "missing_traces": found.missing_names(),
        "observations": observations,
        "scores": table(&contract_tables::scores(&found.observed)),
        "figure_1": figure_1(found),
        "depths": table(&contract_tables::depths(&found.observed)),
        "sizes": table(&contract_tables::sizes(&found.observed)),
        "barriers_and_discards": table(&contract_tables::barriers(&found.observed)),
        "rule_numbers": table(&contract_tables::rule_numbers(&found.observed)),
        "lifetimes": table(&contract_tables::lifetimes(&found.observed)),
        "cold_reads": table(&contract_tables::cold_reads(&found.observed)),
        "sequential_work": table(&contract_tables::sequential(&found.observed)),
        "micro_benchmarks": table(&micro_tables::prices(&found.comparisons)),
        "micro_benchmark_sides": table(&micro_tables::sides(&found.comparisons)),
        "wear": table(&micro_tables::wear(&found.comparisons)),
    })
}

fn observation(judged: &Judged) -> Value {
    json!({
        "number": judged.number,
        "title": judged.title,
        "rule": judged.rule,
        "outcome": judged.outcome.name().replace(' ', "_"),
        "supporting": judged.supporting,
        "opposing": judged.opposing,
        "why": judged.why,
    })
}

/// The table of windows, and every point of each.
fn figure_1(found: &Reproduced) -> Value {
    let windows = found.observed.iter().filter_map(|observed| {
        let figure = observed.figure1.as_ref()?;
        let points: Vec<_> =
            figure.points.iter().map(|point| (point.at.0, point.reads, point.writes)).collect();
        Some((observed.facts.pair.name(), json!(points)))
    });
    let points: serde_json::Map<String, Value> = windows.collect();
    json!({
        "windows": table(&contract_tables::figure_1(&found.observed)),
        "points_ns_reads_writes": points,
    })
}
