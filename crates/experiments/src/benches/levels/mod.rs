//! One program at each level of abstraction: a store of pages of fixed size, measured in
//! virtual time and in lines.
//!
//! The levels are those of Prism-SSD (Shen et al., ICDCS'19), section IV, and beside them a
//! conventional drive over as many blocks of the same flash. What each does by itself:
//!
//! | level | the program | commands at once |
//! |---|---|---|
//! | raw | maps, allocates over LUNs, cleans, erases | [`DEPTH`], and copies, in its queue |
//! | function | maps and cleans | [`DEPTH`], and copies, in the library's queues |
//! | policy | nothing | a read at a time; writes are posted until their LUN takes them |
//! | drive | nothing | [`DEPTH`] in the drive's queue |

mod drive;
mod function;
mod policy;
mod raw;
mod world;

use prism_base::{Latencies, Nanos, Rng, SimTime};
use prism_flash::Result;

use world::Metered;

/// Requests of the user in flight.
pub const DEPTH: u64 = 16;
/// How often the user writes the store's capacity after it was filled.
const TURNS: u64 = 3;

/// A request that is done.
pub(crate) struct Done {
    /// What it was begun with.
    pub(crate) tag: u64,
    /// When it was done.
    pub(crate) end: SimTime,
    /// Its buffer, if the level has kept it.
    pub(crate) data: Vec<u8>,
}

/// A store of pages, by number.
pub(crate) trait Store {
    /// Begins to write a page.
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()>;
    /// Begins to read a page that was written.
    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()>;
    /// Waits for the next request that is done; `None` if none is in flight.
    fn complete(&mut self) -> Result<Option<Done>>;
    /// With no request in flight: waits until everything written is on flash.
    fn flush(&mut self) -> Result<()>;
}

/// A level of abstraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Pages and blocks.
    Raw,
    /// Allocation, erases and levelling by the library.
    Function,
    /// A block device in the library.
    Policy,
    /// A conventional drive.
    Drive,
}

impl Level {
    /// Every level, from the flash up.
    pub const ALL: [Self; 4] = [Self::Raw, Self::Function, Self::Policy, Self::Drive];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Function => "function",
            Self::Policy => "policy",
            Self::Drive => "conventional drive",
        }
    }

    /// Lines of the store at this level that are neither blank nor comment.
    #[must_use]
    pub fn lines(self) -> usize {
        let text = match self {
            Self::Raw => include_str!("raw.rs"),
            Self::Function => include_str!("function.rs"),
            Self::Policy => include_str!("policy.rs"),
            Self::Drive => include_str!("drive.rs"),
        };
        lines_of_code(text)
    }
}

/// Lines before the unit tests that are neither blank nor comment.
fn lines_of_code(text: &str) -> usize {
    let code = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// What the user of the store does, a page at a time, after the store was filled in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Writes in order, again and again.
    Sequential,
    /// Writes anywhere.
    Random,
    /// Seven reads to three writes, anywhere.
    Mixed,
    /// Nine of ten writes go to a tenth of the pages.
    HotCold,
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 4] = [Self::Sequential, Self::Random, Self::Mixed, Self::HotCold];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential writes",
            Self::Random => "random writes",
            Self::Mixed => "random, 70% reads",
            Self::HotCold => "writes, 90% to 10%",
        }
    }

    /// The page of the next request, and whether that is a write; `written` pages were.
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

/// The flash; what a block of the store is copied to, and its times, are those of the preset
/// `memblaze`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Blocks of a LUN, those for failed blocks and the library's tables included.
    pub blocks_per_lun: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_size: u32,
}

impl Size {
    /// Half a gibibyte.
    pub const FULL: Self = Self { blocks_per_lun: 128, pages_per_block: 32, page_size: 16 << 10 };
}

/// How a level did. Everything was counted after the store had been filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Bytes that the user wrote and read.
    pub bytes: u64,
    /// Time it took, to the end of the last program.
    pub time: Nanos,
    /// Pages that the user wrote.
    pub written: u64,
    /// Pages programmed for that.
    pub host: u64,
    /// Pages programmed as copies, and to fill up others.
    pub copies: u64,
    /// Pages that the library programmed for its tables.
    pub tables: u64,
    /// Blocks erased, those of the tables included.
    pub erases: u64,
    /// From when a read was begun until it was done.
    pub reads: Response,
    /// The same of writes. At the policy level and on the drive a write is done when its data
    /// was taken, at the others when it is on flash.
    pub writes: Response,
}

/// How long requests took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// How many there were.
    pub count: u64,
    /// Their mean, in nanoseconds.
    pub mean_ns: f64,
    /// Below or at which 99 of 100 lie.
    pub p99: Nanos,
}

impl From<&Latencies> for Response {
    fn from(all: &Latencies) -> Self {
        Self { count: all.count(), mean_ns: all.mean_ns(), p99: all.quantile(0.99) }
    }
}

impl Outcome {
    /// Pages programmed for each that the user wrote.
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

/// Fills a store at `level`, lets its user go through `pattern`, and reads everything.
///
/// # Errors
/// [`prism_flash::FlashError`] never, unless `size` is too small for a level.
///
/// # Panics
/// If a page does not hold what was written to it last.
pub fn run(level: Level, pattern: Pattern, size: Size, seed: u64) -> Result<Outcome> {
    world::with_store(level, size, |store, pages| User::new(store, pages, size).run(pattern, seed))
}

/// Who uses the store: stamps each page with its number and version, and knows them.
struct User<'a> {
    store: &'a mut dyn Metered,
    page_size: usize,
    versions: Vec<u64>,
    written: u64,
    /// By tag, of requests in flight: the page, the version to be read, when it was begun.
    under_way: Vec<Option<(usize, Option<u64>, SimTime)>>,
    buffers: Vec<Vec<u8>>,
    reads: Latencies,
    writes: Latencies,
}

impl<'a> User<'a> {
    fn new(store: &'a mut dyn Metered, pages: usize, size: Size) -> Self {
        Self {
            page_size: size.page_size as usize,
            versions: vec![0; pages],
            written: 0,
            under_way: vec![None; DEPTH as usize],
            buffers: Vec::new(),
            reads: Latencies::new(),
            writes: Latencies::new(),
            store,
        }
    }

    fn run(mut self, pattern: Pattern, seed: u64) -> Result<Outcome> {
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
        Ok(Outcome {
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

    /// Begins a request; if as many as may be are in flight, waits for one first.
    fn begin(&mut self, page: usize, is_write: bool) -> Result<()> {
        let tag = loop {
            match self.under_way.iter().position(Option::is_none) {
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
            self.under_way[tag] = Some((page, None, now));
            self.store.write(page, data, tag as u64)
        } else {
            self.under_way[tag] = Some((page, Some(self.versions[page]), now));
            self.store.read(page, data, tag as u64)
        }
    }

    /// Waits for a request and checks what it has read; `false` if none is in flight.
    fn complete(&mut self) -> Result<bool> {
        let Some(done) = self.store.complete()? else { return Ok(false) };
        let under_way = self.under_way[done.tag as usize].take();
        let (page, version, begun) = under_way.expect("a request that was begun");
        let latency = done.end.since(begun);
        match version {
            None => self.writes.record(latency),
            Some(version) => {
                self.reads.record(latency);
                if self.store.keeps_bytes() {
                    check(&done.data, page, version);
                }
            }
        }
        if !done.data.is_empty() {
            self.buffers.push(done.data);
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<()> {
        while self.complete()? {}
        self.store.flush()
    }

    /// Every page holds what was written to it last.
    fn check_all(&mut self) -> Result<()> {
        for page in 0..self.versions.len() {
            if self.store.keeps_bytes() {
                self.begin(page, false)?;
            } else {
                let version = self.store.version_of(page);
                assert_eq!(version, Some(self.versions[page]), "the version of page {page}");
            }
        }
        self.finish()
    }
}

/// Number and version at both ends of a page.
fn stamp(data: &mut [u8], page: usize, version: u64) {
    let mut mark = [0; 16];
    mark[..8].copy_from_slice(&(page as u64).to_le_bytes());
    mark[8..].copy_from_slice(&version.to_le_bytes());
    let end = data.len() - mark.len();
    data[..mark.len()].copy_from_slice(&mark);
    data[end..].copy_from_slice(&mark);
}

fn check(data: &[u8], page: usize, version: u64) {
    let mut expected = [0; 32];
    stamp(&mut expected, page, version);
    let found = [&data[..16], &data[data.len() - 16..]].concat();
    assert!(found == expected, "page {page} does not hold version {version}: {found:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_code() {
        let text =
            "//! Why.\n\nfn a() {\n    // Because.\n    b();\n}\n\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(lines_of_code(text), 3);
        let lines = Level::ALL.map(Level::lines);
        assert!(lines[0] > lines[1] && lines[1] > 2 * lines[2], "{lines:?}");
    }
}
