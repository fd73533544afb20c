//! `prism bench fs`: the mounted file system, next to a folder that is passed through by FUSE.

mod files;
mod mounted;
mod opening;
mod servers;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::{Bytes, Nanos};
use prism_host::Progress;
use prism_report::{Block, Document, Section, Table, Unit};
use rustix::fs::Advice;
use serde::Serialize;

use self::mounted::{Mounted, System};
use self::opening::Opened;
use super::bench_device::median;
use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism bench fs`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    after_help = "Needs root and /dev/fuse. Files are made in the folder and removed. Figures
are those of an optimised program: make install, or cargo run --profile dist.

Examples:
  prism bench fs /mnt/ssd --runs 5
  prism bench fs /mnt/ssd --only varmail --time 10s
  prism bench fs /mnt/ssd --only opening --used 20GiB"
)]
pub struct Args {
    /// A folder on the file system that is passed through, and that has the device of Prism's
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Bytes of the file that is read and written in pages of 4 KiB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = quantities::bytes)]
    size: Bytes,
    /// Duration of each run of the servers and of fsync
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = quantities::nanos)]
    time: Nanos,
    /// Runs of each measurement, which take turns; medians are printed
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Bytes of files in the file system that is opened, with and without a crash before
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = quantities::bytes)]
    used: Bytes,
    /// Only measurements whose name contains this, such as "random", "varmail" or "opening"
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// What is done to a file system: operations per second.
type Measure = fn(&Args, &Mounted) -> Result<f64, Failure>;

/// A measurement, and how much longer than passed through an operation may take.
struct Measurement {
    name: &'static str,
    goal: f64,
    /// How files that are passed through are read.
    advice: Advice,
    measure: Measure,
}

const fn measurement(name: &'static str, goal: f64, measure: Measure) -> Measurement {
    Measurement { name, goal, advice: Advice::Normal, measure }
}

/// Without what the kernel reads ahead: what callers say of that reaches the file that is mounted,
/// and not the one that is passed through.
const fn at_random(name: &'static str, measure: Measure) -> Measurement {
    Measurement { name, goal: 1.3, advice: Advice::Random, measure }
}

const ALL: [Measurement; 10] = [
    measurement("writes of 4 KiB in order", 1.3, files::writes_in_order),
    measurement("reads of 4 KiB in order", 1.3, files::reads_in_order),
    measurement("random writes of 4 KiB", 1.3, files::random_writes),
    at_random("random reads of 4 KiB, 1 thread", |args, at| files::random_reads(args, at, 1)),
    at_random("random reads of 4 KiB, 16 threads", |args, at| files::random_reads(args, at, 16)),
    measurement("fsync of 4 KiB, 1 thread", 1.0, |args, at| servers::fsyncs(args, at, 1)),
    measurement("fsync of 4 KiB, 16 threads", 1.0, |args, at| servers::fsyncs(args, at, 16)),
    measurement("fileserver", 1.0, servers::file_server),
    measurement("webserver", 1.0, servers::web_server),
    measurement("varmail", 1.0, servers::var_mail),
];

/// The name of the measurement of opening.
const OPENING: &str = "opening";

/// Operations per second of each system.
#[derive(Debug, Serialize)]
struct Row {
    measurement: &'static str,
    memory_passed_through: f64,
    in_memory: f64,
    /// How long an operation takes, as a multiple of that passed through.
    in_memory_times_passed_through: f64,
    folder_passed_through: f64,
    in_file: f64,
    in_file_times_passed_through: f64,
    /// The goal for both: at most this.
    goal: f64,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Bench {
    rows: Vec<Row>,
    opened: Option<Opened>,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    let chosen: Vec<_> = ALL.iter().filter(|one| one.name.contains(&args.only)).collect();
    let opens = OPENING.contains(&args.only);
    if chosen.is_empty() && !opens {
        let names = ALL.iter().map(|one| one.name).chain([OPENING]).collect::<Vec<_>>().join("; ");
        return Err(Failure::Usage(format!("--only {:?}: there are {names}", args.only)));
    }
    for (name, value, least, most) in [
        ("size", args.size, Bytes(1 << 20), Bytes(64 << 30)),
        ("used", args.used, Bytes(1 << 20), Bytes(1 << 40)),
    ] {
        if value < least || value > most {
            return Err(Failure::Usage(format!("--{name} {value}: give {least} to {most}")));
        }
    }
    // The log of the webserver grows until the end.
    if args.time < Nanos(1_000_000) || args.time > Nanos(60_000_000_000) {
        return Err(Failure::Usage("--time: give 1ms to 60s".into()));
    }
    let progress = Progress::on_stderr();
    let total = chosen.len() as u64 * u64::from(args.runs) * System::ALL.len() as u64;
    progress.start_count("measuring:", "runs", Some(total));
    let mut done = 0;
    let mut rows = Vec::new();
    for one in chosen {
        rows.push(row(args, one, || {
            done += 1;
            progress.reached(done);
        })?);
    }
    progress.clear();
    let opened = opens.then(|| opening::measure(args, &progress)).transpose()?;
    let bench = Bench { rows, opened };
    args.json.show(&bench, &document(args, &bench))
}

fn row(args: &Args, one: &Measurement, mut step: impl FnMut()) -> Result<Row, Failure> {
    const SYSTEMS: usize = System::ALL.len();
    let mut rates = [const { Vec::new() }; SYSTEMS];
    for run in 0..args.runs as usize {
        for turn in 0..SYSTEMS {
            // No system is always first, or always after the same other.
            let at = (run + turn) % SYSTEMS;
            let mounted = Mounted::new(args, System::ALL[at], one.advice)?;
            let rate = (one.measure)(args, &mounted);
            let ended = mounted.end();
            rates[at].push(rate?);
            ended?;
            step();
        }
    }
    let [memory_passed_through, in_memory, folder_passed_through, in_file] =
        rates.map(|rates| median(&rates));
    Ok(Row {
        measurement: one.name,
        memory_passed_through,
        in_memory,
        in_memory_times_passed_through: memory_passed_through / in_memory,
        folder_passed_through,
        in_file,
        in_file_times_passed_through: folder_passed_through / in_file,
        goal: one.goal,
    })
}

fn document(args: &Args, bench: &Bench) -> Document {
    let cores = match mounted::cores().len() {
        0 | 1 => "All threads share one core.",
        _ => "The threads that answer the kernel have one core, those that call have another.",
    };
    let lead = format!(
        "Operations per second, medians of {} runs that take turns, each in a new mount with the \
         writeback cache of the kernel: Prism's file system on a device in memory, next to a \
         folder in memory (/dev/shm) that is passed through; and on a device in a file of the \
         folder that was named, next to another folder there that is passed through. {cores} A \
         file of {} is read after the kernel has dropped it from its caches, and is durable when \
         its writing ends; the servers are Filebench's, with {} files and its numbers of threads.",
        args.runs,
        args.size,
        servers::FILES
    );
    let mut section = Section::new("Mounted file systems", lead);
    if !bench.rows.is_empty() {
        let table = Table::listing(&bench.rows)
            .text("operation", |row: &Row| row.measurement)
            .number("through, memory", Unit::PerSec, |row| row.memory_passed_through)
            .number("in memory", Unit::PerSec, |row| row.in_memory)
            .number("time", Unit::Ratio, |row| row.in_memory_times_passed_through)
            .number("through, folder", Unit::PerSec, |row| row.folder_passed_through)
            .number("in a file", Unit::PerSec, |row| row.in_file)
            .number("time", Unit::Ratio, |row| row.in_file_times_passed_through)
            .number("goal", Unit::Ratio, |row| row.goal);
        let title =
            "Times are multiples of the time passed through; they should be at most the goal.";
        section.push(Block::Table(table.whole(title)));
    }
    if let Some(opened) = &bench.opened {
        section.push(Block::Table(opened.table()));
    }
    Document::new("prism bench fs", args.folder.display().to_string()).with(section)
}
