//! `prism graph ingest`: edges become a store.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use prism_base::Bytes;
use prism_graph::input::{Columns, Format, ReadOptions, Reader, read_vertices};
use prism_graph::{Catalog, GraphError, Ingest, IngestOptions, Keep};
use prism_host::Progress;
use prism_host::input::Input;
use prism_host::interrupt::Scratch;
use serde::Serialize;

use super::device::{GraphDevice, SharedMemory, TemporaryFile, Threads, name_of, refuse_store};
use super::table;
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

Inputs but Parquet may be compressed (.gz, .zst). Next to FILE.e, FILE.v is read for vertices
without edges.")]
pub struct Args {
    /// The file of edges; `-` for standard input
    #[arg(value_name = "EDGES")]
    edges: PathBuf,
    /// The store to make; a graph that is there is replaced when the new one is complete
    #[arg(short, long, value_name = "STORE")]
    output: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// How edges are read.
#[derive(Clone, Debug, ClapArgs)]
pub struct InputArgs {
    /// Edges have a direction
    #[arg(long)]
    directed: bool,
    /// Edges have weights
    #[arg(long)]
    weighted: bool,
    /// The format, if its content and name do not say it
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<InputFormat>,
    /// The names of the columns of sources, targets and weights in CSV and Parquet
    #[arg(long, value_name = "A,B[,W]", value_parser = columns)]
    columns: Option<Columns>,
    /// A file of vertices, which need not have edges
    #[arg(long, value_name = "FILE")]
    vertices: Option<PathBuf>,
    /// Edges between vertices that have one already; of dropped ones the smallest weight is kept
    #[arg(long, value_name = "KEEP", default_value = "drop")]
    duplicates: KeepArg,
    /// Edges from a vertex to itself
    #[arg(long, value_name = "KEEP", default_value = "keep")]
    self_loops: KeepArg,
    /// Memory for edges while they are sorted; more go to temporary files next to the store
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes, default_value = "1GiB")]
    memory: Bytes,
    /// Arrange edges so that `run` with this much memory can compute although the state of the
    /// vertices does not fit
    #[arg(long, value_name = "SIZE", value_parser = run_memory)]
    run_memory: Option<Bytes>,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
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

fn run_memory(text: &str) -> Result<Bytes, String> {
    // Buffers of values and of edges take a dozen blocks.
    const LEAST: Bytes = Bytes(16 << 20);
    let bytes = quantities::bytes(text)?;
    if bytes < LEAST { Err(format!("at least {LEAST} are needed")) } else { Ok(bytes) }
}

/// A format of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputFormat {
    /// One that is read from the first byte to the last.
    Stream(Format),
    /// Parquet, which begins with its end.
    Parquet,
}

fn format(text: &str) -> Result<InputFormat, String> {
    const PARQUET: &str = "parquet";
    let found = Format::ALL.into_iter().find(|(_, name)| *name == text);
    match found {
        Some((format, _)) => Ok(InputFormat::Stream(format)),
        None if text == PARQUET => Ok(InputFormat::Parquet),
        None => {
            let names: Vec<&str> = Format::ALL.into_iter().map(|(_, name)| name).collect();
            Err(format!("formats are {}, {PARQUET}", names.join(", ")))
        }
    }
}

fn columns(text: &str) -> Result<Columns, String> {
    let mut names = text.split(',').map(str::to_owned);
    let (Some(source), Some(target)) = (names.next(), names.next()) else {
        return Err("give two or three names, such as from,to,length".into());
    };
    Ok(Columns { source, target, weight: names.next().unwrap_or_else(|| "weight".into()) })
}

/// Bytes that are read and parsed at once.
const PIECE: usize = 8 << 20;

impl InputArgs {
    /// Reads edges and writes them to a store that `make` makes for this many bytes of graph, and
    /// vertices.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn ingest(
        &self,
        edges: &Path,
        folder: &Path,
        make: impl FnOnce(u64, u64) -> Result<GraphDevice, Failure>,
    ) -> Result<(GraphDevice, Catalog), Failure> {
        let pool = Threads(self.threads.into());
        let options = IngestOptions {
            directed: self.directed,
            weighted: self.weighted,
            duplicates: self.duplicates.into(),
            loops: self.self_loops.into(),
            state_memory: self.run_memory.map(|memory| memory.0 / 2),
        };
        let shared = SharedMemory::new(self.memory.0);
        let new = || Ok(Box::new(TemporaryFile::new(shared.clone(), folder)) as Box<_>);
        let name = name_of(Some(edges));
        let at = |error| input_failure(&name, error);
        let mut ingest = Ingest::new(options, &new).map_err(at)?;
        self.read(edges, &pool, &mut ingest)?;
        self.read_vertices(edges, &mut ingest)?;
        let prepared = ingest.prepare().map_err(at)?;
        let block = super::device::block_bytes(prepared.bytes_max(1 << 20));
        let device = make(prepared.bytes_max(block), prepared.vertices())?;
        let (mut space, _) = device.graph(1).map_err(at)?;
        let catalog = prepared.write(&mut space, &pool).map_err(at)?;
        drop(space);
        Ok((device, catalog))
    }

    fn read(&self, path: &Path, pool: &Threads, ingest: &mut Ingest<'_>) -> Result<(), Failure> {
        let format = match self.format {
            Some(InputFormat::Stream(format)) => Some(format),
            None if !table::is_parquet(path) => None,
            _ => return table::read(path, self.columns.as_ref(), self.weighted, ingest),
        };
        let mut input = Input::open(path)?;
        input.read_once();
        let progress = Progress::on_stderr();
        progress.start_bytes("reading:", input.size());
        let name = input.name().to_owned();
        let mut piece = vec![0; PIECE];
        let mut reader = None;
        loop {
            let done = reader.as_ref().map_or(0, Reader::done);
            let bytes = input.read_full(&mut piece).map_err(|e| input.explain(e, done))?;
            let mut reading = match reader.take() {
                Some(reading) => reading,
                None => self.reader(format, &name, &piece[..bytes])?,
            };
            let read = reading.read(pool, &piece[..bytes], bytes < PIECE, ingest);
            reader = Some(reading);
            read.map_err(|error| input_failure(&name, error))?;
            progress.reached(input.taken());
            if bytes < PIECE {
                progress.clear();
                return Ok(());
            }
        }
    }

    fn reader(&self, format: Option<Format>, name: &str, head: &[u8]) -> Result<Reader, Failure> {
        let reader = Reader::new(ReadOptions {
            format: format.unwrap_or_else(|| Format::recognise(name, head)),
            directed: self.directed,
            weighted: self.weighted,
            columns: self.columns.clone(),
        });
        reader.map_err(|error| input_failure(name, error))
    }

    /// Reads the vertices, if they are named or next to the edges.
    fn read_vertices(&self, edges: &Path, ingest: &mut Ingest<'_>) -> Result<(), Failure> {
        let next_to = edges.to_str().and_then(|name| {
            let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
            let found = PathBuf::from(format!("{}.v", name.strip_suffix(".e")?));
            found.exists().then_some(found)
        });
        let Some(path) = self.vertices.clone().or(next_to) else { return Ok(()) };
        let mut input = Input::open(&path)?;
        input.read_once();
        let (mut all, mut piece) = (Vec::new(), vec![0; PIECE]);
        loop {
            let bytes = input.read_full(&mut piece).map_err(|e| input.explain(e, 0))?;
            all.extend_from_slice(&piece[..bytes]);
            if bytes == 0 {
                break;
            }
        }
        read_vertices(&all, ingest).map_err(|error| input_failure(input.name(), error))
    }
}

/// A failure with the name of the file: `edges.txt:7: ...`.
pub fn input_failure(name: &str, error: GraphError) -> Failure {
    match error {
        GraphError::Input { .. } => Failure::Usage(format!("{name}:{error}")),
        error => Failure::Usage(format!("{name}: {error}")),
    }
}

/// Bytes of results for a graph of this many vertices: two generations of eight bytes a vertex.
pub fn results_bytes(vertices: u64) -> u64 {
    2 * 8 * vertices + (1 << 20)
}

#[derive(Serialize)]
struct Ingested {
    store: String,
    vertices: u32,
    edges: u64,
    self_loops: u64,
    duplicates_dropped: u64,
    self_loops_dropped: u64,
    store_bytes: u64,
    intervals: u32,
}

/// Makes the store under a temporary name, and renames it when it is complete.
///
/// # Errors
/// [`Failure`]; then the store is as it was.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.json.refuse_same_stdout(&args.output)?;
    refuse_store(&args.output, &[args.json.path(), Some(&args.edges)])?;
    // A link stays one.
    let store = &args.output.canonicalize().unwrap_or_else(|_| args.output.clone());
    if store.exists() {
        // Only a graph is replaced.
        drop(GraphDevice::open(store)?);
    }
    let folder = match store.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    if !folder.is_dir() {
        let what = format!("{}: there is no folder to write it to", store.display());
        return Err(Failure::Usage(what));
    }
    let mut part = store.clone().into_os_string();
    // Two processes may make the same store: the last one to end replaces it.
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let _scratch = Scratch::at(&part);
    let (device, catalog) = args.input.ingest(&args.edges, &folder, |bytes, vertices| {
        GraphDevice::make(Some(&part), bytes, results_bytes(vertices))
    })?;
    drop(device);
    let failed = |error: std::io::Error| Failure::Usage(format!("{}: {error}", store.display()));
    std::fs::rename(&part, store).map_err(failed)?;
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    let bytes: u64 = catalog.entries.iter().map(|entry| entry.bytes() as u64).sum();
    let ingested = Ingested {
        store: args.output.display().to_string(),
        vertices: catalog.vertices,
        edges: catalog.edges,
        self_loops: catalog.loops,
        duplicates_dropped: catalog.duplicates,
        self_loops_dropped: catalog.loops_dropped,
        store_bytes: bytes,
        intervals: catalog.intervals,
    };
    let text = format!(
        "{}: {} vertices, {} edges ({} self-loops), {}; left out: {} duplicates, {} self-loops\n",
        ingested.store,
        catalog.vertices,
        catalog.edges,
        catalog.loops,
        Bytes(bytes),
        catalog.duplicates,
        catalog.loops_dropped
    );
    Ok(args.json.write(&ingested, &text)?)
}
