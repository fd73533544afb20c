//! The configuration of SLC blocks. Design: docs/design/tiers.md.

use prism_nand::Geometry;

/// Which data is kept in an SLC region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlcRule {
    /// The first logical units of the drive, as many as given. The region adds to the capacity, and
    /// its data is never elsewhere.
    Below(u32),
    /// Data written with this placement handle.
    Handle(u32),
    /// Data written by requests of at most this many bytes.
    UpTo(u64),
}

/// The use of SLC blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlcUse {
    /// A part of the drive: data that a rule selects is written, cleaned and kept there. What does
    /// not fit is written to the other blocks and stays there.
    Region(SlcRule),
    /// A write cache: host data is written there first while erased blocks are left, and moved
    /// (*folded*) to the other blocks, the oldest block first.
    Cache {
        /// Whether full blocks of the cache are emptied in idle time.
        fold_when_idle: bool,
    },
}

/// How the SLC blocks are used. The geometry defines which blocks are SLC ([`prism_nand::Slc`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcConfig {
    /// Their use.
    pub usage: SlcUse,
    /// Cleaning or folding of them starts when a die group has fewer erased ones than this; a cache
    /// with 0 folds in idle time only.
    pub free_blocks_low: u32,
    /// And it stops at this many.
    pub free_blocks_high: u32,
}

impl SlcConfig {
    /// Open blocks of a die group's region, for host data and for copies.
    const REGION_FRONTIERS: u32 = 2;

    /// Whether this is a cache.
    #[must_use]
    pub fn is_cache(&self) -> bool {
        matches!(self.usage, SlcUse::Cache { .. })
    }

    /// Logical units that are kept in the region and nowhere else.
    #[must_use]
    pub fn units_apart(&self) -> u32 {
        match self.usage {
            SlcUse::Region(SlcRule::Below(units)) => units,
            SlcUse::Region(_) | SlcUse::Cache { .. } => 0,
        }
    }

    /// The most valid units of a die group's region of `blocks` blocks with which cleaning always
    /// gains room: the bound of the other blocks ([`PageConfig::check`]), a share of garbage
    /// included.
    pub(super) fn units_most(&self, geometry: &Geometry, blocks: u32) -> u64 {
        let block = u64::from(geometry.slc_data_units_per_block());
        let program_unit = u64::from(geometry.units_per_program_unit());
        let kept = self.free_blocks_high.max(1) - 1 + Self::REGION_FRONTIERS;
        let candidates = u64::from(blocks.saturating_sub(kept));
        let gaining = (candidates * (block + 1).saturating_sub(program_unit)).saturating_sub(1);
        let slack = candidates.saturating_sub(1) * block;
        gaining.min(slack - slack / 64)
    }

    /// The most logical units that may be kept in the region of a drive and nowhere else.
    #[must_use]
    pub fn region_units(&self, geometry: &Geometry) -> u64 {
        let all = (0..geometry.die_groups()).map(|_| geometry.slc_blocks_per_die_group());
        self.region_units_of(geometry, all)
    }

    /// As [`Self::region_units`], with the SLC blocks that each die group has left.
    pub(super) fn region_units_of(
        &self,
        geometry: &Geometry,
        blocks: impl Iterator<Item = u32>,
    ) -> u64 {
        let in_flight = Self::units_in_flight(geometry);
        blocks.map(|blocks| self.units_most(geometry, blocks).saturating_sub(in_flight)).sum()
    }

    /// Units that a region must be able to hold in addition, because program units are in flight.
    fn units_in_flight(geometry: &Geometry) -> u64 {
        // Two program units of the host on each die, the one being placed, and parity.
        let program_units = 2 * u64::from(geometry.dies_per_superblock) + 1;
        let program_units = if geometry.parity { 2 * program_units } else { program_units };
        program_units * u64::from(geometry.units_per_program_unit())
    }
}
