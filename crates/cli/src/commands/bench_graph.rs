//! `prism bench graph`: ingest and PageRank of random graphs.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use clap::{Args as ClapArgs, Parser};
use prism_base::{Bytes, Rng};
use prism_graph::algorithms::pagerank::Form;
use prism_graph::algorithms::{Algorithm, Options};
use prism_graph::pull::Schedule;
use prism_graph::rmat::Rmat;
use prism_graph::segment::Kind;
use prism_graph::verify::bytes_of;
use prism_graph::{GraphError, Pool};
use prism_graphstore::ingest::results_bytes;
use prism_graphstore::{GraphDevice, Threads};
use prism_host::interrupt::Scratch;
use prism_host::{Progress, memory};
use prism_report::{Document, Section, Table, Unit};
use serde::Serialize;

use super::bench_device::median;
use super::graph::ingest::InputArgs;
use crate::failure::Failure;
use crate::output::JsonArg;

/// Arguments of `prism bench graph`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Files are made in the folder and removed.

Example:
  prism bench graph /mnt/ssd --scale 18,20 --runs 3")]
pub struct Args {
    /// A folder on the file system to measure
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Graphs of 2^N vertices and 16 times as many edges
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "18,20")]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=28))]
    scale: Vec<u32>,
    /// Runs; medians are printed
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Seed of the graphs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// Rounds of PageRank.
const ROUNDS: u32 = 10;

#[derive(Debug, Serialize)]
struct Row {
    scale: u32,
    what: String,
    seconds: f64,
    /// Bytes of input, or of segments that were read, a second.
    bytes_per_second: f64,
    edges_per_second: f64,
    /// Bytes that direct reads of as much get from the disk in a second.
    disk_bytes_per_second: Option<f64>,
    /// The share of it that was read.
    of_disk: Option<f64>,
    peak_memory: Option<u64>,
}

/// The options of ingest, as the command has them.
#[derive(Debug, Parser)]
struct Ingesting {
    #[command(flatten)]
    input: InputArgs,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::Usage(format!("{}: {error}", path.display()))
}

/// Writes the edges as text and as pairs of `u32`.
fn generate(args: &Args, scale: u32, text: &Path, pairs: &Path) -> Result<[u64; 2], Failure> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(text).map_err(failed(text))?);
    let mut binary = BufWriter::with_capacity(1 << 20, File::create(pairs).map_err(failed(pairs))?);
    for edge in Rmat::new(scale, args.seed) {
        if edge.source == edge.target {
            continue;
        }
        writeln!(out, "{}\t{}", edge.source, edge.target).map_err(failed(text))?;
        let pair = [edge.source as u32, edge.target as u32];
        let pair = pair.map(u32::to_le_bytes);
        binary.write_all(pair.as_flattened()).map_err(failed(pairs))?;
    }
    let len = |out: BufWriter<File>, path: &Path| -> Result<u64, Failure> {
        let file = out.into_inner().map_err(|error| failed(path)(error.into_error()))?;
        Ok(file.metadata().map_err(failed(path))?.len())
    };
    Ok([len(out, text)?, len(binary, pairs)?])
}

/// Segments that the engine has in flight for each thread if no memory is left for others.
const DEPTH: usize = 4;

/// Bytes a second that direct reads of a file without holes get, which is made for this: `len`
/// bytes are read `ROUNDS` times, in pieces of a segment and as many at once as the engine has in
/// flight.
fn disk_rate(path: &Path, len: u64, piece: usize, depth: usize) -> Result<f64, Failure> {
    const ALIGN: usize = 4096;
    let pieces = len.div_ceil(piece as u64);
    let mut file = File::create(path).map_err(failed(path))?;
    let mut content = vec![0_u8; piece];
    for number in 0..pieces {
        // Different bytes, which no layer below can keep as one piece.
        let mut rng = Rng::stream(number, "disk");
        content.chunks_mut(8).for_each(|part| {
            let bytes = rng.next_u64().to_le_bytes();
            part.copy_from_slice(&bytes[..part.len()]);
        });
        file.write_all(&content).map_err(failed(path))?;
    }
    file.sync_all().map_err(failed(path))?;
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(direct).open(path);
    let file = file.map_err(failed(path))?;
    let (next, begun) = (AtomicU64::new(0), Instant::now());
    let read = || -> std::io::Result<()> {
        let mut memory = vec![0; piece + ALIGN];
        let skip = memory.as_ptr().align_offset(ALIGN);
        let buffer = &mut memory[skip..skip + piece];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= pieces * u64::from(ROUNDS) {
                return Ok(());
            }
            file.read_exact_at(buffer, at % pieces * piece as u64)?;
        }
    };
    let done: std::io::Result<()> = thread::scope(|scope| {
        let threads: Vec<_> = (0..depth).map(|_| scope.spawn(read)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    });
    done.map_err(failed(path))?;
    let bytes = pieces * piece as u64 * u64::from(ROUNDS);
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}

/// The median of the disk's rates for the lists that PageRank reads of a store.
fn disk_rates(args: &Args, store: &Path, file: &Path) -> Result<f64, Failure> {
    let graph = GraphDevice::open(store)?.open_graph(1, Bytes(0));
    let graph = graph.map_err(|error| Failure::of_graph(&store.display().to_string(), error))?;
    let piece = graph.shape().segment_bytes as usize;
    let (len, depth) = (bytes_of(graph.catalog(), Kind::In), DEPTH * usize::from(args.threads));
    drop(graph);
    let rates: Result<Vec<f64>, Failure> =
        (0..args.runs).map(|_| disk_rate(file, len, piece, depth)).collect();
    Ok(median(&rates?))
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for &scale in &args.scale {
        measure(args, scale, &mut rows)?;
    }
    let table = Table::listing(&rows)
        .number("scale", Unit::Count, |row: &Row| f64::from(row.scale))
        .text("work", |row| row.what.clone())
        .number("time", Unit::Nanos, |row| row.seconds * 1e9)
        .number("MB/s", Unit::Count, |row| (row.bytes_per_second / 1e6).round())
        .number("M edges/s", Unit::Count, |row| (row.edges_per_second / 1e6).round())
        .number("disk MB/s", Unit::Count, |row| {
            row.disk_bytes_per_second.map(|rate| (rate / 1e6).round())
        })
        .number("of disk", Unit::Ratio, |row| row.of_disk)
        .number("peak MiB", Unit::Count, |row| row.peak_memory.map(|b| (b >> 20) as f64));
    let lead = format!(
        "R-MAT with the parameters of Graph500, directed, duplicates kept, {} threads; PageRank of \
         {ROUNDS} rounds; medians of {} runs. MB/s are of the input, of segments read from the \
         disk, or of segments used from memory; the disk's are those of direct reads of a file \
         without holes.",
        args.threads, args.runs
    );
    let section = Section::new("Graph engine", lead).with(table.whole("By graph and work."));
    let document = Document::new("prism bench graph", args.folder.display().to_string());
    args.json.show(&rows, &document.with(section))
}

/// Runs of PageRank: when rounds see changes, whether segments are in memory, and whether values
/// have four bytes.
const PAGERANKS: [(&str, Schedule, bool, bool); 6] = [
    ("PageRank from disk", Schedule::Synchronous, false, false),
    ("asynchronous", Schedule::Asynchronous, false, false),
    ("PageRank, cached", Schedule::Synchronous, true, false),
    ("asynchronous, cached", Schedule::Asynchronous, true, false),
    ("cached, single precision", Schedule::Synchronous, true, true),
    ("asynchronous, cached, single", Schedule::Asynchronous, true, true),
];

fn measure(args: &Args, scale: u32, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let name =
        |part: &str| args.folder.join(format!("prism-bench-{}-{scale}{part}", std::process::id()));
    let (text, pairs, store, whole) = (name(".txt"), name(".bin"), name(".prism"), name(".whole"));
    let _files = [&text, &pairs, &store, &whole].map(|path| Scratch::at(path));
    let lengths = generate(args, scale, &text, &pairs)?;
    for (path, bytes, what) in
        [(&pairs, lengths[1], "ingest of pairs"), (&text, lengths[0], "ingest of text")]
    {
        let mut seconds = Vec::new();
        let _ = memory::forget_peak();
        let mut edges = 0;
        for _ in 0..args.runs {
            let _ = std::fs::remove_file(&store);
            let threads = args.threads.to_string();
            let words = ["", "--directed", "--duplicates", "keep", "--threads", &threads];
            let input = Ingesting::parse_from(words).input;
            let pool = Threads(args.threads.into());
            let begun = Instant::now();
            let progress = Progress::on_stderr();
            let (device, catalog) =
                input.plan().ingest(path, &args.folder, &pool, &progress, |bytes, vertices| {
                    let device = GraphDevice::make(Some(&store), bytes, results_bytes(vertices))?;
                    Ok(Box::new(device))
                })?;
            drop(device);
            edges = catalog.edges;
            seconds.push(begun.elapsed().as_secs_f64());
        }
        let seconds = median(&seconds);
        rows.push(Row {
            scale,
            what: what.into(),
            seconds,
            bytes_per_second: bytes as f64 / seconds,
            edges_per_second: edges as f64 / seconds,
            disk_bytes_per_second: None,
            of_disk: None,
            peak_memory: memory::held_and_peak().map(|(_, peak)| peak),
        });
    }
    let disk = disk_rates(args, &store, &whole)?;
    for work in PAGERANKS {
        rows.push(pagerank(args, scale, &store, work, disk)?);
    }
    Ok(())
}

fn pagerank(
    args: &Args,
    scale: u32,
    store: &Path,
    (what, schedule, cached, single): (&str, Schedule, bool, bool),
    disk: f64,
) -> Result<Row, Failure> {
    let failure = |error: GraphError| Failure::of_graph(&store.display().to_string(), error);
    let pool = Threads(args.threads.into());
    let options = Options {
        iterations: Some(ROUNDS),
        source: None,
        damping: 0.85,
        tolerance: None,
        form: Form::Normalised,
        schedule,
        single,
        checkpoint: None,
    };
    let (mut seconds, mut used, mut edges) = (Vec::new(), 0, 0);
    let _ = memory::forget_peak();
    for _ in 0..args.runs {
        let device = GraphDevice::open(store)?;
        let mut graph = device.open_graph(pool.threads(), Bytes(u64::MAX)).map_err(failure)?;
        let catalog = graph.catalog();
        let (all, vertices) = (bytes_of(catalog, Kind::In), u64::from(catalog.vertices));
        // Room for vertices and buffers, and for all segments or none.
        let buffers = (graph.shape().segment_bytes as usize * pool.threads() * DEPTH) as u64;
        let state = vertices * if schedule == Schedule::Synchronous { 20 } else { 12 };
        graph.set_memory(if cached {
            3 * (state + 4 * buffers) + 2 * all
        } else {
            state + buffers
        });
        let begun = Instant::now();
        Algorithm::Pagerank.run(&mut graph, None, &pool, &options).map_err(failure)?;
        seconds.push(begun.elapsed().as_secs_f64());
        let io = graph.io();
        (used, edges) = (if cached { io.read + io.cached } else { io.read }, io.edges);
    }
    let seconds = median(&seconds);
    let rate = used as f64 / seconds;
    Ok(Row {
        scale,
        what: what.into(),
        seconds,
        bytes_per_second: rate,
        edges_per_second: edges as f64 / seconds,
        disk_bytes_per_second: (!cached).then_some(disk),
        of_disk: (!cached).then_some(rate / disk),
        peak_memory: memory::held_and_peak().map(|(_, peak)| peak),
    })
}
