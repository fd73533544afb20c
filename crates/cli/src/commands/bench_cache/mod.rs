//! `prism bench cache`: the server of the cache, and memcached next to it, under the same clients;
//! reads of flash next to fio's.

mod clients;
mod goals;
mod loads;
mod server;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Nanos;
use prism_host::interrupt::Scratch;
use prism_report::{Document, Section, Table, Unit};
use serde::Serialize;

use self::goals::Measurement;
use self::loads::Row;
use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism bench cache`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "fio has to be installed; memcached is measured if it is. Files are made in
the folder and removed. The clients take one core, the server another.

Examples:
  prism bench cache /mnt/ssd --runs 5
  prism bench cache /mnt/ssd --only 'small items' --small-items 50000000")]
pub struct Args {
    /// A folder on the file system to measure
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Items of 1 KiB
    #[arg(long, value_name = "N", default_value_t = 400_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(10_000..))]
    items: u64,
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantities::nanos)]
    time: Nanos,
    /// Runs; medians are printed
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Items of 100 bytes with which memory and restarts are measured
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(100_000..=1_000_000_000))]
    small_items: u64,
    /// Measure only what has this in its name: loads, hits in memory, latency, small items
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
    /// Seed of the keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// The names of what can be measured alone.
const PARTS: [&str; 4] = ["loads", "hits in memory", "latency", "small items"];
/// Connections.
const CONNECTIONS: u32 = 16;
/// Bytes of a value.
const VALUE: usize = 1024;
/// Bytes of a value of a small item.
const SMALL_VALUE: usize = 100;

/// What was measured.
#[derive(Debug, Default, Serialize)]
struct Bench {
    loads: Vec<Row>,
    goals: Vec<Measurement>,
    /// What was not measured, and why.
    notes: Vec<String>,
}

/// Why there are no figures of memcached.
const NO_MEMCACHED: &str = "memcached is not installed, so nothing is compared with it: install it";

/// A file of a device in the folder, and that of its state, which are removed.
struct TemporaryFile {
    path: PathBuf,
    _files: [Scratch; 2],
}

impl TemporaryFile {
    fn new(args: &Args, name: &str) -> Self {
        let path = args.folder.join(format!("prism-bench-{}-{name}", std::process::id()));
        let state = prism_cacheserver::state_path(&path);
        Self { _files: [Scratch::at(&path), Scratch::at(&state)], path }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    let parts = PARTS.map(|part| part.contains(&args.only));
    let [loads, hits, latency, small_items] = parts;
    if parts == [false; 4] {
        let all = PARTS.join(", ");
        let what = format!("--only {:?}: the measurements are {all}", args.only);
        return Err(Failure::Usage(what));
    }
    let mut bench = Bench::default();
    if loads {
        bench.loads = loads::measure(args)?;
    }
    let memory_hits = if hits { goals::memory_hits(args)? } else { None };
    let lacks_memcached =
        hits && memory_hits.is_none() || loads && bench.loads.iter().all(Row::is_ours);
    if lacks_memcached && parts == [false, true, false, false] {
        return Err(Failure::Usage(NO_MEMCACHED.to_owned()));
    }
    bench.notes.extend(lacks_memcached.then(|| NO_MEMCACHED.to_owned()));
    bench.goals.extend(memory_hits);
    if latency {
        bench.goals.push(goals::latency(args)?);
    }
    if small_items {
        bench.goals.extend(goals::small_items(args)?);
    }
    args.json.show(&bench, &document(args, &bench))
}

fn document(args: &Args, bench: &Bench) -> Document {
    let lead = format!(
        "{} items of 1 KiB, {CONNECTIONS} connections of one client process, medians of {} runs of \
         {} that take turns. The cache on flash has memory for a tenth of the items; with \
         --strict it answers a set when that survives a loss of power. memcached has all in \
         memory. fio reads 4 KiB at random with direct I/O on a file of the same size.",
        args.items,
        args.runs,
        Unit::Nanos.format(args.time.0 as f64)
    );
    let mut section = Section::new("Cache server", lead);
    if !bench.loads.is_empty() {
        let table = Table::listing(&bench.loads)
            .text("server", |row: &Row| row.server)
            .text("load", |row| row.load)
            .number("operations", Unit::PerSec, |row| row.operations_per_second)
            .number("p50", Unit::Nanos, |row| row.p50_ns)
            .number("p99", Unit::Nanos, |row| row.p99_ns)
            .number("server CPU", Unit::Nanos, |row| row.cpu_ns_per_operation)
            .number("of fio", Unit::Ratio, |row| row.of_fio);
        section.push(prism_report::Block::Table(table.whole("By server and load.")));
    }
    if !bench.goals.is_empty() {
        let table = Table::listing(&bench.goals)
            .text("measurement", |row: &Measurement| row.what.clone())
            .number("value", Unit::Ratio, |row| row.value)
            .text("", |row| row.unit)
            .number("goal: at most", Unit::Ratio, |row| row.goal)
            .text("from", |row| row.from.clone());
        section.push(prism_report::Block::Table(table.whole("With a goal.")));
    }
    if !bench.notes.is_empty() {
        section.push(prism_report::Block::Notes(bench.notes.clone()));
    }
    Document::new("prism bench cache", args.folder.display().to_string()).with(section)
}
