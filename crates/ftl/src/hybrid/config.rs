//! What a hybrid mapping is told, and why it never runs out of erased blocks.

use prism_nand::Geometry;

use super::choice;
use crate::config::{ConfigError, OverProvisioning};
use crate::victim::VictimPolicy;

/// How a hybrid mapping behaves. There is no default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HybridConfig {
    /// Logical units the host sees.
    pub logical_units: u32,
    /// N: logical blocks of a data group, which share log blocks.
    pub group_blocks: u32,
    /// K: the most log blocks of a data group.
    pub group_log_blocks: u32,
    /// The most log blocks of the device.
    pub log_blocks: u32,
    /// Which log block is merged where there is a choice: FIFO, greedy, LRU or cost-benefit
    /// (Kawaguchi). A group that is out of log blocks chooses among its own.
    pub victim: VictimPolicy,
    /// Merging starts by itself when the mean of erased blocks over all lanes is below this;
    /// 0 for never: then only groups that need a log block ask for it.
    pub free_blocks_low: u32,
    /// Merging that started so stops at this mean.
    pub free_blocks_high: u32,
}

impl HybridConfig {
    /// Most data groups: a group is a stream of the write buffer.
    pub const GROUPS_MAX: u32 = 1 << 16;

    /// Blocks beside data and log blocks: one, for the logical block that is being merged.
    const MERGE_BLOCKS: u32 = 1;

    /// Logical blocks of the device.
    #[must_use]
    pub fn logical_blocks(&self, geometry: &Geometry) -> u32 {
        self.logical_units.div_ceil(geometry.data_units_per_block())
    }

    /// Data groups of the device.
    #[must_use]
    pub fn groups(&self, geometry: &Geometry) -> u32 {
        self.logical_blocks(geometry).div_ceil(self.group_blocks)
    }

    /// The most log blocks there can be: as configured, or what data and merges leave.
    ///
    /// With D logical blocks, L log blocks and T blocks in all, L <= T - D - 1 keeps merges
    /// going. Every block is erased, holds the data of one logical block, is a log block, is
    /// the target of a merge, or waits for its erase; data blocks are at most D. So erased
    /// blocks, targets and blocks to be erased are together at least T - D - L >= 1. If one
    /// is erased, a merge can begin. A merge that has its target needs nothing else, and
    /// gives back the block it replaces, or has made a data block where there was none,
    /// which happens at most D times. A block to be erased needs nothing at all.
    #[must_use]
    pub fn log_blocks_max(&self, geometry: &Geometry) -> u32 {
        self.log_blocks.min(self.log_room(geometry))
    }

    /// T - D - 1: with more log blocks than that merges may come to a halt.
    pub(super) fn log_room(&self, geometry: &Geometry) -> u32 {
        let kept = self.logical_blocks(geometry) + Self::MERGE_BLOCKS;
        geometry.blocks().saturating_sub(kept)
    }

    /// Checks the numbers against the flash.
    ///
    /// # Errors
    /// [`ConfigError`] names the field and what is allowed.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        if geometry.parity {
            return Err(ConfigError::BlockParity);
        }
        if !choice::is_known(self.victim) {
            return Err(ConfigError::MergeChoice { victim: self.victim });
        }
        let (blocks, lanes) = (geometry.blocks(), geometry.lanes());
        let per_lane = geometry.blocks_per_lane();
        let (low, high) = (self.free_blocks_low, self.free_blocks_high);
        for (field, value, min, max) in [
            ("group_blocks", self.group_blocks, 1, u32::from(u16::MAX)),
            ("group_log_blocks", self.group_log_blocks, 1, u32::from(u16::MAX)),
            ("the number of log blocks (log_share)", self.log_blocks, 1, blocks),
            ("free_blocks_low", low, 0, per_lane),
            ("free_blocks_high", high, low, per_lane),
        ] {
            if !(min..=max).contains(&value) {
                return Err(ConfigError::Watermark { field, value, min, max });
            }
        }
        // At least one log block, and a high watermark that merging everything reaches.
        let kept = (Self::MERGE_BLOCKS + 1).max(high * lanes + Self::MERGE_BLOCKS);
        let block = u64::from(geometry.data_units_per_block());
        let usable = u64::from(blocks.saturating_sub(kept)) * block;
        let logical = u64::from(self.logical_units);
        if logical == 0 || logical > usable {
            return Err(ConfigError::NoSpare { logical, usable });
        }
        let (groups, max) = (self.groups(geometry), Self::GROUPS_MAX);
        if groups > max {
            return Err(ConfigError::Groups { groups, max });
        }
        Ok(())
    }

    /// Units that can hold data, in data or log blocks: all but those of the block kept for
    /// merges.
    #[must_use]
    pub fn usable_units(&self, geometry: &Geometry) -> u64 {
        u64::from(geometry.units().saturating_sub(geometry.data_units_per_block()))
    }

    /// Over-provisioning, both ways: all but the block kept for merges can hold data,
    /// in data or in log blocks.
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
