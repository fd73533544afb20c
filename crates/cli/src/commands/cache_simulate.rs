//! `prism cache simulate`: requests of a trace against caches of several engines and sizes.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_cache::simulate::ENGINES;
use prism_cache::workload::{EtcConfig, Traces};
use prism_host::Progress;
use prism_present::cache::{Study, document, json, page};

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
    #[arg(long, value_name = "LIST", value_parser = EtcConfig::parse)]
    etc: Option<EtcConfig>,
    /// Engines, separated by commas: raw, function (as raw, without time), policy, original, stock
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "raw,policy,original")]
    #[arg(value_parser = engine)]
    engine: Vec<&'static str>,
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
    #[arg(long, value_name = "50MB/s", value_parser = Bytes::parse_rate)]
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
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
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

fn engine(text: &str) -> Result<&'static str, String> {
    let found = ENGINES.iter().find(|(name, ..)| *name == text);
    found.map(|(name, ..)| *name).ok_or_else(|| {
        let names = ENGINES.map(|(name, ..)| name);
        format!("engines are {}", names.join(", "))
    })
}

/// Simulates every engine with every size, in one pass over the trace, and prints the table.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    let study = args.study();
    let mut running = study.begin()?;
    let files = ReportFiles::open(Paths {
        html: args.html.as_deref(),
        json: args.json.path(),
        requests: None,
        text: None,
    })?;
    let progress = Progress::on_stderr();
    let name = match (&args.trace, args.etc) {
        (Some(path), _) => {
            let mut traces = Traces::new();
            prism_host::input::pieces(path, &progress, |bytes, is_last| {
                running.read(&mut traces, bytes, is_last)
            })?;
            path.display().to_string()
        }
        (None, Some(config)) => {
            let config = EtcConfig { seed: args.seed, ..config };
            progress.start_count("simulating:", "requests", Some(config.requests));
            running.generate(config, |done| progress.reached(done));
            progress.clear();
            "ETC".to_owned()
        }
        (None, None) => unreachable!("one of them is required"),
    };
    let done = running.finish();
    let json = output::json(&json(&name, &done));
    files.write(&document(&name, &done), page(&name, &done), &json, None)
}

impl Args {
    fn study(&self) -> Study {
        Study {
            engines: self.engine.iter().map(|name| (*name).to_owned()).collect(),
            sizes: self.size.clone(),
            spare: self.spare,
            max_writes: self.max_writes,
            slab: self.slab,
            channels: self.channels,
            memory: self.memory,
            items: self.items,
            cycles: self.cycles,
        }
    }
}
