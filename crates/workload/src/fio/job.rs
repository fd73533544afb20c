//! Jobs as they run: every option read, every amount in bytes of the drive.

use std::ops::Range;

use prism_base::Nanos;

use super::random::Distribution;
use super::sizes::Sizes;
use super::zbd::Zbd;

/// Jobs of one run, clones counted: as many as fio allows.
pub const JOBS_MAX: usize = 4096;
/// I/Os in flight of a job: as many as the deepest drive takes.
pub const DEPTH_MAX: u64 = 65_536;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Reads and writes, so many percent of them reads.
    Mixed {
        /// 0 to 100.
        read_percent: u32,
    },
    /// A trim, then a write of the same.
    TrimWrite,
}

/// Where I/Os go within the region.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// One after the other, reads and writes each for themselves.
    Sequential,
    /// At random, every block once before any comes again.
    Map,
    /// At random, each drawn by itself.
    Drawn(Distribution),
}

/// Kinds of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// None was named: `iodepth` holds.
    Unnamed,
    /// `iodepth` holds.
    Asynchronous,
    /// It waits for each I/O, whatever `iodepth` says.
    Waiting {
        /// The depth that was asked for and does not hold.
        asked: u32,
    },
}

/// A limit on the pace of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bytes a second, above 0.
    pub bytes: u64,
    /// Whether gaps are exponential (a Poisson process) and not even.
    pub poisson: bool,
}

/// A pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long.
    pub time: Nanos,
    /// I/Os from one to the next, above 0.
    pub blocks: u64,
}

/// The placement handles that a job writes with (flexible data placement).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handles {
    /// Those of the drive that it names, ascending, at least one.
    pub list: Vec<u16>,
    /// Whether each write draws one; else they come in turn.
    pub random: bool,
}

/// When a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes issued.
    pub bytes: u64,
    /// I/Os issued.
    pub ios: Option<u64>,
    /// Times through the region; `None` if only the bytes count.
    pub passes: Option<u64>,
    /// Simulated time from the end of the ramp on.
    pub runtime: Option<Nanos>,
    /// Whether only the runtime ends it.
    pub time_based: bool,
}

/// Which percentiles the fio JSON lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// In percent, ascending.
    pub list: Vec<f64>,
    /// In `clat_ns`.
    pub clat: bool,
    /// In `lat_ns`.
    pub lat: bool,
}

/// One job; of `numjobs` clones, one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name, shared by clones.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// What it calls the drive.
    pub filename: Option<String>,
    /// What it does.
    pub rw: Rw,
    /// Where.
    pub order: Order,
    /// Sizes of reads, writes and trims.
    pub sizes: [Sizes; 3],
    /// Multiples at which random I/Os of each start, when drawn.
    pub align: [u64; 3],
    /// First byte and the one after the last.
    pub region: Range<u64>,
    /// Most I/Os in flight.
    pub depth: u32,
    /// Which engine it asked for, as far as that decides the depth.
    pub engine: Engine,
    /// When it ends.
    pub limit: Limit,
    /// Paces of reads, writes and trims.
    pub rate: [Option<Rate>; 3],
    /// Pauses.
    pub think: Option<Think>,
    /// Time before the measurement.
    pub ramp: Nanos,
    /// Start this long after the run.
    pub delay: Nanos,
    /// Starts when all jobs of lower stages have ended.
    pub stage: u32,
    /// Starts when these jobs have ended.
    pub wait_for: Range<usize>,
    /// Writes from one FLUSH of `fsync` to the next, and of `fdatasync`; 0 for none.
    pub flush_every: [u64; 2],
    /// A FLUSH at the end.
    pub flush_at_end: bool,
    /// Writes carry FUA.
    pub fua: bool,
    /// Writes name one of these; none of them does without.
    pub handles: Option<Handles>,
    /// Its I/Os go first, on a drive whose scheduler knows that.
    pub urgent: bool,
    /// Seed of its random streams.
    pub seed: u64,
    /// Its number in the run, which names its random streams.
    pub number: usize,
    /// Reporting group.
    pub group: u32,
    /// Whether its group is one row.
    pub group_reporting: bool,
    /// How it treats zones, on a zoned drive.
    pub zbd: Option<Zbd>,
    /// Percentiles listed.
    pub percentiles: Percentiles,
    /// Its own words, for the report.
    pub options: Vec<(&'static str, String)>,
}

impl Job {
    /// Whether its I/Os go to random places.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.order != Order::Sequential
    }

    /// Whether it has I/Os in a direction.
    #[must_use]
    pub fn uses(&self, dir: usize) -> bool {
        uses(self.rw)[dir]
    }
}

/// The directions in which a job with this `rw` has I/Os: reads, writes, trims.
pub(super) fn uses(rw: Rw) -> [bool; 3] {
    match rw {
        Rw::Read => [true, false, false],
        Rw::Write => [false, true, false],
        Rw::Trim => [false, false, true],
        Rw::Mixed { .. } => [true, true, false],
        Rw::TrimWrite => [false, true, true],
    }
}
