//! What a hybrid mapping is told, and why it never runs out of erased blocks.

use prism_nand::Geometry;

use super::choice;
use crate::config::{ConfigError, OverProvisioning};
use crate::victim::VictimPolicy;

/// What the blocks in front of data blocks hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// Units of a data group in the order in which the host writes them (N/K; with N = K = 1
    /// BAST).
    Groups,
    /// Units of one logical block, each at its own offset: a rewritten block takes the place
    /// of the old one, which is how a map of nothing but blocks rewrites anything.
    Replacement,
    /// One of them a sequential run of one logical block, the others any units in turn; units
    /// whose place in the data block is still erased go there (FAST).
    Fast,
}

/// How a hybrid mapping behaves. There is no default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HybridConfig {
    /// Logical units the host sees.
    pub logical_units: u32,
    /// What log blocks hold.
    pub logs: Logs,
    /// Whether program units of a block may be left out, as long as program units go up (SLC);
    /// otherwise they are programmed with padding, where log blocks hold units at their own
    /// offsets.
    pub gaps: bool,
    /// N: logical blocks of a data group, which share log blocks.
    pub group_blocks: u32,
    /// K: the most log blocks of a data group.
    pub group_log_blocks: u32,
    /// The most log blocks of the device.
    pub log_blocks: u32,
    /// Which log block is merged where there is a choice: FIFO, greedy, LRU or cost-benefit
    /// (Kawaguchi). A group that is out of log blocks chooses among its own.
    pub victim: VictimPolicy,
    /// Merging starts by itself when the mean of erased blocks over all die groups is below this;
    /// 0 for never: then only groups that need a log block ask for it.
    pub free_blocks_low: u32,
    /// Merging that started so stops at this mean.
    pub free_blocks_high: u32,
    /// Blocks kept beside the one for merges, so that these go on when blocks fail one after
    /// another; 0 on flash that does not fail.
    pub reserve_blocks: u32,
}

impl HybridConfig {
    /// Most data groups: a group is a stream of the write buffer.
    pub const GROUPS_MAX: u32 = 1 << 23;

    /// Blocks beside data and log blocks: one, for the logical block that is being merged.
    const MERGE_BLOCKS: u32 = 1;

    /// The configuration of FAST (Lee and others, ACM TECS 2007) with `log_blocks` log blocks,
    /// the sequential one included: one data group of all logical blocks, merged in turn.
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

    /// The configuration of BAST (Kim and others, IEEE TCE 2002): each of at most `log_blocks`
    /// log blocks is that of one logical block, and the one written least recently makes room.
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

    /// The configuration of a map by blocks alone: at most `open_blocks` logical blocks are
    /// being rewritten at a time, and the one written least recently is completed when
    /// another has to begin.
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

    /// The most log blocks there can be: as configured, or what data and merges leave.
    ///
    /// With D logical blocks, L log blocks and T blocks in all, L <= T - D - 1 keeps merges
    /// going. Every block is erased, holds the data of one logical block, is a log block, is
    /// the target of a merge, or waits for its erase; data blocks are at most D. So erased
    /// blocks, targets and blocks to be erased are together at least T - D - L >= 1. If one
    /// is erased, a merge can begin. A merge that has its target needs nothing else, and
    /// gives back the block it replaces, or has made a data block where there was none,
    /// which happens at most D times. A block to be erased needs nothing at all.
    ///
    /// On flash that fails T counts the blocks that are not bad, and a reserve is kept beside.
    #[must_use]
    pub fn log_blocks_max(&self, geometry: &Geometry) -> u32 {
        self.log_blocks_without(geometry, 0)
    }

    /// The same where `bad` blocks are out of use.
    pub(super) fn log_blocks_without(&self, geometry: &Geometry, bad: u32) -> u32 {
        let room = self.log_room(geometry).saturating_sub(self.reserve_blocks + bad);
        self.log_blocks.min(room)
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
        // At least one log block, and a high watermark that merging everything reaches.
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

    /// Over-provisioning, both ways: all but the blocks kept for merges can hold data,
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
