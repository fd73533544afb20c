//! Measurements of the server with a goal: hits in memory, gets while others set, and memory and
//! restarts with many small items.

use prism_host::{Progress, clock};
use serde::Serialize;

use super::clients::{Clients, Command};
use super::server::Process;
use super::{Args, CONNECTIONS, SMALL_VALUE, TemporaryFile, VALUE, loads};
use crate::commands::bench_device::median;
use crate::failure::Failure;

/// Something that was measured, and what it should be at most.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    /// The value is to be at most this.
    pub goal: f64,
    /// The figures from which the value follows.
    pub from: String,
}

/// Items that are hit in memory.
const IN_MEMORY: u64 = 20_000;
/// Keys that are looked for after a restart.
const SAMPLES: u64 = 10_000;
/// Bytes of memory an item, all included.
const BYTES_AN_ITEM: f64 = 20.0;
/// Bytes of the index an item: 16, and a twentieth for the buckets that are not full.
const INDEX_AN_ITEM: f64 = 16.8;
/// Bytes of memory for buffers.
const BUFFERS: u64 = 16 << 20;

/// CPU time of a hit in memory over that of memcached; `None` if memcached is not installed.
///
/// # Errors
/// [`Failure`].
pub fn memory_hits(args: &Args) -> Result<Option<Measurement>, Failure> {
    let bytes = loads::bytes_of(IN_MEMORY);
    let Some(memcached) = Process::memcached(bytes)? else { return Ok(None) };
    let device = TemporaryFile::new(args, "memory");
    let memory = (4 * bytes / 1024).max(256 << 10);
    let options = [format!("--size={}KiB", 4 * memory), format!("--memory={memory}KiB")];
    let mut servers = [Process::ours("prism, memory", &device.path, &options)?, memcached];
    for server in &mut servers {
        server.connect(CONNECTIONS)?.fill(IN_MEMORY, VALUE, &mut |_| ())?;
    }
    let mut cpu = [Vec::new(), Vec::new()];
    for run in 0..args.runs {
        for (server, cpu) in servers.iter_mut().zip(&mut cpu) {
            let seed = args.seed.wrapping_add(u64::from(run) << 32);
            let command = Command { sets: 0, depth: 1, items: IN_MEMORY, value: VALUE, seed };
            cpu.push(server.measure(&command, args.time)?.cpu_ns);
        }
    }
    let [ours, memcached] = cpu.map(|runs| median(&runs));
    Ok(Some(Measurement {
        what: "get of an item in memory: CPU time over memcached's".to_owned(),
        value: ours / memcached,
        unit: "times",
        goal: 1.2,
        from: format!("{:.1} us, {:.1} us", ours / 1e3, memcached / 1e3),
    }))
}

/// The latency of gets while as many connections set, over that of the idle server.
///
/// # Errors
/// [`Failure`].
pub fn latency(args: &Args) -> Result<Measurement, Failure> {
    let device = TemporaryFile::new(args, "latency");
    let options = loads::options(loads::bytes_of(args.items));
    let mut server = Process::ours("prism, flash", &device.path, &options)?;
    server.connect(CONNECTIONS)?.fill(args.items, VALUE, &mut |_| ())?;
    let [mut idle, mut busy, mut sets_per_second] = [Vec::new(), Vec::new(), Vec::new()];
    for run in 0..args.runs {
        let seed = args.seed.wrapping_add(u64::from(run) << 32);
        let gets = Command { sets: 0, depth: 1, items: args.items, value: VALUE, seed };
        let sets = Command { sets: 100, ..gets };
        idle.push(server.connect(CONNECTIONS)?.run(&[gets], args.time)?[0].p99_ns);
        let both = server.connect(2 * CONNECTIONS)?.run(&[gets, sets], args.time)?;
        busy.push(both[0].p99_ns);
        sets_per_second.push(both[1].operations as f64 / both[1].seconds);
    }
    let [idle, busy, sets] = [idle, busy, sets_per_second].map(|runs| median(&runs));
    Ok(Measurement {
        what: "gets while 16 connections set: p99 over that of the idle server".to_owned(),
        value: busy / idle,
        unit: "times",
        goal: 5.0,
        from: format!("{:.2} ms, {:.2} ms, {sets:.0} sets/s", busy / 1e6, idle / 1e6),
    })
}

/// Memory of an item on flash, items that are kept with 20 bytes of memory each, and the time of a
/// start after SIGKILL.
///
/// # Errors
/// [`Failure`].
pub fn small_items(args: &Args) -> Result<Vec<Measurement>, Failure> {
    let items = args.small_items;
    let device = TemporaryFile::new(args, "items");
    // An item has a key of 16 bytes, a header, and an entry in the table of its slab.
    let content = items * (SMALL_VALUE as u64 + 60);
    let size = (content * 21 / 20).max(64 << 20);
    let index = (items as f64 * INDEX_AN_ITEM) as u64;
    let options = [
        format!("--size={}KiB", size >> 10),
        format!("--index={}KiB", index >> 10),
        format!("--memory={}KiB", (index + BUFFERS) >> 10),
    ];
    let mut server = Process::ours("prism, small items", &device.path, &options)?;
    let progress = Progress::on_stderr();
    progress.start_count("filling:", "items", Some(items));
    server.connect(CONNECTIONS)?.fill(items, SMALL_VALUE, &mut |done| progress.reached(done))?;
    progress.clear();
    let held = server.memory()?;
    let kept = kept(&mut server.connect(1)?, items)?;
    let begin = clock::seconds();
    server.restart()?;
    let mut clients = server.connect(1)?;
    // The socket takes connections before the server answers.
    clients.found(0..1)?;
    let took = clock::seconds() - begin;
    // On a busy machine this says more than the time.
    let cpu = server.cpu()?;
    let after = self::kept(&mut clients, items)?;
    let gigabytes = content as f64 / 1e9;
    let measured =
        |what: String, value, unit, goal, from| Measurement { what, value, unit, goal, from };
    Ok(vec![
        measured(
            format!("memory of the server for each of {items} items on flash"),
            held as f64 / items as f64 / kept,
            "bytes",
            BYTES_AN_ITEM,
            format!("{:.0} MiB, {:.2} % kept", held as f64 / f64::from(1 << 20), kept * 100.0),
        ),
        measured(
            "start after SIGKILL with these items".to_owned(),
            took,
            "s",
            gigabytes.max(1.0),
            format!("{gigabytes:.1} GB, {cpu:.1} s of CPU time, {:.2} % kept", after * 100.0),
        ),
    ])
}

/// The share of sampled keys that the server has.
fn kept(clients: &mut Clients, items: u64) -> Result<f64, Failure> {
    let samples = SAMPLES.min(items);
    let found = clients.found((0..samples).map(|sample| sample * (items / samples)))?;
    Ok(found as f64 / samples as f64)
}
