//! `prism bench`: measures how fast Prism runs on this machine.

use clap::{Args as ClapArgs, Subcommand};
use prism_experiments::preparing::{self, Task};
use prism_experiments::speed::Workload;
use prism_host::{Progress, clock, memory};
use prism_report::{Document, Section, Table, Unit};
use serde::Serialize;

use super::{bench_cache, bench_contract, bench_device, bench_flash, bench_fs, bench_graph};
use crate::failure::Failure;
use crate::output::JsonArg;

/// Arguments of `prism bench`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    after_help = "Example:
  prism bench --runs 5 --json bench.json",
    args_conflicts_with_subcommands = true
)]
pub struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    /// Only workloads whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Runs of each workload; the median is printed
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Requests of each run
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// The other benchmarks.
#[derive(Clone, Debug, Subcommand)]
enum Part {
    /// Measure the cost of each level of the flash library
    Flash(bench_flash::Args),
    /// Measure how fast the rules of the contract are evaluated on a trace
    Contract(bench_contract::Args),
    /// Compare the throughput of a flash device in a file with fio
    Device(bench_device::Args),
    /// Measure the cache server, with memcached and fio next to it
    Cache(bench_cache::Args),
    /// Measure ingest and PageRank of random graphs
    Graph(bench_graph::Args),
    /// Measure the mounted file system, with a folder passed through by FUSE next to it
    Fs(bench_fs::Args),
}

#[derive(Serialize)]
struct Row {
    workload: &'static str,
    requests_per_cpu_second: f64,
    page_operations_per_cpu_second: f64,
    write_amplification: f64,
    cpu_seconds: Vec<f64>,
}

/// The preparation of a large drive.
#[derive(Serialize)]
struct PrepareRow {
    task: &'static str,
    pages: u64,
    median_cpu_seconds: f64,
    /// Peak memory that the task added to that in use before it; null if unknown.
    peak_bytes_per_page: Option<f64>,
    write_amplification: Option<f64>,
    cpu_seconds: Vec<f64>,
}

#[derive(Serialize)]
struct Bench {
    drive: Vec<Row>,
    prepare: Vec<PrepareRow>,
    seed: u64,
}

/// Runs the workloads one after another on one core.
///
/// # Errors
/// [`Failure`] if the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.part {
        Some(Part::Flash(args)) => return bench_flash::run(args),
        Some(Part::Contract(args)) => return bench_contract::run(args),
        Some(Part::Device(args)) => return bench_device::run(args),
        Some(Part::Cache(args)) => return bench_cache::run(args),
        Some(Part::Graph(args)) => return bench_graph::run(args),
        Some(Part::Fs(args)) => return bench_fs::run(args),
        None => {}
    }
    let part = args.only.as_deref().unwrap_or_default();
    let named = |workload: &Workload| workload.name.contains(part);
    let workloads: Vec<_> = Workload::ALL.into_iter().filter(named).collect();
    let tasks: Vec<_> = Task::ALL.into_iter().filter(|task| task.name().contains(part)).collect();
    if workloads.is_empty() && tasks.is_empty() {
        return Err(Failure::Usage(format!("no workload's name contains {part:?}")));
    }
    let progress = Progress::on_stderr();
    progress.start_count("running:", "workloads", Some((workloads.len() + tasks.len()) as u64));
    let mut drive = Vec::new();
    for (i, workload) in workloads.into_iter().enumerate() {
        progress.reached(i as u64);
        drive.push(measure(args, workload)?);
    }
    let mut prepare = Vec::new();
    for task in tasks {
        progress.reached((drive.len() + prepare.len()) as u64);
        prepare.push(measure_task(args, task)?);
    }
    progress.clear();
    let document = document(&drive, &prepare);
    args.json.show(&Bench { drive, prepare, seed: args.seed }, &document)
}

fn measure(args: &Args, workload: Workload) -> Result<Row, Failure> {
    let mut seconds = Vec::new();
    let mut work = None;
    for _ in 0..args.runs {
        let prepared = workload.prepare(args.requests, args.seed).map_err(Failure::usage)?;
        let start = clock::cpu_seconds();
        work = Some(prepared());
        seconds.push(clock::cpu_seconds() - start);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let work = work.expect("at least one run");
    Ok(Row {
        workload: workload.name,
        requests_per_cpu_second: work.requests as f64 / median,
        page_operations_per_cpu_second: work.page_operations as f64 / median,
        write_amplification: work.write_amplification,
        cpu_seconds: seconds,
    })
}

fn measure_task(args: &Args, task: Task) -> Result<PrepareRow, Failure> {
    let mut row = PrepareRow {
        task: task.name(),
        pages: 0,
        median_cpu_seconds: 0.0,
        peak_bytes_per_page: None,
        write_amplification: None,
        cpu_seconds: Vec::new(),
    };
    // The memory before the drive is filled is the baseline.
    let bare = memory::held_and_peak().map(|(held, _)| held);
    for _ in 0..args.runs {
        let work =
            preparing::prepare(task, preparing::TERABYTE, args.seed).map_err(Failure::usage)?;
        let counted = memory::forget_peak();
        let start = clock::cpu_seconds();
        let ready = work();
        row.cpu_seconds.push(clock::cpu_seconds() - start);
        row.pages = ready.pages;
        row.write_amplification = ready.write_amplification;
        let peak = memory::held_and_peak().map(|(_, peak)| peak).filter(|_| counted);
        row.peak_bytes_per_page =
            peak.zip(bare).map(|(peak, bare)| peak.saturating_sub(bare) as f64 / row.pages as f64);
    }
    row.cpu_seconds.sort_by(f64::total_cmp);
    row.median_cpu_seconds = row.cpu_seconds[row.cpu_seconds.len() / 2];
    Ok(row)
}

fn document(rows: &[Row], prepared: &[PrepareRow]) -> Document {
    let table = Table::listing(rows)
        .text("workload", |row| row.workload)
        .number("requests/CPU s", Unit::Count, |row| row.requests_per_cpu_second.round())
        .number("page operations/CPU s", Unit::Count, |row| {
            row.page_operations_per_cpu_second.round()
        })
        .number("write amplification", Unit::Ratio, |row| {
            (row.write_amplification > 0.0).then_some(row.write_amplification)
        })
        .table("Medians of all runs, one core, full timing");
    let lead = "Random requests of 8 KiB on 64 dies and 8 channels, like MQSim's sample drive; \
                writes run on a used drive that cleans. QD is queue depth.";
    let section = Section::new("Simulated drive", lead).with(table);
    let document = Document::new("prism bench", "how fast Prism is on this machine");
    let document = if rows.is_empty() { document } else { document.with(section) };
    if prepared.is_empty() { document } else { document.with(preparing_section(prepared)) }
}

fn preparing_section(rows: &[PrepareRow]) -> Section {
    let table = Table::listing(rows)
        .text("task", |row| row.task)
        .number("CPU time", Unit::Nanos, |row| row.median_cpu_seconds * 1e9)
        .number("peak bytes/page", Unit::Ratio, |row| row.peak_bytes_per_page)
        .number("write amplification", Unit::Ratio, |row| row.write_amplification)
        .table("Medians of all runs, one core");
    let lead = "A drive of 134 million pages of 8 KiB, each a mapping unit, before the first \
                request; system time included. Overwriting half of it is done in steady state.";
    Section::new("Preparing a large drive", lead).with(table)
}
