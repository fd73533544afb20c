//! The commands that compute tables: checks, calculations, published results.

use std::path::{Path, PathBuf};

use prism_base::Bytes;
use prism_experiments::calc::usual_cycles;
use prism_host::{LoadedTrace, Progress, load_trace};
use prism_present::calc::cleaning::{self, parse_share};
use prism_present::calc::lifetime::{self, LifetimeInputs, parse_cell};
use prism_present::reproduction::{Paper, Repetition, Traces, parse_scale};
use prism_present::{Trace, validation};
use prism_report::Document;
use pyo3::prelude::*;
use serde_json::Value;

use crate::arguments::{parsed, parsed_if_any};
use crate::error::Failure;
use crate::results::Results;
use crate::watch;

fn results(json: Value, document: Document) -> Results {
    Results::new(json, document.clone(), document)
}

/// Compares the simulation with theory and data sheets, as `prism validate` does.
#[pyfunction]
#[pyo3(signature = (only, seed, progress))]
pub fn validate(
    py: Python<'_>,
    only: Option<&str>,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    watch::run(py, progress, [], |env| {
        let done = validation::run(seed, only, env)?;
        Ok(results(validation::json(&done, seed), validation::document(&done)))
    })
}

/// The cost of a free block, as `prism calc cleaning` computes it.
#[pyfunction]
#[pyo3(signature = (utilization, pages_per_block, seed, progress))]
pub fn calc_cleaning(
    py: Python<'_>,
    utilization: Vec<String>,
    pages_per_block: u32,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let shares = utilization.iter().map(|text| parsed("utilization", text, parse_share));
    let shares = shares.collect::<Result<Vec<f64>, _>>()?;
    watch::run(py, progress, [], |env| {
        let done = cleaning::run(&shares, pages_per_block, seed, env)?;
        let json = cleaning::json(&done, pages_per_block, seed);
        Ok(results(json, cleaning::document(&done, pages_per_block)))
    })
}

/// The lifetime of a drive, as `prism calc lifetime` computes it.
#[pyfunction]
#[pyo3(signature = (capacity, cycles, cell, write_amplification, rate))]
pub fn calc_lifetime(
    py: Python<'_>,
    capacity: &str,
    cycles: Option<u32>,
    cell: Option<&str>,
    write_amplification: f64,
    rate: &str,
) -> PyResult<Results> {
    let capacity = parsed("capacity", capacity, Bytes::parse)?;
    let rate = parsed("rate", rate, Bytes::parse_rate)?;
    let cell = parsed_if_any("cell", cell, parse_cell)?;
    let cycles = match (cycles, cell) {
        (Some(cycles), None) => cycles,
        (None, Some(cell)) => usual_cycles(cell),
        _ => return Err(Failure::argument("cycles", "give either cycles or cell").into()),
    };
    let inputs = LifetimeInputs { capacity, cycles, write_amplification, rate };
    watch::run(py, None, [], |_| {
        let life = lifetime::run(&inputs)?;
        Ok(results(lifetime::json(&inputs, &life), lifetime::document(&inputs, &life)))
    })
}

/// The names of the published results, and what they are.
#[pyfunction]
pub fn papers() -> Vec<(&'static str, &'static str)> {
    Paper::ALL.map(|(_, name, what)| (name, what)).to_vec()
}

/// Repeats a published result, as `prism reproduce` does.
#[pyfunction]
#[pyo3(signature = (paper, traces, scale, seed, progress))]
pub fn reproduce(
    py: Python<'_>,
    paper: &str,
    traces: PathBuf,
    scale: &str,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let paper = parsed("paper", paper, Paper::parse)?;
    let scale = parsed("scale", scale, parse_scale)?;
    watch::run(py, progress, [], |env| {
        let traces = Traces::find(paper, &traces, Path::is_file)?;
        let load = |spec| {
            let LoadedTrace { info, spool } = load_trace(&spec, &Progress::hidden())?;
            Ok(Trace { info, records: Box::new(spool) })
        };
        let (json, document) = Repetition { paper, scale, seed, traces }.run(&load, env)?;
        Ok(results(json, document))
    })
}
