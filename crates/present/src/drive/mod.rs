//! What a drive made of a trace: as JSON, as a document, and as charts.

pub mod charts;
pub mod document;
pub mod faults;
pub mod json;
pub mod tables;

pub use charts::Charts;
pub use json::ReportObject;
pub use prism_contract::what_if::Wear;

use prism_base::Bytes;
use prism_replay::{Layout, Lifetime, Options, Outcome};
use prism_ssd::scale::Scaled;
use prism_ssd::{Device, DriveHealth, Preparation};
use prism_trace::TraceInfo;
use prism_workload::Measured;

use crate::initial_state::State;

/// Everything that a report is made from.
pub struct Facts<'a> {
    /// The trace.
    pub trace: &'a TraceInfo,
    /// Where its devices lie on the drive.
    pub layout: &'a Layout,
    /// The drive, and what was changed to make it fit.
    pub scaled: &'a Scaled,
    /// What it held at the start.
    pub state: &'a State,
    /// What it took to bring that about.
    pub prepared: &'a Preparation,
    /// How the trace was replayed.
    pub options: Options,
    /// Seed of everything random.
    pub seed: u64,
    /// What came out.
    pub outcome: &'a Outcome,
    /// What the host wrote and the drive had not yet programmed at the end.
    pub buffered: Bytes,
    /// Lowest, mean and highest number of erases of a block at the end.
    pub wear: Wear,
    /// The same of SLC blocks, where the drive has such beside others.
    pub slc_wear: Option<Wear>,
    /// What age had left of the drive at the end, if it ages.
    pub health: Option<DriveHealth>,
}

impl Facts<'_> {
    /// Endurance at the measured rate.
    #[must_use]
    pub fn lifetime(&self) -> Option<Lifetime> {
        lifetime(&self.outcome.measured, &self.scaled.device)
    }
}

/// Endurance of `device` at the measured rate.
#[must_use]
pub fn lifetime(measured: &Measured, device: &Device) -> Option<Lifetime> {
    prism_replay::lifetime::lifetime_of(
        device.writable_bytes(measured.flash.slc_share()),
        device.capacity(),
        measured.write_amplification()?,
        Bytes(measured.bytes_of(prism_ssd::HostOp::Write)),
        measured.simulated,
    )
}
