//! `prism bench flash`: the cost of each level of the flash library: CPU time per call, lines of
//! the same program, and the throughput and latency of that program.

use clap::Args as ClapArgs;
use prism_experiments::calls::{Call, Calls};
use prism_experiments::levels::{self, Level, LevelFigures, Pattern, Size};
use prism_experiments::{real_time, recovery};
use prism_flashfile::REAL;
use prism_host::{Progress, clock};
use prism_report::{Block, Document, Section, Table, Unit};
use serde::Serialize;

use crate::commands::bench_device::median;
use crate::failure::Failure;
use crate::output::JsonArg;

/// Arguments of `prism bench flash`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism bench flash --runs 9 --json flash.json")]
pub struct Args {
    /// Runs of each kind of call; the median is printed
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// Medians of all runs, in nanoseconds.
#[derive(Serialize)]
struct CallRow {
    call: &'static str,
    page_bytes: u32,
    bytes: u64,
    call_ns: f64,
    copy_ns: f64,
    beyond_copy_ns: f64,
    target_ns: Option<f64>,
}

#[derive(Serialize)]
struct LinesRow {
    level: &'static str,
    lines: usize,
}

#[derive(Serialize)]
struct WorkRow {
    pattern: &'static str,
    level: &'static str,
    bytes_per_sec: f64,
    write_amplification: f64,
    pages_written: u64,
    pages_programmed_for_host: u64,
    pages_copied: u64,
    pages_of_tables: u64,
    erases: u64,
    reads: Option<Latency>,
    writes: Option<Latency>,
}

/// The opening of a share at the policy level after a crash.
#[derive(Serialize)]
struct RecoveryRow {
    device_bytes: u64,
    mapped_bytes: u64,
    pages: u64,
    /// CPU time, the medians of all runs.
    cpu_seconds: f64,
    /// The time of the reads of the flash, in virtual time.
    device_ns: u64,
}

/// Random reads in real time and in virtual time.
#[derive(Serialize)]
struct RealRow {
    level: &'static str,
    depth: usize,
    /// Medians of all reads; in real time, the median of the runs.
    model_p50_ns: u64,
    real_p50_ns: f64,
}

#[derive(Serialize)]
struct Latency {
    mean_ns: f64,
    p99_ns: u64,
}

#[derive(Serialize)]
struct Bench {
    calls: Vec<CallRow>,
    lines: Vec<LinesRow>,
    workloads: Vec<WorkRow>,
    recovery: Vec<RecoveryRow>,
    real_time: Vec<RealRow>,
    seed: u64,
}

/// Runs everything one after another on one core.
///
/// # Errors
/// [`Failure`] if the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let pages = [4 << 10, 16 << 10];
    let kinds = pages.into_iter().flat_map(|page| Call::ALL.map(|call| (call, page)));
    let works = Pattern::ALL.into_iter().flat_map(|p| Level::ALL.map(|level| (p, level)));
    let (kinds, works): (Vec<_>, Vec<_>) = (kinds.collect(), works.collect());
    let progress = Progress::on_stderr();
    progress.start_count("running:", "measurements", Some((kinds.len() + works.len()) as u64));
    let mut calls = Vec::new();
    for (call, page_bytes) in kinds {
        progress.reached(calls.len() as u64);
        calls.push(measure(args, call, page_bytes)?);
    }
    let mut workloads = Vec::new();
    for (pattern, level) in works {
        progress.reached((calls.len() + workloads.len()) as u64);
        let outcome = levels::run(level, pattern, Size::FULL, args.seed).map_err(Failure::usage)?;
        workloads.push(work_row(pattern, level, &outcome));
    }
    let recovery = recovery::SIZES.into_iter().map(|size| recover(args, size));
    let recovery = recovery.collect::<Result<_, _>>()?;
    let depths = |level| real_time::DEPTHS.map(|depth| (level, depth));
    let real_time = real_time::LEVELS.into_iter().flat_map(depths);
    let real_time = real_time.map(|(level, depth)| real(args, level, depth));
    let real_time = real_time.collect::<Result<_, _>>()?;
    progress.clear();
    let lines = Level::ALL.map(|level| LinesRow { level: level.name(), lines: level.lines() });
    let bench =
        Bench { calls, lines: lines.into(), workloads, recovery, real_time, seed: args.seed };
    args.json.show(&bench, &document(&bench))
}

fn measure(args: &Args, call: Call, page_bytes: u32) -> Result<CallRow, Failure> {
    let mut calls = Calls::new(call, page_bytes, args.seed).map_err(Failure::usage)?;
    let (mut level, mut copy, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    // The first run faults in fresh memory and is not counted.
    for run in 0..=args.runs {
        calls.prepare().map_err(Failure::usage)?;
        let start = clock::cpu_seconds();
        calls.run().map_err(Failure::usage)?;
        let middle = clock::cpu_seconds();
        calls.copies();
        let end = clock::cpu_seconds();
        if run > 0 {
            let each = |seconds: f64| seconds * 1e9 / calls.count as f64;
            level.push(each(middle - start));
            copy.push(each(end - middle));
            beyond.push(each(middle - start) - each(end - middle));
        }
    }
    Ok(CallRow {
        call: call.name(),
        page_bytes,
        bytes: calls.bytes,
        call_ns: median(&level),
        copy_ns: median(&copy),
        beyond_copy_ns: median(&beyond),
        target_ns: call.target_ns(),
    })
}

fn recover(args: &Args, blocks_per_lun: u32) -> Result<RecoveryRow, Failure> {
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..args.runs.min(3) {
        let open = recovery::prepare(blocks_per_lun).map_err(Failure::usage)?;
        let start = clock::cpu_seconds();
        let reopened = open().map_err(Failure::usage)?;
        seconds.push(clock::cpu_seconds() - start);
        last = Some(reopened);
    }
    let reopened = last.expect("at least one run");
    Ok(RecoveryRow {
        device_bytes: reopened.pages * recovery::PAGE,
        mapped_bytes: reopened.mapped.0,
        pages: reopened.pages,
        cpu_seconds: median(&seconds),
        device_ns: reopened.device_time.0,
    })
}

/// Reads per run in real time, which take half a second at most.
const REAL_READS: usize = 4000;

fn real(args: &Args, level: Level, depth: usize) -> Result<RealRow, Failure> {
    let (mut real, mut model) = (Vec::new(), 0);
    for _ in 0..args.runs {
        let medians = real_time::medians(level, depth, REAL_READS, args.seed, &REAL);
        let medians = medians.map_err(Failure::usage)?;
        real.push(medians.real.0 as f64);
        model = medians.model.0;
    }
    Ok(RealRow { level: level.name(), depth, model_p50_ns: model, real_p50_ns: median(&real) })
}

fn work_row(pattern: Pattern, level: Level, outcome: &LevelFigures) -> WorkRow {
    let latency = |all: levels::Response| {
        (all.count > 0).then_some(Latency { mean_ns: all.mean_ns, p99_ns: all.p99.0 })
    };
    WorkRow {
        pattern: pattern.name(),
        level: level.name(),
        bytes_per_sec: outcome.throughput(),
        write_amplification: outcome.write_amplification(),
        pages_written: outcome.written,
        pages_programmed_for_host: outcome.host,
        pages_copied: outcome.copies,
        pages_of_tables: outcome.tables,
        erases: outcome.erases,
        reads: latency(outcome.reads),
        writes: latency(outcome.writes),
    }
}

fn document(bench: &Bench) -> Document {
    Document::new("prism bench flash", "the cost of each level of the flash library")
        .with(calls_section(&bench.calls))
        .with(lines_section(&bench.lines))
        .with(works_section(&bench.workloads))
        .with(recovery_section(&bench.recovery))
        .with(real_section(&bench.real_time))
}

fn calls_section(rows: &[CallRow]) -> Section {
    let table = Table::listing(rows)
        .text("call", |row| row.call)
        .number("page", Unit::Bytes, |row| f64::from(row.page_bytes))
        .number("call", Unit::Nanos, |row| row.call_ns)
        .number("plain copy", Unit::Nanos, |row| row.copy_ns)
        .number("beyond the copy", Unit::Nanos, |row| row.beyond_copy_ns)
        .number("target", Unit::Nanos, |row| row.target_ns)
        .whole("Medians of all runs, CPU time, one core");
    let lead = "Calls on a device in memory without timing, compared with a plain copy of the same \
                bytes within a buffer as large as the data (32 MiB).";
    Section::new("CPU time per call", lead).with(table)
}

fn lines_section(rows: &[LinesRow]) -> Section {
    let table = Table::listing(rows)
        .text("level", |row| row.level)
        .number("lines", Unit::Count, |row| row.lines)
        .whole("Without blank lines and comments");
    let lead = "A store of pages of fixed size that queues its requests, at each level: \
                crates/experiments/src/benches/levels.";
    Section::new("Lines of the program", lead).with(table)
}

fn works_section(rows: &[WorkRow]) -> Section {
    let lead = "The store on 4 channels of 2 LUNs with 0.5 GiB, the times of the preset memblaze, \
                25% spare flash, greedy cleaning. It is filled in order, then three times its \
                capacity is written in pages of 16 KiB. Times are virtual: the same seed gives \
                the same numbers. WA is write amplification.";
    let mut section = Section::new("The same workload at each level", lead);
    for pattern in Pattern::ALL {
        section.push(works_table(pattern.name(), rows));
    }
    section.push(Block::Notes(vec![
        "Sixteen requests are in flight at each level, and at the raw and the function level \
         those of cleaning besides. The policy level and the drive run the same program, over a \
         block device."
            .into(),
        "A write completes when its data is accepted. The programs at the raw and the function \
         level have a write buffer as large as that of the drive, 48 pages."
            .into(),
    ]));
    section
}

/// The levels under one pattern.
fn works_table(pattern: &str, rows: &[WorkRow]) -> Table {
    let rows: Vec<_> = rows.iter().filter(|row| row.pattern == pattern).collect();
    let mean = |of: &Option<Latency>| of.as_ref().map(|latency| latency.mean_ns);
    let p99 = |of: &Option<Latency>| of.as_ref().map(|latency| latency.p99_ns);
    Table::listing(&rows)
        .text("level", |row| row.level)
        .number("throughput", Unit::BytesPerSec, |row| row.bytes_per_sec)
        .number("WA", Unit::Ratio, |row| row.write_amplification)
        .number("erases", Unit::Count, |row| row.erases)
        .number("read mean", Unit::Nanos, |row| mean(&row.reads))
        .number("read p99", Unit::Nanos, |row| p99(&row.reads))
        .number("write mean", Unit::Nanos, |row| mean(&row.writes))
        .number("write p99", Unit::Nanos, |row| p99(&row.writes))
        .whole(pattern)
}

fn recovery_section(rows: &[RecoveryRow]) -> Section {
    let table = Table::listing(rows)
        .number("device", Unit::Bytes, |row| row.device_bytes)
        .number("mapped", Unit::Bytes, |row| row.mapped_bytes)
        .number("pages", Unit::Count, |row| row.pages)
        .number("CPU time", Unit::Nanos, |row| row.cpu_seconds * 1e9)
        .number("reading the flash", Unit::Nanos, |row| row.device_ns)
        .table("Medians of up to three runs; time of reading the flash is virtual");
    let lead = "A share over a whole device of 16 LUNs, 70 % full, is opened at the policy level \
                after a crash: the header of every program unit is read.";
    Section::new("Recovery by size", lead).with(table)
}

fn real_section(rows: &[RealRow]) -> Section {
    let table = Table::listing(rows)
        .text("level", |row| row.level)
        .number("depth", Unit::Count, |row| row.depth)
        .number("model p50", Unit::Nanos, |row| row.model_p50_ns)
        .number("real p50", Unit::Nanos, |row| row.real_p50_ns)
        .number("difference", Unit::Percent, |row| row.real_p50_ns / row.model_p50_ns as f64 - 1.0)
        .whole("Medians of all runs");
    let lead = "The same random reads of pages of 16 KiB by one thread at each level, by queue \
                depth: in virtual time, and in real time on this machine's clock. The simulated \
                drive has no real time.";
    Section::new("Real time", lead).with(table)
}
