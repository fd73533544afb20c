//! `prism bench cache`: the server of the cache, and memcached next to it, under the same clients;
//! reads of flash next to fio's.

mod clients;
mod server;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::{Bytes, Nanos};
use prism_host::Progress;
use prism_host::interrupt::Scratch;
use prism_report::{Document, Section, Table, Unit};
use serde::Serialize;

use self::clients::{Clients, Command, Measured};
use self::server::Process;
use super::bench_device::fio::{self, Job};
use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism bench cache`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "fio has to be installed; memcached is measured if it is. Files are made in
the folder and removed. The clients take one core, the server another.

Example:
  prism bench cache /mnt/ssd --runs 5")]
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
    /// Seed of the keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// A row of the table: medians.
#[derive(Clone, Debug, Serialize)]
struct Row {
    server: &'static str,
    load: &'static str,
    operations_per_second: f64,
    p50_ns: f64,
    p99_ns: f64,
    cpu_ns_per_operation: f64,
    /// The rate as a share of fio's random reads at the same depth.
    of_fio: Option<f64>,
}

/// Loads: the name, sets among a hundred commands, commands in flight on each of 16 connections,
/// and fio's depth to compare with.
const LOADS: [(&str, u32, u32, Option<u32>); 4] = [
    ("get, 16 x 1", 0, 1, Some(16)),
    ("get, 16 x 4", 0, 4, Some(64)),
    ("set, 16 x 1", 100, 1, None),
    ("1 set to 10 gets, 16 x 1", 9, 1, None),
];
/// Connections.
const CONNECTIONS: u32 = 16;
/// Bytes of a value.
const VALUE: usize = 1024;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The rate of fio's random reads of 4 KiB.
fn fio_reads(args: &Args, file: &std::path::Path, depth: u32) -> Result<f64, Failure> {
    let (threads, syncs, huge) = (1, false, false);
    let block = 4096;
    let time = Some(args.time);
    let job = Job { pattern: "randread", block, threads, depth, syncs, time, huge };
    let size = Bytes(args.items * 1100);
    Ok(fio::run_on(size, args.seed, file, &[job])?[0] / f64::from(block))
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    let names = [
        "prism-bench-fio",
        "prism-bench-cache",
        "prism-bench-cache.cache",
        "prism-bench-strict",
        "prism-bench-strict.cache",
    ];
    let names = names.map(|name| args.folder.join(name));
    let _scratch = names.each_ref().map(|name| Scratch::at(name));
    let progress = Progress::on_stderr();
    let servers = Process::start_all(args, [&names[1], &names[3]])?;
    let total = servers.len() * LOADS.len() * args.runs as usize;
    progress.start_count("measuring:", "runs", Some(total as u64));
    let mut done = 0;
    let mut all: Vec<Vec<Measured>> = vec![Vec::new(); servers.len() * LOADS.len()];
    let mut fio: Vec<Vec<f64>> = vec![Vec::new(); LOADS.len()];
    for server in &servers {
        Clients::connect(server.port(), CONNECTIONS)?.fill(args.items, VALUE)?;
    }
    // Runs of all loads take turns, so that a change of the machine meets all of them.
    for run in 0..args.runs {
        for (number, &(_, sets, depth, fio_depth)) in LOADS.iter().enumerate() {
            if let Some(fio_depth) = fio_depth {
                fio[number].push(fio_reads(args, &names[0], fio_depth)?);
            }
            for (place, server) in servers.iter().enumerate() {
                let mut clients = Clients::connect(server.port(), CONNECTIONS)?;
                let seed = args.seed.wrapping_add(u64::from(run) << 32);
                let command = Command { sets, depth, items: args.items, value: VALUE, seed };
                let cpu = server.cpu()?;
                let mut measured = clients.run(&command, args.time)?;
                measured.cpu_ns = (server.cpu()? - cpu) * 1e9 / measured.operations as f64;
                all[place * LOADS.len() + number].push(measured);
                done += 1;
                progress.reached(done);
            }
        }
    }
    progress.clear();
    let mut rows = Vec::new();
    for (place, server) in servers.iter().enumerate() {
        for (number, &(load, ..)) in LOADS.iter().enumerate() {
            let runs = &all[place * LOADS.len() + number];
            let of = |what: fn(&Measured) -> f64| median(runs.iter().map(what).collect());
            let rate = of(|run| run.operations as f64 / run.seconds);
            let fio = (!fio[number].is_empty()).then(|| median(fio[number].clone()));
            rows.push(Row {
                server: server.name(),
                load,
                operations_per_second: rate,
                p50_ns: of(|run| run.p50_ns),
                p99_ns: of(|run| run.p99_ns),
                cpu_ns_per_operation: of(|run| run.cpu_ns),
                of_fio: fio.filter(|_| server.is_ours()).map(|fio| rate / fio),
            });
        }
    }
    args.json.show(&rows, &document(args, &rows))
}

fn document(args: &Args, rows: &[Row]) -> Document {
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
    let table = Table::listing(rows)
        .text("server", |row: &Row| row.server)
        .text("load", |row| row.load)
        .number("operations", Unit::PerSec, |row| row.operations_per_second)
        .number("p50", Unit::Nanos, |row| row.p50_ns)
        .number("p99", Unit::Nanos, |row| row.p99_ns)
        .number("server CPU", Unit::Nanos, |row| row.cpu_ns_per_operation)
        .number("of fio", Unit::Ratio, |row| row.of_fio);
    section.push(prism_report::Block::Table(table.table("By server and load.").whole()));
    Document::new("prism bench cache", args.folder.display().to_string()).with(section)
}
