//! The configuration of hybrid mapping, and the number of log blocks with which merges can always
//! proceed.

use prism_nand::Geometry;

use super::choice;
use crate::config::{ConfigError, OverProvisioning};
use crate::victim::VictimPolicy;

/// How log blocks are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// They hold units of a data group in the order in which the host writes them (N/K mapping;
    /// BAST with N = K = 1).
    Groups,
    /// Each holds units of one logical block at their own offsets, and replaces its data block.
    /// This is block-level mapping.
    Replacement,
    /// One holds a sequential run of one logical block, the others any units, in the order in which
    /// they are written. Units whose offset in the data block is still erased are written there
    /// (FAST).
    Fast,
}

/// The configuration of hybrid mapping. There is no default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HybridConfig {
    /// Logical units that the host sees.
    pub logical_units: u32,
    /// How log blocks are used.
    pub logs: Logs,
    /// Whether program units of a block may be skipped, as long as they are programmed in ascending
    /// order (SLC). Otherwise they are programmed with padding where units have to be at their own
    /// offsets.
    pub gaps: bool,
    /// N: logical blocks per data group, which share log blocks.
    pub group_blocks: u32,
    /// K: the most log blocks per data group.
    pub group_log_blocks: u32,
    /// The most log blocks of the device.
    pub log_blocks: u32,
    /// How the log block to be merged is chosen: FIFO, greedy, LRU or cost-benefit (Kawaguchi). A
    /// group that has all its log blocks chooses among its own.
    pub victim: VictimPolicy,
    /// Background merging starts when the mean number of erased blocks per die group is below this.
    /// With 0, merges start only when a group needs a log block.
    pub free_blocks_low: u32,
    /// Background merging stops at this mean.
    pub free_blocks_high: u32,
    /// Erased blocks kept in addition to the one for merges, so that merges can proceed when
    /// several blocks fail; 0 on flash that does not fail.
    pub reserve_blocks: u32,
}

impl HybridConfig {
    /// The most data groups: each is a stream of the write buffer.
    pub const GROUPS_MAX: u32 = 1 << 23;

    /// Blocks in addition to data and log blocks: one, for the logical block being merged.
    const MERGE_BLOCKS: u32 = 1;

    /// The configuration of FAST (Lee and others, ACM TECS 2007) with `log_blocks` log blocks, the
    /// sequential one included: one data group of all logical blocks, merged in FIFO order.
    #[must_use]
    pub fn fast(logical_units: u32, log_blocks: u32, gaps: bool) -> Self {
        Self {
            logical_units,
            logs: Logs::Fast,
            gaps,
            group_blocks: u32::MAX,
            group_log_blocks: log_blocks,
            log_blocks,
            victim: VictimPolicy::Fifo,
            free_blocks_low: 0,
            free_blocks_high: 0,
            reserve_blocks: 0,
        }
    }

    /// The configuration of BAST (Kim and others, IEEE TCE 2002): each of at most `log_blocks` log
    /// blocks belongs to one logical block, and the one written least recently is merged first.
    #[must_use]
    pub fn bast(logical_units: u32, log_blocks: u32) -> Self {
        Self {
            logs: Logs::Groups,
            gaps: false,
            group_blocks: 1,
            group_log_blocks: 1,
            victim: VictimPolicy::Lru,
            ..Self::fast(logical_units, log_blocks, false)
        }
    }

    /// The configuration of block-level mapping: at most `open_blocks` logical blocks are being
    /// rewritten at a time, and the one written least recently is completed when another has to
    /// begin.
    #[must_use]
    pub fn block(logical_units: u32, open_blocks: u32, gaps: bool) -> Self {
        Self { logs: Logs::Replacement, gaps, ..Self::bast(logical_units, open_blocks) }
    }

    /// The fewest log blocks that work: FAST needs one of each kind.
    pub(super) fn logs_min(&self) -> u32 {
        1 + u32::from(self.logs == Logs::Fast)
    }

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

    /// The most log blocks: as configured, or as many as data and merges leave.
    ///
    /// With D logical blocks, L log blocks and T blocks in all, merges can always proceed if L + D
    /// < T. Every block is erased, holds the data of one logical block, is a log block, is the
    /// target of a merge, or waits for its erase; data blocks are at most D. So erased blocks,
    /// targets and blocks to be erased are together at least T - D - L >= 1. If one is erased, a
    /// merge can begin. A merge that has its target needs no further block and frees the block that
    /// it replaces, unless it makes the first data block of a logical block, which happens at most
    /// D times. A block to be erased needs no other block.
    ///
    /// On flash that fails, T counts the good blocks, and the reserve is subtracted as well.
    #[must_use]
    pub fn log_blocks_max(&self, geometry: &Geometry) -> u32 {
        self.log_blocks_without(geometry, 0)
    }

    /// As [`Self::log_blocks_max`], with `bad` blocks out of use.
    pub(super) fn log_blocks_without(&self, geometry: &Geometry, bad: u32) -> u32 {
        let room = self.log_room(geometry).saturating_sub(self.reserve_blocks + bad);
        self.log_blocks.min(room)
    }

    /// T - D - 1: with more log blocks than that, merges may not be able to proceed.
    pub(super) fn log_room(&self, geometry: &Geometry) -> u32 {
        let kept = self.logical_blocks(geometry) + Self::MERGE_BLOCKS;
        geometry.blocks().saturating_sub(kept)
    }

    /// Checks the configuration against the flash.
    ///
    /// # Errors
    /// [`ConfigError`] names the field and its valid values.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        if geometry.parity {
            return Err(ConfigError::BlockParity);
        }
        if !choice::is_known(self.victim) {
            return Err(ConfigError::MergeChoice { victim: self.victim });
        }
        if self.logs != Logs::Groups && geometry.units_per_program_unit() != 1 {
            return Err(ConfigError::WholeProgramUnits {
                units: geometry.units_per_program_unit(),
            });
        }
        let (blocks, die_groups) = (geometry.blocks(), geometry.die_groups());
        let per_die_group = geometry.blocks_per_die_group();
        let (low, high) = (self.free_blocks_low, self.free_blocks_high);
        let logs_min = self.logs_min();
        for (field, value, min, max) in [
            ("the number of log blocks (log_share)", self.log_blocks, logs_min, blocks),
            ("group_blocks", self.group_blocks, 1, u32::MAX),
            ("group_log_blocks", self.group_log_blocks, logs_min, u32::MAX),
            ("free_blocks_low", low, 0, per_die_group),
            ("free_blocks_high", high, low, per_die_group),
        ] {
            if !(min..=max).contains(&value) {
                return Err(ConfigError::Watermark { field, value, min, max });
            }
        }
        // At least one log block, and a high watermark that merging all log blocks reaches.
        let kept = logs_min.max(high * die_groups) + Self::MERGE_BLOCKS + self.reserve_blocks;
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

    /// Units that can hold data, in data or log blocks: all but those of the blocks kept for
    /// merges.
    #[must_use]
    pub fn usable_units(&self, geometry: &Geometry) -> u64 {
        let kept = u64::from(Self::MERGE_BLOCKS + self.reserve_blocks);
        let kept = kept * u64::from(geometry.data_units_per_block());
        u64::from(geometry.units()).saturating_sub(kept)
    }

    /// Nominal and effective over-provisioning. All but the blocks kept for merges can hold data,
    /// in data or log blocks.
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
