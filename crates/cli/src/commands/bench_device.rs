//! `prism bench device`: compares a flash device in a file with fio on a file of the same size, and
//! measures how long a large device takes to open.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args as ClapArgs;
use prism_base::{Bytes, Nanos, Rng};
use prism_flash::raw::{self, Address, Raw};
use prism_flash::{Allocation, Device, DeviceGeometry, FlashError, Options};
use prism_flashfile::{EngineChoice, FlashFile, Settings};
use prism_host::interrupt::Scratch;
use prism_host::{Progress, clock};
use prism_report::{Document, Section, Table, Unit};
use serde::Serialize;

use super::bench_open::{self, Opened};
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
  prism bench device /mnt/ssd --only 'read 16KiB QD 1'
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
    /// Only measurements whose name contains this, as "randread 16KiB", "QD 32" or "open"
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Seed of the addresses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    ReadInOrder,
    ReadAtRandom,
    WriteInOrder,
    WriteAtRandom,
}

impl Pattern {
    const ALL: [Self; 4] =
        [Self::ReadInOrder, Self::ReadAtRandom, Self::WriteInOrder, Self::WriteAtRandom];

    /// The name in fio's option `rw`.
    fn name(self) -> &'static str {
        match self {
            Self::ReadInOrder => "read",
            Self::ReadAtRandom => "randread",
            Self::WriteInOrder => "write",
            Self::WriteAtRandom => "randwrite",
        }
    }

    fn reads(self) -> bool {
        matches!(self, Self::ReadInOrder | Self::ReadAtRandom)
    }
}

#[derive(Serialize)]
struct Row {
    pattern: &'static str,
    page_bytes: u32,
    queue_depth: u32,
    /// Medians of the runs.
    device_bytes_per_sec: f64,
    fio_bytes_per_sec: f64,
    ratio: f64,
    device_runs: Vec<f64>,
    fio_runs: Vec<f64>,
}

#[derive(Serialize)]
struct Bench {
    size_bytes: u64,
    engine: &'static str,
    rows: Vec<Row>,
    /// Null if not measured.
    opening: Option<Opened>,
}

const PAGES: [u32; 2] = [4 << 10, 16 << 10];
const DEPTHS: [u32; 2] = [1, 32];

/// A measurement.
struct Measurement {
    pattern: Pattern,
    page: u32,
    depth: u32,
}

/// The measurements whose names contain `part`, by page size, then depth.
fn cells(part: &str) -> Vec<Measurement> {
    let by_page = PAGES.into_iter().flat_map(|page| DEPTHS.map(|depth| (page, depth)));
    let all = by_page
        .flat_map(|(page, depth)| Pattern::ALL.map(|pattern| Measurement { pattern, page, depth }));
    let name = |cell: &Measurement| {
        format!("{} {}KiB QD {}", cell.pattern.name(), cell.page >> 10, cell.depth)
    };
    all.filter(|cell| name(cell).contains(part)).collect()
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
    let cells = cells(&args.only);
    let opens = bench_open::NAME.contains(&args.only);
    if cells.is_empty() && !opens {
        let only = &args.only;
        return Err(Failure::Usage(format!("no measurement's name contains {only:?}")));
    }
    let mut bench = Bench { size_bytes: args.size.0, engine: "", rows: Vec::new(), opening: None };
    if !cells.is_empty() {
        compare_with_fio(args, &cells, ours, fios, &mut bench)?;
    }
    if opens {
        bench.opening = Some(bench_open::measure(ours, args.runs, args.seed)?);
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
    // Both use files that are already allocated, so neither measures the allocation of blocks.
    run_fio(args, fios, "write", 1 << 20, 8, None)?;
    for of_page in cells.chunk_by(|a, b| a.page == b.page) {
        let mut store = Store::make(args, ours, of_page[0].page)?;
        for of_depth in of_page.chunk_by(|a, b| a.depth == b.depth) {
            store = store.reopen(of_depth[0].depth)?;
            for &Measurement { pattern, page, depth } in of_depth {
                let (mut device, mut fio) = (Vec::new(), Vec::new());
                for run in 0..args.runs {
                    // The order alternates, so that neither always runs after the other.
                    for ours in [run % 2 == 1, run % 2 == 0] {
                        let (name, time) = (pattern.name(), args.time);
                        if ours {
                            device.push(store.run(pattern, time.as_secs_f64())?);
                        } else {
                            fio.push(run_fio(args, fios, name, page, depth, Some(time))?);
                        }
                    }
                    progress.reached(bench.rows.len() as u64 * u64::from(args.runs));
                }
                bench.rows.push(row(pattern, page, depth, device, fio));
            }
        }
        bench.engine = store.engine;
        drop(store);
        let _ = std::fs::remove_file(ours);
    }
    progress.clear();
    Ok(())
}

fn row(pattern: Pattern, page: u32, depth: u32, device: Vec<f64>, fio: Vec<f64>) -> Row {
    let median = |runs: &[f64]| {
        let mut runs = runs.to_vec();
        runs.sort_by(f64::total_cmp);
        runs[runs.len() / 2]
    };
    let (ours, theirs) = (median(&device), median(&fio));
    Row {
        pattern: pattern.name(),
        page_bytes: page,
        queue_depth: depth,
        device_bytes_per_sec: ours,
        fio_bytes_per_sec: theirs,
        ratio: ours / theirs,
        device_runs: device,
        fio_runs: fio,
    }
}

/// Bytes per second of fio with direct I/O through io_uring; without `time`, one pass over the
/// file.
fn run_fio(
    args: &Args,
    file: &Path,
    pattern: &str,
    block: u32,
    depth: u32,
    time: Option<Nanos>,
) -> Result<f64, Failure> {
    let failed = |what: String| Failure::Usage(format!("fio failed: {what}"));
    let mut command = Command::new("fio");
    command.args(["--name=bench", "--direct=1", "--ioengine=io_uring", "--output-format=json"]);
    command.arg(format!("--filename={}", file.display())).arg(format!("--size={}", args.size.0));
    command.args([format!("--rw={pattern}"), format!("--bs={block}")]);
    command.args([format!("--iodepth={depth}"), format!("--randseed={}", args.seed)]);
    command.arg("--end_fsync=1");
    if let Some(time) = time {
        let ms = time.0 / 1_000_000;
        command.args(["--time_based".to_owned(), format!("--runtime={ms}ms")]);
    }
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Usage("fio is not installed".into()),
        _ => failed(error.to_string()),
    })?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // fio prints warnings before the JSON.
    let json = &text[text.find('{').unwrap_or(0)..];
    let json: serde_json::Value =
        serde_json::from_str(json).map_err(|error| failed(error.to_string()))?;
    let way = if pattern.ends_with("read") { "read" } else { "write" };
    let rate = json["jobs"][0][way]["bw_bytes"].as_f64();
    rate.ok_or_else(|| failed("its JSON has no bandwidth".into()))
}

/// A share over a whole device, at the raw level.
struct Store {
    path: PathBuf,
    raw: Raw,
    engine: &'static str,
    blocks: Vec<Address>,
    /// The next page of each block.
    next: Vec<u32>,
    /// Blocks that are not full.
    open: Vec<usize>,
    depth: usize,
    pages: u32,
    page: Vec<u8>,
    seed: u64,
    rng: Rng,
}

fn flash_failure(error: FlashError) -> Failure {
    Failure::Usage(error.to_string())
}

const SHARE: &str = "bench";

impl Store {
    /// A device whose pages were all written once.
    fn make(args: &Args, path: &Path, page: u32) -> Result<Self, Failure> {
        /// 4 MiB, the block size of `prism device create`.
        const BLOCK: u32 = 4 << 20;
        let blocks = (args.size.0 / u64::from(BLOCK) / 4) as u32;
        let geometry = DeviceGeometry {
            channels: 4,
            luns_per_channel: 1,
            blocks_per_lun: blocks,
            pages_per_block: BLOCK / page,
            page_size: page,
            oob_size: 0,
            max_open_blocks: None,
        };
        let file = FlashFile::create(path, geometry)?;
        let device = Device::format(file, Options::default()).map_err(flash_failure)?;
        let all = Bytes(device.lun_capacity().0 * u64::from(geometry.luns()));
        drop(device.allocate(SHARE, Allocation::new(all, 0)).map_err(flash_failure)?);
        drop(device);
        let mut store = Self::open(path, 32, args.seed)?;
        for _ in 0..store.page_count() {
            store.write(Pattern::WriteInOrder)?;
        }
        store.raw.sync().map_err(flash_failure)?;
        Ok(store)
    }

    fn open(path: &Path, depth: u32, seed: u64) -> Result<Self, Failure> {
        let settings = Settings { engine: EngineChoice::Best, depth, ..Settings::USUAL };
        let file = FlashFile::open_with(path, settings)?;
        let engine = file.engine_name();
        let device = Device::open(file, Options::default()).map_err(flash_failure)?;
        let raw = Raw::open(device.attach(SHARE).map_err(flash_failure)?).map_err(flash_failure)?;
        let blocks: Vec<Address> = raw.blocks().collect();
        let pointer = |&at: &Address| raw.write_pointer(at).map_err(flash_failure);
        let next: Vec<u32> = blocks.iter().map(pointer).collect::<Result<_, _>>()?;
        let (pages, size) = (raw.geometry().pages_per_block, raw.geometry().page_size);
        let open = (0..blocks.len()).filter(|&block| next[block] < pages).collect();
        Ok(Self {
            path: path.to_owned(),
            engine,
            blocks,
            next,
            open,
            depth: depth as usize,
            pages,
            page: vec![0xA5; size as usize],
            rng: Rng::stream(seed, "bench.device"),
            seed,
            raw,
        })
    }

    fn reopen(self, depth: u32) -> Result<Self, Failure> {
        let (path, seed) = (self.path.clone(), self.seed);
        drop(self);
        Self::open(&path, depth, seed)
    }

    fn page_count(&self) -> u64 {
        self.blocks.len() as u64 * u64::from(self.pages)
    }

    /// Bytes per second over `seconds`; written data is durable at the end.
    fn run(&mut self, pattern: Pattern, seconds: f64) -> Result<f64, Failure> {
        if pattern.reads() {
            self.fill()?;
        }
        let begin = clock::seconds();
        let pages = if pattern.reads() {
            self.read_for(pattern, begin + seconds)?
        } else {
            self.write_for(pattern, begin + seconds)?
        };
        let bytes = pages * self.page.len() as u64;
        Ok(bytes as f64 / (clock::seconds() - begin))
    }

    /// Pages between two readings of the clock.
    const LOOK: u64 = 64;

    fn write_for(&mut self, pattern: Pattern, until: f64) -> Result<u64, Failure> {
        let mut done = 0;
        while clock::seconds() < until {
            for _ in 0..Self::LOOK {
                self.write(pattern)?;
            }
            done += Self::LOOK;
        }
        self.raw.sync().map_err(flash_failure)?;
        Ok(done)
    }

    /// Writes the rest of the device, so that every page can be read.
    fn fill(&mut self) -> Result<(), Failure> {
        while !self.open.is_empty() {
            self.write(Pattern::WriteInOrder)?;
        }
        self.raw.sync().map_err(flash_failure)
    }

    /// Writes the next page of a block; a full device is erased.
    fn write(&mut self, pattern: Pattern) -> Result<(), Failure> {
        if self.open.is_empty() {
            for at in &self.blocks {
                self.raw.erase_block(*at).map_err(flash_failure)?;
            }
            self.next.fill(0);
            self.open = (0..self.blocks.len()).rev().collect();
        }
        let place = match pattern {
            Pattern::WriteAtRandom => self.rng.below(self.open.len() as u64) as usize,
            _ => self.open.len() - 1,
        };
        let block = self.open[place];
        let at = self.blocks[block].with_page(self.next[block]);
        self.raw.write_page(at, &self.page).map_err(flash_failure)?;
        self.next[block] += 1;
        if self.next[block] == self.pages {
            self.open.swap_remove(place);
        }
        Ok(())
    }

    /// Reads with the queue always full.
    fn read_for(&mut self, pattern: Pattern, until: f64) -> Result<u64, Failure> {
        let all = self.page_count();
        let mut queue = self.raw.queue(self.depth);
        let mut spare = vec![vec![0; self.page.len()]; self.depth];
        let (mut submitted, mut done) = (0u64, 0u64);
        loop {
            while let Some(data) = spare.pop() {
                let number = match pattern {
                    Pattern::ReadAtRandom => self.rng.below(all),
                    _ => submitted % all,
                };
                let block = self.blocks[(number / u64::from(self.pages)) as usize];
                let at = block.with_page((number % u64::from(self.pages)) as u32);
                let read = raw::Command::Read { at, data };
                queue.submit(read, submitted).expect("as many as there are buffers");
                submitted += 1;
            }
            let Some(completion) = queue.complete() else { unreachable!("some are in flight") };
            completion.result.map_err(flash_failure)?;
            spare.push(completion.data);
            done += 1;
            if done.is_multiple_of(Self::LOOK) && clock::seconds() >= until {
                return Ok(done);
            }
        }
    }
}

fn document(bench: &Bench) -> Document {
    let table = Table::listing(&bench.rows)
        .text("pattern", |row| row.pattern)
        .number("page", Unit::Bytes, |row| u64::from(row.page_bytes))
        .number("depth", Unit::Count, |row| u64::from(row.queue_depth))
        .number("device", Unit::BytesPerSec, |row| row.device_bytes_per_sec)
        .number("fio", Unit::BytesPerSec, |row| row.fio_bytes_per_sec)
        .number("device / fio", Unit::Ratio, |row| row.ratio)
        .table("Medians of the runs")
        .whole();
    let lead = "The raw level on a device in a file, and fio with direct I/O through io_uring on a \
                file of the same size in the same folder, in alternating order. The device \
                verifies every page that it reads. Random writes go to the next page of a random \
                block, as flash requires. Both make their data durable at the end.";
    let mut section = Section::new("Throughput", lead);
    section.push(table);
    let subtitle = match bench.engine {
        "" => String::new(),
        engine => format!("{} of flash, I/O through {engine}", Bytes(bench.size_bytes)),
    };
    let mut document = Document::new("prism bench device", subtitle);
    if !bench.rows.is_empty() {
        document = document.with(section);
    }
    match &bench.opening {
        Some(opened) => document.with(bench_open::section(opened)),
        None => document,
    }
}
