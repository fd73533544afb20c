//! Blocks with one bit a cell beside the others: where rows of the host go because of them, and
//! when they are cleaned or folded.
//!
//! Both kinds of blocks share one map. A lane has erased blocks and candidates of each kind;
//! the frontiers for blocks of one bit a cell follow all others.

use prism_nand::{BlockId, LaneId, RowId};

use super::PageMap;
use super::slc::{SlcConfig, SlcUse};
use super::state::{Kind, LaneState, OpenBlock};
use crate::victim::NOT_SEALED;

impl PageMap {
    /// The kind of the block at `place` of a lane.
    #[inline]
    pub(super) fn kind_at(&self, place: usize) -> Kind {
        if (place as u32) < self.layout.slc_blocks() { Kind::Slc } else { Kind::Main }
    }

    /// The kind of `block`.
    #[inline]
    pub(super) fn kind_of(&self, block: BlockId) -> Kind {
        if self.layout.is_slc(block) { Kind::Slc } else { Kind::Main }
    }

    /// Rows of data that a block of `kind` holds, and those of them that are filled up
    /// together: of cells with one bit no other page can be lost.
    pub(super) fn data_rows_of(&self, kind: Kind) -> (u32, u32) {
        match kind {
            Kind::Main => (self.data_rows, self.rows_together),
            Kind::Slc => (self.slc_data_rows, 1),
        }
    }

    /// Where the next row of `stream` on `lane` goes.
    #[inline]
    pub(super) fn host_frontier(&self, lane: LaneId, stream: u32) -> usize {
        match self.config.slc {
            None => stream as usize,
            Some(slc) => self.host_frontier_by_kind(&slc, lane, stream) as usize,
        }
    }

    fn host_frontier_by_kind(&self, slc: &SlcConfig, lane: LaneId, stream: u32) -> u32 {
        let first = self.config.own_frontier_count();
        let state = &self.lanes[lane.0 as usize];
        if slc.is_cache() {
            let has_room = state.open[first as usize].is_some() || !state.slc().free.is_empty();
            return if stream == 0 && has_room { first } else { stream };
        }
        // A region that is full lets what is too much go where data of the first stream goes.
        let overflows = stream == first && slc.units_apart() == 0 && self.region_is_full(state);
        if overflows { 0 } else { stream }
    }

    /// Whether one row more could leave a region without a victim that gains.
    fn region_is_full(&self, state: &LaneState) -> bool {
        let row = u64::from(self.layout.units_per_row());
        state.slc_valid + (u64::from(state.slc_rows_in_flight) + 1) * row > state.slc_units_most
    }

    /// Whether the region of `lane` takes a row of the host.
    pub(super) fn region_may_take(&self, lane: LaneId, open: Option<OpenBlock>) -> bool {
        let state = &self.lanes[lane.0 as usize];
        let free = state.slc().free.len() as u32;
        !self.region_is_full(state) && (open.is_some() || free > self.config.reserve_blocks)
    }

    /// Whether a row of `stream` that stands on `row` is not where its rule, or the cache,
    /// would have it: too much data for the region, or no room in the cache.
    #[must_use]
    #[inline]
    pub fn is_overflow(&self, row: RowId, stream: u32) -> bool {
        match self.config.slc {
            None => false,
            Some(slc) => {
                let wanted = if slc.is_cache() { 0 } else { self.config.own_frontier_count() };
                stream == wanted && !self.layout.is_slc(self.layout.block_of(row))
            }
        }
    }

    /// Whether the blocks of one bit a cell of `lane` are to be cleaned or folded.
    pub(super) fn slc_below_low(&self, lane: LaneId) -> bool {
        let low = |slc: SlcConfig| self.slc_watermark(&slc, lane, slc.free_blocks_low);
        self.config.slc.is_some_and(|slc| self.slc_free_blocks(lane) < low(slc))
    }

    /// Whether that may stop.
    pub(super) fn slc_reached_high(&self, lane: LaneId) -> bool {
        let high = |slc: SlcConfig| self.slc_watermark(&slc, lane, slc.free_blocks_high);
        self.config.slc.is_none_or(|slc| self.slc_free_blocks(lane) >= high(slc))
    }

    /// A number of erased blocks as far as `lane` still has them: of a cache one block less
    /// than are left, of a region that has lost too many to be written to, none.
    fn slc_watermark(&self, slc: &SlcConfig, lane: LaneId, blocks: u32) -> u32 {
        if slc.is_cache() {
            return blocks.min(self.slc_blocks_left(lane).saturating_sub(1));
        }
        if self.lanes[lane.0 as usize].slc_units_most == 0 { 0 } else { blocks }
    }

    /// Erased blocks of one bit a cell on `lane`.
    #[must_use]
    pub fn slc_free_blocks(&self, lane: LaneId) -> u32 {
        self.lanes[lane.0 as usize].slc().free.len() as u32
    }

    /// Valid units on `lane` in blocks of one bit a cell.
    #[must_use]
    pub fn slc_valid(&self, lane: LaneId) -> u64 {
        self.lanes[lane.0 as usize].slc_valid
    }

    /// Whether host data waits for room in the region of `lane`, which only cleaning makes.
    pub(crate) fn region_is_pressed(&self, lane: LaneId) -> bool {
        let is_region = self.config.slc.is_some_and(|slc| !slc.is_cache());
        is_region && self.slc_free_blocks(lane) <= self.config.reserve_blocks
    }

    /// Whether idle time has something to fold on `lane`.
    #[must_use]
    pub fn folds_when_idle(&self, lane: LaneId) -> bool {
        let Some(SlcConfig { usage: SlcUse::Cache { fold_when_idle: true }, .. }) = self.config.slc
        else {
            return false;
        };
        self.lanes[lane.0 as usize].slc().candidates.by_age().next().is_some()
    }

    /// Whether a region that has lost blocks holds more than can be cleaned with a gain. Blocks
    /// without valid units are erased then, and no others.
    fn region_is_overfull(&self, lane: LaneId) -> bool {
        let state = &self.lanes[lane.0 as usize];
        self.blocks_left(lane).is_some() && state.slc_valid > state.slc_units_most
    }

    /// Chooses a block of one bit a cell: the policy's choice in a region, the oldest one of
    /// a cache, if its data has a place to go.
    pub(super) fn pick_slc(&mut self, lane: LaneId) -> Option<BlockId> {
        let slc = self.config.slc?;
        let chosen = if slc.is_cache() {
            if !self.has_room_to_fold(lane) {
                return None;
            }
            self.lanes[lane.0 as usize].slc().candidates.by_age().next()?
        } else if self.region_is_overfull(lane) {
            let sealed = self.lanes[lane.0 as usize].slc().candidates.valid().values();
            sealed.iter().position(|&valid| valid == 0)?
        } else {
            self.choose(lane, Kind::Slc)?
        };
        let block = BlockId(lane.0 * self.layout.blocks_per_lane() + chosen as u32);
        self.take_candidate(lane, block);
        Some(block)
    }

    /// Whether a whole block of the cache can be folded without the erased block that
    /// cleaning needs. Once begun, a fold takes one erased block at most, since the host has
    /// no part in its frontier and cleaning waits for its end.
    pub(super) fn has_room_to_fold(&self, lane: LaneId) -> bool {
        let state = &self.lanes[lane.0 as usize];
        let open = state.open[self.config.own_frontier_count() as usize + 1];
        let left = open.map_or(0, |open| self.data_rows_left(open));
        // The last word line is filled up with padding.
        let needed = self.slc_data_rows.next_multiple_of(self.rows_together);
        left >= needed || state.main().free.len() as u32 > self.config.reserve_blocks
    }

    /// A row of `block`, which has one bit a cell, was reserved, or its program has ended.
    /// Rows of the host in a region are counted, parity included.
    pub(super) fn count_region_row(&mut self, block: BlockId, change: i32) {
        let Some(slc) = self.config.slc else { return };
        let by_host =
            u32::from(self.blocks[block.0 as usize].frontier) == self.config.own_frontier_count();
        if !slc.is_cache() && by_host {
            let lane = self.layout.lane_of(block).0 as usize;
            let rows = &mut self.lanes[lane].slc_rows_in_flight;
            *rows = rows.checked_add_signed(change).expect("a row that was reserved");
        }
    }

    /// That the columns of both kinds of blocks agree with the map.
    ///
    /// # Panics
    /// If they do not.
    pub(super) fn assert_kinds(&self) {
        let per_lane = self.layout.blocks_per_lane();
        for (lane, state) in (0..).zip(&self.lanes) {
            let blocks = || (lane * per_lane..(lane + 1) * per_lane).map(BlockId);
            let of = |kind| blocks().filter(move |&block| self.kind_of(block) == kind);
            let valid = |block: BlockId| u64::from(self.blocks[block.0 as usize].valid);
            let counted: u64 = of(Kind::Slc).map(valid).sum();
            assert_eq!(state.slc_valid, counted, "valid units in blocks of one bit a cell");
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
