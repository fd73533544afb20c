//! The configuration of zone mapping.

use prism_nand::Geometry;

use crate::config::{ConfigError, OverProvisioning};

/// The zones of a device. There is no default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedConfig {
    /// Number of zones.
    pub zones: u32,
    /// Units from the start of a zone to that of the next: the zone size. The zone capacity, which
    /// can be written, is a block.
    pub zone_units: u32,
    /// Erased blocks reserved for data of zones whose blocks fail; 0 on flash that does not fail.
    pub kept: u32,
}

impl ZonedConfig {
    /// The most zones: a zone is a stream of the write buffer.
    pub const ZONES_MAX: u32 = 1 << 16;

    /// Logical units that have an address, including those beyond the zone capacity.
    #[must_use]
    pub fn logical_units(&self) -> u32 {
        self.zones * self.zone_units
    }

    /// Units that can be written.
    #[must_use]
    pub fn writable_units(&self, geometry: &Geometry) -> u64 {
        u64::from(self.zones) * u64::from(geometry.data_units_per_block())
    }

    /// Checks the configuration against the flash.
    ///
    /// # Errors
    /// [`ConfigError`] names the field and its valid values.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        if geometry.parity {
            return Err(ConfigError::BlockParity);
        }
        let capacity = geometry.data_units_per_block();
        if self.zone_units < capacity {
            return Err(ConfigError::ZoneSize { size: self.zone_units, capacity });
        }
        let most = geometry.blocks().saturating_sub(self.kept).min(Self::ZONES_MAX);
        if !(1..=most).contains(&self.zones) {
            let (zones, blocks) = (self.zones, geometry.blocks());
            return Err(ConfigError::Zones { zones, blocks, max: Self::ZONES_MAX });
        }
        let logical = u64::from(self.zones) * u64::from(self.zone_units);
        if logical > Geometry::UNITS_MAX {
            return Err(ConfigError::NoSpare { logical, usable: Geometry::UNITS_MAX });
        }
        Ok(())
    }

    /// Over-provisioning: blocks in addition to those of the zones. None are kept for cleaning, so
    /// that nominal and effective are equal.
    #[must_use]
    pub fn over_provisioning(&self, geometry: &Geometry) -> OverProvisioning {
        let spare = f64::from(geometry.blocks()) / f64::from(self.zones) - 1.0;
        OverProvisioning { nominal: spare, effective: spare }
    }
}
