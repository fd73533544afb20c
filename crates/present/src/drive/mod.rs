//! The results of a trace on a drive: as JSON, as a document, and as charts.

pub mod charts;
pub mod document;
pub mod faults;
pub mod json;
pub mod limits;
pub mod tables;
pub mod wear;
pub mod writers;

pub use charts::Charts;
pub use prism_contract::what_if::Wear;

use prism_base::{Bytes, Nanos};
use prism_contract::what_if;
use prism_replay::{Layout, Lifetime, Options, Passes, ReplayResult, SteadyState};
use prism_ssd::scale::Scaled;
use prism_ssd::{Drive, DriveHealth, DriveSpec, Preparation, ReadOnly};
use prism_trace::{Op, TraceInfo};
use prism_workload::Measured;

use crate::initial_state::State;

/// A replayed trace: everything that a report is made from.
pub struct Facts {
    /// The trace.
    pub trace: TraceInfo,
    /// Where its addresses are on the drive.
    pub layout: Layout,
    /// The drive that the report is about: of the requested capacity or else as described.
    pub described: DriveSpec,
    /// The drive fitted to the trace, on which write amplification and wear are measured, and how
    /// it was scaled.
    pub scaled: Scaled,
    /// The initial state of that drive.
    pub state: State,
    /// What the preparation of that state took.
    pub prepared: Preparation,
    /// How the trace was replayed.
    pub options: Options,
    /// Seed of everything random.
    pub seed: u64,
    /// The result of the replay on the fitted drive.
    pub outcome: ReplayResult,
    /// The replay on a drive with all dies; `None` if the latencies of the fitted drive count: it
    /// is zoned, or whole, or from a snapshot, or no steady state of its kind can be laid out.
    pub speed: Option<Speed>,
    /// The fitted drive at the end.
    pub end: End,
    /// Days until the first block of the described drive is worn out if nothing levels wear; `None`
    /// if that was not simulated.
    pub unlevelled_days: Option<f64>,
}

/// A replay that measures latency and throughput.
pub struct Speed {
    /// The drive, and how it was scaled.
    pub scaled: Scaled,
    /// How the trace was replayed on it.
    pub run: what_if::Run,
    /// The result.
    pub outcome: ReplayResult,
}

impl Facts {
    /// What was measured of the fitted drive in its steady state, or else in the measured passes.
    #[must_use]
    pub fn run(&self) -> Run<'_> {
        Run { measured: &self.outcome.window, device: &self.scaled.device, end: &self.end }
    }

    /// What was measured of latency and throughput.
    #[must_use]
    pub fn timed(&self) -> &Measured {
        self.speed.as_ref().map_or(&self.outcome.measured, |speed| &speed.outcome.measured)
    }

    /// Whether write amplification is an estimate, because a steady state is out of reach.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        let closed = self.scaled.device.cleaning_of_uniform_writes(Bytes(0)).is_some();
        self.outcome.steady == SteadyState::OutOfReach && closed
    }

    /// Whether latency and throughput come from a drive with fewer dies than the described one.
    #[must_use]
    pub fn lacks_dies(&self) -> bool {
        let dies = |device: &DriveSpec| device.geometry().dies();
        self.speed.is_none() && dies(&self.scaled.device) < dies(&self.described)
    }

    /// The simulated time of a pass, if it is short and a lifetime is extrapolated from it.
    #[must_use]
    pub fn brief_pass(&self) -> Option<Nanos> {
        let timed = self.timed();
        let pass = Nanos(timed.simulated.0 / u64::from(timed.passes.max(1)));
        (pass < BRIEF && self.lifetime().is_some()).then_some(pass)
    }

    /// The lifetime of the first block without wear levelling, in nanoseconds, if it is much
    /// shorter than that with even wear.
    #[must_use]
    pub fn unlevelled_ns(&self) -> Option<f64> {
        let first = self.unlevelled_days?;
        (first * UNEVEN < self.lifetime()?.days).then_some(first * DAY_NS)
    }

    /// Bytes programmed over bytes the host writes; `None` if it writes nothing, or nothing reaches
    /// the flash.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let window = &self.outcome.window;
        let measured = window.write_amplification()?;
        if !self.is_estimate() {
            return Some(measured).filter(|&ratio| ratio > 0.0);
        }
        let distinct = Bytes(self.trace.summary.unique_written_bytes);
        let flash = self.outcome.flash_bytes_per_pass(&self.scaled.device, distinct);
        Some(flash * f64::from(window.passes) / window.written() as f64)
    }

    /// Requests that are not replayed: discards of addresses that are not on the drive.
    #[must_use]
    pub fn left_out_discards(&self) -> u64 {
        let replayed = &self.outcome.single_pass;
        if self.layout.left_out().is_none() || self.options.passes == Passes::UntilReadOnly {
            return 0;
        }
        self.trace.summary.requests.saturating_sub(replayed.requests)
    }

    /// Why the trace is too short for figures of wear; `None` if it is long enough.
    #[must_use]
    pub fn too_short(&self) -> Option<String> {
        let (bytes, zeroes) = (self.outcome.single_pass.written(), Op::WriteZeroes);
        if bytes == 0 {
            return None;
        }
        let zeroes = if self.described.unmaps() { 0 } else { self.trace.summary.op(zeroes).count };
        let writes = self.trace.summary.op(Op::Write).count + zeroes;
        if writes < WRITES_MIN {
            let name = if writes == 1 { "write" } else { "writes" };
            return Some(format!(
                "The trace is too short to judge wear by: {writes} {name}, where about \
                 {WRITES_MIN} are needed"
            ));
        }
        let geometry = self.described.geometry();
        let units = geometry.units_per_block() / geometry.dies_per_superblock;
        let least = geometry.unit * u64::from(units);
        (bytes < least.0).then(|| {
            format!(
                "The trace is too short to judge wear by: it writes {}, less than an erase block \
                 of this drive, {least}",
                Bytes(bytes)
            )
        })
    }

    /// Lifetime of the described drive at the measured rate; `None` if nothing is written, or too
    /// little to judge.
    #[must_use]
    pub fn lifetime(&self) -> Option<Lifetime> {
        if self.too_short().is_some() {
            return None;
        }
        let timed = self.timed();
        prism_replay::lifetime::lifetime_of(
            self.described.writable_bytes(self.outcome.window.flash.slc_share()),
            self.described.capacity(),
            self.write_amplification()?,
            Bytes(timed.written()),
            timed.simulated,
        )
    }

    /// The lifetime in nanoseconds, as figures show it.
    #[must_use]
    pub fn lifetime_ns(&self) -> Option<f64> {
        self.lifetime().map(|life| life.days * DAY_NS)
    }
}

/// A drive at the end of a run.
#[derive(Clone, Debug)]
pub struct End {
    /// Host data that was not yet programmed.
    pub buffered: Bytes,
    /// Lowest, mean and highest number of erases of a block.
    pub wear: Wear,
    /// The same of SLC blocks, if the drive has some among others.
    pub slc_wear: Option<Wear>,
    /// Its health, if it ages.
    pub health: Option<DriveHealth>,
}

impl End {
    /// The state of `drive` now. `read_only` says since when a host FTL over it is read-only.
    #[must_use]
    pub fn of(drive: &Drive, read_only: Option<ReadOnly>) -> Self {
        let unit = drive.device().ftl.mapping_unit.0;
        let nand = drive.engine().nand();
        Self {
            buffered: Bytes(u64::from(drive.buffered_units()) * unit),
            wear: Wear::of(nand.erase_counts()),
            slc_wear: Wear::of_slc(nand),
            health: drive
                .health()
                .map(|health| DriveHealth { read_only: read_only.or(health.read_only), ..health }),
        }
    }
}

/// A run on a drive, of a trace or of jobs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What was measured.
    pub measured: &'a Measured,
    /// The drive.
    pub device: &'a DriveSpec,
    /// The drive at the end.
    pub end: &'a End,
}

impl Run<'_> {
    /// Lifetime of the drive at the measured rate; `None` if nothing is written.
    #[must_use]
    pub fn lifetime(&self) -> Option<Lifetime> {
        prism_replay::lifetime::lifetime_of(
            self.device.writable_bytes(self.measured.flash.slc_share()),
            self.device.capacity(),
            self.measured.write_amplification()?,
            Bytes(self.measured.written()),
            self.measured.simulated,
        )
    }

    /// The lifetime in nanoseconds, as figures show it.
    #[must_use]
    pub fn lifetime_ns(&self) -> Option<f64> {
        self.lifetime().map(|life| life.days * DAY_NS)
    }
}

/// Fewer writes than this do not determine wear.
const WRITES_MIN: u64 = 1000;

/// A lifetime from a shorter pass than this is marked: it extrapolates a moment.
const BRIEF: Nanos = Nanos(2_000_000_000);

/// Wear is uneven if the first block is worn out this many times sooner than with even wear.
const UNEVEN: f64 = 1.5;

/// Nanoseconds per day.
pub(crate) const DAY_NS: f64 = 86_400e9;
