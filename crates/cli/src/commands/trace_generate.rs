//! `prism trace generate`: makes a trace from a pattern and a seed.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_host::{Progress, trace_of_records};
use prism_trace::generate::{Arrival, SizeShare};
use prism_trace::generate_options::{
    GenerateOptions, Preset, generated_facts, parse_arrival, parse_pattern, parse_size,
};

use crate::failure::Failure;
use crate::quantities;
use crate::trace_write::TargetArgs;

/// Arguments of `prism trace generate`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism trace generate --pattern zipf:1.2 --requests 1000000 --seed 7 -o zipf.parquet
  prism trace generate --pattern hotcold:20/80 --span 8GiB --reads 0.3 -o hot.parquet
  prism trace generate --pattern bursty --size 4KiB:7,64KiB:3 --flush-every 100 -o b.parquet")]
pub struct Args {
    /// Addresses of the requests: uniform, sequential, zipf:EXPONENT, or hotcold:SPACE/REQUESTS
    /// in percent. Two presets: mixed (zipf:0.99, 70 % reads, two sizes, some discards, a
    /// flush every 100 writes) and bursty (uniform writes in bursts)
    #[arg(long, value_parser = parse_pattern)]
    pattern: Preset,
    /// Number of requests, without flushes
    #[arg(long, default_value_t = 100_000)]
    requests: u64,
    /// Size of the address range
    #[arg(long, default_value = "1GiB", value_parser = quantities::bytes)]
    span: Bytes,
    /// Offsets are multiples of this
    #[arg(long, default_value = "4KiB", value_parser = quantities::bytes)]
    align: Bytes,
    /// Sizes with weights, such as 4KiB or 4KiB:7,64KiB:3 [default: 4KiB]
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZE[:WEIGHT]")]
    size: Vec<SizeShare>,
    /// Share of reads, 0 to 1 [default: 0]
    #[arg(long)]
    reads: Option<f64>,
    /// Share of discards, 0 to 1; the rest are writes [default: 0]
    #[arg(long)]
    discards: Option<f64>,
    /// Writes between two flushes [default: no flushes]
    #[arg(long, value_name = "WRITES")]
    flush_every: Option<u64>,
    /// Arrival times: fixed:GAP, poisson:MEAN-GAP or bursts:GAP/ON/OFF
    /// [default: fixed:100us]
    #[arg(long, value_parser = parse_arrival)]
    arrival: Option<Arrival>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File to write; `-` is standard output. It appears only when it is complete
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

/// Makes the trace and writes it.
///
/// # Errors
/// [`Failure`] if the workload is invalid or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let options = GenerateOptions {
        pattern: args.pattern,
        requests: args.requests,
        span: args.span,
        align: args.align,
        sizes: args.size.clone(),
        reads: args.reads,
        discards: args.discards,
        flush_every: args.flush_every,
        arrival: args.arrival,
        seed: args.seed,
    };
    let records = options.workload().records();
    let records = records.map_err(Failure::usage)?;
    let out = args.target.open(&args.output)?;
    let progress = Progress::on_stderr();
    let mut made = trace_of_records("generated", records, generated_facts(), &progress)?;
    out.write(&mut made.spool, &made.info.symbols, &made.info.facts)?;
    Ok(())
}
