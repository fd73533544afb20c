//! `prism calc lifetime`: size x cycles / (write amplification x rate).

use clap::{ArgGroup, Args as ClapArgs};
use prism_base::Bytes;
use prism_experiments::calc::{Cell, usual_cycles};
use prism_present::calc::lifetime::{self, LifetimeInputs, document, json, parse_cell};

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism calc lifetime`.
#[derive(Clone, Debug, ClapArgs)]
#[command(group = ArgGroup::new("endurance").required(true))]
#[command(after_help = "Examples:
  prism calc lifetime --capacity 1TB --cycles 10000 --write-amplification 4 --rate 100MB/s
  prism calc lifetime --capacity 1TB --cell tlc --write-amplification 10 --rate 100MB/s")]
pub struct Args {
    /// Capacity of the drive, without spare flash
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    capacity: Bytes,
    /// P/E cycles that a block endures
    #[arg(long, value_name = "N", group = "endurance")]
    cycles: Option<u32>,
    /// Kind of cells, for their usual P/E cycles: slc 100000, mlc 10000, tlc 3000, qlc 1000
    #[arg(long, value_name = "slc|mlc|tlc|qlc", group = "endurance", value_parser = parse_cell)]
    cell: Option<Cell>,
    /// Bytes programmed per byte that the host writes
    #[arg(long, value_name = "FACTOR")]
    write_amplification: f64,
    /// Rate at which the host writes, all the time
    #[arg(long, value_name = "SIZE/s", value_parser = Bytes::parse_rate)]
    rate: Bytes,
    #[command(flatten)]
    json: JsonArg,
}

/// Computes and prints the lifetime.
///
/// # Errors
/// [`Failure`] if a quantity is 0 or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let of_cell = args.cell.map(usual_cycles);
    let cycles = args.cycles.or(of_cell).expect("one of the two is required");
    let (capacity, rate) = (args.capacity, args.rate);
    let inputs =
        LifetimeInputs { capacity, cycles, write_amplification: args.write_amplification, rate };
    let life = lifetime::run(&inputs)?;
    args.json.show(&json(&inputs, &life), &document(&inputs, &life))
}
