//! The figures that the terms are decided by.

use prism_base::{Bytes, Latencies, Nanos};
use prism_nand::Counts;
use prism_replay::lifetime::lifetime_of;
use prism_ssd::{DriveSpec, HostOp};
use prism_workload::Measured;

use super::probe::{Probe, ProbeError};

/// Figures of a trace and of the drive that it was replayed on.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// The speeds measured by small jobs on drives of the same kind.
    pub probe: Result<Probe, ProbeError>,
    /// Size of the address ranges that have separate erase blocks; `None` if the drive does
    /// not separate addresses.
    pub segment: Option<Bytes>,
    /// Flash bytes programmed / bytes written; `None` if the trace writes nothing.
    pub write_amplification: Option<f64>,
    /// Mapping units programmed, by cause.
    pub units: Counts,
    /// Page reads, page programs and block erases, by cause.
    pub operations: Counts,
    /// Blocks (of one plane) erased.
    pub erases: u64,
    /// Simulated time of the measured passes.
    pub simulated: Nanos,
    /// Endurance of a block in P/E cycles.
    pub endurance: u32,
    /// Days until all cycles are used up at this rate; `None` if no flash is programmed.
    pub lifetime_days: Option<f64>,
    /// Median and maximum latency of reads and writes; `None` if there are none.
    pub latency: Option<(Nanos, Nanos)>,
}

impl Inputs {
    /// The figures of a replay that was `measured` on `device`, and of `probe`.
    #[must_use]
    pub fn of(measured: &Measured, device: &DriveSpec, probe: Result<Probe, ProbeError>) -> Self {
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
