//! Part of `prism bench device`: measures how long a large, full device takes to open.
//!
//! A real terabyte is not needed. Opening reads only tables, and these are the tables of a full
//! device once every block was erased, written to and finished. So each block gets one page, and
//! the rest of it stays a hole in the file.

use std::path::Path;

use prism_base::{Bytes, Rng};
use prism_flash::raw::Raw;
use prism_flash::{Allocation, Device, DeviceGeometry, FlashError, Options};
use prism_flashfile::FlashFile;
use prism_host::{Progress, clock};
use prism_report::{Section, Table, Unit};
use serde::Serialize;

use crate::failure::Failure;

/// The name of the measurement, for `--only`.
pub const NAME: &str = "open 1TiB, all blocks written";

/// 1 TiB in blocks of 4 MiB, the block size of `prism device create`, with the smallest pages that
/// direct I/O accepts.
const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 4,
    luns_per_channel: 2,
    blocks_per_lun: 32_768,
    pages_per_block: 1024,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: None,
};

/// Shares of two LUNs each.
const SHARES: [&str; 4] = ["a", "b", "c", "d"];

/// One block in this many is bad from the factory.
const BAD: u32 = 500;

/// The time of the steps of opening, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OpenRun {
    /// The file: lock, superblock and block records.
    file_secs: f64,
    /// The monitor: reading its journal and building its tables.
    monitor_secs: f64,
    /// All shares, at the raw level.
    shares_secs: f64,
}

impl OpenRun {
    fn total(&self) -> f64 {
        self.file_secs + self.monitor_secs + self.shares_secs
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Opened {
    flash_bytes: u64,
    blocks: u32,
    blocks_written: u32,
    bad_blocks: usize,
    /// Sorted by total time.
    runs: Vec<OpenRun>,
}

/// Makes the device at `path` and opens it `runs` times.
///
/// # Errors
/// [`Failure`] if less than about 2 GiB of disk space is free.
pub fn measure(path: &Path, runs: u32, seed: u64) -> Result<Opened, Failure> {
    let progress = Progress::on_stderr();
    progress.start_count("writing to blocks:", "blocks", Some(GEOMETRY.blocks().into()));
    let blocks_written = make(path, seed, &progress)?;
    progress.clear();
    let mut bad_blocks = 0;
    let mut times = Vec::new();
    for _ in 0..runs {
        let begin = clock::seconds();
        let file = FlashFile::open(path)?;
        let middle = clock::seconds();
        let device = Device::open(file, Options::default())?;
        let opened = clock::seconds();
        let open = |name| device.attach(name).and_then(Raw::open).map_err(Failure::usage);
        let shares: Vec<Raw> = SHARES.into_iter().map(open).collect::<Result<_, _>>()?;
        let end = clock::seconds();
        times.push(OpenRun {
            file_secs: middle - begin,
            monitor_secs: opened - middle,
            shares_secs: end - opened,
        });
        bad_blocks = device.bad_blocks().len();
        drop(shares);
    }
    times.sort_by(|a, b| a.total().total_cmp(&b.total()));
    let (flash_bytes, blocks) = (GEOMETRY.raw().0, GEOMETRY.blocks());
    Ok(Opened { flash_bytes, blocks, blocks_written, bad_blocks, runs: times })
}

/// Makes a device whose blocks, except those that no share can have, were erased, hold one page
/// and are finished. Returns their number.
fn make(path: &Path, seed: u64, progress: &Progress) -> Result<u32, Failure> {
    let mut rng = Rng::stream(seed, "bench.open");
    let bad: Vec<u32> = (0..GEOMETRY.blocks()).filter(|_| rng.below(BAD.into()) == 0).collect();
    let device = FlashFile::format(path, GEOMETRY, &bad, Options::default())?;
    let two_luns = Bytes(2 * device.lun_capacity().0);
    let mut written = 0u32;
    for name in SHARES {
        let share = device.allocate(name, Allocation::new(two_luns, 0))?;
        let raw = Raw::open(share)?;
        for at in raw.blocks() {
            for _ in 0..1 + rng.below(3) {
                raw.erase_block(at)?;
            }
        }
        for at in raw.blocks() {
            raw.write_page(at, &[0xA5; 4096])?;
            raw.finish_block(at)?;
            written += 1;
            if written.is_multiple_of(1024) {
                progress.reached(written.into());
            }
        }
        raw.sync()?;
    }
    let medium = device.into_medium()?.into_any();
    let file = medium.downcast::<FlashFile>().expect("the medium is a flash file");
    file.close().map_err(FlashError::from)?;
    note(path)?;
    Ok(written)
}

/// Opens the device and writes to its journal, which then holds the wear of all blocks.
fn note(path: &Path) -> Result<(), Failure> {
    let device = Device::open(FlashFile::open(path)?, Options::default());
    // Growing by 0 changes only the journal.
    device.and_then(|device| device.attach(SHARES[0])?.grow(0, 0)).map_err(Failure::usage)
}

/// The section with the results.
pub fn section(opened: &Opened) -> Section {
    let nanos = |seconds: f64| seconds * 1e9;
    let median = opened.runs[opened.runs.len() / 2];
    let slowest = opened.runs[opened.runs.len() - 1];
    let table = Table::listing(&[median])
        .text("measurement", |_| NAME)
        .number("file", Unit::Nanos, |median| nanos(median.file_secs))
        .number("monitor", Unit::Nanos, |median| nanos(median.monitor_secs))
        .number("shares", Unit::Nanos, |median| nanos(median.shares_secs))
        .number("total", Unit::Nanos, |median| nanos(median.total()))
        .number("slowest", Unit::Nanos, |_| nanos(slowest.total()))
        .whole("The median of the runs, and the slowest");
    let lead = format!(
        "{} of flash in blocks of 4 MiB: of {} blocks {} were erased and written to, {} are bad; \
         four shares are opened at the raw level. Block records are read from the disk, not from \
         the page cache. A block holds one page and is finished: opening reads only pages of \
         the monitor's journal.",
        Bytes(opened.flash_bytes),
        opened.blocks,
        opened.blocks_written,
        opened.bad_blocks
    );
    Section::new("Opening", lead).with(table)
}
