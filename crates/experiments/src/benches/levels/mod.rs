//! The same program written at each level of the flash library: a store of pages of fixed size. It
//! is measured in virtual time and in lines of code.
//!
//! The levels are those of Prism-SSD (Shen et al., ICDCS'19), section IV. A conventional drive with
//! as many blocks of the same flash is measured as well.
//!
//! | level | work of the program | commands in flight |
//! |---|---|---|
//! | raw | maps, allocates blocks of LUNs, cleans, erases, buffers writes | [`DEPTH`] and copies |
//! | function | maps, cleans, buffers writes | [`DEPTH`] and copies |
//! | policy, drive | none: both are a `BlockDevice` | [`DEPTH`] in the queue of the device |
//!
//! The programs at the raw and the function level are the same but for the calls of their level.

mod block;
mod buffer;
mod function;
mod log;
mod raw;
mod setup;

use std::ops::RangeInclusive;

use prism_base::{Latencies, Nanos, Rng, SimTime};
use prism_flash::Result;

use setup::MeasuredStore;

/// Requests that the user of the store keeps in flight.
pub const DEPTH: u64 = 16;
/// What the user writes after the store was filled, as a multiple of its capacity.
const TURNS: u64 = 3;

/// Pages in the write buffer of the drive, a few per LUN as in its preset, and in that of the
/// stores at the raw and the function level.
const BUFFER_PAGES: usize = 48;

/// A completed request.
pub(crate) struct Done {
    /// The tag with which it was begun.
    pub(crate) tag: u64,
    /// When it completed.
    pub(crate) end: SimTime,
    /// Its buffer.
    pub(crate) data: Vec<u8>,
}

/// A store of numbered pages.
pub(crate) trait Store {
    /// Begins to write a page.
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()>;
    /// Begins to read a page that was written.
    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()>;
    /// Waits for the next completion; `None` if no request is in flight.
    fn complete(&mut self) -> Result<Option<Done>>;
    /// Waits until everything written is on flash; no request may be in flight.
    fn flush(&mut self) -> Result<()>;
}

named_enum! {
    /// A level of abstraction.
    pub enum Level {
        /// Pages and blocks.
        Raw = "raw",
        /// The library allocates and erases blocks and levels their wear.
        Function = "function",
        /// A block device in the library.
        Policy = "policy",
        /// A conventional drive.
        Drive = "conventional drive",
    }
}

impl Level {
    /// Lines of the store at this level, without blank lines and comments.
    #[must_use]
    pub fn lines(self) -> usize {
        let log = lines_of_code(include_str!("log.rs")) + lines_of_code(include_str!("buffer.rs"));
        match self {
            Self::Raw => log + lines_of_code(include_str!("raw.rs")),
            Self::Function => log + lines_of_code(include_str!("function.rs")),
            Self::Policy | Self::Drive => lines_of_code(include_str!("block.rs")),
        }
    }
}

/// Lines before the unit tests, without blank lines and comments.
pub(crate) fn lines_of_code(text: &str) -> usize {
    let code = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

named_enum! {
    /// The requests of the user, of a page each, after the store was filled in order.
    pub enum Pattern {
        /// Sequential writes, over and over.
        Sequential = "sequential writes",
        /// Random writes.
        Random = "random writes",
        /// Random requests, of which 70 % are reads.
        Mixed = "random, 70% reads",
        /// Random writes, of which 90 % go to 10 % of the pages.
        HotCold = "writes, 90% to 10%",
    }
}

impl Pattern {
    /// The page of the next request, and whether it is a write; `written` pages have been written.
    fn next(self, rng: &mut Rng, pages: u64, written: u64) -> (u64, bool) {
        let hot = pages / 10;
        match self {
            Self::Sequential => (written % pages, true),
            Self::Random => (rng.below(pages), true),
            Self::Mixed => (rng.below(pages), rng.chance(0.3)),
            Self::HotCold if rng.chance(0.9) => (rng.below(hot), true),
            Self::HotCold => (hot + rng.below(pages - hot), true),
        }
    }
}

/// The size of the flash, whose times are those of the preset `memblaze`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Blocks per LUN, including those for failed blocks and for the tables of the library.
    pub blocks_per_lun: u32,
    /// Pages per block.
    pub pages_per_block: u32,
    /// Bytes per page.
    pub page_size: u32,
}

impl Size {
    /// Half a gibibyte.
    pub const FULL: Self = Self { blocks_per_lun: 128, pages_per_block: 32, page_size: 16 << 10 };
}

/// The measurements of a level, which begin after the store was filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelFigures {
    /// Bytes that the user wrote and read.
    pub bytes: u64,
    /// Virtual time until the end of the last program.
    pub time: Nanos,
    /// Pages that the user wrote.
    pub written: u64,
    /// Pages programmed with data of the user.
    pub host: u64,
    /// Pages programmed as copies and as padding.
    pub copies: u64,
    /// Pages programmed for the tables of the library.
    pub tables: u64,
    /// Blocks erased, including those of the tables.
    pub erases: u64,
    /// Latencies of reads.
    pub reads: Response,
    /// Latencies of writes, which complete when their data is buffered.
    pub writes: Response,
}

/// Latencies of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// Number of requests.
    pub count: u64,
    /// Mean latency in nanoseconds.
    pub mean_ns: f64,
    /// 99th percentile.
    pub p99: Nanos,
}

impl From<&Latencies> for Response {
    fn from(all: &Latencies) -> Self {
        Self { count: all.count(), mean_ns: all.mean_ns(), p99: all.quantile(0.99) }
    }
}

impl LevelFigures {
    /// Pages programmed per page that the user wrote.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        (self.host + self.copies + self.tables) as f64 / self.written as f64
    }

    /// Bytes a second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.bytes as f64 / self.time.as_secs_f64()
    }
}

/// Fills a store at `level`, runs `pattern` on it, and reads everything back.
///
/// # Errors
/// [`prism_flash::FlashError`] only if `size` is too small for a level.
///
/// # Panics
/// If a page does not hold what was written to it last.
pub fn run(level: Level, pattern: Pattern, size: Size, seed: u64) -> Result<LevelFigures> {
    setup::with_store(level, size, |store, pages| User::new(store, pages, size).run(pattern, seed))
}

/// The user of the store. It stamps each page with its number and version, and remembers them.
struct User<'a> {
    store: &'a mut dyn MeasuredStore,
    page_size: usize,
    /// The version written last to each page, and that of the last write that completed: a read
    /// may return the page as it was before writes that are in flight together with it.
    versions: Vec<u64>,
    completed: Vec<u64>,
    written: u64,
    /// Requests in flight by tag.
    in_flight: Vec<Option<InFlight>>,
    buffers: Vec<Vec<u8>>,
    reads: Latencies,
    writes: Latencies,
}

/// A request in flight.
#[derive(Clone, Copy)]
struct InFlight {
    page: usize,
    is_write: bool,
    /// The version that is written, or the oldest that may be read.
    version: u64,
    begun: SimTime,
}

impl<'a> User<'a> {
    fn new(store: &'a mut dyn MeasuredStore, pages: usize, size: Size) -> Self {
        Self {
            page_size: size.page_size as usize,
            versions: vec![0; pages],
            completed: vec![0; pages],
            written: 0,
            in_flight: vec![None; DEPTH as usize],
            buffers: Vec::new(),
            reads: Latencies::new(),
            writes: Latencies::new(),
            store,
        }
    }

    fn run(mut self, pattern: Pattern, seed: u64) -> Result<LevelFigures> {
        let pages = self.versions.len() as u64;
        for page in 0..pages {
            self.begin(page as usize, true)?;
        }
        self.finish()?;
        (self.reads, self.writes) = (Latencies::new(), Latencies::new());
        let (start, before) = (self.store.now(), self.store.flash());
        let mut rng = Rng::stream(seed, "levels.user");
        while self.written < pages * (1 + TURNS) {
            let (page, is_write) = pattern.next(&mut rng, pages, self.written);
            self.begin(page as usize, is_write)?;
        }
        self.finish()?;
        let (time, after) = (self.store.now().since(start), self.store.flash());
        let (reads, writes) = (Response::from(&self.reads), Response::from(&self.writes));
        self.check_all()?;
        Ok(LevelFigures {
            bytes: (reads.count + writes.count) * self.page_size as u64,
            time,
            written: writes.count,
            host: after.host - before.host,
            copies: after.copies - before.copies,
            tables: after.tables - before.tables,
            erases: after.erases - before.erases,
            reads,
            writes,
        })
    }

    /// Begins a request; if [`DEPTH`] requests are in flight, waits for a completion first.
    fn begin(&mut self, page: usize, is_write: bool) -> Result<()> {
        let tag = loop {
            match self.in_flight.iter().position(Option::is_none) {
                Some(tag) => break tag,
                None => assert!(self.complete()?, "requests are in flight"),
            }
        };
        let mut data = self.buffers.pop().unwrap_or_else(|| vec![0; self.page_size]);
        let now = self.store.now();
        if is_write {
            self.written += 1;
            self.versions[page] = self.written;
            stamp(&mut data, page, self.written);
            let version = self.written;
            self.in_flight[tag] = Some(InFlight { page, is_write, version, begun: now });
            self.store.write(page, data, tag as u64)
        } else {
            let version = self.completed[page];
            self.in_flight[tag] = Some(InFlight { page, is_write, version, begun: now });
            self.store.read(page, data, tag as u64)
        }
    }

    /// Waits for a completion and checks what was read; `false` if no request is in flight.
    fn complete(&mut self) -> Result<bool> {
        let Some(done) = self.store.complete()? else { return Ok(false) };
        let in_flight = self.in_flight[done.tag as usize].take();
        let InFlight { page, is_write, version, begun } =
            in_flight.expect("a request that was begun");
        let latency = done.end.since(begun);
        if is_write {
            self.writes.record(latency);
            self.completed[page] = self.completed[page].max(version);
        } else {
            self.reads.record(latency);
            check(&done.data, page, version..=self.versions[page]);
        }
        self.buffers.push(done.data);
        Ok(true)
    }

    fn finish(&mut self) -> Result<()> {
        while self.complete()? {}
        self.store.flush()
    }

    /// Checks that every page holds what was written to it last.
    fn check_all(&mut self) -> Result<()> {
        for page in 0..self.versions.len() {
            self.begin(page, false)?;
        }
        self.finish()
    }
}

/// Writes number and version to both ends of a page.
fn stamp(data: &mut [u8], page: usize, version: u64) {
    let mut mark = [0; 16];
    mark[..8].copy_from_slice(&(page as u64).to_le_bytes());
    mark[8..].copy_from_slice(&version.to_le_bytes());
    let end = data.len() - mark.len();
    data[..mark.len()].copy_from_slice(&mark);
    data[end..].copy_from_slice(&mark);
}

fn check(data: &[u8], page: usize, versions: RangeInclusive<u64>) {
    let (begin, end) = (&data[..16], &data[data.len() - 16..]);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let (found, version) = (number(&begin[..8]), number(&begin[8..]));
    let is_good = begin == end && found == page as u64 && versions.contains(&version);
    assert!(is_good, "page {page} has version {version} of page {found}, not {versions:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_exclude_blanks_and_comments() {
        let text =
            "//! Why.\n\nfn a() {\n    // Because.\n    b();\n}\n\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(lines_of_code(text), 3);
        let lines = Level::ALL.map(Level::lines);
        assert!(lines[0].min(lines[1]) > 2 * lines[2], "{lines:?}");
    }
}
