//! SLC blocks next to others: the placement of host program units, and cleaning and folding.
//!
//! Both kinds of blocks share one map. A die group has erased blocks and candidates of each kind.
//! The frontiers for SLC blocks follow all others.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::PageMap;
use super::slc::{SlcConfig, SlcUse};
use super::state::{DieGroupState, Kind, OpenBlock};
use crate::victim::NOT_SEALED;

impl PageMap {
    /// The kind of the block with index `place` in a die group.
    #[inline]
    pub(super) fn kind_at(&self, place: usize) -> Kind {
        if (place as u32) < self.layout.slc_blocks() { Kind::Slc } else { Kind::Main }
    }

    /// The kind of `block`.
    #[inline]
    pub(super) fn kind_of(&self, block: BlockId) -> Kind {
        if self.layout.is_slc(block) { Kind::Slc } else { Kind::Main }
    }

    /// Data program units of a block of `kind`, and how many of them are filled up together: one in
    /// SLC blocks, where a program cannot destroy other pages.
    pub(super) fn data_program_units_of(&self, kind: Kind) -> (u32, u32) {
        match kind {
            Kind::Main => (self.data_program_units, self.program_units_together),
            Kind::Slc => (self.slc_data_program_units, 1),
        }
    }

    /// The frontier of the next program unit of `stream` on `die_group`.
    #[inline]
    pub(super) fn host_frontier(&self, die_group: DieGroupId, stream: u32) -> usize {
        match self.config.slc {
            None => stream as usize,
            Some(slc) => self.host_frontier_by_kind(&slc, die_group, stream) as usize,
        }
    }

    fn host_frontier_by_kind(&self, slc: &SlcConfig, die_group: DieGroupId, stream: u32) -> u32 {
        let first = self.config.own_frontier_count();
        let state = &self.die_groups[die_group.0 as usize];
        if slc.is_cache() {
            let has_room = state.open[first as usize].is_some() || !state.slc().free.is_empty();
            return if stream == 0 && has_room { first } else { stream };
        }
        // Data that does not fit into the region is written with the first stream.
        let overflows = stream == first && slc.units_apart() == 0 && self.region_is_full(state);
        if overflows { 0 } else { stream }
    }

    /// Whether another program unit could leave a region without a victim whose cleaning gains
    /// room.
    fn region_is_full(&self, state: &DieGroupState) -> bool {
        let program_unit = u64::from(self.layout.units_per_program_unit());
        state.slc_valid + (u64::from(state.slc_program_units_in_flight) + 1) * program_unit
            > state.slc_units_most
    }

    /// Whether the region of `die_group` can be given a host program unit.
    pub(super) fn region_may_take(&self, die_group: DieGroupId, open: Option<OpenBlock>) -> bool {
        let state = &self.die_groups[die_group.0 as usize];
        let free = state.slc().free.len() as u32;
        !self.region_is_full(state) && (open.is_some() || free > self.config.reserve_blocks)
    }

    /// Whether a program unit of `stream` was written to `program_unit` because the region or the
    /// cache that it belongs to was full.
    #[must_use]
    #[inline]
    pub fn is_overflow(&self, program_unit: ProgramUnitId, stream: u32) -> bool {
        match self.config.slc {
            None => false,
            Some(slc) => {
                let wanted = if slc.is_cache() { 0 } else { self.config.own_frontier_count() };
                stream == wanted && !self.layout.is_slc(self.layout.block_of(program_unit))
            }
        }
    }

    /// Whether the SLC blocks of `die_group` should be cleaned or folded.
    pub(super) fn slc_below_low(&self, die_group: DieGroupId) -> bool {
        let low = |slc: SlcConfig| self.slc_watermark(&slc, die_group, slc.free_blocks_low);
        self.config.slc.is_some_and(|slc| self.slc_free_blocks(die_group) < low(slc))
    }

    /// Whether cleaning or folding of SLC blocks may stop.
    pub(super) fn slc_reached_high(&self, die_group: DieGroupId) -> bool {
        let high = |slc: SlcConfig| self.slc_watermark(&slc, die_group, slc.free_blocks_high);
        self.config.slc.is_none_or(|slc| self.slc_free_blocks(die_group) >= high(slc))
    }

    /// The watermark `blocks`, lowered if `die_group` has lost SLC blocks: for a cache, to one less
    /// than are left; for a region that has lost too many to be used, to 0.
    fn slc_watermark(&self, slc: &SlcConfig, die_group: DieGroupId, blocks: u32) -> u32 {
        if slc.is_cache() {
            return blocks.min(self.slc_blocks_left(die_group).saturating_sub(1));
        }
        if self.die_groups[die_group.0 as usize].slc_units_most == 0 { 0 } else { blocks }
    }

    /// Erased SLC blocks on `die_group`.
    #[must_use]
    pub fn slc_free_blocks(&self, die_group: DieGroupId) -> u32 {
        self.die_groups[die_group.0 as usize].slc().free.len() as u32
    }

    /// Valid units in SLC blocks of `die_group`.
    #[must_use]
    pub fn slc_valid(&self, die_group: DieGroupId) -> u64 {
        self.die_groups[die_group.0 as usize].slc_valid
    }

    /// Whether host data waits for room in the region of `die_group`, which only cleaning makes.
    pub(crate) fn region_is_urgent(&self, die_group: DieGroupId) -> bool {
        let is_region = self.config.slc.is_some_and(|slc| !slc.is_cache());
        is_region && self.slc_free_blocks(die_group) <= self.config.reserve_blocks
    }

    /// Whether `die_group` has blocks to fold in idle time.
    #[must_use]
    pub fn folds_when_idle(&self, die_group: DieGroupId) -> bool {
        let Some(SlcConfig { usage: SlcUse::Cache { fold_when_idle: true }, .. }) = self.config.slc
        else {
            return false;
        };
        self.die_groups[die_group.0 as usize].slc().candidates.by_age().next().is_some()
    }

    /// Whether a region that has lost blocks holds more than can be cleaned with a gain. Only
    /// blocks without valid units are erased then.
    fn region_is_overfull(&self, die_group: DieGroupId) -> bool {
        let state = &self.die_groups[die_group.0 as usize];
        self.blocks_left(die_group).is_some() && state.slc_valid > state.slc_units_most
    }

    /// Chooses an SLC block: the policy's choice in a region, the oldest one of a cache, if there
    /// is room for its data.
    pub(super) fn pick_slc(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        let slc = self.config.slc?;
        let chosen = if slc.is_cache() {
            if !self.has_room_to_fold(die_group) {
                return None;
            }
            self.die_groups[die_group.0 as usize].slc().candidates.by_age().next()?
        } else if self.region_is_overfull(die_group) {
            let sealed = self.die_groups[die_group.0 as usize].slc().candidates.valid().values();
            sealed.iter().position(|&valid| valid == 0)?
        } else {
            self.choose(die_group, Kind::Slc)?
        };
        let block = BlockId(die_group.0 * self.layout.blocks_per_die_group() + chosen as u32);
        self.take_candidate(die_group, block);
        Some(block)
    }

    /// Whether a whole block of the cache can be folded without the erased block that cleaning
    /// needs. A fold in progress takes at most one erased block, since the host does not use its
    /// frontier and cleaning waits for its end.
    pub(super) fn has_room_to_fold(&self, die_group: DieGroupId) -> bool {
        let state = &self.die_groups[die_group.0 as usize];
        let open = state.open[self.config.own_frontier_count() as usize + 1];
        let left = open.map_or(0, |open| self.data_program_units_left(open));
        // Padding fills up the last wordline.
        let needed = self.slc_data_program_units.next_multiple_of(self.program_units_together);
        left >= needed || state.main().free.len() as u32 > self.config.reserve_blocks
    }

    /// Counts the host program units of a region in flight, parity included, when one of `block`,
    /// an SLC block, is reserved (`change` 1) or its program ends (-1).
    pub(super) fn count_region_program_unit(&mut self, block: BlockId, change: i32) {
        let Some(slc) = self.config.slc else { return };
        let by_host =
            u32::from(self.blocks[block.0 as usize].frontier) == self.config.own_frontier_count();
        if !slc.is_cache() && by_host {
            let die_group = self.layout.die_group_of(block).0 as usize;
            let program_units = &mut self.die_groups[die_group].slc_program_units_in_flight;
            *program_units =
                program_units.checked_add_signed(change).expect("a program unit that was reserved");
        }
    }

    /// Checks that the counts of both kinds of blocks agree with the map.
    ///
    /// # Panics
    /// If they do not.
    pub(super) fn assert_kinds(&self) {
        let per_die_group = self.layout.blocks_per_die_group();
        for (die_group, state) in (0..).zip(&self.die_groups) {
            let blocks =
                || (die_group * per_die_group..(die_group + 1) * per_die_group).map(BlockId);
            let of = |kind| blocks().filter(move |&block| self.kind_of(block) == kind);
            let valid = |block: BlockId| u64::from(self.blocks[block.0 as usize].valid);
            let counted: u64 = of(Kind::Slc).map(valid).sum();
            assert_eq!(state.slc_valid, counted, "valid units in SLC blocks");
            for kind in Kind::ALL {
                let part = state.part(kind);
                let erases: u64 =
                    of(kind).map(|block| u64::from(self.erases[block.0 as usize])).sum();
                assert_eq!(part.erases, erases, "erases of the blocks of a kind");
                assert!(part.free.iter().all(|&block| self.kind_of(BlockId(block)) == kind));
                let sealed = part.candidates.valid().values().iter().enumerate();
                let mut sealed = sealed.filter(|&(_, &valid)| valid != NOT_SEALED);
                assert!(sealed.all(|(place, _)| self.kind_at(place) == kind));
            }
        }
    }
}
