//! The log-structured file system of Prism-SSD (section VI.B) on a conventional drive and on the
//! function level, in virtual time: Figure 8 and Table II. `docs/design/ulfs.md` has the set-up.

use std::collections::VecDeque;

use prism_base::{Nanos, SimTime};
use prism_flash::function::Function;
use prism_fs::workload::{Call, Operation, Personality, Workload};
use prism_fs::{Config, Counts, Fs, FsError, NewFile, ROOT, S_IFDIR, S_IFREG, Time, Victim};
use prism_segments::{FlashCounts, FunctionStore, Store, StripeStore};

use super::machine::{Board, CHANNELS, SPARE};
use crate::scale::Scale;

/// The time of a call: a round trip of FUSE between two CPUs, as it was measured.
pub const CALL: Nanos = Nanos(46_000);
/// Files take this share of what `df` shows, in percent. Fitted: with it file copies over what else
/// is written are those of the paper.
pub const USED: u64 = 85;
/// The share with segments over all channels, which are few, so that more of them are kept free.
pub const USED_BY_FEW: u64 = 75;
/// Bytes that the paper's file systems wrote besides copies of files: 5.5 MB for each erase, less
/// the copies.
const WRITTEN: u64 = 19_300_000_000;
/// The flash of the paper.
const FLASH: u64 = 30_000_000_000;
/// The log of a web server takes this share of `df` at the end, in percent.
const LOG: u64 = 10;
/// Seconds between two calls of what is due.
const TICK: Nanos = Nanos(5_000_000_000);
const BLOCK: u64 = 4096;
/// Blocks of each LUN that the library needs for its tables.
const TABLES: u32 = 3;

named_enum! {
    /// A file system of the paper.
    pub enum Variant {
        /// On a conventional drive.
        Drive = "ULFS-SSD",
        /// On the function level.
        Function = "ULFS-Prism",
    }
}

impl Variant {
    /// Lines of the store, without blank lines and comments.
    #[must_use]
    pub fn lines(self) -> usize {
        let name = match self {
            Self::Drive => "conventional drive",
            Self::Function => "function",
        };
        super::lines_of_store(name)
    }
}

named_enum! {
    /// What differs from the file systems that are compared with the paper's; no name in tables for
    /// nothing.
    pub enum Change {
        /// Nothing.
        None = "",
        /// The drive gets trims.
        Trims = "with trims",
        /// The drive does not save its buffer when power fails: a flush writes it.
        Capacitors = "drive without capacitors",
        /// A call takes no time.
        Calls = "no time for calls",
        /// All data fit in memory.
        Memory = "all data in memory",
        /// A segment is a block of each channel.
        Stripes = "segments over all channels",
        /// Another seed.
        Seed = "second seed",
    }
}

impl Change {
    /// Whether it changes anything for this variant.
    #[must_use]
    pub fn concerns(self, variant: Variant) -> bool {
        variant == Variant::Drive || !matches!(self, Self::Trims | Self::Capacitors)
    }
}

/// A workload on a file system.
#[derive(Clone, Debug, PartialEq)]
pub struct FsRow {
    /// The file system.
    pub variant: Variant,
    /// The workload.
    pub workload: Personality,
    /// What is changed.
    pub change: Change,
    /// Calls.
    pub calls: u64,
    /// Virtual time.
    pub time: Nanos,
    /// Calls of fsync, and the sum of their latencies, time in the queue included.
    pub fsyncs: (u64, u128),
    /// Blocks of 4 KiB that the file system wrote.
    pub blocks: u64,
    /// Of these, copies by its cleaning.
    pub copied: u64,
    /// What was done to flash; copies are those of the device.
    pub flash: FlashCounts,
}

impl FsRow {
    /// Calls a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.time.as_secs_f64()
    }

    /// Mean latency of an fsync in nanoseconds; `None` without one.
    #[must_use]
    pub fn fsync_latency(&self) -> Option<f64> {
        (self.fsyncs.0 > 0).then(|| self.fsyncs.1 as f64 / self.fsyncs.0 as f64)
    }
}

fn board(scale: Scale, seed: u64) -> Board {
    let (per_lun, block_bytes) = match scale {
        Scale::Full => (152, 512 << 10),
        Scale::Quarter => (76, 256 << 10),
    };
    let divisor = super::machine::BLOCK / block_bytes;
    Board { blocks: per_lun * CHANNELS, block_bytes, divisor, seed }
}

/// An empty file system; the library of the function level keeps the blocks that are spare on the
/// drive.
fn file_system(board: Board, variant: Variant, change: Change) -> Fs<Box<dyn Store>> {
    let kept = board.blocks * (100 - SPARE) / 100;
    let stripes = change == Change::Stripes;
    let wide = if stripes { CHANNELS } else { 1 };
    let segment = board.block_bytes as u32 * wide;
    let share = || Board { blocks: kept, ..board }.share(TABLES).and_then(Function::open);
    let function = || share().expect("a new share of hundreds of blocks");
    let store: Box<dyn Store> = match variant {
        Variant::Drive => {
            Box::new(board.drive(segment, change == Change::Trims, change != Change::Capacitors))
        }
        Variant::Function if stripes => Box::new(StripeStore::new(function(), kept / CHANNELS)),
        Variant::Function => Box::new(FunctionStore::new(function(), 1)),
    };
    assert_eq!(store.shape().segments, kept / wide, "as many segments for both");
    let bytes = u64::from(kept) * board.block_bytes;
    let cache_bytes = match change {
        Change::Memory => bytes,
        _ => bytes * USED / 1000,
    };
    let config = Config { victim: Victim::Greedy, groups: 1, cache_bytes, ..Config::NORMAL };
    Fs::format(store, 1, config, Time::default()).expect("hundreds of segments")
}

/// A file system with its clients.
struct Clients {
    fs: Fs<Box<dyn Store>>,
    workload: Workload,
    /// Inodes by number of the file, and of folders.
    inodes: Vec<u32>,
    folders: Vec<u32>,
    log: u32,
    call: Nanos,
    /// Threads whose next call waits, and since when.
    queue: VecDeque<(usize, SimTime)>,
    ticked: SimTime,
    calls: u64,
    fsyncs: (u64, u128),
}

const FILE: NewFile = NewFile { mode: S_IFREG | 0o644, uid: 0, gid: 0, rdev: 0, umask: 0 };
/// What is written; no block is all zeros.
const CONTENT: u8 = 0x5a;

impl Clients {
    fn new(mut fs: Fs<Box<dyn Store>>, workload: Workload, call: Nanos) -> Result<Self, FsError> {
        let log = fs.make(ROOT, b"log", FILE)?;
        let files = workload.files() as usize;
        let queue = (0..workload.personality().threads()).map(|thread| (thread, SimTime::ZERO));
        let queue = queue.collect();
        let mut clients = Self {
            fs,
            inodes: vec![0; files],
            folders: Vec::new(),
            log,
            call,
            queue,
            ticked: SimTime::ZERO,
            calls: 0,
            fsyncs: (0, 0),
            workload,
        };
        clients.fill()?;
        Ok(clients)
    }

    fn fill(&mut self) -> Result<(), FsError> {
        for file in 0..self.workload.files() {
            if let (Some(folder), _) = self.workload.personality().path(file)
                && file % 20 == 0
            {
                let new = NewFile { mode: S_IFDIR | 0o755, ..FILE };
                self.folders.push(self.fs.make(ROOT, folder.as_bytes(), new)?);
            }
        }
        let initial: Vec<(u32, u32)> = self.workload.initial().collect();
        for (file, size) in initial {
            self.create(file)?;
            self.fs.write(self.inodes[file as usize], 0, &vec![CONTENT; size as usize])?;
            self.fs.release(self.inodes[file as usize], 1)?;
        }
        self.fs.checkpoint()
    }

    fn now(&mut self) -> SimTime {
        self.fs.store().now()
    }

    fn folder(&self, file: u32) -> u32 {
        self.folders.get(file as usize / 20).copied().unwrap_or(ROOT)
    }

    fn create(&mut self, file: u32) -> Result<(), FsError> {
        let (_, name) = self.workload.personality().path(file);
        let ino = self.fs.make(self.folder(file), name.as_bytes(), FILE)?;
        self.inodes[file as usize] = ino;
        self.fs.hold(ino);
        Ok(())
    }

    /// One call of the thread that waits longest; an fsync takes with it all that wait.
    fn step(&mut self) -> Result<(), FsError> {
        let (thread, since) = self.queue.pop_front().expect("every thread waits");
        let mut done = vec![(thread, since)];
        if self.workload.upcoming(thread) == Call::Fsync {
            let workload = &self.workload;
            let is_fsync = |(other, _): &(usize, SimTime)| workload.upcoming(*other) == Call::Fsync;
            done.extend(self.queue.iter().copied().filter(is_fsync));
            let workload = &self.workload;
            self.queue.retain(|(other, _)| workload.upcoming(*other) != Call::Fsync);
        }
        let operations: Vec<Operation> =
            done.iter().map(|(thread, _)| self.workload.next(*thread)).collect();
        self.fs.pass(Nanos(self.call.0 * done.len() as u64));
        let now = self.now();
        self.fs.set_now(Time { secs: (now.0 / 1_000_000_000) as i64, nanos: 0 });
        if now.since(self.ticked) >= TICK {
            self.ticked = now;
            self.fs.tick()?;
        }
        match operations[0].call {
            Call::Fsync => {
                let files: Vec<u32> =
                    operations.iter().map(|one| self.inodes[one.file as usize]).collect();
                self.fs.fsync(&files)?;
            }
            _ => self.execute(operations[0])?,
        }
        let now = self.now();
        for (thread, since) in done {
            if operations[0].call == Call::Fsync {
                self.fsyncs.0 += 1;
                self.fsyncs.1 += u128::from(now.since(since).0);
            }
            self.calls += 1;
            self.queue.push_back((thread, now));
        }
        Ok(())
    }

    fn execute(&mut self, operation: Operation) -> Result<(), FsError> {
        let Operation { call, file, bytes } = operation;
        let ino = self.inodes[file as usize];
        let (_, name) = self.workload.personality().path(file);
        let append = |fs: &mut Fs<_>, ino: u32, whole: bool| {
            let end = if whole { 0 } else { fs.get_attr(ino)?.size };
            fs.write(ino, end, &vec![CONTENT; bytes as usize])
        };
        match call {
            Call::Create => self.create(file),
            Call::Open => {
                let found = self.fs.lookup(self.folder(file), name.as_bytes())?;
                assert_eq!(found, ino, "the file that was made");
                self.fs.hold(ino);
                Ok(())
            }
            Call::WriteWhole => append(&mut self.fs, ino, true),
            Call::Append => append(&mut self.fs, ino, false),
            Call::Log => append(&mut self.fs, self.log, false),
            Call::ReadWhole => {
                let size = self.fs.get_attr(ino)?.size as usize;
                let read = self.fs.read(ino, 0, size)?;
                assert!(read.len() == size && read.last().is_none_or(|&last| last == CONTENT));
                Ok(())
            }
            Call::Close => self.fs.release(ino, 1),
            Call::Delete => self.fs.unlink(self.folder(file), name.as_bytes()),
            Call::Stat => self.fs.get_attr(ino).map(|_| ()),
            Call::Fsync => unreachable!("done with others"),
        }
    }

    /// Calls until the file system has written this many blocks besides copies.
    fn write(&mut self, blocks: u64) -> Result<(), FsError> {
        let before = besides_copies(&self.fs.counts());
        while besides_copies(&self.fs.counts()) - before < blocks {
            self.step()?;
        }
        Ok(())
    }
}

fn besides_copies(counts: &Counts) -> u64 {
    counts.total() - counts.cleaned
}

/// Files that take their share of the space: data in whole blocks, an inode, and their part of
/// folders and nodes.
fn files(personality: Personality, space: u64, percent: u64) -> u32 {
    let of_file = personality.mean_size() as f64 / BLOCK as f64 + 0.5 + 1.05;
    let exist = match personality {
        Personality::WebServer => 1.0,
        Personality::FileServer | Personality::VarMail => 0.8,
    };
    (space as f64 * percent as f64 / 100.0 / of_file / exist) as u32
}

/// A workload on a file system that was used before.
pub(super) fn run(
    scale: Scale,
    seed: u64,
    variant: Variant,
    workload: Personality,
    change: Change,
) -> FsRow {
    let seed = if change == Change::Seed { seed + 1 } else { seed };
    let board = board(scale, seed);
    let fs = file_system(board, variant, change);
    let space = fs.space().blocks;
    let percent = if change == Change::Stripes { USED_BY_FEW } else { USED };
    let files = files(workload, space, percent);
    let call = if change == Change::Calls { Nanos::ZERO } else { CALL };
    let threads = workload.threads().min(files as usize / 10);
    let mix = Workload::new(workload, files, threads, seed);
    measure(board, Clients::new(fs, mix, call), variant, change).expect("there is space")
}

fn measure(
    board: Board,
    clients: Result<Clients, FsError>,
    variant: Variant,
    change: Change,
) -> Result<FsRow, FsError> {
    let mut clients = clients?;
    let workload = clients.workload.personality();
    let flash = u64::from(board.blocks) * board.block_bytes;
    let written = (u128::from(WRITTEN) * u128::from(flash) / u128::from(FLASH)) as u64 / BLOCK;
    let before_fill = clients.fs.space();
    if workload != Personality::WebServer {
        clients.write(2 * before_fill.free)?;
    }
    let begin = clients.now();
    let (blocks, on_flash) = (clients.fs.counts(), clients.fs.store().counts());
    (clients.calls, clients.fsyncs) = (0, (0, 0));
    if workload == Personality::WebServer {
        while clients.fs.get_attr(clients.log)?.size < before_fill.blocks * LOG / 100 * BLOCK {
            clients.step()?;
        }
    } else {
        clients.write(written)?;
    }
    // Blocks in memory belong to the run.
    clients.fs.sync()?;
    let (now, counts, after) = (clients.now(), clients.fs.counts(), clients.fs.store().counts());
    Ok(FsRow {
        variant,
        workload,
        change,
        calls: clients.calls,
        time: now.since(begin),
        fsyncs: clients.fsyncs,
        blocks: counts.total() - blocks.total(),
        copied: counts.cleaned - blocks.cleaned,
        flash: after.since(&on_flash),
    })
}
