//! The results of a trace on a drive: as JSON, as a document, and as charts.

pub mod charts;
pub mod document;
pub mod faults;
pub mod json;
pub mod tables;

pub use charts::Charts;
pub use prism_contract::what_if::Wear;

use prism_base::Bytes;
use prism_replay::{Layout, Lifetime, Options, ReplayResult};
use prism_ssd::scale::Scaled;
use prism_ssd::{Drive, DriveHealth, DriveSpec, HostOp, Preparation, ReadOnly};
use prism_trace::TraceInfo;
use prism_workload::Measured;

use crate::initial_state::State;

/// A replayed trace: everything that a report is made from.
pub struct Facts {
    /// The trace.
    pub trace: TraceInfo,
    /// Where its devices are on the drive.
    pub layout: Layout,
    /// The drive, and how it was scaled.
    pub scaled: Scaled,
    /// The initial state of the drive.
    pub state: State,
    /// What the preparation of that state took.
    pub prepared: Preparation,
    /// How the trace was replayed.
    pub options: Options,
    /// Seed of everything random.
    pub seed: u64,
    /// The result of the replay.
    pub outcome: ReplayResult,
    /// The drive at the end.
    pub end: End,
}

impl Facts {
    /// What was measured of the drive.
    #[must_use]
    pub fn run(&self) -> Run<'_> {
        Run { measured: &self.outcome.measured, device: &self.scaled.device, end: &self.end }
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
            Bytes(self.measured.bytes_of(HostOp::Write)),
            self.measured.simulated,
        )
    }

    /// The lifetime in nanoseconds, as figures show it.
    #[must_use]
    pub fn lifetime_ns(&self) -> Option<f64> {
        self.lifetime().map(|life| life.days * DAY_NS)
    }
}

/// Nanoseconds per day.
pub(crate) const DAY_NS: f64 = 86_400e9;
