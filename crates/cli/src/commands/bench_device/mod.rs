//! `prism bench device`: compares a flash device in a file with fio on a file of the same size, and
//! measures how long a large device takes to open.

mod checks;
pub(super) mod fio;
mod open;
mod policy;
mod store;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_base::{Bytes, Nanos};
use prism_host::Progress;
use prism_host::interrupt::Scratch;
use prism_report::{Document, Section, Table, Unit};
use serde::Serialize;

use self::fio::Job;
use self::open::Opened;
use self::store::Store;
use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism bench device`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    after_help = "fio has to be installed, except for `--only open`. Files are made in the folder
and removed. The device of 1 TiB needs 2 GiB of disk space and a minute or two to write.

Example:
  prism bench device /mnt/ssd --size 1GiB --time 3s --runs 3
  prism bench device /mnt/ssd --only 'randread 4KiB x4'
  prism bench device /mnt/ssd --only sync
  prism bench device /mnt/ssd --only open"
)]
pub struct Args {
    /// A folder on the file system to measure
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Bytes of flash, and of fio's file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = quantities::bytes)]
    size: Bytes,
    /// Duration of each run
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = quantities::nanos)]
    time: Nanos,
    /// Runs of each measurement; the medians are printed
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Only measurements whose name contains this, as "randread 16KiB", "x4 QD 32" or "open"
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Seed of the addresses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

prism_base::named_enum! {
    /// The order of the addresses, with its name in fio's option `rw`.
    pub(crate) enum Pattern {
        ReadInOrder = "read",
        ReadAtRandom = "randread",
        WriteInOrder = "write",
        WriteAtRandom = "randwrite",
    }
}

impl Pattern {
    fn reads(self) -> bool {
        matches!(self, Self::ReadInOrder | Self::ReadAtRandom)
    }
}

prism_base::named_enum! {
    /// The level of the library.
    pub(crate) enum Level {
        Raw = "raw",
        Function = "function",
    }
}

#[derive(Serialize)]
struct Cell {
    level: &'static str,
    pattern: &'static str,
    block_bytes: u32,
    threads: u32,
    depth: u32,
    /// Medians of the runs.
    prism_bytes_per_second: f64,
    fio_bytes_per_second: f64,
    ratio: f64,
    prism_runs: Vec<f64>,
    fio_runs: Vec<f64>,
}

/// Something that has a goal.
#[derive(Serialize)]
pub(crate) struct Check {
    pub name: &'static str,
    pub value: f64,
    /// The value at least, or at most where less is better.
    pub goal: f64,
    /// What the value is.
    pub unit: &'static str,
    /// The two rates of which the value is the ratio: bytes or reads per second.
    pub rates: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct Bench {
    size_bytes: u64,
    engine: &'static str,
    cells: Vec<Cell>,
    checks: Vec<Check>,
    /// Null if not measured.
    opening: Option<Opened>,
}

/// A measurement.
#[derive(Clone, Copy)]
struct Measurement {
    level: Level,
    pattern: Pattern,
    page: u32,
    threads: u32,
    depth: u32,
}

impl Measurement {
    fn name(&self) -> String {
        let Self { level, pattern, page, threads, depth } = self;
        let (level, pattern) = (level.name(), pattern.name());
        format!("{level} {pattern} {}KiB x{threads} QD {depth}", page >> 10)
    }
}

/// All measurements, by page size, then depth.
fn all_cells() -> Vec<Measurement> {
    const PAGES: [u32; 2] = [4 << 10, 16 << 10];
    let mut all = Vec::new();
    for page in PAGES {
        for depth in [1, 8, 32, 256] {
            let with =
                |level, pattern, threads| Measurement { level, pattern, page, threads, depth };
            if depth == 1 || depth == 32 {
                all.extend(Pattern::ALL.map(|pattern| with(Level::Raw, pattern, 1)));
            } else if page == PAGES[0] {
                all.push(with(Level::Raw, Pattern::ReadAtRandom, 1));
            }
            if page == PAGES[0] {
                all.push(with(Level::Raw, Pattern::ReadAtRandom, 4));
                all.push(with(Level::Function, Pattern::ReadAtRandom, 4));
            }
        }
    }
    all
}

/// Measures the device and fio alternately.
///
/// # Errors
/// [`Failure`] if fio is not installed, or a file cannot be made.
pub fn run(args: &Args) -> Result<(), Failure> {
    let names = ["flash", "fio"].map(|end| args.folder.join(format!(".prism-bench.{end}")));
    let scratch = names.each_ref().map(|name| Scratch::at(name));
    let bench = measure_all(args, &names[0], &names[1])?;
    drop(scratch);
    args.json.show(&bench, &document(&bench))
}

fn measure_all(args: &Args, ours: &Path, fios: &Path) -> Result<Bench, Failure> {
    let cells: Vec<_> =
        all_cells().into_iter().filter(|cell| cell.name().contains(&args.only)).collect();
    let checks: Vec<_> =
        checks::ALL.into_iter().filter(|check| check.name.contains(&args.only)).collect();
    let opens = open::NAME.contains(&args.only);
    if cells.is_empty() && checks.is_empty() && !opens {
        let only = &args.only;
        return Err(Failure::Usage(format!("no measurement's name contains {only:?}")));
    }
    let (size_bytes, engine) = (args.size.0, "");
    let (cell_results, check_results) = (Vec::new(), Vec::new());
    let mut bench =
        Bench { size_bytes, engine, cells: cell_results, checks: check_results, opening: None };
    if !cells.is_empty() || checks.iter().any(|check| check.needs_fio) {
        // Both use files that are already allocated, so neither measures the allocation of blocks.
        fio::run(args, fios, &[Job { depth: 8, ..Job::of("write", 1 << 20) }])?;
    }
    compare_with_fio(args, &cells, ours, fios, &mut bench)?;
    for check in checks {
        bench.checks.push(check.measure(args, ours, fios)?);
    }
    if opens {
        bench.opening = Some(open::measure(ours, args.runs, args.seed)?);
    }
    Ok(bench)
}

fn compare_with_fio(
    args: &Args,
    cells: &[Measurement],
    ours: &Path,
    fios: &Path,
    bench: &mut Bench,
) -> Result<(), Failure> {
    let progress = Progress::on_stderr();
    let all = cells.len() as u64 * u64::from(args.runs);
    progress.start_count("running:", "measurements", Some(all));
    for of_page in cells.chunk_by(|a, b| a.page == b.page) {
        let mut store = Store::make(args, ours, of_page[0].page)?;
        for of_depth in of_page.chunk_by(|a, b| a.depth == b.depth) {
            store = store.reopen(of_depth[0].depth)?;
            for cell in of_depth {
                bench.cells.push(compare(args, *cell, &mut store, fios)?);
                progress.reached(bench.cells.len() as u64 * u64::from(args.runs));
            }
        }
        bench.engine = store.engine;
        drop(store);
        let _ = std::fs::remove_file(ours);
    }
    progress.clear();
    Ok(())
}

fn compare(
    args: &Args,
    cell: Measurement,
    store: &mut Store,
    fios: &Path,
) -> Result<Cell, Failure> {
    let Measurement { level, pattern, page, threads, depth } = cell;
    let (seconds, time) = (args.time.as_secs_f64(), Some(args.time));
    let job = Job { threads, depth, time, ..Job::of(pattern.name(), page) };
    let [prism_runs, fio_runs] = alternately(
        args.runs,
        || store.run(level, pattern, threads, seconds),
        || Ok(fio::run(args, fios, &[job])?[0]),
    )?;
    let (ours, theirs) = (median(&prism_runs), median(&fio_runs));
    Ok(Cell {
        level: level.name(),
        pattern: pattern.name(),
        block_bytes: page,
        threads,
        depth,
        prism_bytes_per_second: ours,
        fio_bytes_per_second: theirs,
        ratio: ours / theirs,
        prism_runs,
        fio_runs,
    })
}

/// The results of runs of `ours` and of `others`. The order alternates, so that neither always runs
/// after the other.
fn alternately(
    runs: u32,
    mut ours: impl FnMut() -> Result<f64, Failure>,
    mut others: impl FnMut() -> Result<f64, Failure>,
) -> Result<[Vec<f64>; 2], Failure> {
    let (mut our_runs, mut other_runs) = (Vec::new(), Vec::new());
    for run in 0..runs {
        for is_ours in [run % 2 == 1, run % 2 == 0] {
            if is_ours { our_runs.push(ours()?) } else { other_runs.push(others()?) }
        }
    }
    Ok([our_runs, other_runs])
}

/// The median; of two in the middle the higher.
pub(crate) fn median(runs: &[f64]) -> f64 {
    let mut runs = runs.to_vec();
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn document(bench: &Bench) -> Document {
    let table = Table::listing(&bench.cells)
        .text("level", |cell| cell.level)
        .text("pattern", |cell| cell.pattern)
        .number("page", Unit::Bytes, |cell| u64::from(cell.block_bytes))
        .number("threads", Unit::Count, |cell| u64::from(cell.threads))
        .number("depth", Unit::Count, |cell| u64::from(cell.depth))
        .number("Prism", Unit::BytesPerSec, |cell| cell.prism_bytes_per_second)
        .number("fio", Unit::BytesPerSec, |cell| cell.fio_bytes_per_second)
        .number("Prism / fio", Unit::Ratio, |cell| cell.ratio)
        .whole("Medians of the runs");
    let lead = "The library on a device in a file, and fio with direct I/O through io_uring on a \
                file of the same size in the same folder, in alternating order. Each thread has a \
                queue of its own. The device verifies every page that it reads. Random \
                writes go to the next page of a random block, as flash requires. Both make their \
                data durable at the end.";
    let section = Section::new("Throughput", lead).with(table);
    let subtitle = match bench.engine {
        "" => String::new(),
        engine => format!("{} of flash, I/O through {engine}", Bytes(bench.size_bytes)),
    };
    let mut document = Document::new("prism bench device", subtitle);
    if !bench.cells.is_empty() {
        document = document.with(section);
    }
    if !bench.checks.is_empty() {
        document = document.with(checks::section(&bench.checks));
    }
    match &bench.opening {
        Some(opened) => document.with(open::section(opened)),
        None => document,
    }
}
