//! A drive of the same capacity with another amount of spare flash.

use prism_nand::Geometry;

use super::{DriveSpec, DriveSpecError, bad};

impl DriveSpec {
    /// Changes the number of blocks so that the effective over-provisioning is the least
    /// that is not below `share` (0.07 is 7 %). Capacity and everything else stay.
    ///
    /// # Errors
    /// [`DriveSpecError`] if no number of blocks gives it; the device is changed then and of no
    /// further use.
    pub fn set_over_provisioning(&mut self, share: f64) -> Result<(), DriveSpecError> {
        let effective = |blocks: u32| {
            let mut other = self.clone();
            other.flash.blocks_per_plane = blocks;
            other.over_provisioning().effective
        };
        // More blocks never mean less spare, so the least that is enough can be halved down to.
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
