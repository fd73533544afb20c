//! Which row is written next: erased blocks, frontiers, and what is kept in reserve.
//!
//! A *frontier* is an open block and its next row. Every lane has one for each stream of
//! host data, then those for copies, then, where translation pages are on flash, one for
//! these. Which is which: [`PageConfig::frontier_count`](PageConfig).

use prism_nand::{BlockId, LaneId, RowId};

use super::PageMap;
use super::state::{BlockState, Kind, OpenBlock};

impl PageMap {
    /// Erased blocks of `lane`, those of one bit a cell apart.
    #[must_use]
    pub fn free_blocks(&self, lane: LaneId) -> u32 {
        self.lanes[lane.0 as usize].main().free.len() as u32
    }

    /// Erased blocks of `lane`, of either kind.
    #[must_use]
    pub fn erased_blocks(&self, lane: LaneId) -> u32 {
        self.lanes[lane.0 as usize].parts.iter().map(|part| part.free.len() as u32).sum()
    }

    /// Whether cleaning of `lane` should start.
    #[must_use]
    pub fn below_low(&self, lane: LaneId) -> bool {
        self.free_blocks(lane) < self.config.free_blocks_low || self.slc_below_low(lane)
    }

    /// Whether cleaning of `lane` may stop.
    #[must_use]
    pub fn reached_high(&self, lane: LaneId) -> bool {
        self.free_blocks(lane) >= self.config.free_blocks_high && self.slc_reached_high(lane)
    }

    /// The stream of a logical unit that the host writes with placement handle `handle`
    /// (0 where there are none): what shares a frontier.
    #[must_use]
    pub fn stream_of(&self, lpn: u32, handle: u32) -> u32 {
        self.config.stream_of(lpn, handle)
    }

    /// Whether `lane` may take a row of `stream` without eating into what cleaning needs
    /// to finish.
    #[must_use]
    #[inline(always)]
    pub fn host_may_write(&self, lane: LaneId, stream: u32) -> bool {
        let state = &self.lanes[lane.0 as usize];
        let free = state.main().free.len() as u32;
        let frontier = self.host_frontier(lane, stream);
        let open = state.open[frontier];
        let mut reserve = self.config.reserve_blocks;
        if let Some(slc) = self.config.slc {
            if self.config.kind_of_frontier(frontier) == Kind::Slc {
                // A cache is asked for its room when the frontier is chosen.
                return slc.is_cache() || self.region_may_take(lane, open);
            }
            reserve = self.config.reserve_for_copies();
        }
        let stream = frontier as u32;
        if !self.config.copies_share(stream) {
            return open.is_some() || free > reserve;
        }
        let rows = self.data_rows;
        let left = open.map_or(0, |open| self.data_rows_left(open)) + free * rows;
        if self.rows_together == 1 || left == 0 {
            return left > reserve * rows;
        }
        // The word line of the row may have to be filled up.
        let (blocks_after, rows_after) = ((left - 1) / rows, (left - 1) % rows);
        let used = (rows - rows_after).next_multiple_of(self.rows_together).min(rows);
        blocks_after * rows + rows - used >= reserve * rows
    }

    /// Rows for data that an open block still has.
    pub(super) fn data_rows_left(&self, open: OpenBlock) -> u32 {
        let left = self.layout.rows_of(open.block) - open.next;
        // The last row of each stripe is parity, and what is left ends with a whole one.
        if self.parity { left - left.div_ceil(self.layout.dies_per_lane()) } else { left }
    }

    /// Whether `lane` holds no more than its share of the data, as far as that matters to a
    /// row of `stream`. Placing by load alone can
    /// send all cold data to one lane until that lane cannot be cleaned any more; a lane
    /// above the average by half a block waits until the others have caught up.
    #[must_use]
    pub fn balanced(&self, lane: LaneId, stream: u32) -> bool {
        let lanes = self.lanes.len() as u64;
        let slack = u64::from(self.layout.units_per_block()) / 2;
        let (mut valid, mut total) = (self.lanes[lane.0 as usize].valid, self.valid_total);
        if self.config.slc.is_some_and(|slc| !slc.is_cache()) {
            // What lives in a region is bounded there, and never becomes a burden of the
            // other blocks.
            if self.config.kind_of_frontier(self.host_frontier(lane, stream)) == Kind::Slc {
                return true;
            }
            total -= self.lanes.iter().map(|lane| lane.slc_valid).sum::<u64>();
            valid -= self.slc_valid(lane);
        }
        match self.blocks_left(lane) {
            None => valid * lanes <= total + slack * lanes,
            Some((left, all)) => valid * all <= total * left + slack * all,
        }
    }

    /// The row that [`PageMap::reserve_host`] would take, if a block is open.
    #[must_use]
    pub fn next_row(&self, lane: LaneId, stream: u32) -> Option<RowId> {
        let open = self.lanes[lane.0 as usize].open[self.host_frontier(lane, stream)]?;
        Some(RowId(self.layout.first_row(open.block).0 + open.next))
    }

    /// Takes the next row of `lane` for data of `stream`. If that completes the data of a
    /// stripe, [`PageMap::take_parity`] has its parity row.
    ///
    /// [`PageMap::host_may_write`] must hold, or cleaning may run out of room.
    #[inline(always)]
    pub fn reserve_host(&mut self, lane: LaneId, stream: u32) -> RowId {
        // Whoever asks has been offered the lane for just this reason.
        debug_assert!(self.host_may_write(lane, stream), "host write into the reserve: {lane:?}");
        self.take_row(lane, self.host_frontier(lane, stream))
    }

    /// Takes the next row of `lane` for copies out of `victim`.
    ///
    /// # Panics
    /// If no row is left: the reserve is there to prevent that.
    #[inline(always)]
    pub fn reserve_copy(&mut self, lane: LaneId, victim: BlockId) -> RowId {
        self.take_row(lane, self.copy_frontier(lane, victim))
    }

    /// The frontier for copies out of `victim`. Copies within a region that has lost its last
    /// erased block go to the other blocks, if these have room for all of the host's data.
    #[inline]
    fn copy_frontier(&self, lane: LaneId, victim: BlockId) -> usize {
        match self.copies_to {
            Some(only) => only,
            None => self.copy_frontier_of_several(lane, victim),
        }
    }

    #[inline(never)]
    fn copy_frontier_of_several(&self, lane: LaneId, victim: BlockId) -> usize {
        let own = self.config.frontier_of_copies(self.blocks[victim.0 as usize].frontier) as usize;
        let Some(slc) = self.config.slc else { return own };
        let state = &self.lanes[lane.0 as usize];
        let in_region = self.config.kind_of_frontier(own) == Kind::Slc;
        let has_row = state.open[own].is_some() || !state.slc().free.is_empty();
        if !in_region || has_row || slc.units_apart() > 0 {
            return own;
        }
        self.config.frontier_of_copies(0) as usize
    }

    /// The row that [`PageMap::reserve_copy`] would take; `None` if no block is open and
    /// none is erased.
    #[must_use]
    pub fn next_copy_row(&self, lane: LaneId, victim: BlockId) -> Option<RowId> {
        let frontier = self.copy_frontier(lane, victim);
        let open = self.lanes[lane.0 as usize].open[frontier];
        let next = |open: OpenBlock| RowId(self.layout.first_row(open.block).0 + open.next);
        open.map(next).or_else(|| {
            let kind = self.config.kind_of_frontier(frontier);
            let erased = self.next_erased(lane, kind)?;
            let block = self.lanes[lane.0 as usize].part(kind).free[erased];
            Some(self.layout.first_row(BlockId(block)))
        })
    }

    /// Takes the next row of `block`, to be left empty, if `block` is being written and that
    /// row is not behind `until`.
    pub fn reserve_pad(&mut self, block: BlockId, until: RowId) -> Option<RowId> {
        let lane = self.layout.lane_of(block);
        let frontier = u32::from(self.blocks[block.0 as usize].frontier);
        let open = self.lanes[lane.0 as usize].open[frontier as usize]?;
        let next = RowId(self.layout.first_row(open.block).0 + open.next);
        if next > until {
            return None;
        }
        (self.layout.block_of(next) == block).then(|| self.take_row(lane, frontier as usize))
    }

    /// A parity row that has to be programmed now because its stripe is complete.
    pub fn take_parity(&mut self) -> Option<RowId> {
        self.parity_due.pop()
    }

    #[inline(always)]
    fn take_row(&mut self, lane: LaneId, frontier: usize) -> RowId {
        if self.parity {
            return self.take_row_of_stripe(lane, frontier);
        }
        let open = self.lanes[lane.0 as usize].open[frontier];
        let OpenBlock { block, next } = open.unwrap_or_else(|| self.open_block(lane, frontier));
        let row = self.next_of(block, next);
        let left = next + 1 < self.layout.rows_of(block);
        let open = OpenBlock { block, next: next + 1 };
        self.lanes[lane.0 as usize].open[frontier] = left.then_some(open);
        row
    }

    /// The same where the last row of each stripe is parity, which is due when the others are
    /// taken.
    #[inline(never)]
    fn take_row_of_stripe(&mut self, lane: LaneId, frontier: usize) -> RowId {
        let open = self.lanes[lane.0 as usize].open[frontier];
        let open = open.unwrap_or_else(|| self.open_block(lane, frontier));
        let OpenBlock { block, mut next } = open;
        let row = self.next_of(block, next);
        next += 1;
        if self.layout.is_parity(RowId(row.0 + 1)) {
            let parity = self.next_of(block, next);
            next += 1;
            self.parity_due.push(parity);
        }
        let left = next < self.layout.rows_of(block);
        self.lanes[lane.0 as usize].open[frontier] = left.then_some(OpenBlock { block, next });
        row
    }

    #[inline(always)]
    fn next_of(&mut self, block: BlockId, next: u32) -> RowId {
        let row = RowId(self.layout.first_row(block).0 + next);
        self.blocks[block.0 as usize].rows_in_flight += 1;
        if self.layout.is_slc(block) {
            self.count_region_row(block, 1);
        }
        row
    }

    /// The place in the list of erased blocks of the one that is opened next.
    fn next_erased(&self, lane: LaneId, kind: Kind) -> Option<usize> {
        let free = &self.lanes[lane.0 as usize].part(kind).free;
        if self.config.wear.least_worn_first {
            return (0..free.len()).min_by_key(|&place| self.erases[free[place] as usize]);
        }
        (!free.is_empty()).then_some(0)
    }

    pub(super) fn open_block(&mut self, lane: LaneId, frontier: usize) -> OpenBlock {
        let kind = self.config.kind_of_frontier(frontier);
        let place = self.next_erased(lane, kind);
        let free = &mut self.lanes[lane.0 as usize].part_mut(kind).free;
        let block = place.and_then(|place| free.remove(place));
        let block = block.expect("no erased block left on the lane: the reserve was too small");
        self.blocks[block as usize].state = BlockState::Open;
        self.blocks[block as usize].frontier = frontier as u16;
        OpenBlock { block: BlockId(block), next: 0 }
    }

    pub(crate) fn is_frontier(&self, block: BlockId) -> bool {
        let state = &self.lanes[self.layout.lane_of(block).0 as usize];
        let open = state.open[usize::from(self.blocks[block.0 as usize].frontier)];
        open.is_some_and(|open| open.block == block)
    }
}
