//! Allocation: erased blocks, frontiers and the reserve.
//!
//! A *frontier* is an open block and its next program unit. Every die group has one for each stream
//! of host data, then those for copies, then, if translation pages are on flash, one for these,
//! then those of SLC blocks ([`PageConfig::frontier_count`](PageConfig)).

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::PageMap;
use super::state::{BlockState, Kind, OpenBlock};

impl PageMap {
    /// Erased blocks of `die_group`, without SLC blocks.
    #[must_use]
    pub fn free_blocks(&self, die_group: DieGroupId) -> u32 {
        self.die_groups[die_group.0 as usize].main().free.len() as u32
    }

    /// Erased blocks of `die_group`, including SLC blocks.
    #[must_use]
    pub fn erased_blocks(&self, die_group: DieGroupId) -> u32 {
        self.die_groups[die_group.0 as usize].parts.iter().map(|part| part.free.len() as u32).sum()
    }

    /// Whether cleaning of `die_group` should start.
    #[must_use]
    pub fn below_low(&self, die_group: DieGroupId) -> bool {
        self.free_blocks(die_group) < self.config.free_blocks_low || self.slc_below_low(die_group)
    }

    /// Whether cleaning of `die_group` may stop.
    #[must_use]
    pub fn reached_high(&self, die_group: DieGroupId) -> bool {
        self.free_blocks(die_group) >= self.config.free_blocks_high
            && self.slc_reached_high(die_group)
    }

    /// The stream of a logical unit that the host writes with placement handle `handle` (0 if there
    /// are none). Units of a stream share a frontier.
    #[must_use]
    pub fn stream_of(&self, lpn: u32, handle: u32) -> u32 {
        self.config.stream_of(lpn, handle)
    }

    /// Whether `die_group` may be given a program unit of `stream` without using blocks that
    /// cleaning needs to finish.
    #[must_use]
    #[inline(always)]
    pub fn host_may_write(&self, die_group: DieGroupId, stream: u32) -> bool {
        let state = &self.die_groups[die_group.0 as usize];
        let free = state.main().free.len() as u32;
        let frontier = self.host_frontier(die_group, stream);
        let open = state.open[frontier];
        let mut reserve = self.config.reserve_blocks;
        if let Some(slc) = self.config.slc {
            if self.config.kind_of_frontier(frontier) == Kind::Slc {
                // A cache was checked for room when the frontier was chosen.
                return slc.is_cache() || self.region_may_take(die_group, open);
            }
            reserve = self.config.reserve_for_copies();
        }
        let stream = frontier as u32;
        if !self.config.copies_share(stream) {
            return open.is_some() || free > reserve;
        }
        let program_units = self.data_program_units;
        let left = open.map_or(0, |open| self.data_program_units_left(open)) + free * program_units;
        if self.program_units_together == 1 || left == 0 {
            return left > reserve * program_units;
        }
        // Padding may be needed to fill the wordline of the program unit.
        let (blocks_after, program_units_after) =
            ((left - 1) / program_units, (left - 1) % program_units);
        let used = (program_units - program_units_after)
            .next_multiple_of(self.program_units_together)
            .min(program_units);
        blocks_after * program_units + program_units - used >= reserve * program_units
    }

    /// Data program units left in an open block.
    pub(super) fn data_program_units_left(&self, open: OpenBlock) -> u32 {
        let left = self.layout.program_units_of(open.block) - open.next;
        // The last program unit of each stripe is parity, and the rest of the block ends with a
        // whole stripe.
        if self.parity { left - left.div_ceil(self.layout.dies_per_die_group()) } else { left }
    }

    /// Whether `die_group` holds no more than its share of the data, where the placement of
    /// `stream` has to be balanced. Placing by load alone can send all cold data to one die group
    /// until it cannot be cleaned any more; a die group above the average by half a block gets no
    /// more data until the others have caught up.
    #[must_use]
    pub fn balanced(&self, die_group: DieGroupId, stream: u32) -> bool {
        let die_groups = self.die_groups.len() as u64;
        let slack = u64::from(self.layout.units_per_block()) / 2;
        let (mut valid, mut total) =
            (self.die_groups[die_group.0 as usize].valid, self.valid_total);
        if self.config.slc.is_some_and(|slc| !slc.is_cache()) {
            // Data of a region is limited there, and never has to be moved to the other blocks.
            if self.config.kind_of_frontier(self.host_frontier(die_group, stream)) == Kind::Slc {
                return true;
            }
            total -= self.die_groups.iter().map(|die_group| die_group.slc_valid).sum::<u64>();
            valid -= self.slc_valid(die_group);
        }
        match self.blocks_left(die_group) {
            None => valid * die_groups <= total + slack * die_groups,
            Some((left, all)) => valid * all <= total * left + slack * all,
        }
    }

    /// The program unit that [`PageMap::reserve_host`] would return, if a block is open.
    #[must_use]
    pub fn next_program_unit(&self, die_group: DieGroupId, stream: u32) -> Option<ProgramUnitId> {
        let open =
            self.die_groups[die_group.0 as usize].open[self.host_frontier(die_group, stream)]?;
        Some(ProgramUnitId(self.layout.first_program_unit(open.block).0 + open.next))
    }

    /// Reserves the next program unit of `die_group` for data of `stream`. If that completes the
    /// data of a stripe, [`PageMap::take_parity`] returns its parity program unit.
    ///
    /// [`PageMap::host_may_write`] must hold, or cleaning may run out of blocks.
    #[inline(always)]
    pub fn reserve_host(&mut self, die_group: DieGroupId, stream: u32) -> ProgramUnitId {
        // Callers check `host_may_write` when they choose the die group.
        debug_assert!(
            self.host_may_write(die_group, stream),
            "host write into the reserve: {die_group:?}"
        );
        self.take_program_unit(die_group, self.host_frontier(die_group, stream))
    }

    /// Reserves the next program unit of `die_group` for copies out of `victim`.
    ///
    /// # Panics
    /// If no program unit is left; the reserve prevents that.
    #[inline(always)]
    pub fn reserve_copy(&mut self, die_group: DieGroupId, victim: BlockId) -> ProgramUnitId {
        self.take_program_unit(die_group, self.copy_frontier(die_group, victim))
    }

    /// The frontier for copies out of `victim`. Copies within a region that has no erased block
    /// left go to the other blocks, if these have room for all of the host's data.
    #[inline]
    fn copy_frontier(&self, die_group: DieGroupId, victim: BlockId) -> usize {
        match self.copies_to {
            Some(only) => only,
            None => self.copy_frontier_of_several(die_group, victim),
        }
    }

    #[inline(never)]
    fn copy_frontier_of_several(&self, die_group: DieGroupId, victim: BlockId) -> usize {
        let own = self.config.frontier_of_copies(self.blocks[victim.0 as usize].frontier) as usize;
        let Some(slc) = self.config.slc else { return own };
        let state = &self.die_groups[die_group.0 as usize];
        let in_region = self.config.kind_of_frontier(own) == Kind::Slc;
        let has_program_unit = state.open[own].is_some() || !state.slc().free.is_empty();
        if !in_region || has_program_unit || slc.units_apart() > 0 {
            return own;
        }
        self.config.frontier_of_copies(0) as usize
    }

    /// The program unit that [`PageMap::reserve_copy`] would return; `None` if no block is open and
    /// none is erased.
    #[must_use]
    pub fn next_copy_program_unit(
        &self,
        die_group: DieGroupId,
        victim: BlockId,
    ) -> Option<ProgramUnitId> {
        let frontier = self.copy_frontier(die_group, victim);
        let open = self.die_groups[die_group.0 as usize].open[frontier];
        let next = |open: OpenBlock| {
            ProgramUnitId(self.layout.first_program_unit(open.block).0 + open.next)
        };
        open.map(next).or_else(|| {
            let kind = self.config.kind_of_frontier(frontier);
            let erased = self.next_erased(die_group, kind)?;
            let block = self.die_groups[die_group.0 as usize].part(kind).free[erased];
            Some(self.layout.first_program_unit(BlockId(block)))
        })
    }

    /// Reserves the next program unit of `block` for padding, if `block` is being written and that
    /// program unit is not after `until`.
    pub fn reserve_pad(&mut self, block: BlockId, until: ProgramUnitId) -> Option<ProgramUnitId> {
        let die_group = self.layout.die_group_of(block);
        let frontier = u32::from(self.blocks[block.0 as usize].frontier);
        let open = self.die_groups[die_group.0 as usize].open[frontier as usize]?;
        let next = ProgramUnitId(self.layout.first_program_unit(open.block).0 + open.next);
        if next > until {
            return None;
        }
        (self.layout.block_of(next) == block)
            .then(|| self.take_program_unit(die_group, frontier as usize))
    }

    /// A parity program unit that has to be programmed now because its stripe is complete.
    pub fn take_parity(&mut self) -> Option<ProgramUnitId> {
        self.parity_due.pop()
    }

    #[inline(always)]
    fn take_program_unit(&mut self, die_group: DieGroupId, frontier: usize) -> ProgramUnitId {
        if self.parity {
            return self.take_program_unit_of_stripe(die_group, frontier);
        }
        let open = self.die_groups[die_group.0 as usize].open[frontier];
        let OpenBlock { block, next } =
            open.unwrap_or_else(|| self.open_block(die_group, frontier));
        let program_unit = self.next_of(block, next);
        let left = next + 1 < self.layout.program_units_of(block);
        let open = OpenBlock { block, next: next + 1 };
        self.die_groups[die_group.0 as usize].open[frontier] = left.then_some(open);
        program_unit
    }

    /// The same for superblocks with parity: the last program unit of each stripe is parity, which
    /// is due when the others are reserved.
    #[inline(never)]
    fn take_program_unit_of_stripe(
        &mut self,
        die_group: DieGroupId,
        frontier: usize,
    ) -> ProgramUnitId {
        let open = self.die_groups[die_group.0 as usize].open[frontier];
        let open = open.unwrap_or_else(|| self.open_block(die_group, frontier));
        let OpenBlock { block, mut next } = open;
        let program_unit = self.next_of(block, next);
        next += 1;
        if self.layout.is_parity(ProgramUnitId(program_unit.0 + 1)) {
            let parity = self.next_of(block, next);
            next += 1;
            self.parity_due.push(parity);
        }
        let left = next < self.layout.program_units_of(block);
        self.die_groups[die_group.0 as usize].open[frontier] =
            left.then_some(OpenBlock { block, next });
        program_unit
    }

    #[inline(always)]
    fn next_of(&mut self, block: BlockId, next: u32) -> ProgramUnitId {
        let program_unit = ProgramUnitId(self.layout.first_program_unit(block).0 + next);
        self.blocks[block.0 as usize].program_units_in_flight += 1;
        if self.layout.is_slc(block) {
            self.count_region_program_unit(block, 1);
        }
        program_unit
    }

    /// The index in the list of erased blocks of the one to be opened next.
    fn next_erased(&self, die_group: DieGroupId, kind: Kind) -> Option<usize> {
        let free = &self.die_groups[die_group.0 as usize].part(kind).free;
        if self.config.wear.least_worn_first {
            return (0..free.len()).min_by_key(|&place| self.erases[free[place] as usize]);
        }
        (!free.is_empty()).then_some(0)
    }

    pub(super) fn open_block(&mut self, die_group: DieGroupId, frontier: usize) -> OpenBlock {
        let kind = self.config.kind_of_frontier(frontier);
        let place = self.next_erased(die_group, kind);
        let free = &mut self.die_groups[die_group.0 as usize].part_mut(kind).free;
        let block = place.and_then(|place| free.remove(place));
        let block =
            block.expect("no erased block left on the die group: the reserve was too small");
        self.blocks[block as usize].state = BlockState::Open;
        self.blocks[block as usize].frontier = frontier as u16;
        OpenBlock { block: BlockId(block), next: 0 }
    }

    pub(crate) fn is_frontier(&self, block: BlockId) -> bool {
        let state = &self.die_groups[self.layout.die_group_of(block).0 as usize];
        let open = state.open[usize::from(self.blocks[block.0 as usize].frontier)];
        open.is_some_and(|open| open.block == block)
    }
}
