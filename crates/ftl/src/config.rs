//! What a page-mapping layer is told, and what is left of the flash for its freedom.

use prism_nand::Geometry;

use crate::victim::VictimPolicy;

/// Open blocks a die writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontiers {
    /// Host data and copies share one open block.
    Shared,
    /// Copies have an open block of their own, so that what survived a cleaning is not
    /// mixed with fresh data.
    Separate,
}

impl Frontiers {
    /// How many open blocks that makes on a die.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Shared => 1,
            Self::Separate => 2,
        }
    }
}

/// How a page-mapping layer behaves. There is no default: a preset says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FtlConfig {
    /// Logical units the host sees.
    pub logical_units: u32,
    /// Which block is cleaned.
    pub victim: VictimPolicy,
    /// Open blocks.
    pub frontiers: Frontiers,
    /// Cleaning of a die starts when fewer erased blocks than this are left on it.
    pub free_blocks_low: u32,
    /// Cleaning of a die stops when this many are left.
    pub free_blocks_high: u32,
    /// Erased blocks of a die that only cleaning may open, so that it can finish.
    pub reserve_blocks: u32,
}

/// How much more flash there is than the host sees, as (T - U) / U.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverProvisioning {
    /// With T all of the flash.
    pub nominal: f64,
    /// With T what can hold data in steady state: without open blocks and without the
    /// erased blocks that cleaning keeps. Theory is about this one.
    pub effective: f64,
}

/// Why a configuration cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The host sees more than the flash can hold beside what cleaning needs.
    #[error(
        "the drive promises {logical} units, but the flash can hold at most {usable} beside \
         open and reserved blocks; lower capacity or add blocks"
    )]
    NoSpare {
        /// Logical units.
        logical: u64,
        /// The most that would work.
        usable: u64,
    },
    /// A watermark makes no sense.
    #[error("{field} is {value}; it must be between {min} and {max}")]
    Watermark {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// Least allowed.
        min: u32,
        /// Most allowed.
        max: u32,
    },
}

impl FtlConfig {
    /// Checks the numbers against the flash.
    ///
    /// # Errors
    /// [`ConfigError`] names the field and what is allowed.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let blocks = geometry.blocks_per_die();
        let watermark = |field, value, min, max| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError::Watermark { field, value, min, max })
            }
        };
        watermark("gc.reserve_blocks", self.reserve_blocks, 1, blocks)?;
        watermark("gc.free_blocks_low", self.free_blocks_low, self.reserve_blocks + 1, blocks)?;
        watermark("gc.free_blocks_high", self.free_blocks_high, self.free_blocks_low, blocks)?;
        let logical = u64::from(self.logical_units);
        let usable = self.most_units(geometry);
        if logical == 0 || logical > usable {
            return Err(ConfigError::NoSpare { logical, usable });
        }
        Ok(())
    }

    /// The most logical units with which cleaning never runs in circles.
    ///
    /// The copies of a victim fill whole rows, so its erase gains a row only if at least
    /// a row of it is garbage. While cleaning goes on, every block that is neither open
    /// nor one of the erased ones below the high watermark is a candidate; one of them
    /// has that much garbage as long as a die holds less than all of them less a row
    /// each. This also bounds the choice of policies that refuse victims without gain
    /// (greedy, cost-benefit) from below, and makes those that may take them (FIFO,
    /// windowed greedy, random, d-choices) come to an end ([`VictimPolicy::pick`]).
    fn most_units(&self, geometry: &Geometry) -> u64 {
        let (block, row) = (geometry.units_per_block(), geometry.units_per_row());
        let (block, row, dies) = (u64::from(block), u64::from(row), u64::from(geometry.dies()));
        let kept = self.free_blocks_high - 1 + self.frontiers.count();
        let candidates = u64::from(geometry.blocks_per_die().saturating_sub(kept));
        // A die may hold half a block more than its share when the host rows that then
        // run and wait on it are taken ([`crate::PageMap::balanced`]).
        let uneven = if dies > 1 { block / 2 + 2 * row } else { 0 };
        let a_die = (candidates * (block + 1 - row)).saturating_sub(1 + uneven);
        // One block of slack a die and a share of garbage keep write amplification
        // within reason where the bound above is generous.
        let most = self.usable_units(geometry).saturating_sub(dies * block);
        (dies * a_die).min(most - most / 64)
    }

    /// Units that can hold data in steady state: all but open blocks and the erased
    /// blocks that cleaning keeps.
    #[must_use]
    pub fn usable_units(&self, geometry: &Geometry) -> u64 {
        // In steady state the number of erased blocks wanders between one below the low
        // watermark, where cleaning starts, and the high one, where it stops.
        let kept = self.free_blocks_low - 1;
        let out = u64::from(kept + self.frontiers.count()) * u64::from(geometry.dies());
        u64::from(geometry.blocks()).saturating_sub(out) * u64::from(geometry.units_per_block())
    }

    /// Over-provisioning, both ways.
    #[must_use]
    pub fn over_provisioning(&self, geometry: &Geometry) -> OverProvisioning {
        let logical = f64::from(self.logical_units);
        let spare = |units: u64| (units as f64 - logical) / logical;
        OverProvisioning {
            nominal: spare(u64::from(geometry.units())),
            effective: spare(self.usable_units(geometry)),
        }
    }
}
