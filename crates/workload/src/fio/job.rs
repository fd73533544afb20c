//! Jobs ready to run: all options read, all amounts in bytes of the drive.

use std::ops::Range;

use prism_base::Nanos;

use super::random::Distribution;
use super::sizes::Sizes;
use super::zbd::Zbd;

/// The most jobs of one run, clones included, as in fio.
pub const JOBS_MAX: usize = 4096;
/// The most I/Os in flight of a job, as many as the deepest queue of a drive.
pub const DEPTH_MAX: u64 = 65_536;

/// Kinds of I/O of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Reads and writes.
    Mixed {
        /// Share of reads, 0 to 100.
        read_percent: u32,
    },
    /// A trim, then a write of the same blocks.
    TrimWrite,
}

/// Order of the offsets within the region.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Sequential, with separate positions for reads, writes and trims.
    Sequential,
    /// Random, every block once before any is repeated.
    Map,
    /// Random, each I/O independently.
    Drawn(Distribution),
}

/// Kinds of I/O engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// None was given: `iodepth` applies.
    Unnamed,
    /// Asynchronous: `iodepth` applies.
    Asynchronous,
    /// Synchronous: one I/O at a time, whatever `iodepth` says.
    Waiting {
        /// The `iodepth` that was given and does not apply.
        asked: u32,
    },
}

/// Rate limit of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bytes per second, above 0.
    pub bytes: u64,
    /// Whether the times between I/Os are exponential (a Poisson process) instead of constant.
    pub poisson: bool,
}

/// Think time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Length of a pause.
    pub time: Nanos,
    /// I/Os between two pauses, above 0.
    pub blocks: u64,
}

/// The placement handles that a job writes with (flexible data placement).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handles {
    /// The handles, ascending, at least one.
    pub list: Vec<u16>,
    /// Whether each write chooses one at random instead of round robin.
    pub random: bool,
}

/// Limits at which a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes issued.
    pub bytes: u64,
    /// I/Os issued.
    pub ios: Option<u64>,
    /// Passes through the region; `None` if only the bytes count.
    pub passes: Option<u64>,
    /// Simulated time from the end of the ramp on.
    pub runtime: Option<Nanos>,
    /// Whether only the runtime ends the job.
    pub time_based: bool,
}

/// The percentiles in the fio JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// In percent, ascending.
    pub list: Vec<f64>,
    /// Whether they are in `clat_ns`.
    pub clat: bool,
    /// Whether they are in `lat_ns`.
    pub lat: bool,
}

/// One job, or one clone of `numjobs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name, shared by clones.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its name for the drive.
    pub filename: Option<String>,
    /// Its kinds of I/O.
    pub rw: Rw,
    /// Order of its offsets.
    pub order: Order,
    /// Sizes of reads, writes and trims.
    pub sizes: [Sizes; 3],
    /// Alignment of independent random reads, writes and trims.
    pub align: [u64; 3],
    /// First byte of its region, and the one after the last.
    pub region: Range<u64>,
    /// Most I/Os in flight.
    pub depth: u32,
    /// Kind of its engine, which decides the depth.
    pub engine: Engine,
    /// When it ends.
    pub limit: Limit,
    /// Rate limits of reads, writes and trims.
    pub rate: [Option<Rate>; 3],
    /// Think time.
    pub think: Option<Think>,
    /// Time before the measurement.
    pub ramp: Nanos,
    /// Delay of its start, from the start of the run.
    pub delay: Nanos,
    /// Starts when all jobs of lower stages have ended.
    pub stage: u32,
    /// Starts when these jobs have ended.
    pub wait_for: Range<usize>,
    /// Writes between two FLUSHes of `fsync`, and of `fdatasync`; 0 for none.
    pub flush_every: [u64; 2],
    /// Whether it ends with a FLUSH.
    pub flush_at_end: bool,
    /// Whether writes have FUA set.
    pub fua: bool,
    /// The placement handles of its writes; `None` for writes without one.
    pub handles: Option<Handles>,
    /// Whether its I/Os are urgent, which a `priority` scheduler serves first.
    pub urgent: bool,
    /// Seed of its random streams.
    pub seed: u64,
    /// Its number in the run, which is part of the labels of its random streams.
    pub number: usize,
    /// Reporting group.
    pub group: u32,
    /// Whether its group is one row of the report.
    pub group_reporting: bool,
    /// Options of `zonemode=zbd`, if given.
    pub zbd: Option<Zbd>,
    /// Percentiles of the report.
    pub percentiles: Percentiles,
    /// Its own options, for the report.
    pub options: Vec<(&'static str, String)>,
}

impl Job {
    /// Whether its offsets are random.
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
