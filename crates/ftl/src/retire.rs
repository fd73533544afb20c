//! Blocks that take no more data: bad from the factory, or grown bad.
//!
//! A block whose program fails is closed as it is. What is valid in it stays readable and is
//! moved away as soon as there is room beside the reserve; then the block is *retired*. A
//! block whose erase fails holds nothing and is retired at once. Either way it counts as
//! lost from the moment it fails: over-provisioning shrinks, and when what is left of a lane
//! could not be cleaned any more the drive becomes read-only, before that happens.

use prism_base::FastSet;
use prism_nand::{BlockId, Geometry, LaneId, RowId};

use crate::config::{ConfigError, FtlConfig};
use crate::pagemap::{BlockState, PageMap};

/// What is out of use, and on its way there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retirement {
    /// Bad blocks of each lane; empty where there is none at all.
    bad: Vec<u32>,
    total: u32,
    /// Blocks that failed and have rows under way.
    closing: FastSet<u32>,
    /// Closed blocks with data to be moved, oldest first.
    failed: Vec<u32>,
    read_only: bool,
}

impl Retirement {
    /// Whether a block has failed and is not closed yet; no longer after this.
    pub(crate) fn take_closing(&mut self, block: BlockId) -> bool {
        !self.closing.is_empty() && self.closing.remove(&block.0)
    }
}

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
            assert!(self.state[block.0 as usize] == BlockState::Free, "{block:?} is in use");
            let kind = self.kind_of(block);
            let lane = &mut self.lanes[self.layout.lane_of(block).0 as usize];
            lane.part_mut(kind).free.retain(|&free| free != block.0);
            self.state[block.0 as usize] = BlockState::Retired;
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
            self.lanes[lane].open[usize::from(self.frontier_of[block.0 as usize])] = None;
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
        self.state[block.0 as usize] = BlockState::Retired;
        self.count_bad(block);
    }

    /// A block of `lane` that has failed and can be emptied now: one with nothing valid in
    /// it, or any if an erased block is there beside the reserve.
    pub fn pick_failed(&mut self, lane: LaneId) -> Option<BlockId> {
        if self.retirement.failed.is_empty() {
            return None;
        }
        let room = self.free_blocks(lane) > self.config.reserve_blocks;
        let fits = |&block: &u32| {
            let here = self.layout.lane_of(BlockId(block)) == lane;
            here && (room || self.valid[block as usize] == 0)
        };
        let place = self.retirement.failed.iter().position(fits)?;
        Some(BlockId(self.retirement.failed.remove(place)))
    }

    /// Every copy out of `victim` is programmed. Returns whether it is to be erased; a block
    /// that has failed is retired instead.
    pub(crate) fn is_to_be_erased(&mut self, victim: BlockId) -> bool {
        let state = &mut self.state[victim.0 as usize];
        let failed = *state == BlockState::Failed;
        if failed {
            *state = BlockState::Retired;
        }
        !failed
    }

    /// A block that failed has no row under way any more.
    pub(crate) fn close_failed(&mut self, block: BlockId) {
        self.state[block.0 as usize] = BlockState::Failed;
        self.retirement.failed.push(block.0);
    }

    /// Recovery found `block` to be bad.
    pub(crate) fn found_bad(&mut self, block: BlockId, holds_something: bool) {
        if holds_something {
            self.retirement.closing.insert(block.0);
        } else {
            self.state[block.0 as usize] = BlockState::Retired;
        }
        self.count_bad(block);
    }

    /// Whether the layer takes no more data.
    #[must_use]
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.retirement.read_only
    }

    /// From now on the layer takes no more data.
    pub fn set_read_only(&mut self) {
        self.retirement.read_only = true;
    }

    /// Bad blocks, those of the factory included.
    #[must_use]
    pub fn bad_blocks(&self) -> u32 {
        self.retirement.total
    }

    /// Whether a lane has blocks to be moved away from and waits for room.
    #[must_use]
    pub fn failed_waiting(&self) -> bool {
        !self.retirement.failed.is_empty() || !self.retirement.closing.is_empty()
    }

    /// How many more blocks the lane with the least spare can lose before the drive becomes
    /// read-only.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        if self.retirement.read_only {
            return 0;
        }
        let bad = self.bad_by_lane();
        let more = |lane: usize| {
            let mut bad = bad.clone();
            let lose = |_: &u32| {
                bad[lane] += 1;
                self.config.goes_on(&self.geometry, &bad)
            };
            (0..self.layout.blocks_per_lane()).take_while(lose).count() as u32
        };
        let most = bad.iter().copied().max().unwrap_or(0);
        (0..bad.len()).find(|&lane| bad[lane] == most).map_or(0, more)
    }

    fn bad_by_lane(&self) -> Vec<u32> {
        match self.retirement.bad.is_empty() {
            true => vec![0; self.lanes.len()],
            false => self.retirement.bad.clone(),
        }
    }

    fn count_bad(&mut self, block: BlockId) {
        let lane = self.layout.lane_of(block).0 as usize;
        self.retirement.bad.resize(self.lanes.len(), 0);
        self.retirement.bad[lane] += 1;
        self.retirement.total += 1;
        self.retirement.read_only |= !self.config.goes_on(&self.geometry, &self.retirement.bad);
    }

    /// Whether `lane` holds no more than its share, where lanes have lost blocks: shares go
    /// by the blocks that are left.
    pub(crate) fn balanced_by_blocks(&self, lane: LaneId, slack: u64) -> Option<bool> {
        if self.retirement.total == 0 {
            return None;
        }
        let lanes = self.lanes.len() as u64;
        let per_lane = u64::from(self.layout.blocks_per_lane());
        let left = per_lane - u64::from(self.retirement.bad[lane.0 as usize]);
        let all = lanes * per_lane - u64::from(self.retirement.total);
        Some(self.lanes[lane.0 as usize].valid * all <= self.valid_total * left + slack * all)
    }
}

impl FtlConfig {
    /// Whether a layer whose lanes have so many bad blocks can go on: each lane can be
    /// cleaned while it holds its share, and enough is left over all of them
    /// ([`FtlConfig::check`]).
    #[must_use]
    pub fn goes_on(&self, geometry: &Geometry, bad: &[u32]) -> bool {
        let per_lane = u64::from(geometry.blocks_per_lane());
        let lost: u64 = bad.iter().map(|&bad| u64::from(bad)).sum();
        let all = u64::from(geometry.blocks()).saturating_sub(lost);
        let units = u64::from(self.logical_units) + u64::from(self.map_units);
        let fits = |&bad: &u32| {
            let left = per_lane.saturating_sub(u64::from(bad));
            left > 0 && (units * left).div_ceil(all) <= self.most_of_lane(geometry, left as u32)
        };
        units <= self.most_units_without(geometry, lost) && bad.iter().all(fits)
    }
}
