//! Traces: read from files, shown as Arrow arrays, written to other formats.

use std::path::PathBuf;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use prism_base::{Bytes, Named, Nanos};
use prism_host::{
    LoadSpec, LoadedTrace, Spool, TraceFile, TraceTarget, load_trace, trace_of_records,
};
use prism_present::analysis;
use prism_trace::generate_options::{
    GenerateOptions, generated_facts, parse_arrival, parse_pattern, parse_size,
};
use prism_trace::{Format, LogicalBlock, Records, Source, Symbols, TraceInfo};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arguments::{Arguments, parsed, parsed_if_any};
use crate::error::Failure;
use crate::requests::{RECORDS, record_batch};
use crate::table::{schema_capsule, stream};
use crate::watch;

/// A trace that has been read.
#[pyclass(module = "prism._prism", frozen)]
pub struct Trace {
    info: TraceInfo,
    spool: Spool,
}

impl Trace {
    /// A trace that is in memory or in a temporary file.
    pub fn of(trace: LoadedTrace) -> Self {
        Self { info: trace.info, spool: trace.spool }
    }

    /// The trace for an analysis, which reads its records again.
    pub fn for_analysis(&self) -> analysis::Trace {
        analysis::Trace { info: self.info.clone(), records: Box::new(self.spool.clone()) }
    }

    /// The names that its records refer to.
    pub fn symbols(&self) -> &Symbols {
        &self.info.symbols
    }
}

#[pymethods]
impl Trace {
    /// What `prism trace info` reports, as JSON.
    #[getter]
    fn info_json(&self) -> String {
        prism_present::trace::json(&self.info).to_string()
    }

    /// The name of the first file.
    #[getter]
    fn name(&self) -> &str {
        &self.info.name
    }

    fn __len__(&self) -> usize {
        self.spool.count() as usize
    }

    /// Exports the records as a stream of Arrow; batches are made when they are taken.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let symbols = self.info.symbols.clone();
        stream(py, Box::new(RecordStream { source: self.spool.clone(), symbols }))
    }

    /// Exports the schema of Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &RECORDS)
    }

    /// Writes the trace to a file, and returns what `prism trace convert` reports, as JSON.
    #[pyo3(signature = (path, to = None, progress = None))]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        to: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let target = to.as_deref().map(target).transpose()?;
        watch::run(py, progress, [], |env| {
            let file = TraceFile::create(&path, target)?;
            let (mut source, TraceInfo { symbols, facts, .. }) = (self.spool.clone(), &self.info);
            let written = file.write(&mut source, symbols, facts, &env.progress())?;
            Ok(serde_json::to_string(&written).expect("it has plain fields only"))
        })
    }
}

/// The output format called `name`.
fn target(name: &str) -> Result<TraceTarget, Failure> {
    TraceTarget::from_name(name).ok_or_else(|| {
        let what = format!("{name:?} is no format; formats are {}", TraceTarget::names());
        Failure::argument("to", what)
    })
}

/// Records as batches of Arrow arrays.
struct RecordStream {
    source: Spool,
    symbols: Symbols,
}

/// Records of a batch: those of many batches of the source, as each batch has its own names.
const BATCH_RECORDS: usize = 1 << 18;

impl Iterator for RecordStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut all, mut some) = (Vec::new(), Vec::new());
        while all.len() < BATCH_RECORDS {
            if let Err(error) = self.source.next_batch(&mut some) {
                return Some(Err(ArrowError::ExternalError(Box::new(error))));
            }
            if some.is_empty() {
                break;
            }
            all.extend_from_slice(&some);
        }
        (!all.is_empty()).then(|| Ok(record_batch(&all, &self.symbols)))
    }
}

impl RecordBatchReader for RecordStream {
    fn schema(&self) -> SchemaRef {
        RECORDS.clone()
    }
}

/// Reads a trace: the arguments are those of `prism trace info`.
#[pyfunction]
#[pyo3(signature = (paths, format, map, blkparse_format, block_size, disorder, phase, source,
                    progress))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn read_trace(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    format: Option<String>,
    map: Option<PathBuf>,
    blkparse_format: Option<String>,
    block_size: Option<String>,
    disorder: Option<String>,
    phase: Option<String>,
    source: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Trace> {
    let given = [
        ("format", format.is_some()),
        ("map", map.is_some()),
        ("blkparse_format", blkparse_format.is_some()),
    ];
    let given: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if let [first, second, ..] = given[..] {
        return Err(Failure::argument(first, format!("it excludes {second}; leave one out")).into());
    }
    let spec = LoadSpec {
        paths,
        format: format.as_deref().map(format_of).transpose()?,
        map,
        blkparse_format,
        nvme_block: block_size.as_deref().map(block_of).transpose()?,
        disorder: parsed_if_any("disorder", disorder.as_deref(), Nanos::parse)?,
        phase,
        source,
    };
    if spec.paths.is_empty() {
        return Err(Failure::argument("paths", "name at least one file").into());
    }
    watch::run(py, progress, [], |env| Ok(Trace::of(load_trace(&spec, &env.progress())?)))
}

/// What is generated, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Generated {
    pattern: String,
    requests: u64,
    span: String,
    align: String,
    sizes: Vec<String>,
    reads: Option<f64>,
    discards: Option<f64>,
    flush_every: Option<u64>,
    arrival: Option<String>,
    seed: u64,
}

impl Generated {
    fn options(self) -> Result<GenerateOptions, Failure> {
        let sizes = self.sizes.iter().map(|text| parsed("size", text, parse_size));
        Ok(GenerateOptions {
            pattern: parsed("pattern", &self.pattern, parse_pattern)?,
            requests: self.requests,
            span: parsed("span", &self.span, Bytes::parse)?,
            align: parsed("align", &self.align, Bytes::parse)?,
            sizes: sizes.collect::<Result<_, _>>()?,
            reads: self.reads,
            discards: self.discards,
            flush_every: self.flush_every,
            arrival: parsed_if_any("arrival", self.arrival.as_deref(), parse_arrival)?,
            seed: self.seed,
        })
    }
}

/// Makes a trace: the arguments are those of `prism trace generate`.
#[pyfunction]
#[pyo3(signature = (options, progress))]
pub fn generate_trace(
    py: Python<'_>,
    options: Arguments<Generated>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Trace> {
    let workload = options.0.options()?.workload();
    watch::run(py, progress, [], |env| {
        let records = workload.records().map_err(|error| Failure::Text(error.to_string()))?;
        let facts = generated_facts();
        Ok(Trace::of(trace_of_records("generated", records, facts, &env.progress())?))
    })
}

fn format_of(name: &str) -> Result<Format, Failure> {
    Format::from_name(name).ok_or_else(|| {
        let what = format!("{name:?} is no format; formats are {}", Format::names());
        Failure::argument("format", what)
    })
}

fn block_of(text: &str) -> Result<LogicalBlock, Failure> {
    let size = parsed("block_size", text, Bytes::parse)?;
    LogicalBlock::new(size).map_err(|error| Failure::argument("block_size", error))
}
