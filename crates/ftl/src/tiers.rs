//! Blocks with one bit a cell beside the others: what they are used for, and where rows of
//! the host go because of that. Design: docs/design/tiers.md.
//!
//! Both kinds of blocks share one map. A lane has erased blocks and candidates of each kind;
//! the frontiers for blocks of one bit a cell follow all others.

use prism_nand::{BlockId, Geometry, LaneId, RowId};

use crate::alloc::{LaneState, OpenBlock};
use crate::candidates::NOT_SEALED;
use crate::config::{ConfigError, PageConfig, Placement};
use crate::pagemap::PageMap;

/// A kind of blocks, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Those with the cells' own number of bits.
    Main = 0,
    /// Those with one bit a cell.
    Slc = 1,
}

impl Kind {
    /// Both kinds.
    pub(crate) const ALL: [Self; 2] = [Self::Main, Self::Slc];
}

/// Which data lives in a region of one bit a cell.
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

/// What blocks of one bit a cell are used for.
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

/// How the blocks with one bit a cell are used. Which they are is the geometry's
/// ([`prism_nand::Slc`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcConfig {
    /// What for.
    pub usage: SlcUse,
    /// Cleaning or folding of them starts when a lane has fewer erased ones than this; a
    /// cache with 0 folds in idle time only.
    pub free_blocks_low: u32,
    /// And it stops at this many.
    pub free_blocks_high: u32,
}

impl SlcConfig {
    /// Open blocks for host data and for copies that a lane's region keeps.
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

    /// The most valid units of a lane's region of so many blocks, with which its cleaning
    /// always gains: the same bound as for the other blocks ([`PageConfig::check`]), a share of
    /// garbage included.
    pub(crate) fn units_most(&self, geometry: &Geometry, blocks: u32) -> u64 {
        let block = u64::from(geometry.slc_data_units_per_block());
        let row = u64::from(geometry.units_per_row());
        let kept = self.free_blocks_high.max(1) - 1 + Self::REGION_FRONTIERS;
        let candidates = u64::from(blocks.saturating_sub(kept));
        let gaining = (candidates * (block + 1).saturating_sub(row)).saturating_sub(1);
        let slack = candidates.saturating_sub(1) * block;
        gaining.min(slack - slack / 64)
    }

    /// The most logical units that may live in the region of a drive and nowhere else.
    #[must_use]
    pub fn region_units(&self, geometry: &Geometry) -> u64 {
        let all = (0..geometry.lanes()).map(|_| geometry.slc_blocks_per_lane());
        self.region_units_of(geometry, all)
    }

    /// The same where lanes have so many blocks left.
    pub(crate) fn region_units_of(
        &self,
        geometry: &Geometry,
        blocks: impl Iterator<Item = u32>,
    ) -> u64 {
        let under_way = Self::units_under_way(geometry);
        blocks.map(|blocks| self.units_most(geometry, blocks).saturating_sub(under_way)).sum()
    }

    /// Units that a region must be able to take beside those that live there, because rows
    /// are under way.
    fn units_under_way(geometry: &Geometry) -> u64 {
        // Two rows of the host on each die, the one that looks for a place, and parity.
        let rows = 2 * u64::from(geometry.dies_per_superblock) + 1;
        let rows = if geometry.parity { 2 * rows } else { rows };
        rows * u64::from(geometry.units_per_row())
    }
}

impl PageConfig {
    /// The stream of the host data that lives in a region, and the first of the two frontiers
    /// that blocks of one bit a cell need. The second is for copies: within a region, or out
    /// of a cache, into other blocks.
    #[must_use]
    pub fn slc_frontier(&self) -> Option<u32> {
        self.slc.map(|_| self.own_frontier_count())
    }

    /// The kind of block that `frontier` writes to.
    pub(crate) fn kind_of_frontier(&self, frontier: usize) -> Kind {
        match self.slc {
            None => Kind::Main,
            Some(slc) => {
                let first = self.own_frontier_count() as usize;
                let is_slc = frontier == first || frontier == first + 1 && !slc.is_cache();
                if is_slc { Kind::Slc } else { Kind::Main }
            }
        }
    }

    /// The stream of `lpn`, written with placement handle `handle` by a request of `bytes`.
    #[must_use]
    #[inline]
    pub fn stream_for(&self, lpn: u32, handle: u32, bytes: u64) -> u32 {
        match self.slc {
            Some(SlcConfig { usage: SlcUse::Region(SlcRule::UpTo(most)), .. })
                if bytes <= most && lpn < self.logical_units =>
            {
                self.own_frontier_count()
            }
            _ => self.stream_of(lpn, handle),
        }
    }

    /// Whether a rule sends `lpn`, written with `handle`, to the region, whatever the size of
    /// the request.
    pub(crate) fn lives_in_region(&self, lpn: u32, handle: u32) -> bool {
        if lpn >= self.logical_units {
            return false;
        }
        match self.slc.map(|slc| slc.usage) {
            Some(SlcUse::Region(SlcRule::Below(units))) => lpn < units,
            Some(SlcUse::Region(SlcRule::Handle(of_region))) => handle == of_region,
            Some(SlcUse::Region(SlcRule::UpTo(_)) | SlcUse::Cache { .. }) | None => false,
        }
    }

    /// The frontier for copies out of a block of one bit a cell, or out of one that was
    /// filled by folding; `None` if `frontier` wrote neither.
    pub(crate) fn frontier_of_slc_copies(&self, frontier: u32) -> Option<u32> {
        let (slc, first) = (self.slc?, self.own_frontier_count());
        if frontier == first || frontier == first + 1 && !slc.is_cache() {
            return Some(first + 1);
        }
        None
    }

    /// Erased blocks of a lane that the host may not open: folding may need one beside the
    /// one that cleaning needs.
    #[must_use]
    pub fn reserve_for_copies(&self) -> u32 {
        self.reserve_blocks + u32::from(self.slc.is_some_and(|slc| slc.is_cache()))
    }

    /// Checks what is said of blocks with one bit a cell against the flash.
    pub(crate) fn check_slc(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let Some(slc) = self.slc else {
            let blocks = geometry.slc_blocks_per_lane();
            return if blocks == 0 { Ok(()) } else { Err(ConfigError::SlcUnused { blocks }) };
        };
        let blocks = geometry.slc_blocks_per_lane();
        if blocks == 0 {
            return Err(ConfigError::SlcMissing);
        }
        if matches!(self.placement, Placement::Segments(_)) {
            return Err(ConfigError::SlcStreams { what: "segments" });
        }
        let (low, high) = (slc.free_blocks_low, slc.free_blocks_high);
        let watermark = |field, value, min, max| {
            let fits = (min..=max).contains(&value);
            if fits { Ok(()) } else { Err(ConfigError::Watermark { field, value, min, max }) }
        };
        let least = if slc.is_cache() { 0 } else { self.reserve_blocks + 1 };
        // The open block of a cache is not folded, so that it is never erased as a whole.
        watermark("slc.free_blocks_low", low, least, blocks - 1)?;
        watermark("slc.free_blocks_high", high, low, blocks - 1)?;
        match slc.usage {
            SlcUse::Cache { .. } if self.placement != Placement::Any => {
                Err(ConfigError::SlcStreams { what: "placement handles" })
            }
            SlcUse::Cache { .. } => Ok(()),
            SlcUse::Region(rule) => self.check_region(rule, &slc, geometry),
        }
    }

    fn check_region(
        &self,
        rule: SlcRule,
        slc: &SlcConfig,
        geometry: &Geometry,
    ) -> Result<(), ConfigError> {
        let usable = slc.region_units(geometry);
        let handles = match self.placement {
            Placement::Handles(handles) => handles,
            Placement::Any | Placement::Segments(_) => 0,
        };
        match rule {
            SlcRule::Handle(handle) if handle >= handles => {
                Err(ConfigError::SlcHandle { handle, handles })
            }
            SlcRule::Below(units) if u64::from(units) > usable || units == 0 => {
                Err(ConfigError::SlcRegion { units: units.into(), usable })
            }
            _ if usable == 0 => Err(ConfigError::SlcRegion { units: 1, usable }),
            _ => Ok(()),
        }
    }
}

impl PageMap {
    /// The kind of the block at `place` of a lane.
    #[inline]
    pub(crate) fn kind_at(&self, place: usize) -> Kind {
        if (place as u32) < self.layout.slc_blocks() { Kind::Slc } else { Kind::Main }
    }

    /// The kind of `block`.
    #[inline]
    pub(crate) fn kind_of(&self, block: BlockId) -> Kind {
        if self.layout.is_slc(block) { Kind::Slc } else { Kind::Main }
    }

    /// Rows of data that a block of `kind` holds, and those of them that are filled up
    /// together: of cells with one bit no other page can be lost.
    pub(crate) fn data_rows_of(&self, kind: Kind) -> (u32, u32) {
        match kind {
            Kind::Main => (self.data_rows, self.rows_together),
            Kind::Slc => (self.slc_data_rows, 1),
        }
    }

    /// Where the next row of `stream` on `lane` goes.
    #[inline]
    pub(crate) fn host_frontier(&self, lane: LaneId, stream: u32) -> usize {
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
    pub(crate) fn region_may_take(&self, lane: LaneId, open: Option<OpenBlock>) -> bool {
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
    pub(crate) fn slc_below_low(&self, lane: LaneId) -> bool {
        let low = |slc: SlcConfig| self.slc_watermark(&slc, lane, slc.free_blocks_low);
        self.config.slc.is_some_and(|slc| self.slc_free_blocks(lane) < low(slc))
    }

    /// Whether that may stop.
    pub(crate) fn slc_reached_high(&self, lane: LaneId) -> bool {
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
    pub(crate) fn pick_slc(&mut self, lane: LaneId) -> Option<BlockId> {
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
    pub(crate) fn has_room_to_fold(&self, lane: LaneId) -> bool {
        let state = &self.lanes[lane.0 as usize];
        let open = state.open[self.config.own_frontier_count() as usize + 1];
        let left = open.map_or(0, |open| self.data_rows_left(open));
        // The last word line is filled up with padding.
        let needed = self.slc_data_rows.next_multiple_of(self.rows_together);
        left >= needed || state.main().free.len() as u32 > self.config.reserve_blocks
    }

    /// A row of `block`, which has one bit a cell, was reserved, or its program has ended.
    /// Rows of the host in a region are counted, parity included.
    pub(crate) fn count_region_row(&mut self, block: BlockId, change: i32) {
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
    pub(crate) fn assert_kinds(&self) {
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
