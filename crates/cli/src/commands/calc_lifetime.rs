//! `prism calc lifetime`: size x cycles / (write amplification x rate).

use clap::{ArgGroup, Args as ClapArgs};
use prism_base::Bytes;
use prism_experiments::calc::{Cell, life, usual_cycles};
use prism_report::{Block, Document, Figure, Section, Unit, terminal};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{JsonArg, screen};
use crate::quantities;

/// Arguments of `prism calc lifetime`.
#[derive(Clone, Debug, ClapArgs)]
#[command(group = ArgGroup::new("endurance").required(true))]
#[command(after_help = "Examples:
  prism calc lifetime --capacity 1TB --cycles 10000 --write-amplification 4 --rate 100MB/s
  prism calc lifetime --capacity 1TB --cell tlc --write-amplification 10 --rate 100MB/s")]
pub struct Args {
    /// Size of the drive; its spare flash is left out
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    capacity: Bytes,
    /// P/E cycles that a block is good for
    #[arg(long, value_name = "N", group = "endurance")]
    cycles: Option<u32>,
    /// What a block of such cells is usually good for: slc 100000, mlc 10000, tlc 3000,
    /// qlc 1000 cycles
    #[arg(long, value_name = "slc|mlc|tlc|qlc", group = "endurance", value_parser = parse_cell)]
    cell: Option<Cell>,
    /// Bytes programmed for each byte that the host writes
    #[arg(long, value_name = "FACTOR")]
    write_amplification: f64,
    /// What the host writes, all the time
    #[arg(long, value_name = "SIZE/s", value_parser = parse_rate)]
    rate: Bytes,
    #[command(flatten)]
    json: JsonArg,
}

/// A year of 365.25 days has twelve.
const MONTH_DAYS: f64 = 365.25 / 12.0;
const DAY_NS: f64 = 86_400e9;

#[derive(Serialize)]
struct Answer {
    capacity_bytes: u64,
    cycles: u32,
    write_amplification: f64,
    host_bytes_per_sec: u64,
    days: f64,
    months: f64,
    tbw: f64,
    dwpd: f64,
}

/// Computes and prints the lifetime.
///
/// # Errors
/// [`Failure`] if a quantity is 0 or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let of_cell = args.cell.map(usual_cycles);
    let cycles = args.cycles.or(of_cell).expect("one of the two is required");
    let life = life(args.capacity, cycles, args.write_amplification, args.rate)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let answer = Answer {
        capacity_bytes: args.capacity.0,
        cycles,
        write_amplification: args.write_amplification,
        host_bytes_per_sec: args.rate.0,
        days: life.days,
        months: life.days / MONTH_DAYS,
        tbw: life.tbw,
        dwpd: life.dwpd,
    };
    let (width, style) = screen();
    args.json.write(&answer, &terminal::render(&document(&answer), width, style))?;
    Ok(())
}

fn document(answer: &Answer) -> Document {
    let mut section = Section::new(
        "Lifetime",
        "Size x cycles / (write amplification x rate), with wear spread evenly.",
    );
    let figures = vec![
        Figure::new("Lifetime", Unit::Nanos, answer.days * DAY_NS),
        Figure::new("in days", Unit::Count, answer.days),
        Figure::new("in months", Unit::Count, answer.months),
        Figure::new("P/E cycles", Unit::Count, u64::from(answer.cycles)),
        Figure::new("TBW", Unit::Count, answer.tbw).note("TB (10^12) that the host can write"),
        Figure::new("DWPD", Unit::Ratio, answer.dwpd).note("capacities a day for five years"),
    ];
    section.push(Block::KeyFigures(figures));
    Document::new("prism calc lifetime", "how long a drive lasts").with(section)
}

fn parse_rate(text: &str) -> Result<Bytes, String> {
    match text.strip_suffix("/s") {
        Some(amount) => quantities::bytes(amount),
        None => Err(format!("{text:?} is no rate; write for example 100MB/s")),
    }
}

fn parse_cell(text: &str) -> Result<Cell, String> {
    let found = Cell::ALL.into_iter().find(|cell| cell.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| "the cells are: slc mlc tlc qlc".into())
}
