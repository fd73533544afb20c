//! The configuration of an FTL, for all mappings.

use prism_nand::Geometry;

use crate::config::{ConfigError, OverProvisioning};
use crate::hybrid::HybridConfig;
use crate::page::PageConfig;
use crate::ranges::RangesConfig;
use crate::zoned::ZonedConfig;

/// The configuration of an FTL, by mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FtlConfig {
    /// Page-level mapping.
    Page(PageConfig),
    /// Block-level mapping of data blocks, page-level mapping of log blocks.
    Hybrid(HybridConfig),
    /// Address ranges, each with one of the other mappings.
    Ranges(RangesConfig),
    /// Zone mapping.
    Zoned(ZonedConfig),
}

impl FtlConfig {
    /// Checks the configuration against the flash.
    ///
    /// # Errors
    /// [`ConfigError`] names the field and its valid values.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        match self {
            Self::Page(config) => config.check(geometry),
            Self::Hybrid(config) => config.check(geometry),
            Self::Ranges(config) => config.check(geometry),
            Self::Zoned(config) => config.check(geometry),
        }
    }

    /// Nominal and effective over-provisioning.
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

    /// Logical units that the host sees.
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
