//! Graphs on flash: stores are made of files of edges, and algorithms run on them.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{Field, Schema};
use prism_base::Bytes;
use prism_graph::algorithms::{Column, StoredKind, Value};
use prism_graph::pool::Job;
use prism_graph::{Graph, GraphError, Keep, Pool};
use prism_graphstore::ingest::{
    SAVE_EVERY, parse_columns, parse_format, parse_order, parse_run_memory,
};
use prism_graphstore::run::{InMemory, Show, parse_algorithm};
use prism_graphstore::{Info, IngestPlan, MEMORY, RunPlan, StoreError, Verified, export};
use prism_present::Env;
use prism_ssd::DriveSpec;
use pyo3::prelude::*;

use crate::arguments::{Arguments, in_arguments, parsed, parsed_if_any};
use crate::error::Failure;
use crate::table::Table;
use crate::watch::{self, PythonEnv};

/// Options of `prism graph` that are either given or not.
const FLAGS: [&str; 7] = [
    "async",
    "directed",
    "graphchi-compat",
    "histogram",
    "restart",
    "single-precision",
    "weighted",
];
/// Options whose arguments have other names.
const RENAMED: [(&str, &str); 3] = [
    ("async", "asynchronous"),
    ("duplicates", "keep_duplicates"),
    ("self-loops", "keep_self_loops"),
];

/// Values of options where the argument is a truth value.
const TRUTHS: [(&str, &str); 4] = [
    ("keep_duplicates=drop", "keep_duplicates=False"),
    ("keep_duplicates=keep", "keep_duplicates=True"),
    ("keep_self_loops=drop", "keep_self_loops=False"),
    ("keep_self_loops=keep", "keep_self_loops=True"),
];

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Host(error) => error.into(),
            error => {
                let text = in_arguments(&error.to_string(), &FLAGS, &RENAMED);
                Self::Text(
                    TRUTHS.iter().fold(text, |text, (word, truth)| text.replace(word, truth)),
                )
            }
        }
    }
}

/// The threads of a run; the caller handles signals meanwhile.
struct WatchedPool<'a> {
    env: &'a PythonEnv,
    threads: usize,
}

impl Pool for WatchedPool<'_> {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, jobs: Vec<Job<'_>>) {
        self.env.run_on(self.threads, jobs, |_| {});
        self.env.check();
    }
}

/// How a graph is read, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct IngestOptions {
    directed: bool,
    weighted: bool,
    format: Option<String>,
    columns: Option<String>,
    vertices: Option<PathBuf>,
    keep_duplicates: bool,
    keep_self_loops: bool,
    memory: String,
    run_memory: Option<String>,
    order: String,
    restart: bool,
    threads: usize,
}

fn keep(keep: bool) -> Keep {
    if keep { Keep::Keep } else { Keep::Drop }
}

fn threads(threads: usize) -> Result<usize, Failure> {
    match threads {
        1..=64 => Ok(threads),
        other => Err(Failure::argument("threads", format!("{other} is not from 1 to 64"))),
    }
}

impl IngestOptions {
    fn plan(self) -> Result<IngestPlan, Failure> {
        let run_memory = self.run_memory.as_deref();
        Ok(IngestPlan {
            directed: self.directed,
            weighted: self.weighted,
            format: parsed_if_any("format", self.format.as_deref(), parse_format)?,
            columns: parsed_if_any("columns", self.columns.as_deref(), parse_columns)?,
            vertices: self.vertices,
            duplicates: keep(self.keep_duplicates),
            loops: keep(self.keep_self_loops),
            memory: parsed("memory", &self.memory, Bytes::parse)?,
            run_memory: parsed_if_any("run_memory", run_memory, parse_run_memory)?,
            order: parsed("order", &self.order, parse_order)?,
            restart: self.restart,
            save_every: SAVE_EVERY,
        })
    }
}

/// Makes a store of a file of edges; returns what the graph is, as JSON.
#[pyfunction]
#[pyo3(signature = (edges, store, options, progress))]
pub fn graph_ingest(
    py: Python<'_>,
    edges: PathBuf,
    store: PathBuf,
    options: Arguments<IngestOptions>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = options.0;
    let threads = threads(options.threads)?;
    let plan = options.plan()?;
    watch::run(py, progress, [], |env| {
        let pool = WatchedPool { env, threads };
        let made = plan.make(&edges, &store, &pool, &env.progress())?;
        Ok(serde_json::to_string(&made).expect("numbers and text"))
    })
}

/// An algorithm, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RunOptions {
    iterations: Option<u32>,
    source: Option<u64>,
    damping: Option<f64>,
    tolerance: Option<f64>,
    graphchi_compat: bool,
    asynchronous: bool,
    single_precision: bool,
    checkpoint: Option<u32>,
    restart: bool,
    output: Option<PathBuf>,
    top: Option<usize>,
    histogram: bool,
    values: bool,
    memory: String,
    threads: usize,
}

fn share(name: &str, value: Option<f64>) -> Result<Option<f64>, Failure> {
    match value {
        Some(value) if !(value > 0.0 && value < 1.0) => {
            Err(Failure::argument(name, format!("{value} is not a number between 0 and 1")))
        }
        value => Ok(value),
    }
}

/// Runs an algorithm; returns figures as JSON and, if it is wanted, a table of vertices and their
/// values, which is beyond the limit of memory. With edges, their options and perhaps a preset the
/// graph is made in memory, or on a simulated drive, first.
#[pyfunction]
#[pyo3(signature = (algorithm, store, options, edges, progress))]
pub fn graph_run(
    py: Python<'_>,
    algorithm: &str,
    store: PathBuf,
    options: Arguments<RunOptions>,
    edges: Option<(PathBuf, Arguments<IngestOptions>, Option<String>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Option<Table>)> {
    let options = options.0;
    let algorithm = parsed("algorithm", algorithm, parse_algorithm)?;
    if options.checkpoint == Some(0) {
        return Err(Failure::argument("checkpoint", "give a number of at least 1").into());
    }
    let plan = RunPlan {
        algorithm,
        iterations: options.iterations,
        source: options.source,
        damping: share("damping", options.damping)?,
        tolerance: share("tolerance", options.tolerance)?,
        graphchi_compat: options.graphchi_compat,
        asynchronous: options.asynchronous,
        single_precision: options.single_precision,
        checkpoint: options.checkpoint,
        restart: options.restart,
    };
    let show = Show {
        output: options.output.as_deref(),
        top: options.top,
        histogram: options.histogram,
        memory: parsed("memory", &options.memory, Bytes::parse)?,
    };
    let threads = threads(options.threads)?;
    if edges.is_some() != (store.as_os_str() == MEMORY) {
        let what = "the store \"memory\" needs edges, and a store in a file has its own";
        return Err(Failure::argument("edges", what).into());
    }
    let in_memory = edges.map(|(path, ingest, preset)| {
        let drive = preset.map(|name| DriveSpec::preset(&name)).transpose();
        let drive = drive.map_err(|error| Failure::argument("preset", error))?;
        Ok::<_, Failure>((path, ingest.0.plan()?, drive))
    });
    let in_memory = in_memory.transpose()?;
    watch::run(py, progress, [], |env| {
        let pool = WatchedPool { env, threads };
        let then = |graph: &mut Graph, column: &Column| {
            let failure = |error| StoreError::input(&store.display().to_string(), error);
            options.values.then(|| table(graph, column)).transpose().map_err(failure)
        };
        let (run, table) = match &in_memory {
            None => plan.run(&store, &show, &pool, &env.progress(), then)?,
            Some((path, ingest, drive)) => {
                let edges = InMemory { path, plan: ingest, drive: drive.as_ref() };
                plan.run_in_memory(&edges, &show, &pool, &env.progress(), then)?
            }
        };
        Ok((serde_json::to_string(&run).expect("numbers and text"), table))
    })
}

/// What the graph in a store is, as JSON.
#[pyfunction]
pub fn graph_info(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    watch::run(py, None, [], |_| {
        Ok(serde_json::to_string(&Info::of(&store)?).expect("numbers and text"))
    })
}

/// Reads all of a graph and checks it; returns what was found, as JSON.
#[pyfunction]
pub fn graph_verify(py: Python<'_>, store: PathBuf, memory: &str) -> PyResult<String> {
    let memory = parsed("memory", memory, Bytes::parse)?;
    watch::run(py, None, [], |env| {
        let found =
            Verified::of(&store, memory, &WatchedPool { env, threads: 1 }, &env.progress())?;
        Ok(serde_json::to_string(&found).expect("numbers and text"))
    })
}

/// Writes the edges of a graph to a file as text.
#[pyfunction]
pub fn graph_export(py: Python<'_>, store: PathBuf, output: PathBuf, memory: &str) -> PyResult<()> {
    let memory = parsed("memory", memory, Bytes::parse)?;
    watch::run(py, None, [], |env| Ok(export(&store, &output, memory, &env.progress())?))
}

/// A row for each vertex: its number in the input and its value, which is null where there is none.
fn table(graph: &mut Graph, column: &Column) -> Result<Table, GraphError> {
    let (mut ids, mut order): (Vec<u64>, Vec<u32>) = (Vec::new(), Vec::new());
    graph.ids(|vertex, id| {
        ids.push(id);
        order.push(vertex);
        Ok(())
    })?;
    let number = |vertex| Some(column.number(vertex)).filter(|number| number.is_finite());
    let level = |vertex| number(vertex).map(|level| level as u32);
    let whole = |vertex| match column.value(vertex, &|rank| ids[rank as usize]) {
        Value::Whole(value) => Some(value),
        Value::Real(_) => None,
    };
    let has_levels = match column {
        Column::Levels(_) => true,
        Column::Stored(stored) => stored.kind == StoredKind::Levels,
        _ => false,
    };
    let vertices = order.into_iter();
    let values: ArrayRef = if column.is_real() {
        Arc::new(vertices.map(number).collect::<Float64Array>())
    } else if has_levels {
        Arc::new(vertices.map(level).collect::<UInt32Array>())
    } else {
        Arc::new(vertices.map(whole).collect::<UInt64Array>())
    };
    column.check()?;
    let kinds = [
        Field::new("vertex", arrow_schema::DataType::UInt64, false),
        Field::new("value", values.data_type().clone(), true),
    ];
    let columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(ids)), values];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(kinds.to_vec())), columns);
    Ok(Table::of(batch.expect("each vertex has a number and a value")))
}
