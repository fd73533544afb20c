//! The figures that the terms are decided by.

use prism_base::{Bytes, Nanos};
use prism_nand::Counts;
use prism_ssd::DriveSpec;
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
    /// Bytes that the host writes in the measured passes.
    pub written: Bytes,
    /// Flash bytes programmed / bytes written; `None` if the trace writes nothing, or all that it
    /// writes stays in the write buffer.
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
    /// The figures of a replay of which `worn` is what was measured of flash, with the write
    /// amplification that the report states, and `timed` what was measured of latency. `probe` is
    /// of drives of the kind `device`, which lives `lifetime_days`.
    #[must_use]
    pub fn of(
        (worn, write_amplification): (&Measured, Option<f64>),
        timed: &Measured,
        device: &DriveSpec,
        lifetime_days: Option<f64>,
        probe: Result<Probe, ProbeError>,
    ) -> Self {
        let mut operations = worn.flash.reads;
        operations.add(&worn.flash.programs);
        operations.add(&worn.flash.erases);
        let latency = timed.reads_and_writes();
        Self {
            probe,
            segment: device.ftl.segment,
            written: Bytes(worn.written()),
            write_amplification,
            units: worn.flash.units,
            operations,
            erases: worn.flash.erases.total(),
            simulated: worn.simulated,
            endurance: device.flash.endurance,
            lifetime_days,
            latency: (latency.count() > 0).then(|| (latency.quantile(0.5), latency.max())),
        }
    }
}
