//! Blocks that take no more data: bad from the factory, or grown bad.
//!
//! A block whose program fails is closed as it is. What is valid in it stays readable and is
//! moved away as soon as there is room beside the reserve; then the block is *retired*. A
//! block whose erase fails holds nothing and is retired at once. Either way it counts as
//! lost from the moment it fails: over-provisioning shrinks, and when what is left of a lane
//! could not be cleaned any more the drive becomes read-only, before that happens.
//!
//! Blocks of one bit a cell are counted apart, since the others cannot stand in for them. A
//! write cache gets smaller until there is none. So does a region to which a rule sends data
//! that may live elsewhere; one that holds addresses of its own ends the drive.

use prism_nand::{BlockId, Geometry, LaneId, RowId};

use super::slc::SlcConfig;
use super::state::{BadOfLane, BlockState, Kind};
use super::{PageConfig, PageMap};
use crate::config::ConfigError;

impl PageMap {
    /// Takes `bad` blocks out of use, before anything was written.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] if the rest is too little for what the host sees.
    ///
    /// # Panics
    /// If a block is not free.
    pub fn set_aside(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError> {
        for block in bad {
            assert!(self.blocks[block.0 as usize].state == BlockState::Free, "{block:?} is in use");
            let kind = self.kind_of(block);
            let lane = &mut self.lanes[self.layout.lane_of(block).0 as usize];
            lane.part_mut(kind).free.retain(|&free| free != block.0);
            self.blocks[block.0 as usize].state = BlockState::Retired;
            self.count_bad(block);
        }
        if self.retirement.read_only {
            let (bad, blocks) = (self.retirement.total, self.geometry().blocks());
            return Err(ConfigError::BadBlocks { bad, blocks });
        }
        Ok(())
    }

    /// The program of `row`, which was reserved, has failed: its units are not there, and
    /// its block takes no more rows. Rows of it that are being programmed may be committed.
    pub fn program_failed(&mut self, row: RowId) {
        let block = self.layout.block_of(row);
        if self.is_frontier(block) {
            let lane = self.layout.lane_of(block).0 as usize;
            self.lanes[lane].open[usize::from(self.blocks[block.0 as usize].frontier)] = None;
        }
        if self.retirement.closing.insert(block.0) {
            self.count_bad(block);
        }
        self.row_done(row);
    }

    /// Whether `block` has failed, so that a row reserved in it must not be programmed.
    #[must_use]
    pub fn has_failed(&self, block: BlockId) -> bool {
        self.retirement.closing.contains(&block.0)
    }

    /// The erase of `block`, which was to be erased, has failed: it is retired.
    pub fn erase_failed(&mut self, block: BlockId) {
        self.blocks[block.0 as usize].state = BlockState::Retired;
        self.count_bad(block);
    }

    /// A block of `lane` that has failed and can be emptied now: one with nothing valid in
    /// it, or any if its data has a place beside the reserve.
    pub fn pick_failed(&mut self, lane: LaneId) -> Option<BlockId> {
        if self.retirement.failed.is_empty() {
            return None;
        }
        let room = Kind::ALL.map(|kind| self.has_room_for_failed(lane, kind));
        let fits = |&block: &u32| {
            let here = self.layout.lane_of(BlockId(block)) == lane;
            let kind = self.kind_of(BlockId(block));
            here && (room[kind as usize] || self.blocks[block as usize].valid == 0)
        };
        let place = self.retirement.failed.iter().position(fits)?;
        Some(BlockId(self.retirement.failed.remove(place)))
    }

    /// Whether a whole block of `kind` can be moved without what cleaning needs: within its
    /// kind, but for a cache, whose data is folded.
    fn has_room_for_failed(&self, lane: LaneId, kind: Kind) -> bool {
        let cache = self.config.slc.is_some_and(|slc| slc.is_cache());
        if kind == Kind::Slc && cache {
            return self.has_room_to_fold(lane);
        }
        let free = self.lanes[lane.0 as usize].part(kind).free.len() as u32;
        free > self.config.reserve_blocks
    }

    /// Every copy out of `victim` is programmed. Returns whether it is to be erased; a block
    /// that has failed is retired instead.
    pub(crate) fn is_to_be_erased(&mut self, victim: BlockId) -> bool {
        let state = &mut self.blocks[victim.0 as usize].state;
        let failed = *state == BlockState::Failed;
        if failed {
            *state = BlockState::Retired;
        }
        !failed
    }

    /// A block that failed has no row under way any more.
    pub(super) fn close_failed(&mut self, block: BlockId) {
        self.blocks[block.0 as usize].state = BlockState::Failed;
        self.retirement.failed.push(block.0);
    }

    /// Recovery found `block` to be bad.
    pub(super) fn found_bad(&mut self, block: BlockId, holds_something: bool) {
        if holds_something {
            self.retirement.closing.insert(block.0);
        } else {
            self.blocks[block.0 as usize].state = BlockState::Retired;
        }
        self.count_bad(block);
    }

    /// Whether the FTL takes no more data.
    #[must_use]
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.retirement.read_only
    }

    /// From now on the FTL takes no more data.
    pub fn set_read_only(&mut self) {
        self.retirement.read_only = true;
    }

    /// Bad blocks, those of the factory included.
    #[must_use]
    pub fn bad_blocks(&self) -> u32 {
        self.retirement.total
    }

    /// How many more blocks the lane with the least spare can lose before the drive becomes
    /// read-only.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        let main = self.spare_of(Kind::Main);
        match self.config.slc {
            Some(slc) if slc.units_apart() > 0 => main.min(self.spare_of(Kind::Slc)),
            Some(_) | None => main,
        }
    }

    /// How many more blocks of one bit a cell the lane with fewest can lose before they are no
    /// longer written to, or the drive becomes read-only; `None` if there are no such blocks.
    #[must_use]
    pub fn slc_spare_blocks(&self) -> Option<u32> {
        self.config.slc.map(|_| self.spare_of(Kind::Slc))
    }

    fn spare_of(&self, kind: Kind) -> u32 {
        if self.retirement.read_only {
            return 0;
        }
        let mut bad = self.bad_by_lane();
        let of = kind as usize;
        let most = bad.iter().map(|bad| bad[of]).max().unwrap_or(0);
        let Some(lane) = bad.iter().position(|bad| bad[of] == most) else { return 0 };
        let lose = |_: &u32| {
            bad[lane][of] += 1;
            let used = kind == Kind::Main || self.config.uses_slc(&self.geometry, bad[lane][of]);
            used && self.config.goes_on(&self.geometry, &bad)
        };
        (0..self.layout.blocks_per_lane()).take_while(lose).count() as u32
    }

    fn bad_by_lane(&self) -> Vec<BadOfLane> {
        match self.retirement.bad.is_empty() {
            true => vec![[0; 2]; self.lanes.len()],
            false => self.retirement.bad.clone(),
        }
    }

    pub(super) fn count_bad(&mut self, block: BlockId) {
        let kind = self.kind_of(block);
        let lane = self.layout.lane_of(block).0 as usize;
        self.retirement.bad.resize(self.lanes.len(), [0; 2]);
        self.retirement.bad[lane][kind as usize] += 1;
        self.retirement.total += 1;
        if let (Kind::Slc, Some(slc)) = (kind, self.config.slc) {
            let left = self.slc_blocks_left(LaneId(lane as u32));
            self.lanes[lane].slc_units_most = slc.units_most(&self.geometry, left);
        }
        self.retirement.read_only |= !self.config.goes_on(&self.geometry, &self.retirement.bad);
    }

    /// Blocks of one bit a cell that `lane` has and that are not bad.
    pub(super) fn slc_blocks_left(&self, lane: LaneId) -> u32 {
        let bad = self.retirement.bad.get(lane.0 as usize);
        self.layout.slc_blocks() - bad.map_or(0, |bad| bad[Kind::Slc as usize])
    }

    /// Blocks of more than one bit a cell that `lane` has left, and all lanes together, where
    /// any block is bad: shares of the data go by these then.
    #[inline]
    pub(super) fn blocks_left(&self, lane: LaneId) -> Option<(u64, u64)> {
        if self.retirement.total == 0 {
            return None;
        }
        let per_lane = u64::from(self.layout.blocks_per_lane() - self.layout.slc_blocks());
        let left = |bad: &BadOfLane| per_lane - u64::from(bad[Kind::Main as usize]);
        let all = self.retirement.bad.iter().map(left).sum();
        Some((left(&self.retirement.bad[lane.0 as usize]), all))
    }
}

impl PageConfig {
    /// Whether an FTL whose lanes have so many bad blocks can go on: each lane can be
    /// cleaned while it holds its share, enough is left over all of them
    /// ([`PageConfig::check`]), and a region holds the addresses that live nowhere else.
    fn goes_on(&self, geometry: &Geometry, bad: &[BadOfLane]) -> bool {
        let per_lane = u64::from(geometry.main_blocks_per_lane());
        let main = |bad: &BadOfLane| u64::from(bad[Kind::Main as usize]);
        let lost: u64 = bad.iter().map(main).sum();
        let all = (per_lane * u64::from(geometry.lanes())).saturating_sub(lost);
        let apart = u64::from(self.slc.map_or(0, |slc| slc.units_apart()));
        let units = u64::from(self.logical_units) - apart + u64::from(self.map_units);
        let fits = |bad: &BadOfLane| {
            let left = per_lane.saturating_sub(main(bad));
            left > 0 && (units * left).div_ceil(all) <= self.most_of_lane(geometry, left as u32)
        };
        let left = |bad: &BadOfLane| {
            geometry.slc_blocks_per_lane().saturating_sub(bad[Kind::Slc as usize])
        };
        let region = self.slc.map_or(0, |slc| slc.region_units_of(geometry, bad.iter().map(left)));
        units <= self.most_units_without(geometry, lost) && bad.iter().all(fits) && apart <= region
    }

    /// Whether blocks of one bit a cell of a lane are written to where so many of them are bad.
    fn uses_slc(&self, geometry: &Geometry, bad: u32) -> bool {
        let left = geometry.slc_blocks_per_lane().saturating_sub(bad);
        let used = |slc: SlcConfig| match slc.is_cache() {
            true => left > 0,
            false => slc.units_most(geometry, left) > 0,
        };
        self.slc.is_some_and(used)
    }
}
