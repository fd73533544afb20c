//! `prism graph ingest`: edges become a store.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use prism_base::Bytes;
use prism_graph::input::Columns;
use prism_graph::{Keep, Order};
use prism_graphstore::device::refuse_store;
use prism_graphstore::ingest::{
    InputFormat, SAVE_EVERY, parse_columns, parse_format, parse_order, parse_run_memory,
};
use prism_graphstore::{IngestPlan, Threads};
use prism_host::Progress;

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism graph ingest`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism graph ingest soc-pokec.txt.gz -o pokec.prism --directed
  prism graph ingest roads.csv -o roads.prism --weighted --columns from,to,length
  prism graph ingest links.parquet -o links.prism --columns src,dst
  prism graph ingest graph.mtx -o graph.prism --self-loops drop

A large ingest that is interrupted leaves STORE.ingest, and the same command goes on from there.

Inputs but Parquet may be compressed (.gz, .zst). Next to FILE.e, FILE.v is read for vertices
without edges.")]
pub struct Args {
    /// The file of edges; `-` for standard input
    #[arg(id = "edges", value_name = "EDGES")]
    file: PathBuf,
    /// The store to make; a graph that is there is replaced when the new one is complete
    #[arg(short, long, value_name = "STORE")]
    output: PathBuf,
    /// Forget an ingest to this store that was interrupted, and begin anew
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// How edges are read, and the memory and threads for it.
#[derive(Clone, Debug, ClapArgs)]
pub struct InputArgs {
    #[command(flatten)]
    edges: EdgeArgs,
    /// Memory for edges while they are sorted; more go to temporary files next to the store
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes, default_value = MEMORY)]
    memory: Bytes,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
}

/// Memory for edges while they are sorted, if nothing else is said.
const MEMORY: &str = "1GiB";

/// How edges are read.
#[derive(Clone, Debug, ClapArgs)]
pub struct EdgeArgs {
    /// Edges have a direction
    #[arg(long, requires = "edges")]
    directed: bool,
    /// Edges have weights
    #[arg(long, requires = "edges")]
    weighted: bool,
    /// The format, if its content and name do not say it
    #[arg(long, value_name = "FORMAT", value_parser = parse_format, requires = "edges")]
    format: Option<InputFormat>,
    /// The names of the columns of sources, targets and weights in CSV and Parquet
    #[arg(long, value_name = "A,B[,W]", value_parser = parse_columns, requires = "edges")]
    columns: Option<Columns>,
    /// A file of vertices, which need not have edges
    #[arg(long, value_name = "FILE", requires = "edges")]
    vertices: Option<PathBuf>,
    /// Edges between vertices that have one already; of dropped ones the smallest weight is kept
    #[arg(long, value_name = "KEEP", default_value = "drop", requires = "edges")]
    duplicates: KeepArg,
    /// Edges from a vertex to itself
    #[arg(long, value_name = "KEEP", default_value = "keep", requires = "edges")]
    self_loops: KeepArg,
    /// Arrange edges so that `run` with this much memory can compute although the state of the
    /// vertices does not fit
    #[arg(long, value_name = "SIZE", value_parser = parse_run_memory, requires = "edges")]
    run_memory: Option<Bytes>,
    /// The order of vertices in the store: by degree, those with the most edges first, or as in
    /// the input
    #[arg(long, value_name = "ORDER", value_parser = parse_order, default_value = "degree")]
    #[arg(requires = "edges")]
    order: Order,
}

/// `keep` or `drop`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum KeepArg {
    Keep,
    Drop,
}

impl From<KeepArg> for Keep {
    fn from(keep: KeepArg) -> Self {
        match keep {
            KeepArg::Keep => Self::Keep,
            KeepArg::Drop => Self::Drop,
        }
    }
}

impl EdgeArgs {
    /// What these arguments ask for.
    ///
    /// # Panics
    /// Never: the usual memory is a size.
    #[must_use]
    pub fn plan(&self) -> IngestPlan {
        IngestPlan {
            directed: self.directed,
            weighted: self.weighted,
            format: self.format,
            columns: self.columns.clone(),
            vertices: self.vertices.clone(),
            duplicates: self.duplicates.into(),
            loops: self.self_loops.into(),
            memory: Bytes::parse(MEMORY).expect("it is a size"),
            run_memory: self.run_memory,
            order: self.order,
            restart: false,
            save_every: SAVE_EVERY,
        }
    }
}

impl InputArgs {
    /// What these arguments ask for.
    #[must_use]
    pub fn plan(&self) -> IngestPlan {
        IngestPlan { memory: self.memory, ..self.edges.plan() }
    }
}

/// Makes the store under a temporary name, and renames it when it is complete.
///
/// # Errors
/// [`Failure`]; then the store is as it was.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.json.refuse_same_stdout(&args.output)?;
    refuse_store(&args.output, &[args.json.path()])?;
    let pool = Threads(args.input.threads.into());
    let plan = IngestPlan { restart: args.restart, ..args.input.plan() };
    let made = plan.make(&args.file, &args.output, &pool, &Progress::on_stderr())?;
    let text = format!(
        "{}: {} vertices, {} edges ({} self-loops), {}; left out: {} duplicates, {} self-loops\n",
        made.store,
        made.vertices,
        made.edges,
        made.self_loops,
        Bytes(made.store_bytes),
        made.duplicates_dropped,
        made.self_loops_dropped
    );
    Ok(args.json.write(&made, &text)?)
}
