//! The configuration of address ranges.

use prism_nand::Geometry;

use crate::config::{ConfigError, OverProvisioning};
use crate::ftl::FtlConfig;

/// The mapping and the flash of one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeConfig {
    /// Blocks per plane.
    pub blocks_per_plane: u32,
    /// Its FTL; logical units count from the beginning of the range.
    pub ftl: FtlConfig,
}

/// The ranges of a drive, by address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangesConfig {
    /// Consecutive ranges, from address 0 on.
    pub ranges: Vec<RangeConfig>,
}

impl RangesConfig {
    /// Logical units of all ranges.
    #[must_use]
    pub fn logical_units(&self) -> u32 {
        self.ranges.iter().map(|range| range.ftl.logical_units()).sum()
    }

    /// Checks each range against its part of the flash.
    ///
    /// # Errors
    /// [`ConfigError`] of the first range that does not fit.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let (blocks, needed) = (geometry.blocks_per_plane, self.blocks_per_plane());
        if self.ranges.is_empty() || self.ranges.len() > Self::MOST || needed != u64::from(blocks) {
            let ranges = self.ranges.len();
            return Err(ConfigError::Ranges { ranges, most: Self::MOST, needed, blocks });
        }
        self.ranges.iter().try_for_each(|range| {
            if matches!(range.ftl, FtlConfig::Ranges(_)) {
                let ranges = self.ranges.len();
                return Err(ConfigError::Ranges { ranges, most: Self::MOST, needed, blocks });
            }
            range.ftl.check(&part_of(geometry, range))
        })
    }

    /// The most ranges of a drive.
    pub const MOST: usize = 16;

    fn blocks_per_plane(&self) -> u64 {
        self.ranges.iter().map(|range| u64::from(range.blocks_per_plane)).sum()
    }

    /// Nominal and effective over-provisioning of all ranges together.
    #[must_use]
    pub fn over_provisioning(&self, geometry: &Geometry) -> OverProvisioning {
        let logical = f64::from(self.logical_units());
        let spare = |units: u64| (units as f64 - logical) / logical;
        OverProvisioning {
            nominal: spare(u64::from(geometry.units())),
            effective: spare(self.usable_units(geometry)),
        }
    }

    /// Units that can hold data in steady state, in all ranges.
    #[must_use]
    pub fn usable_units(&self, geometry: &Geometry) -> u64 {
        let usable = |range: &RangeConfig| range.ftl.usable_units(&part_of(geometry, range));
        self.ranges.iter().map(usable).sum()
    }
}

/// The geometry of the flash of one range.
pub(super) fn part_of(geometry: &Geometry, range: &RangeConfig) -> Geometry {
    Geometry { blocks_per_plane: range.blocks_per_plane, ..geometry.clone() }
}
