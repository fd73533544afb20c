//! `prism cache simulate`: requests of a trace against caches of several engines and sizes.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_cache::cache::Eviction;
use prism_cache::simulate::{Design, Simulation};
use prism_cache::workload::{Etc, EtcConfig, Popularity, Request, Traces};
use prism_cacheserver::Engine as Served;
use prism_host::Progress;
use prism_host::input::Input;
use prism_present::cache::{Simulated, document, json, page};
use prism_segments::Level;

use crate::failure::Failure;
use crate::output::{self, JsonArg};
use crate::quantities;
use crate::report_files::{Paths, ReportFiles};

/// Arguments of `prism cache simulate`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism cache simulate cluster52.sort.csv.zst --size 1GiB,2GiB,4GiB
  prism cache simulate wiki.oracleGeneral.zst --engine raw,original --size 256MiB --json -
  prism cache simulate --etc keys=1000000,requests=10000000,zipf=0.9 --size 256MiB
  prism cache simulate trace.csv --size 1GiB,2GiB,4GiB,8GiB --html sizes.html

Traces are recognised by their content: libCacheSim's oracleGeneral, Twitter's, CacheBench's, and
CSV whose header has the columns key and size, or key_size and value_size, and perhaps time, op,
ttl, op_count. They may be compressed (.zst, .gz).")]
pub struct Args {
    /// The trace; `-` for standard input
    #[arg(value_name = "TRACE", required_unless_present = "etc", conflicts_with = "etc")]
    trace: Option<PathBuf>,
    /// Generate Facebook's ETC instead: keys, requests, sets (share of sets), zipf or normal (the
    /// exponent, or the deviation as a share of the keys; else uniform), such as
    /// keys=1000000,requests=10000000,sets=0.03,zipf=0.9
    #[arg(long, value_name = "LIST", value_parser = etc)]
    etc: Option<EtcConfig>,
    /// Engines, separated by commas: raw, function (as raw, without time), policy, original, stock
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "raw,policy,original")]
    #[arg(value_parser = engine)]
    engine: Vec<Engine>,
    /// Sizes of flash, over-provisioning included, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1GiB")]
    #[arg(value_parser = quantities::bytes)]
    size: Vec<Bytes>,
    /// The share of flash that is spare at the levels policy, original and stock, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=90))]
    spare: u32,
    /// Program at most so many bytes of flash a second, by the time of the trace; what exceeds it
    /// is not kept
    #[arg(long, value_name = "50MB/s", value_parser = quantities::rate)]
    max_writes: Option<Bytes>,
    /// Bytes of a slab, which is a flash block
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes, default_value = "1MiB")]
    slab: Bytes,
    /// Channels
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    channels: u32,
    /// Bytes of memory for slabs
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes, default_value = "16MiB")]
    memory: Bytes,
    /// Items that there is an index for; by default one for 64 bytes of flash
    #[arg(long, value_name = "N")]
    items: Option<u64>,
    /// Erases that a block endures, for the lifetime
    #[arg(long, value_name = "N", default_value_t = 3000)]
    cycles: u32,
    /// Seed of the generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the report with charts by size as one HTML file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// An engine that can be simulated.
#[derive(Clone, Debug, PartialEq)]
struct Engine {
    name: &'static str,
    level: Level,
    eviction: Eviction,
}

fn engine(text: &str) -> Result<Engine, String> {
    // What cleaning does is that of the server.
    let engines = [
        ("raw", Level::Blocks, Served::Raw.eviction()),
        ("function", Level::Blocks, Served::Function.eviction()),
        ("policy", Level::Policy, Served::Policy.eviction()),
        ("original", Level::Original, Served::Original.eviction()),
        ("stock", Level::Original, Eviction::Drop),
    ];
    let found = engines.into_iter().find(|(name, ..)| *name == text);
    let found = found.map(|(name, level, eviction)| Engine { name, level, eviction });
    found.ok_or_else(|| "engines are raw, function, policy, original, stock".to_owned())
}

fn etc(text: &str) -> Result<EtcConfig, String> {
    let mut config = EtcConfig {
        keys: 1_000_000,
        requests: 10_000_000,
        sets: 1.0 / 31.0,
        popularity: Popularity::Uniform,
        short_values: true,
        seed: 1,
    };
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?}: NAME=VALUE"))?;
        let wrong = || format!("{name}: {value:?} is out of range");
        let number = value.parse::<f64>().ok().filter(|number| *number >= 0.0).ok_or_else(wrong)?;
        let is_popularity = matches!(name, "zipf" | "normal");
        if is_popularity && config.popularity != Popularity::Uniform {
            return Err("zipf and normal exclude each other; give one".to_owned());
        }
        match name {
            "keys" if number >= 1.0 => config.keys = number as u64,
            "requests" => config.requests = number as u64,
            "sets" if number <= 1.0 => config.sets = number,
            "zipf" if number > 0.0 && number < 10.0 => {
                config.popularity = Popularity::Zipf(number);
            }
            "normal" if number > 0.0 => config.popularity = Popularity::Normal(number),
            "keys" | "sets" | "zipf" | "normal" => return Err(wrong()),
            _ => return Err(format!("{name}: names are keys, requests, sets, zipf, normal")),
        }
    }
    Ok(config)
}

/// Passes the requests of a trace to `take`, some at a time.
fn read(path: &Path, mut take: impl FnMut(&[Request])) -> Result<(), Failure> {
    let mut input = Input::open(path)?;
    let progress = Progress::on_stderr();
    progress.start_bytes("reading:", input.size());
    let (mut traces, mut requests, mut buffer) = (Traces::new(), Vec::new(), vec![0; 1 << 20]);
    let mut count = 0;
    loop {
        let bytes = input.read_full(&mut buffer).map_err(|error| input.explain(error, count))?;
        let read = traces.read(&buffer[..bytes], bytes == 0, &mut requests);
        read.map_err(|error| Failure::Usage(format!("{}: {error}", input.name())))?;
        take(&requests);
        count += requests.len() as u64;
        requests.clear();
        progress.reached(input.taken());
        if bytes == 0 {
            progress.clear();
            return Ok(());
        }
    }
}

/// Bytes of a slab.
fn slab_bytes(args: &Args) -> Result<u32, Failure> {
    let slab = u32::try_from(args.slab.0).ok().filter(|slab| slab.is_power_of_two());
    slab.filter(|slab| (32 << 10..=64 << 20).contains(slab)).ok_or_else(|| {
        Failure::Usage(format!("--slab {}: give a power of two from 32KiB to 64MiB", args.slab))
    })
}

/// Begins to simulate an engine with one size.
fn begin(args: &Args, name: &str, design: &Design, items: u64) -> Result<Simulation, Failure> {
    let (flash, channels, slab) = (design.flash, design.channels, args.slab);
    Simulation::new(design, items).map_err(|error| {
        let least = design.smallest();
        Failure::Usage(match flash < least {
            true => format!(
                "--size {flash} is too small for engine {name} with slabs of {slab} on {channels} \
                 channels: give at least {least}, or smaller slabs by --slab"
            ),
            false => format!("--size {flash}, engine {name}: {error}"),
        })
    })
}

/// Simulates every engine with every size, in one pass over the trace, and prints the table.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    let slab = slab_bytes(args)?;
    let files = ReportFiles::open(Paths {
        html: args.html.as_deref(),
        json: args.json.path(),
        requests: None,
        text: None,
    })?;
    let mut running = Vec::new();
    for &flash in &args.size {
        for Engine { name, level, eviction } in args.engine.clone() {
            let &Args { channels, memory, spare, max_writes, .. } = args;
            let design =
                Design { level, eviction, flash, spare, slab, channels, memory, max_writes };
            let items = args.items.unwrap_or(flash.0 / 64);
            let simulation = begin(args, name, &design, items)?;
            running.push((name, design, simulation));
        }
    }
    let mut last = 0;
    let mut take = |requests: &[Request]| {
        for (.., simulation) in &mut running {
            requests.iter().for_each(|request| simulation.request(request));
        }
        last = requests.last().map_or(last, |request| request.time.max(last));
    };
    let name = match (&args.trace, args.etc) {
        (Some(path), _) => {
            read(path, &mut take)?;
            path.display().to_string()
        }
        (None, Some(config)) => {
            let mut requests = Etc::new(EtcConfig { seed: args.seed, ..config });
            let progress = Progress::on_stderr();
            progress.start_count("simulating:", "requests", Some(config.requests));
            let mut done = 0;
            loop {
                let some: Vec<Request> = requests.by_ref().take(1 << 16).collect();
                if some.is_empty() {
                    break;
                }
                take(&some);
                done += some.len() as u64;
                progress.reached(done);
            }
            progress.clear();
            "ETC".to_owned()
        }
        (None, None) => unreachable!("one of them is required"),
    };
    let done: Vec<Simulated> = running
        .into_iter()
        .map(|(engine, design, simulation)| Simulated {
            engine: engine.to_owned(),
            design,
            outcome: simulation.outcome(),
            cycles: args.cycles,
            seconds: last,
        })
        .collect();
    let json = output::json(&json(&name, &done));
    files.write(&document(&name, &done), page(&name, &done), &json, None)
}
