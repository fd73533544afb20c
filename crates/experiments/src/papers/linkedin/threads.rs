//! Threads and sizes: small writes need several threads to use a drive, large ones do not.

use prism_base::{Bytes, Nanos, Rng};
use prism_ssd::spec::{MapLoad, Mapping, WriteCache};
use prism_ssd::{DriveSpec, InitialState};

use super::writers::{PRESET, Stretch, threads, wide, write};
use super::{Bench, MIB};
use crate::drives::{prepared, preset};

/// Size of a small write. The article says 10 KB; here it is 10 KiB, a multiple of the sector.
pub const SMALL: Bytes = Bytes(10 << 10);
/// Size of a large write.
pub const LARGE: Bytes = Bytes(10 * MIB);

/// Threads with small writes, and the megabytes a second that the article gives for them.
pub const SMALL_THREADS: [(u32, f64); 4] = [(1, 115.0), (2, 230.0), (4, 460.0), (8, 500.0)];
/// Threads with large writes, and the megabytes a second that the article gives for them.
pub const LARGE_THREADS: [(u32, f64); 3] = [(1, 414.0), (2, 816.0), (8, 500.0)];

/// The measurements with a number of threads and a size of writes.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadsRow {
    /// Size of each write.
    pub size: Bytes,
    /// Threads, each with one write in flight.
    pub threads: u32,
    /// The measurements.
    pub stretch: Stretch,
    /// Megabytes a second in the article, if it has this row.
    pub published: Option<f64>,
}

/// Both sizes with the threads of the article. Each thread writes new files sequentially to a part
/// of the drive of its own.
pub(super) fn published(bench: Bench) -> Vec<ThreadsRow> {
    let sizes = [(SMALL, &SMALL_THREADS[..]), (LARGE, &LARGE_THREADS[..])];
    let each = sizes.into_iter().flat_map(|(size, all)| all.iter().map(move |one| (size, one)));
    each.map(|(size, &(count, published))| row(bench, size, count, Some(published))).collect()
}

/// Sizes from a page to a large write, by one thread and by eight.
pub(super) fn sizes(bench: Bench) -> Vec<ThreadsRow> {
    let sizes = (0..12).map(|power| Bytes(4096 << power));
    sizes.flat_map(|size| [1, 8].map(|count| row(bench, size, count, None))).collect()
}

fn row(bench: Bench, size: Bytes, count: u32, published: Option<f64>) -> ThreadsRow {
    let mut drive = prepared(wide(Bytes(bench.bytes(8))), InitialState::Empty, bench.seed);
    let written = bench.bytes(1) / 4;
    let writes = (written / size.0).max(32 * u64::from(count));
    // A multiple of the size, so that a thread wraps around to its first address.
    let places = drive.device().capacity().0 / u64::from(count) / size.0;
    let mut turns = vec![0; count as usize];
    let stretch = threads(&mut drive, count, writes, |thread| {
        let turn = &mut turns[thread as usize];
        let place = u64::from(thread) * places + *turn % places;
        *turn += 1;
        write(place * size.0, size.0)
    });
    ThreadsRow { size, threads: count, stretch, published }
}

/// Page size of the article's example of a threshold.
pub const EXAMPLE_PAGE: Bytes = Bytes(4096);
/// Pages that the drive of this example writes in parallel.
pub const EXAMPLE_PARALLELISM: u32 = 16;

/// The rate of one size of writes on the drive of the example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdRow {
    /// Size of each write; one is in flight.
    pub size: Bytes,
    /// Bytes a second.
    pub rate: f64,
}

/// Writes of several sizes with one in flight, on a drive with the parallelism of the example.
/// Writes complete on flash, and firmware and link take no time, so that only the dies limit the
/// rate. It rises with the size as long as a write leaves dies idle.
pub(super) fn threshold(bench: Bench) -> Vec<ThresholdRow> {
    (0..8).map(|power| Bytes(EXAMPLE_PAGE.0 << power)).map(|size| example(bench, size)).collect()
}

fn example(bench: Bench, size: Bytes) -> ThresholdRow {
    let mut device = preset(PRESET);
    let flash = &mut device.flash;
    (flash.channels, flash.dies_per_channel) = (EXAMPLE_PARALLELISM, 1);
    (flash.planes, flash.multi_plane, flash.page) = (1, false, EXAMPLE_PAGE);
    (flash.blocks_per_plane, flash.pages_per_block) = (64, 128);
    flash.t_program = prism_nand::PageTimes::uniform(Nanos(1_200_000));
    flash.channel_bandwidth = None;
    let drive = &mut device.drive;
    drive.capacity = Bytes(320 * MIB);
    (drive.firmware_write, drive.firmware_cores, drive.link_bandwidth) = (Nanos::ZERO, 0, None);
    drive.write_cache = WriteCache::WriteThrough;
    let mut drive = prepared(device, InitialState::Empty, bench.seed);
    let mut at = 0;
    let writes = (32 * MIB / size.0).min(512);
    let stretch = threads(&mut drive, 1, writes, |_| {
        at += size.0;
        write(at - size.0, size.0)
    });
    ThresholdRow { size, rate: stretch.rate }
}

named_enum! {
    /// A mechanism that could slow down eight threads of large writes.
    pub enum Mechanism {
        /// None: files are written sequentially.
        Nothing = "files in order",
        /// Files are written to random addresses of a drive in steady state, so that it cleans.
        Cleaning = "cleaning: files at random, used drive",
        /// The same in requests of 128 KiB, so that requests of several threads are interleaved: a
        /// block holds pieces of several files, which die at different times.
        CleaningInPieces = "the same, in pieces of 128 KiB in turn",
        /// The map is on flash, and four of its translation pages are cached. Files are written in
        /// requests of 128 KiB to a filled drive: with more threads than cached pages each request
        /// misses.
        MapCache = "map on flash, 4 pages of it cached, pieces",
    }
}

impl Mechanism {
    fn in_pieces(self) -> bool {
        matches!(self, Self::CleaningInPieces | Self::MapCache)
    }
}

/// The measurements of a mechanism with a number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanismRow {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Threads.
    pub threads: u32,
    /// The measurements.
    pub stretch: Stretch,
}

const PIECE: u64 = 128 << 10;

/// Large writes by one, two and eight threads under `mechanism`.
pub(super) fn mechanism(bench: Bench, mechanism: Mechanism) -> Vec<MechanismRow> {
    let row = |(count, _)| {
        let stretch = under(bench, mechanism, count);
        MechanismRow { mechanism, threads: count, stretch }
    };
    LARGE_THREADS.map(row).into()
}

fn under(bench: Bench, mechanism: Mechanism, count: u32) -> Stretch {
    let mut device = wide(Bytes(bench.bytes(8)));
    let state = match mechanism {
        Mechanism::Nothing | Mechanism::MapCache => InitialState::Filled,
        Mechanism::Cleaning | Mechanism::CleaningInPieces => InitialState::Steady,
    };
    if mechanism == Mechanism::MapCache {
        let page = u64::from(device.entries_per_translation_page()) * DriveSpec::MAP_ENTRY;
        device.ftl.mapping = Mapping::Dftl;
        (device.ftl.map_load, device.ftl.map_cache) = (MapLoad::Page, Some(Bytes(4 * page)));
    }
    let capacity = device.capacity().0;
    let mut drive = prepared(device, state, bench.seed);
    let size = if mechanism.in_pieces() { PIECE } else { LARGE.0 };
    let files = capacity / LARGE.0;
    let mut rng = Rng::stream(bench.seed, "linkedin.files");
    // By thread: the file it writes, and the bytes of the file written so far.
    let mut at: Vec<_> =
        (0..count).map(|thread| (u64::from(thread) * files / u64::from(count), LARGE.0)).collect();
    let mut next = |thread: u32| {
        let (file, done) = &mut at[thread as usize];
        if *done == LARGE.0 {
            let random = matches!(mechanism, Mechanism::Cleaning | Mechanism::CleaningInPieces);
            (*file, *done) = (if random { rng.below(files) } else { (*file + 1) % files }, 0);
        }
        let offset = *file * LARGE.0 + *done;
        *done += size;
        write(offset, size)
    };
    // So many overwrites of the drive that large files have replaced the small pieces.
    let warm_up = match state {
        InitialState::Steady => 3 * capacity / size,
        _ => 0,
    };
    if warm_up > 0 {
        threads(&mut drive, count, warm_up, &mut next);
    }
    threads(&mut drive, count, (capacity / 2 / size).max(8 * u64::from(count)), &mut next)
}
