//! What the terms are decided from.

use prism_base::{Bytes, Latencies, Nanos};
use prism_nand::Counts;
use prism_replay::lifetime::lifetime_of;
use prism_ssd::{Device, HostOp};
use prism_workload::Measured;

use super::probe::{Probe, ProbeError};

/// Numbers of a trace and a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// What small jobs found on drives of the kind.
    pub probe: Result<Probe, ProbeError>,
    /// Addresses that have erase blocks of their own, where the drive separates them.
    pub segment: Option<Bytes>,
    /// Flash bytes programmed over bytes written; `None` if nothing is written.
    pub write_amplification: Option<f64>,
    /// Mapping units programmed, by cause.
    pub units: Counts,
    /// Page reads, page programs and block erases, by cause.
    pub operations: Counts,
    /// Blocks (of one plane) erased.
    pub erases: u64,
    /// The time that all of it took.
    pub simulated: Nanos,
    /// Cycles that a block is good for.
    pub endurance: u32,
    /// Days until they are used up at this rate; `None` if nothing reaches the flash.
    pub lifetime_days: Option<f64>,
    /// Median and maximum over reads and writes; `None` if there are none.
    pub latency: Option<(Nanos, Nanos)>,
}

impl Inputs {
    /// Of what was `measured` on `device`, and of `probe`.
    #[must_use]
    pub fn of(measured: &Measured, device: &Device, probe: Result<Probe, ProbeError>) -> Self {
        let mut operations = measured.flash.reads;
        operations.add(&measured.flash.programs);
        operations.add(&measured.flash.erases);
        let mut latency = Latencies::new();
        latency.merge(measured.latency_of(HostOp::Read));
        latency.merge(measured.latency_of(HostOp::Write));
        let write_amplification = measured.write_amplification();
        let life = lifetime_of(
            device.writable_bytes(measured.flash.slc_share()),
            device.capacity(),
            write_amplification.unwrap_or(0.0),
            Bytes(measured.bytes_of(HostOp::Write)),
            measured.simulated,
        );
        Self {
            probe,
            segment: device.ftl.segment,
            write_amplification,
            units: measured.flash.units,
            operations,
            erases: measured.flash.erases.total(),
            simulated: measured.simulated,
            endurance: device.flash.endurance,
            lifetime_days: life.map(|life| life.days),
            latency: (latency.count() > 0).then(|| (latency.quantile(0.5), latency.max())),
        }
    }
}
