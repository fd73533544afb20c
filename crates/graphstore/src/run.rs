//! Runs of algorithms on stores.

use std::path::Path;
use std::time::Instant;

use prism_base::{Bytes, Named};
use prism_graph::algorithms::pagerank::Form;
use prism_graph::algorithms::{Algorithm, Column, Options};
use prism_graph::pull::Schedule;
use prism_graph::{Graph, Pool, Results};
use prism_host::Progress;
use prism_ssd::DriveSpec;
use serde::Serialize;

use crate::device::{GraphDevice, name_of, refuse_same, refuse_store};
use crate::error::StoreError;
use crate::histogram::Histogram;
use crate::ingest::{IngestPlan, results_bytes};
use crate::temporary::{MEMORY, Spaces, Work, make_in_memory};
use crate::values::{self, Output};

/// An algorithm and its options.
#[derive(Clone, Copy, Debug)]
pub struct RunPlan {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Rounds.
    pub iterations: Option<u32>,
    /// The vertex at which it begins, by its number in the input.
    pub source: Option<u64>,
    /// The damping factor of PageRank; 0.85 if it is not given.
    pub damping: Option<f64>,
    /// The change at which PageRank ends.
    pub tolerance: Option<f64>,
    /// Whether PageRank is GraphChi's.
    pub graphchi_compat: bool,
    /// Whether rounds see their own changes.
    pub asynchronous: bool,
    /// Whether PageRank keeps its values in four bytes.
    pub single_precision: bool,
    /// Rounds after which PageRank is saved.
    pub checkpoint: Option<u32>,
    /// Whether rounds that an earlier run saved are not used.
    pub restart: bool,
}

impl RunPlan {
    /// Refuses options that the algorithm would ignore.
    ///
    /// # Errors
    /// [`StoreError::Refused`] naming the option.
    pub fn check(&self) -> Result<(), StoreError> {
        let ranks = matches!(self.algorithm, Algorithm::Pagerank | Algorithm::Ppr);
        let has_rounds = ranks || self.algorithm == Algorithm::Cdlp;
        let given = [
            ("--iterations", self.iterations.is_some(), has_rounds),
            ("--source", self.source.is_some(), self.algorithm.has_source()),
            ("--damping", self.damping.is_some(), ranks),
            ("--tolerance", self.tolerance.is_some(), ranks),
            ("--graphchi-compat", self.graphchi_compat, ranks),
            ("--async", self.asynchronous, ranks),
            ("--single-precision", self.single_precision, ranks),
            ("--checkpoint", self.checkpoint.is_some(), ranks),
        ];
        let refused = StoreError::Refused;
        match given.iter().find(|(_, given, used)| *given && !used) {
            None => {}
            Some((flag, ..)) => {
                let name = self.algorithm.name();
                return Err(refused(format!("{name} has no use for {flag}; leave it away")));
            }
        }
        if self.iterations == Some(0) {
            return Err(refused("--iterations 0: there is at least one round".into()));
        }
        Ok(())
    }

    /// Runs the algorithm on the graph in `store`, and calls `then` with the graph and its values.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn run<T>(
        &self,
        store: &Path,
        shown: &Show<'_>,
        pool: &dyn Pool,
        progress: &Progress,
        then: impl FnOnce(&mut Graph, &Column) -> Result<T, StoreError>,
    ) -> Result<(Run, T), StoreError> {
        self.check()?;
        refuse_store(store, &[shown.output])?;
        let output = shown.output.map(Output::create).transpose()?;
        let device = GraphDevice::open(store)?;
        self.run_on(&device, &name_of(Some(store)), (shown, output), pool, progress, then)
    }

    /// As [`RunPlan::run`], on a device in memory, or a simulated drive, that is made of `edges`
    /// first and is gone at the end.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn run_in_memory<T>(
        &self,
        edges: &InMemory<'_>,
        shown: &Show<'_>,
        pool: &dyn Pool,
        progress: &Progress,
        then: impl FnOnce(&mut Graph, &Column) -> Result<T, StoreError>,
    ) -> Result<(Run, T), StoreError> {
        self.check()?;
        let InMemory { path, plan, drive } = *edges;
        for input in [Some(path), plan.vertices.as_deref()].into_iter().flatten() {
            refuse_same("the input", input, &[shown.output])?;
        }
        let output = shown.output.map(Output::create).transpose()?;
        let (begun, folder) = (Instant::now(), std::env::temp_dir());
        let (device, _) = plan.ingest(path, &folder, pool, progress, |graph, vertices| {
            make_in_memory(drive, graph, results_bytes(vertices))
        })?;
        let (ingest, seconds) = (device.work(), begun.elapsed().as_secs_f64());
        let (run, then) = self.run_on(&*device, MEMORY, (shown, output), pool, progress, then)?;
        let kind = drive.map_or(MEMORY.to_owned(), |drive| drive.name.clone());
        let run_work = device.work().since(&ingest);
        let device = InMemoryWork { kind, ingest_seconds: seconds, ingest, run: run_work };
        Ok((Run { device: Some(device), ..run }, then))
    }

    /// Runs the algorithm on the graph of a device.
    fn run_on<T>(
        &self,
        device: &dyn Spaces,
        name: &str,
        (shown, output): (&Show<'_>, Option<Output>),
        pool: &dyn Pool,
        progress: &Progress,
        then: impl FnOnce(&mut Graph, &Column) -> Result<T, StoreError>,
    ) -> Result<(Run, T), StoreError> {
        let failure = |error| StoreError::input(name, error);
        let (space, catalog) = device.graph(pool.threads()).map_err(failure)?;
        let mut graph = Graph::open(space, catalog, shown.memory.0).map_err(failure)?;
        progress.start_count(&format!("{}:", self.algorithm.name()), "edges", None);
        let shown_by = progress.clone();
        graph.watch(move |edges| shown_by.reached(edges));
        let begun = Instant::now();
        let (space, catalog) = device.results().map_err(failure)?;
        let mut results = Results::open(space, catalog);
        if self.restart {
            results.forget();
        }
        let computed = self.algorithm.run(&mut graph, Some(results), pool, &self.options());
        progress.clear();
        let computed = computed.map_err(failure)?;
        let seconds = begun.elapsed().as_secs_f64();
        let (memory_bytes, memory_pinned_bytes) = graph.memory_used();
        // The output has their memory.
        graph.release();
        let (top, histogram) = (shown.top, shown.histogram);
        let shown = values::write(&mut graph, &computed.column, output, top, histogram, name)?;
        let (io, flash, catalog) = (graph.io(), graph.flash(), graph.catalog());
        let run = Run {
            store: name.to_owned(),
            algorithm: self.algorithm.name(),
            vertices: catalog.vertices,
            edges: catalog.edges,
            rounds: computed.rounds,
            resumed_after_round: computed.resumed_after,
            seconds,
            edges_streamed: io.edges,
            edges_per_second: io.edges as f64 / seconds.max(1e-9),
            read_bytes: io.read,
            cached_bytes: io.cached,
            memory_bytes,
            memory_pinned_bytes,
            flash_copies: flash.copies,
            flash_erases: flash.erases,
            device: None,
            facts: computed.facts,
            top: shown.top,
            top_is_groups: shown.has_groups,
            histogram: shown.histogram,
        };
        Ok((run, then(&mut graph, &computed.column)?))
    }

    /// The options of the algorithm.
    fn options(&self) -> Options {
        Options {
            iterations: self.iterations,
            source: self.source,
            damping: self.damping.unwrap_or(0.85),
            tolerance: self.tolerance,
            form: if self.graphchi_compat { Form::GraphChi } else { Form::Normalised },
            schedule: match self.asynchronous {
                true => Schedule::Asynchronous,
                false => Schedule::Synchronous,
            },
            single: self.single_precision,
            checkpoint: self.checkpoint,
        }
    }
}

/// What becomes of the values, and the memory for them.
#[derive(Clone, Copy, Debug)]
pub struct Show<'a> {
    /// The file to which all are written, in the format of its extension.
    pub output: Option<&'a Path>,
    /// How many of the largest are listed; of labels, how many of the largest groups, and none if
    /// it is not given.
    pub top: Option<usize>,
    /// Whether it is counted how many vertices have which.
    pub histogram: bool,
    /// The limit of memory.
    pub memory: Bytes,
}

/// Edges that become a graph on a device that ends with the run.
#[derive(Clone, Copy, Debug)]
pub struct InMemory<'a> {
    /// The file of edges.
    pub path: &'a Path,
    /// How they are read.
    pub plan: &'a IngestPlan,
    /// The kind of the simulated drive; `None` for memory.
    pub drive: Option<&'a DriveSpec>,
}

/// What a device did that ends with the run.
#[derive(Clone, Debug, Serialize)]
pub struct InMemoryWork {
    /// `memory`, or the name of the drive.
    pub kind: String,
    /// The time of the ingest.
    pub ingest_seconds: f64,
    /// What the device did for the ingest.
    pub ingest: Work,
    /// And for the run, with its output.
    pub run: Work,
}

/// Figures of a run, in the words of `prism graph run --json`.
#[derive(Debug, Serialize)]
pub struct Run {
    /// The store.
    pub store: String,
    /// The algorithm.
    pub algorithm: &'static str,
    /// Vertices of the graph.
    pub vertices: u32,
    /// Edges of the graph.
    pub edges: u64,
    /// Rounds until it ended.
    pub rounds: u32,
    /// The round after which it went on, if an earlier run had saved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_after_round: Option<u32>,
    /// The time of the algorithm, without output.
    pub seconds: f64,
    /// Edges that were read, each as often as it was.
    pub edges_streamed: u64,
    /// These in a second.
    pub edges_per_second: f64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Bytes of segments that were in memory.
    pub cached_bytes: u64,
    /// Memory at most.
    pub memory_bytes: u64,
    /// Memory of these for segments that stay in memory.
    pub memory_pinned_bytes: u64,
    /// Copies by cleaning in the results' range.
    pub flash_copies: u64,
    /// Erases in the results' range.
    pub flash_erases: u64,
    /// What the device did, if it ends with the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<InMemoryWork>,
    /// What else the algorithm found, such as the number of components.
    pub facts: Vec<(&'static str, f64)>,
    /// The largest values, with their vertices, as in the lines of an output; of labels, those of
    /// the largest groups, with the numbers of their vertices.
    pub top: Vec<(u64, String)>,
    /// Whether `top` has groups.
    #[serde(skip)]
    pub top_is_groups: bool,
    /// How many vertices have which values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// Parses the name of an algorithm.
///
/// # Errors
/// The algorithms that exist.
pub fn parse_algorithm(text: &str) -> Result<Algorithm, String> {
    Algorithm::from_name(text).ok_or_else(|| format!("algorithms are {}", Algorithm::names()))
}

/// Parses a number between 0 and 1.
///
/// # Errors
/// What is expected.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| format!("{text:?} is not a number between 0 and 1"))
}
