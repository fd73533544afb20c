//! What SLC blocks are used for. Design: docs/design/tiers.md.

use prism_nand::Geometry;

/// Which data lives in a SLC region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlcRule {
    /// The first so many logical units, always. The region adds to the capacity, and data is
    /// never elsewhere.
    Below(u32),
    /// Data written with this placement handle.
    Handle(u32),
    /// Data written by requests of at most so many bytes.
    UpTo(u64),
}

/// What SLC blocks are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlcUse {
    /// A part of the drive: what a rule chooses lives there, cleaning included. Where the rule
    /// chooses more than fits, the rest goes to the other blocks, and stays there.
    Region(SlcRule),
    /// A write cache: data of the host comes there first while erased blocks are left, and is
    /// moved (*folded*) to the other blocks, the oldest block first.
    Cache {
        /// Whether the cache is emptied in idle time, as far as its blocks are full.
        fold_when_idle: bool,
    },
}

/// How the SLC blocks are used. Which they are is the geometry's
/// ([`prism_nand::Slc`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcConfig {
    /// What for.
    pub usage: SlcUse,
    /// Cleaning or folding of them starts when a die group has fewer erased ones than this; a
    /// cache with 0 folds in idle time only.
    pub free_blocks_low: u32,
    /// And it stops at this many.
    pub free_blocks_high: u32,
}

impl SlcConfig {
    /// Open blocks for host data and for copies that a die group's region keeps.
    const REGION_FRONTIERS: u32 = 2;

    /// Whether this is a cache.
    #[must_use]
    pub fn is_cache(&self) -> bool {
        matches!(self.usage, SlcUse::Cache { .. })
    }

    /// Logical units that live in the region and nowhere else.
    #[must_use]
    pub fn units_apart(&self) -> u32 {
        match self.usage {
            SlcUse::Region(SlcRule::Below(units)) => units,
            SlcUse::Region(_) | SlcUse::Cache { .. } => 0,
        }
    }

    /// The most valid units of a die group's region of so many blocks, with which its cleaning
    /// always gains: the same bound as for the other blocks ([`PageConfig::check`]), a share of
    /// garbage included.
    pub(super) fn units_most(&self, geometry: &Geometry, blocks: u32) -> u64 {
        let block = u64::from(geometry.slc_data_units_per_block());
        let program_unit = u64::from(geometry.units_per_program_unit());
        let kept = self.free_blocks_high.max(1) - 1 + Self::REGION_FRONTIERS;
        let candidates = u64::from(blocks.saturating_sub(kept));
        let gaining = (candidates * (block + 1).saturating_sub(program_unit)).saturating_sub(1);
        let slack = candidates.saturating_sub(1) * block;
        gaining.min(slack - slack / 64)
    }

    /// The most logical units that may live in the region of a drive and nowhere else.
    #[must_use]
    pub fn region_units(&self, geometry: &Geometry) -> u64 {
        let all = (0..geometry.die_groups()).map(|_| geometry.slc_blocks_per_die_group());
        self.region_units_of(geometry, all)
    }

    /// The same where die groups have so many blocks left.
    pub(super) fn region_units_of(
        &self,
        geometry: &Geometry,
        blocks: impl Iterator<Item = u32>,
    ) -> u64 {
        let in_flight = Self::units_in_flight(geometry);
        blocks.map(|blocks| self.units_most(geometry, blocks).saturating_sub(in_flight)).sum()
    }

    /// Units that a region must be able to take beside those that live there, because program units
    /// are in flight.
    fn units_in_flight(geometry: &Geometry) -> u64 {
        // Two program units of the host on each die, the one that looks for a place, and parity.
        let program_units = 2 * u64::from(geometry.dies_per_superblock) + 1;
        let program_units = if geometry.parity { 2 * program_units } else { program_units };
        program_units * u64::from(geometry.units_per_program_unit())
    }
}
