//! Blocks that accept no more data because they are bad, from the factory or grown.
//!
//! A block whose program fails is closed. Its valid data stays readable and is moved as soon as
//! there is room in addition to the reserve; then the block is *retired*. A block whose erase fails
//! has no valid data and is retired at once. Either way it counts as lost from the moment it fails:
//! a spare block of its die group takes its place, or over-provisioning decreases, and the drive
//! becomes read-only before the rest of a die group could not be cleaned any more.
//!
//! SLC blocks are counted separately, since the others cannot replace them. A write cache shrinks
//! until there is none, and so does a region for data that may also be kept elsewhere. A region
//! with addresses of its own makes the drive read-only when it becomes too small.

use prism_nand::{BlockId, DieGroupId, Geometry, ProgramUnitId};

use super::slc::SlcConfig;
use super::state::{BadOfDieGroup, BlockState, Kind};
use super::{PageConfig, PageMap};
use crate::config::ConfigError;

impl PageMap {
    /// Takes `bad` blocks out of use, before anything was written.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] if the remaining blocks are too few for the logical capacity.
    ///
    /// # Panics
    /// If a block is not free.
    pub fn set_aside(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError> {
        for block in bad {
            assert!(self.blocks[block.0 as usize].state == BlockState::Free, "{block:?} is in use");
            self.take_free(block);
            self.count_bad(block);
        }
        if self.retirement.read_only {
            let (bad, blocks) = (self.retirement.total, self.geometry().blocks());
            return Err(ConfigError::BadBlocks { bad, blocks });
        }
        Ok(())
    }

    /// As [`PageMap::set_aside`], for good blocks, each of which replaces a block of its die group
    /// that fails.
    ///
    /// # Errors
    /// As [`PageMap::set_aside`].
    ///
    /// # Panics
    /// If a block is not free.
    pub fn keep_spare(&mut self, blocks: Vec<BlockId>) -> Result<(), ConfigError> {
        self.set_aside(blocks.iter().copied())?;
        self.retirement.spare.extend(blocks.iter().map(|block| block.0));
        Ok(())
    }

    fn take_free(&mut self, block: BlockId) {
        let kind = self.kind_of(block);
        let die_group = &mut self.die_groups[self.layout.die_group_of(block).0 as usize];
        die_group.part_mut(kind).free.retain(|&free| free != block.0);
        self.blocks[block.0 as usize].state = BlockState::Retired;
    }

    /// `block` is lost: a spare one takes its place, or it counts as bad.
    fn lose(&mut self, block: BlockId) {
        let (die_group, kind) = (self.layout.die_group_of(block), self.kind_of(block));
        let replaces = |&spare: &u32| {
            let spare = BlockId(spare);
            self.layout.die_group_of(spare) == die_group && self.kind_of(spare) == kind
        };
        let Some(place) = self.retirement.spare.iter().position(replaces) else {
            return self.count_bad(block);
        };
        let spare = self.retirement.spare.remove(place);
        self.blocks[spare as usize].state = BlockState::Free;
        self.die_groups[die_group.0 as usize].part_mut(kind).free.push_back(spare);
    }

    /// `block` has failed without an operation of the FTL, and accepts no more program units. What
    /// is programmed there can be read. Its programs in flight may still be committed.
    pub fn block_failed(&mut self, block: BlockId) {
        match self.blocks[block.0 as usize].state {
            BlockState::Free => {
                self.take_free(block);
                self.lose(block);
            }
            BlockState::Open => {
                self.close_frontier(block);
                if self.retirement.closing.insert(block.0) {
                    self.lose(block);
                }
                if self.blocks[block.0 as usize].program_units_in_flight == 0 {
                    self.close(block);
                }
            }
            BlockState::Sealed => {
                let die_group = self.layout.die_group_of(block);
                self.die_groups[die_group.0 as usize].dead.retain(|&dead| dead != block.0);
                self.take_candidate(die_group, block);
                self.close_failed(block);
                self.lose(block);
            }
            // The erase of a victim will fail.
            BlockState::Victim | BlockState::Failed => {}
            BlockState::Retired => self.retirement.spare.retain(|&spare| spare != block.0),
        }
    }

    /// The frontier of `block`, if it has one, goes on in another block.
    fn close_frontier(&mut self, block: BlockId) {
        if self.is_frontier(block) {
            let die_group = self.layout.die_group_of(block).0 as usize;
            self.die_groups[die_group].open[usize::from(self.blocks[block.0 as usize].frontier)] =
                None;
        }
    }

    /// The program of the reserved `program_unit` has failed. Its block accepts no more program
    /// units. Its programs in flight may still be committed.
    pub fn program_failed(&mut self, program_unit: ProgramUnitId) {
        let block = self.layout.block_of(program_unit);
        self.close_frontier(block);
        if self.retirement.closing.insert(block.0) {
            self.lose(block);
        }
        self.program_unit_done(program_unit);
    }

    /// Whether `block` has failed, so that a program unit reserved in it must not be programmed.
    #[must_use]
    pub fn has_failed(&self, block: BlockId) -> bool {
        self.retirement.closing.contains(&block.0)
    }

    /// The erase of `block` has failed: it is retired.
    pub fn erase_failed(&mut self, block: BlockId) {
        self.blocks[block.0 as usize].state = BlockState::Retired;
        self.lose(block);
    }

    /// A block of `die_group` that has failed and can be emptied now: one without valid units, or
    /// any if there is room for its data in addition to the reserve.
    pub fn pick_failed(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        if self.retirement.failed.is_empty() {
            return None;
        }
        let room = Kind::ALL.map(|kind| self.has_room_for_failed(die_group, kind));
        let fits = |&block: &u32| {
            let here = self.layout.die_group_of(BlockId(block)) == die_group;
            let kind = self.kind_of(BlockId(block));
            here && (room[kind as usize] || self.blocks[block as usize].valid == 0)
        };
        let place = self.retirement.failed.iter().position(fits)?;
        Some(BlockId(self.retirement.failed.remove(place)))
    }

    /// Whether a whole block of `kind` can be moved without blocks that cleaning needs: to blocks
    /// of its kind, except that a cache is folded.
    fn has_room_for_failed(&self, die_group: DieGroupId, kind: Kind) -> bool {
        let cache = self.config.slc.is_some_and(|slc| slc.is_cache());
        if kind == Kind::Slc && cache {
            return self.has_room_to_fold(die_group);
        }
        let free = self.die_groups[die_group.0 as usize].part(kind).free.len() as u32;
        free > self.config.reserve_blocks
    }

    /// Every copy out of `victim` is programmed. Returns whether it has to be erased; a failed
    /// block is retired instead.
    pub(crate) fn is_to_be_erased(&mut self, victim: BlockId) -> bool {
        let state = &mut self.blocks[victim.0 as usize].state;
        let failed = *state == BlockState::Failed;
        if failed {
            *state = BlockState::Retired;
        }
        !failed
    }

    /// A failed block has no more program units in flight.
    pub(super) fn close_failed(&mut self, block: BlockId) {
        self.blocks[block.0 as usize].state = BlockState::Failed;
        self.retirement.failed.push(block.0);
    }

    /// Recovery has found that `block` is bad.
    pub(super) fn found_bad(&mut self, block: BlockId, has_data: bool) {
        if has_data {
            self.retirement.closing.insert(block.0);
        } else {
            self.blocks[block.0 as usize].state = BlockState::Retired;
        }
        self.count_bad(block);
    }

    /// Whether the FTL accepts no more data.
    #[must_use]
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.retirement.read_only
    }

    /// Makes the FTL accept no more data.
    pub fn set_read_only(&mut self) {
        self.retirement.read_only = true;
    }

    /// Bad blocks, including those from the factory.
    #[must_use]
    pub fn bad_blocks(&self) -> u32 {
        self.retirement.total
    }

    /// How many blocks the die group with the least spare can lose before the drive becomes
    /// read-only.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        let main = self.spare_of(Kind::Main);
        match self.config.slc {
            Some(slc) if slc.units_apart() > 0 => main.min(self.spare_of(Kind::Slc)),
            Some(_) | None => main,
        }
    }

    /// How many SLC blocks the die group with the fewest can lose before SLC blocks are no longer
    /// written, or the drive becomes read-only; `None` if there are no such blocks.
    #[must_use]
    pub fn slc_spare_blocks(&self) -> Option<u32> {
        self.config.slc.map(|_| self.spare_of(Kind::Slc))
    }

    fn spare_of(&self, kind: Kind) -> u32 {
        if self.retirement.read_only {
            return 0;
        }
        let mut bad = self.bad_by_die_group();
        let of = kind as usize;
        let most = bad.iter().map(|bad| bad[of]).max().unwrap_or(0);
        let Some(die_group) = bad.iter().position(|bad| bad[of] == most) else { return 0 };
        let lose = |_: &u32| {
            bad[die_group][of] += 1;
            let used =
                kind == Kind::Main || self.config.uses_slc(&self.geometry, bad[die_group][of]);
            used && self.config.works_with(&self.geometry, &bad)
        };
        (0..self.layout.blocks_per_die_group()).take_while(lose).count() as u32
    }

    fn bad_by_die_group(&self) -> Vec<BadOfDieGroup> {
        match self.retirement.bad.is_empty() {
            true => vec![[0; 2]; self.die_groups.len()],
            false => self.retirement.bad.clone(),
        }
    }

    pub(super) fn count_bad(&mut self, block: BlockId) {
        let kind = self.kind_of(block);
        let die_group = self.layout.die_group_of(block).0 as usize;
        self.retirement.bad.resize(self.die_groups.len(), [0; 2]);
        self.retirement.bad[die_group][kind as usize] += 1;
        self.retirement.total += 1;
        if let (Kind::Slc, Some(slc)) = (kind, self.config.slc) {
            let left = self.slc_blocks_left(DieGroupId(die_group as u32));
            self.die_groups[die_group].slc_units_most = slc.units_most(&self.geometry, left);
        }
        self.retirement.read_only |= !self.config.works_with(&self.geometry, &self.retirement.bad);
    }

    /// SLC blocks of `die_group` that are not bad.
    pub(super) fn slc_blocks_left(&self, die_group: DieGroupId) -> u32 {
        let bad = self.retirement.bad.get(die_group.0 as usize);
        self.layout.slc_blocks() - bad.map_or(0, |bad| bad[Kind::Slc as usize])
    }

    /// Good blocks that are not SLC, of `die_group` and of all die groups; `None` if no block is
    /// bad. Shares of the data are in proportion to them.
    #[inline]
    pub(super) fn blocks_left(&self, die_group: DieGroupId) -> Option<(u64, u64)> {
        if self.retirement.total == 0 {
            return None;
        }
        let per_die_group =
            u64::from(self.layout.blocks_per_die_group() - self.layout.slc_blocks());
        let left = |bad: &BadOfDieGroup| per_die_group - u64::from(bad[Kind::Main as usize]);
        let all = self.retirement.bad.iter().map(left).sum();
        Some((left(&self.retirement.bad[die_group.0 as usize]), all))
    }
}

impl PageConfig {
    /// Whether an FTL with these bad blocks can work: each die group can be cleaned while it holds
    /// its share, enough spare is left over all of them ([`PageConfig::check`]), and a region holds
    /// the addresses that are kept nowhere else.
    fn works_with(&self, geometry: &Geometry, bad: &[BadOfDieGroup]) -> bool {
        let per_die_group = u64::from(geometry.main_blocks_per_die_group());
        let main = |bad: &BadOfDieGroup| u64::from(bad[Kind::Main as usize]);
        let lost: u64 = bad.iter().map(main).sum();
        let all = (per_die_group * u64::from(geometry.die_groups())).saturating_sub(lost);
        let apart = u64::from(self.slc.map_or(0, |slc| slc.units_apart()));
        let units = u64::from(self.logical_units) - apart + u64::from(self.map_units);
        let fits = |bad: &BadOfDieGroup| {
            let left = per_die_group.saturating_sub(main(bad));
            left > 0
                && (units * left).div_ceil(all) <= self.most_of_die_group(geometry, left as u32)
        };
        let left = |bad: &BadOfDieGroup| {
            geometry.slc_blocks_per_die_group().saturating_sub(bad[Kind::Slc as usize])
        };
        let region = self.slc.map_or(0, |slc| slc.region_units_of(geometry, bad.iter().map(left)));
        units <= self.most_units_without(geometry, lost) && bad.iter().all(fits) && apart <= region
    }

    /// Whether the SLC blocks of a die group are used if `bad` of them are bad.
    fn uses_slc(&self, geometry: &Geometry, bad: u32) -> bool {
        let left = geometry.slc_blocks_per_die_group().saturating_sub(bad);
        let used = |slc: SlcConfig| match slc.is_cache() {
            true => left > 0,
            false => slc.units_most(geometry, left) > 0,
        };
        self.slc.is_some_and(used)
    }
}
