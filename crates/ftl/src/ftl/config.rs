//! How an FTL behaves, whatever its mapping.

use prism_nand::Geometry;

use crate::config::{ConfigError, OverProvisioning};
use crate::hybrid::HybridConfig;
use crate::page::PageConfig;
use crate::ranges::RangesConfig;
use crate::zoned::ZonedConfig;

/// How an FTL behaves, by mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FtlConfig {
    /// By unit.
    Page(PageConfig),
    /// By logical block, with log blocks mapped by unit.
    Hybrid(HybridConfig),
    /// Ranges of addresses, each in one of the other ways.
    Ranges(RangesConfig),
    /// By zone.
    Zoned(ZonedConfig),
}

impl FtlConfig {
    /// Checks the numbers against the flash.
    ///
    /// # Errors
    /// [`ConfigError`] names the field and what is allowed.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        match self {
            Self::Page(config) => config.check(geometry),
            Self::Hybrid(config) => config.check(geometry),
            Self::Ranges(config) => config.check(geometry),
            Self::Zoned(config) => config.check(geometry),
        }
    }

    /// Over-provisioning, both ways.
    #[must_use]
    pub fn over_provisioning(&self, geometry: &Geometry) -> OverProvisioning {
        match self {
            Self::Page(config) => config.over_provisioning(geometry),
            Self::Hybrid(config) => config.over_provisioning(geometry),
            Self::Ranges(config) => config.over_provisioning(geometry),
            Self::Zoned(config) => config.over_provisioning(geometry),
        }
    }

    /// Units that can hold data in steady state.
    #[must_use]
    pub fn usable_units(&self, geometry: &Geometry) -> u64 {
        match self {
            Self::Page(config) => config.usable_units(geometry),
            Self::Hybrid(config) => config.usable_units(geometry),
            Self::Ranges(config) => config.usable_units(geometry),
            Self::Zoned(config) => config.writable_units(geometry),
        }
    }

    /// Logical units the host sees.
    #[must_use]
    pub fn logical_units(&self) -> u32 {
        match self {
            Self::Page(config) => config.logical_units,
            Self::Hybrid(config) => config.logical_units,
            Self::Ranges(config) => config.logical_units(),
            Self::Zoned(config) => config.logical_units(),
        }
    }
}
