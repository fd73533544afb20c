//! `prism graph run`: an algorithm on a graph.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use prism_base::Bytes;
use prism_graph::Graph;
use prism_graph::algorithms::{Algorithm, Column};
use prism_graphstore::device::{refuse_same, refuse_store};
use prism_graphstore::run::{InMemory, InMemoryWork, Run, Show, parse_algorithm, parse_share};
use prism_graphstore::temporary::Work;
use prism_graphstore::{MEMORY, RunPlan, Threads};
use prism_host::Progress;
use prism_ssd::DriveSpec;

use super::ingest::EdgeArgs;

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism graph run`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism graph run pagerank pokec.prism --iterations 10 --output ranks.tsv
  prism graph run pagerank pokec.prism --tolerance 1e-6 --async
  prism graph run bfs pokec.prism --source 1 --memory 64MiB --json -
  prism graph run pagerank memory --edges pokec.txt.gz --directed
  prism graph run pagerank memory --edges pokec.txt.gz --directed --preset dc-tlc

With --preset the graph is on a simulated drive: the time that it takes is shown, in which computing
takes none.")]
pub struct Args {
    /// The algorithm
    #[arg(value_name = "ALGORITHM", value_parser = algorithm)]
    algorithm: Algorithm,
    /// The store; `memory` for one that is made of --edges and ends with the command (a file of
    /// that name is ./memory)
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The file of edges of a graph in memory
    #[arg(id = "edges", long = "edges", value_name = "EDGES", help_heading = IN_MEMORY)]
    edge_file: Option<PathBuf>,
    /// A graph in memory is on a simulated drive of this kind: a preset
    #[arg(long, value_name = "NAME", requires = "edges", help_heading = IN_MEMORY)]
    #[arg(value_parser = PossibleValuesParser::new(DriveSpec::preset_names()))]
    preset: Option<String>,
    /// Rounds: exactly as many, or with --tolerance at most; 20 for PageRank, 10 for cdlp
    #[arg(long, value_name = "N")]
    iterations: Option<u32>,
    /// The vertex at which ppr, bfs and sssp begin, by its number in the input
    #[arg(long, value_name = "V", value_parser = vertex, allow_negative_numbers = true)]
    source: Option<u64>,
    /// Memory for the state of vertices, buffers and segments that stay in memory
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes, default_value = "256MiB")]
    memory: Bytes,
    /// Write all values to this file, a vertex and its value in each row: .csv, .parquet, or
    /// lines with a tab (.tsv, .txt, no ending); `-` for standard output
    #[arg(long, value_name = "F.tsv")]
    output: Option<PathBuf>,
    /// The damping factor of PageRank; 0.85 if it is not given
    #[arg(long, value_name = "D", value_parser = parse_share)]
    damping: Option<f64>,
    /// End PageRank when a round changes all ranks together by less than this share
    #[arg(long, value_name = "T", value_parser = parse_share)]
    tolerance: Option<f64>,
    /// PageRank as GraphChi computes it: 0.15 + 0.85 sum, without the mass of vertices without
    /// edges from them
    #[arg(long)]
    graphchi_compat: bool,
    /// Rounds see their own changes: PageRank needs fewer on some graphs and more on others
    #[arg(long = "async", conflicts_with = "sync")]
    asynchronous: bool,
    /// Rounds see the values of the round before: the result does not depend on threads (this is
    /// the default)
    #[arg(long)]
    sync: bool,
    /// Keep the values of PageRank in four bytes, not eight: less memory, and errors of about a
    /// millionth
    #[arg(long)]
    single_precision: bool,
    /// Save PageRank after every N rounds, and go on after the round that was saved last
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    checkpoint: Option<u32>,
    /// Begin anew, without the rounds that an earlier run saved; they stay in the store until a
    /// round of this run is saved
    #[arg(long, conflicts_with = "edges")]
    restart: bool,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Vertices with the largest values that are shown, 10 if it is not given; of communities and
    /// components, the largest ones, which are counted only if it is given
    #[arg(long, value_name = "K")]
    top: Option<usize>,
    /// Show how many vertices have which values; of communities and components, how many have which
    /// sizes
    #[arg(long)]
    histogram: bool,
    #[command(flatten)]
    json: JsonArg,
    #[command(flatten, next_help_heading = IN_MEMORY)]
    input: EdgeArgs,
}

/// The heading of options of graphs in memory.
const IN_MEMORY: &str = "Options of a graph in memory";

/// Parses the name of an algorithm.
fn algorithm(text: &str) -> Result<Algorithm, String> {
    parse_algorithm(text).map_err(|what| match Path::new(text).exists() {
        true => format!("{what}; name one before the store: prism graph run wcc {text}"),
        false => what,
    })
}

/// Parses the number of a vertex.
fn vertex(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "numbers of vertices are whole, from 0 to 2^64 - 1".to_owned())
}

impl Args {
    fn plan(&self) -> RunPlan {
        RunPlan {
            algorithm: self.algorithm,
            iterations: self.iterations,
            source: self.source,
            damping: self.damping,
            tolerance: self.tolerance,
            graphchi_compat: self.graphchi_compat,
            asynchronous: self.asynchronous,
            single_precision: self.single_precision,
            checkpoint: self.checkpoint,
            restart: self.restart,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    refuse_store(&args.store, &[args.json.path()])?;
    if let Some(output) = &args.output {
        args.json.refuse_same_stdout(output)?;
        if args.json.path() == Some(output) {
            let what = "--output and --json are the same file; name two";
            return Err(Failure::Usage(what.into()));
        }
    }
    let progress = Progress::on_stderr();
    let show = Show {
        output: args.output.as_deref(),
        top: args.top,
        histogram: args.histogram,
        memory: args.memory,
    };
    let pool = Threads(args.threads.into());
    let (plan, then) = (args.plan(), |_: &mut Graph, _: &Column| Ok(()));
    let (run, ()) = match (args.store.as_os_str() == MEMORY, &args.edge_file) {
        (false, None) => plan.run(&args.store, &show, &pool, &progress, then)?,
        (true, Some(path)) => {
            let spec = args.preset.as_deref().map(DriveSpec::preset).transpose();
            let spec = spec.map_err(|error| Failure::Usage(error.to_string()))?;
            let ingest = args.input.plan();
            for input in [Some(path.as_path()), ingest.vertices.as_deref()].into_iter().flatten() {
                refuse_same("the input", input, &[args.json.path()])?;
            }
            let edges = InMemory { path, plan: &ingest, drive: spec.as_ref() };
            plan.run_in_memory(&edges, &show, &pool, &progress, then)?
        }
        _ => {
            let what = "`prism graph run ALGORITHM memory` needs --edges FILE, and a store in a \
                        file has its edges (a file of that name is ./memory)";
            return Err(Failure::Usage(what.into()));
        }
    };
    let output = args.output.as_deref().unwrap_or(Path::new(""));
    Ok(args.json.write_with(output, &run, &text(&run))?)
}

fn text(run: &Run) -> String {
    let mut text = format!(
        "{} of {}: {} vertices, {} edges, {} rounds in {:.3} s\n",
        run.algorithm, run.store, run.vertices, run.edges, run.rounds, run.seconds
    );
    if let Some(round) = run.resumed_after_round {
        let from = format!("  went on after round {round}, which an earlier run had saved");
        text.push_str(&format!("{from} (--restart begins anew)\n"));
    }
    text.push_str(&format!(
        "  {:.1} M edges/s; read {}, from memory {}; memory {} ({} of segments)\n",
        run.edges_per_second / 1e6,
        Bytes(run.read_bytes),
        Bytes(run.cached_bytes),
        Bytes(run.memory_bytes),
        Bytes(run.memory_pinned_bytes)
    ));
    if let Some(device) = &run.device {
        text.push_str(&work(device));
    }
    for (name, value) in &run.facts {
        text.push_str(&format!("  {name}: {value}\n"));
    }
    if run.top_is_groups && !run.top.is_empty() {
        text.push_str("  largest groups, by label and number of vertices:\n");
    }
    for (id, value) in &run.top {
        text.push_str(&format!("  {id}\t{value}\n"));
    }
    if let Some(histogram) = &run.histogram {
        text.push_str(&histogram.text());
    }
    text
}

/// What a device did that ends with the run.
fn work(device: &InMemoryWork) -> String {
    let line = |what: &str, work: &Work| {
        let time = work.virtual_seconds.map(|seconds| format!("{seconds:.6} s; "));
        format!(
            "  {} for the {what}: {}read {}, written {}, copied {}; {} erases\n",
            device.kind,
            time.unwrap_or_default(),
            Bytes(work.read_bytes),
            Bytes(work.written_bytes),
            Bytes(work.copied_bytes),
            work.erases
        )
    };
    line("ingest", &device.ingest) + &line("run", &device.run)
}
