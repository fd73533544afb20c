//! Blocks of hybrid mapping that accept no more data because they are bad, from the factory or
//! grown.
//!
//! A log block whose program fails is closed and merged before others. A failed data block is
//! copied to a fresh one. A failed target of a merge is abandoned, and the merge restarts with
//! another, since it has not taken effect yet. Valid data in a failed block stays readable until
//! then. A failed block counts as lost at once: the number of log blocks may decrease, and when
//! there are too few for merges to proceed ([`HybridConfig::works_without`]) the FTL becomes
//! read-only.

use prism_nand::{BlockId, DieGroupId, Geometry, ProgramUnitId};

use super::merge::Step;
use super::{Hybrid, HybridConfig, Use};
use crate::config::ConfigError;

/// Failed blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Retirement {
    /// By block: bad, so that it accepts no more programs.
    pub(super) failed: Vec<bool>,
    total: u32,
    read_only: bool,
}

impl Retirement {
    pub(super) fn new(blocks: u32) -> Self {
        Self { failed: vec![false; blocks as usize], ..Self::default() }
    }
}

impl Hybrid {
    /// Takes `bad` blocks out of use, before anything was written.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] if the remaining blocks are too few for the logical capacity.
    ///
    /// # Panics
    /// If a block is not free.
    pub fn set_aside(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError> {
        for block in bad {
            assert!(self.uses[block.0 as usize] == Use::Free, "{block:?} is in use");
            let die_group = self.die_group_of(block.0);
            self.die_groups[die_group].free.retain(|&free| free != block.0);
            self.free_total -= 1;
            self.fail(block.0);
            self.uses[block.0 as usize] = Use::Retired;
        }
        if self.retirement.read_only {
            let (bad, blocks) = (self.retirement.total, self.geometry.blocks());
            return Err(ConfigError::BadBlocks { bad, blocks });
        }
        Ok(())
    }

    /// The program of the reserved `program_unit` has failed, or is not attempted because another
    /// program of its block has failed. The block accepts no more program units. Its programs in
    /// flight may still be committed.
    pub fn program_failed(&mut self, program_unit: ProgramUnitId) {
        let block = self.layout.block_of(program_unit).0;
        if !self.is_failed(block) {
            self.fail(block);
            if self.uses[block as usize] == Use::Log && self.is_open(block) {
                self.close(block);
                self.groups[self.group_of[block as usize] as usize].awaits_program_unit = false;
            }
            self.next[block as usize] = self.layout.program_units_per_block();
        }
        self.program_unit_done(program_unit);
    }

    /// Whether a program of `block` has failed, so that a program unit reserved in it must not be
    /// programmed.
    #[must_use]
    pub fn has_failed(&self, block: BlockId) -> bool {
        self.is_failed(block.0)
    }

    pub(super) fn is_failed(&self, block: u32) -> bool {
        self.retirement.failed[block as usize]
    }

    /// The erase of `block` has failed: it is retired.
    pub fn erase_failed(&mut self, block: BlockId) {
        self.fail(block.0);
        self.retire(block.0);
    }

    /// Whether the FTL accepts no more data.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.retirement.read_only
    }

    /// Makes the FTL accept no more data.
    pub fn set_read_only(&mut self) {
        self.retirement.read_only = true;
    }

    /// How many blocks can be lost before the FTL becomes read-only.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        if self.retirement.read_only {
            return 0;
        }
        let most = self.geometry.blocks() - self.retirement.total;
        let works =
            |more: &u32| self.config.works_without(&self.geometry, self.retirement.total + more);
        (1..=most).take_while(works).count() as u32
    }

    /// Whether there are bad blocks, including those from the factory.
    pub(super) fn has_bad(&self) -> bool {
        self.retirement.total > 0
    }

    /// `block` is bad from now on.
    pub(super) fn fail(&mut self, block: u32) {
        if std::mem::replace(&mut self.retirement.failed[block as usize], true) {
            return;
        }
        self.retirement.total += 1;
        let bad = self.retirement.total;
        self.logs_found = self.logs_found.max(self.log_total);
        self.logs_max = self.config.log_blocks_without(&self.geometry, bad);
        self.retirement.read_only |= !self.config.works_without(&self.geometry, bad);
    }

    /// The bad block `block` holds no more valid data.
    pub(super) fn retire(&mut self, block: u32) {
        if self.is_log(block) {
            self.retire_log(block);
        }
        self.uses[block as usize] = Use::Retired;
    }

    /// A failed block has no more program units in flight, and is not a log block being closed.
    pub(super) fn settle_failed(&mut self, block: u32) {
        let die_group = self.die_group_of(block);
        match self.uses[block as usize] {
            Use::Target if !self.is_target(block) => self.retire(block),
            Use::Data if self.valid[block as usize] == 0 => self.drained(block),
            Use::Data => {
                self.die_groups[die_group].failed.push_back(block);
                self.note_idle(die_group);
            }
            Use::Dead if self.die_groups[die_group].dead.contains(&block) => {
                self.die_groups[die_group].dead.retain(|&dead| dead != block);
                self.retire(block);
            }
            _ => {}
        }
    }

    fn is_target(&self, block: u32) -> bool {
        let copies_to = |step: Step| step.target() == Some(block);
        self.die_groups.iter().any(|die_group| die_group.step.is_some_and(copies_to))
    }

    /// Whether the target of `step` has failed: the step makes no more copies and does not take
    /// effect.
    pub(super) fn is_lost(&self, step: Step) -> bool {
        step.target().is_some_and(|target| self.is_failed(target))
    }

    /// Abandons `step` of `die_group`, which has no copies in flight: the map still points to the
    /// sources of its copies.
    pub(super) fn give_up(&mut self, die_group: usize, step: Step, logical: u32) {
        self.die_groups[die_group].sources.fill(0);
        self.groups[(logical / self.config.group_blocks) as usize].merging = None;
        let target = step.target().expect("a step that copies");
        if self.uses[target as usize] == Use::Target && self.is_idle(target) {
            self.retire(target);
        }
        self.after_fill(logical);
    }

    /// A failed data block of `die_group` that can be copied to a fresh block now.
    pub(super) fn next_failed(&mut self, die_group: usize) -> Option<u32> {
        let waiting = &self.die_groups[die_group];
        if waiting.failed.is_empty() || waiting.victim.is_some() || self.free_total == 0 {
            return None;
        }
        let uses = &self.uses;
        self.die_groups[die_group].failed.retain(|&block| uses[block as usize] == Use::Data);
        let may = |&block: &u32| self.is_quiet(block) && self.is_idle(block);
        let place = self.die_groups[die_group].failed.iter().position(may)?;
        self.die_groups[die_group].failed.remove(place)
    }

    /// Called when no work can begin on `die_group` although some is pending. If no block is erased
    /// or about to be, failures have used up the reserve, and the FTL becomes read-only.
    pub(super) fn check_exhausted(&mut self) {
        if !self.has_bad() || self.free_total > 0 {
            return;
        }
        let gives = |use_: &Use| matches!(use_, Use::Dead | Use::Spent | Use::Target);
        let in_flight = self.program_units_in_flight.iter().any(|&program_units| program_units > 0)
            || self.die_groups.iter().any(|die_group| die_group.step.is_some());
        self.retirement.read_only |= !in_flight && !self.uses.iter().any(gives);
    }

    /// Whether `die_group` has data in failed blocks.
    pub(super) fn has_failed_data(&self, die_group: DieGroupId) -> bool {
        let failed = &self.die_groups[die_group.0 as usize].failed;
        failed.iter().any(|&block| self.uses[block as usize] == Use::Data)
    }
}

impl HybridConfig {
    /// Whether an FTL can work with `bad` bad blocks: the minimum of log blocks is left, besides
    /// data blocks, the block for merges and the reserve.
    #[must_use]
    pub fn works_without(&self, geometry: &Geometry, bad: u32) -> bool {
        self.log_blocks_without(geometry, bad) >= self.logs_min()
    }
}
