//! Loads of items of 1 KiB: our server with and without `--strict`, and memcached, alternately.

use std::path::Path;

use prism_base::Bytes;
use prism_host::Progress;
use serde::Serialize;

use super::clients::{Command, Measured};
use super::server::Process;
use super::{Args, CONNECTIONS, TemporaryFile, VALUE};
use crate::commands::bench_device::fio::{self, Job};
use crate::commands::bench_device::median;
use crate::failure::Failure;

/// A row of the table: medians.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub server: &'static str,
    pub load: &'static str,
    pub operations_per_second: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
    pub cpu_ns_per_operation: f64,
    /// The rate as a share of fio's random reads at the same depth.
    pub of_fio: Option<f64>,
}

impl Row {
    /// Whether the server is that of the cache on flash.
    pub fn is_ours(&self) -> bool {
        OURS.iter().any(|(name, _)| *name == self.server)
    }
}

/// Loads: the name, sets among a hundred commands, commands in flight on each of 16 connections,
/// and fio's depth to compare with.
const LOADS: [(&str, u32, u32, Option<u32>); 4] = [
    ("get, 16 x 1", 0, 1, Some(16)),
    ("get, 16 x 4", 0, 4, Some(64)),
    ("set, 16 x 1", 100, 1, None),
    ("1 set to 10 gets, 16 x 1", 9, 1, None),
];

/// Our server without more options, and with `--strict`.
const OURS: [(&str, Option<&str>); 2] =
    [("prism, flash", None), ("prism, flash, --strict", Some("--strict"))];

/// Options of our server for so many bytes of items, a tenth of which fits into its buffers.
pub fn options(bytes: u64) -> Vec<String> {
    let size = format!("{}KiB", bytes * 3 / 2 / 1024);
    let memory = format!("{}KiB", (bytes / 5 / 1024).max(16 << 10));
    vec!["--size".to_owned(), size, "--memory".to_owned(), memory]
}

/// Bytes of the items with their headers.
pub fn bytes_of(items: u64) -> u64 {
    items * (VALUE as u64 + 64)
}

/// The rate of fio's random reads of 4 KiB.
fn fio_reads(args: &Args, file: &Path, depth: u32) -> Result<f64, Failure> {
    let block = 4096;
    let job = Job { depth, time: Some(args.time), ..Job::of("randread", block) };
    let size = Bytes(args.items * 1100);
    Ok(fio::run_on(size, args.seed, file, &[job])?[0] / f64::from(block))
}

fn start_all(args: &Args, devices: [&Path; 2]) -> Result<Vec<Process>, Failure> {
    let bytes = bytes_of(args.items);
    let mut servers = Vec::new();
    for ((name, strict), device) in OURS.into_iter().zip(devices) {
        let mut options = options(bytes);
        options.extend(strict.map(str::to_owned));
        servers.push(Process::ours(name, device, &options)?);
    }
    // Without it only our server is measured.
    servers.extend(Process::memcached(bytes)?);
    Ok(servers)
}

/// Runs all loads.
///
/// # Errors
/// [`Failure`].
pub fn measure(args: &Args) -> Result<Vec<Row>, Failure> {
    let [fio_file, plain, strict] =
        ["fio", "cache", "strict"].map(|name| TemporaryFile::new(args, name));
    let mut servers = start_all(args, [&plain.path, &strict.path])?;
    let progress = Progress::on_stderr();
    for server in &mut servers {
        server.connect(CONNECTIONS)?.fill(args.items, VALUE, &mut |_| ())?;
    }
    let total = servers.len() * LOADS.len() * args.runs as usize;
    progress.start_count("measuring:", "runs", Some(total as u64));
    let mut done = 0;
    let mut all: Vec<Vec<Measured>> = vec![Vec::new(); servers.len() * LOADS.len()];
    let mut fio: Vec<Vec<f64>> = vec![Vec::new(); LOADS.len()];
    // Runs of all loads take turns, so that a change of the machine meets all of them.
    for run in 0..args.runs {
        for (number, &(_, sets, depth, fio_depth)) in LOADS.iter().enumerate() {
            if let Some(fio_depth) = fio_depth {
                fio[number].push(fio_reads(args, &fio_file.path, fio_depth)?);
            }
            for (place, server) in servers.iter_mut().enumerate() {
                let seed = args.seed.wrapping_add(u64::from(run) << 32);
                let command = Command { sets, depth, items: args.items, value: VALUE, seed };
                all[place * LOADS.len() + number].push(server.measure(&command, args.time)?);
                done += 1;
                progress.reached(done);
            }
        }
    }
    progress.clear();
    Ok(rows(&servers, &all, &fio))
}

fn rows(servers: &[Process], all: &[Vec<Measured>], fio: &[Vec<f64>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, server) in servers.iter().enumerate() {
        for (number, &(load, ..)) in LOADS.iter().enumerate() {
            let runs = &all[place * LOADS.len() + number];
            let of =
                |what: fn(&Measured) -> f64| median(&runs.iter().map(what).collect::<Vec<_>>());
            let rate = of(|run| run.operations as f64 / run.seconds);
            let fio = (!fio[number].is_empty()).then(|| median(&fio[number]));
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
    rows
}
