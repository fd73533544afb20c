//! What replay needs of a block device beyond [`BlockDevice`]: its drive, its counts, and how full
//! it is.

use prism_nand::DieGroupId;
use prism_ssd::{BlockDevice, Drive, ReadOnly};
use prism_trace::Source;
use prism_workload::Observer;

use crate::host_ftl::HostFtlCounts;
use crate::options::Options;
use crate::run::{ReplayError, ReplayResult, replay_on};

/// A block device that a trace is replayed on: a drive, or a zoned drive with a host FTL.
pub trait ReplayDevice: BlockDevice {
    /// The drive.
    fn drive(&self) -> &Drive;

    /// The counts of the host FTL, if there is one.
    fn host_ftl_counts(&self) -> Option<HostFtlCounts>;

    /// When the device became read-only; `None` if it did not.
    fn read_only(&self) -> Option<ReadOnly>;

    /// Units of spare space: those that can hold data, less the logical ones.
    fn spare_units(&self) -> u64;

    /// Erased units, which can be written without cleaning.
    fn erased_units(&self) -> u64;

    /// Whether the units that were erased at the start, `erased`, are used up and cleaning has
    /// begun.
    fn is_cleaning(&self, erased: u64) -> bool;

    /// Replays a trace; see [`crate::replay`]. A method of each device, so that it is compiled with
    /// this crate: a generic function is compiled, and optimised, with the crate that calls it.
    ///
    /// # Errors
    /// As [`crate::replay`].
    fn replay(
        &mut self,
        source: &mut dyn Source,
        options: &Options,
        observer: &mut dyn Observer,
    ) -> Result<ReplayResult, ReplayError>;

    /// Checks every conservation law, recounted.
    ///
    /// # Panics
    /// If one is violated.
    fn assert_consistent(&self);
}

impl ReplayDevice for Drive {
    fn drive(&self) -> &Drive {
        self
    }

    fn host_ftl_counts(&self) -> Option<HostFtlCounts> {
        None
    }

    fn read_only(&self) -> Option<ReadOnly> {
        Drive::read_only(self)
    }

    fn spare_units(&self) -> u64 {
        let device = self.device();
        device.usable_units().saturating_sub(u64::from(device.logical_units()))
    }

    fn erased_units(&self) -> u64 {
        let geometry = self.engine().nand().geometry();
        let free = |die_group| u64::from(self.engine().ftl().free_blocks(DieGroupId(die_group)));
        let blocks: u64 = (0..geometry.die_groups()).map(free).sum();
        blocks * u64::from(geometry.data_units_per_block())
    }

    fn is_cleaning(&self, erased: u64) -> bool {
        let counts = self.flash_counts();
        let geometry = self.engine().nand().geometry();
        // Erases count blocks of single planes.
        let planes = u64::from(geometry.dies()) * u64::from(geometry.planes_ganged);
        counts.units.total() >= erased && counts.erases.total() >= planes
    }

    fn replay(
        &mut self,
        source: &mut dyn Source,
        options: &Options,
        observer: &mut dyn Observer,
    ) -> Result<ReplayResult, ReplayError> {
        replay_on(self, source, options, observer)
    }

    fn assert_consistent(&self) {
        Drive::assert_consistent(self);
    }
}
