//! Sets the over-provisioning of a drive at the same capacity.

use prism_nand::Geometry;

use super::{DriveSpec, DriveSpecError, bad};

impl DriveSpec {
    /// Sets the number of blocks to the smallest with which the effective over-provisioning is at
    /// least `share` (0.07 is 7 %). Everything else stays, the capacity included.
    ///
    /// # Errors
    /// [`DriveSpecError`] if no number of blocks is enough; the description is invalid afterwards.
    pub fn set_over_provisioning(&mut self, share: f64) -> Result<(), DriveSpecError> {
        let effective = |blocks: u32| {
            let mut other = self.clone();
            other.flash.blocks_per_plane = blocks;
            other.over_provisioning().effective
        };
        // Spare grows monotonically with the blocks, so that a binary search finds the smallest
        // number.
        let geometry = self.geometry();
        let planes = u64::from(geometry.dies()) * u64::from(geometry.planes);
        let pages = planes * u64::from(geometry.pages_per_block);
        let units = pages * geometry.page.0 / geometry.unit.0;
        let (mut low, mut high) = (1u32, (Geometry::UNITS_MAX / units) as u32);
        if effective(high) < share {
            let why = "this much spare needs more flash than can be addressed";
            return bad("flash.blocks_per_plane", high, why);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if effective(middle) < share { low = middle + 1 } else { high = middle }
        }
        self.flash.blocks_per_plane = low;
        self.check()
    }
}
