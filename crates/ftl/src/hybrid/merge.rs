//! Merges: log blocks become data blocks.
//!
//! A log block becomes the data block itself if its valid units are those of one logical block at
//! their own offsets, and the old data block has no valid unit below the write position of the log
//! block: at once if no unit is left to copy (*switch* merge), otherwise after the rest has been
//! copied behind its units (*partial* merge). Any other log block is merged one logical block at a
//! time: the newest version of each unit, wherever it is, is copied to a fresh block (*full*
//! merge). A log block without valid units is only erased.
//!
//! The copies of a logical block take effect together when all of them are programmed. The data of
//! a logical block is therefore always in its data block and log blocks, and an interrupted merge
//! only leaves a block to be erased.

use prism_base::counts;
use prism_nand::{BlockId, Cause, DieGroupId, ProgramUnitId, Pun};

use super::{Hybrid, Use};
use crate::plan::{self, ReadRun, UnitWrite, Units};

/// Merges by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Full log blocks that became data blocks without a copy.
    pub switches: u64,
    /// Log blocks that became data blocks after the rest of the logical block was copied, or, if
    /// there was no rest, before they were full.
    pub partial: u64,
    /// Logical blocks copied to a fresh block.
    pub full: u64,
    /// Log and data blocks erased because they had no valid units.
    pub empty: u64,
}

counts!(MergeCounts { values: switches, partial, full, empty; });

/// The work of a die group until its next erase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The victim is erased without copies.
    Erase,
    /// A log block is erased without copies; a group may be waiting for it.
    EraseLog,
    /// Program units `first..end` of `logical` are copied to `target`, which then becomes its data
    /// block.
    Copy { logical: u32, target: u32, first: u32, end: u32 },
    /// The same, but the host continues to write to `target`.
    Fill { logical: u32, target: u32, first: u32, end: u32 },
}

impl Step {
    /// The block that the step copies to.
    pub(super) fn target(self) -> Option<u32> {
        match self {
            Self::Erase | Self::EraseLog => None,
            Self::Copy { target, .. } | Self::Fill { target, .. } => Some(target),
        }
    }
}

/// How a log block is merged.
enum MergeKind {
    /// It becomes the data block of this logical block.
    InPlace(u32),
    /// This logical block is copied to a fresh block; others may follow.
    Full(u32),
}

impl Hybrid {
    /// Erased blocks of `die_group`.
    #[must_use]
    pub fn free_blocks(&self, die_group: DieGroupId) -> u32 {
        self.die_groups[die_group.0 as usize].free.len() as u32
    }

    /// Whether the die group has merges or erases to do.
    #[must_use]
    pub fn below_low(&self, die_group: DieGroupId) -> bool {
        self.has_work(die_group) || self.could_merge(die_group, self.config.free_blocks_low)
    }

    /// Whether merging may stop.
    #[must_use]
    pub fn reached_high(&self, die_group: DieGroupId) -> bool {
        !self.has_work(die_group) && !self.could_merge(die_group, self.config.free_blocks_high)
    }

    /// Whether a group waits for the die group, or work has begun there.
    #[must_use]
    pub fn has_work(&self, die_group: DieGroupId) -> bool {
        let failed = self.has_failed_data(die_group);
        let die_group = &self.die_groups[die_group.0 as usize];
        let awaited = !matches!(die_group.step, None | Some(Step::Erase));
        let merges = die_group.victim.is_some() || !die_group.wanted.is_empty();
        awaited || merges || !die_group.dead.is_empty() || !die_group.fills.is_empty() || failed
    }

    fn could_merge(&self, die_group: DieGroupId, watermark: u32) -> bool {
        self.free_total < watermark * self.die_groups.len() as u32
            && !self.die_groups[die_group.0 as usize].sealed.is_empty()
    }

    /// Begins the next step of `die_group`; [`Hybrid::gather`] and [`Hybrid::emptied`] then refer
    /// to it by the block returned. In this order: erase a dead block, copy the data of a failed
    /// block, continue a merge, merge a log block that a group waits for, merge the oldest full log
    /// block of the die group. `None` if no step can begin now.
    pub fn pick_victim(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        let index = die_group.0 as usize;
        assert!(self.die_groups[index].step.is_none(), "one step at a time on {die_group:?}");
        let begun = self.begin_step(index);
        if begun.is_none() && self.has_work(die_group) {
            self.check_exhausted();
        }
        begun
    }

    fn begin_step(&mut self, index: usize) -> Option<BlockId> {
        if let Some(place) =
            self.die_groups[index].dead.iter().position(|&block| self.is_quiet(block))
        {
            let block =
                self.die_groups[index].dead.remove(place).expect("the index is in the list");
            self.merges.empty += 1;
            return Some(self.begin_erase(index, block));
        }
        if let Some(log) = self.next_fill(index) {
            return Some(BlockId(log));
        }
        if let Some(data) = self.next_failed(index) {
            let target = self.take_free().expect("an erased block is left");
            self.begin_full(index, self.logical[data as usize], target);
            return Some(BlockId(data));
        }
        self.continue_merging(index)
    }

    /// Continues the merge of `die_group`, or begins one.
    fn continue_merging(&mut self, index: usize) -> Option<BlockId> {
        loop {
            let victim = match self.die_groups[index].victim {
                Some(victim) => victim,
                None => self.next_victim(index)?,
            };
            if !self.is_quiet(victim) {
                return None;
            }
            if self.valid[victim as usize] == 0 {
                self.die_groups[index].victim = None;
                if self.is_failed(victim) {
                    self.retire(victim);
                    continue;
                }
                self.merges.empty += u64::from(!self.die_groups[index].copied);
                self.uses[victim as usize] = Use::Spent;
                self.spent_total += 1;
                return Some(self.begin_erase(index, victim));
            }
            match self.kind_of(victim) {
                MergeKind::InPlace(logical) | MergeKind::Full(logical)
                    if self.data_is_written(logical) =>
                {
                    return None;
                }
                MergeKind::InPlace(logical) if self.data[logical as usize] == 0 => {
                    // The map alone changes: there is no old data block.
                    self.count_in_place(victim, 0);
                    self.retire_log(victim);
                    self.die_groups[index].victim = None;
                    self.become_data(victim, logical);
                }
                MergeKind::InPlace(logical) => {
                    let first = self.next[victim as usize];
                    let end = self.program_units_of(logical, victim).max(first);
                    self.count_in_place(victim, end - first);
                    self.begin_copy(index, Step::Copy { logical, target: victim, first, end });
                    return Some(BlockId(victim));
                }
                MergeKind::Full(logical) => {
                    let target = self.take_free()?;
                    self.begin_full(index, logical, target);
                    return Some(BlockId(victim));
                }
            }
        }
    }

    /// Whether the group of `block` has no merge in progress, which might read it.
    pub(super) fn is_quiet(&self, block: u32) -> bool {
        self.groups[self.group_of[block as usize] as usize].merging.is_none()
    }

    fn begin_erase(&mut self, die_group: usize, block: u32) -> BlockId {
        let spent = self.uses[block as usize] == Use::Spent;
        self.die_groups[die_group].step = Some(if spent { Step::EraseLog } else { Step::Erase });
        BlockId(block)
    }

    /// Whether program units of the data block of `logical` are in flight: a merge that began now
    /// would miss their units.
    fn data_is_written(&self, logical: u32) -> bool {
        self.data[logical as usize].checked_sub(1).is_some_and(|data| !self.is_idle(data))
    }

    /// Begins to copy the units that a log block needs from the data block before the host can
    /// continue.
    fn next_fill(&mut self, die_group: usize) -> Option<u32> {
        while let Some(&(log, end)) = self.die_groups[die_group].fills.front() {
            let first = self.next[log as usize];
            let logical = self.group_of[log as usize];
            let open = self.uses[log as usize] == Use::Log && self.is_open(log);
            if open && first < end && !self.is_quiet(log) {
                return None;
            }
            self.die_groups[die_group].fills.pop_front();
            if open && first < end {
                self.begin_copy(die_group, Step::Fill { logical, target: log, first, end });
                return Some(log);
            }
        }
        None
    }

    /// Begins to copy `logical` to `target`, a fresh block.
    fn begin_full(&mut self, die_group: usize, logical: u32, target: u32) {
        self.uses[target as usize] = Use::Target;
        self.group_of[target as usize] = logical / self.config.group_blocks;
        self.merges.full += 1;
        let end = self.program_units_of(logical, target);
        self.begin_copy(die_group, Step::Copy { logical, target, first: 0, end });
    }

    fn begin_copy(&mut self, die_group: usize, step: Step) {
        let (Step::Copy { logical, .. } | Step::Fill { logical, .. }) = step else {
            unreachable!("a step that copies")
        };
        let group = logical / self.config.group_blocks;
        self.groups[group as usize].merging = Some(logical);
        self.die_groups[die_group].copied |= matches!(step, Step::Copy { .. });
        self.die_groups[die_group].step = Some(step);
    }

    fn count_in_place(&mut self, log: u32, program_units: u32) {
        let full = self.next[log as usize] == self.layout.program_units_per_block();
        if full && program_units == 0 {
            self.merges.switches += 1;
        } else {
            self.merges.partial += 1;
        }
    }

    /// The log block that `die_group` merges next.
    fn next_victim(&mut self, die_group: usize) -> Option<u32> {
        let wanted = &self.die_groups[die_group].wanted;
        if !wanted.is_empty() {
            let place = wanted.iter().position(|&block| self.is_quiet(block))?;
            let block =
                self.die_groups[die_group].wanted.remove(place).expect("the index is in the list");
            return Some(self.become_victim(die_group, block));
        }
        // A pending erase makes room without a copy.
        if !self.die_groups[die_group].dead.is_empty() {
            return None;
        }
        let block = self.best_sealed(die_group, |block| self.is_quiet(block))?;
        self.die_groups[die_group].sealed.remove(&self.opened[block as usize]);
        Some(self.become_victim(die_group, block))
    }

    fn become_victim(&mut self, die_group: usize, block: u32) -> u32 {
        self.uses[block as usize] = Use::Merging;
        self.die_groups[die_group].victim = Some(block);
        self.die_groups[die_group].copied = false;
        block
    }

    /// How `log`, which has valid units, can be merged.
    fn kind_of(&self, log: u32) -> MergeKind {
        let units = self.layout.units_per_block();
        let start = log * units;
        let mut live = (0..units).filter_map(|at| Some((at, self.live(Pun(start + at))?)));
        let (place, lpn) = live.next().expect("the log block has valid units");
        let (logical, offset) = self.block_units.split(lpn);
        let at_offset = |(at, lpn)| lpn == logical * units + at;
        let in_place = place == offset && live.all(at_offset);
        let written = self.next[log as usize] * self.layout.units_per_program_unit();
        if in_place && !self.is_failed(log) && !self.data_is_live(logical, written) {
            MergeKind::InPlace(logical)
        } else {
            MergeKind::Full(logical)
        }
    }

    /// Whether the data block of `logical` holds valid units below offset `end`.
    fn data_is_live(&self, logical: u32, end: u32) -> bool {
        let Some(block) = self.data[logical as usize].checked_sub(1) else { return false };
        let start = block * self.layout.units_per_block();
        (start..start + end).any(|at| self.live(Pun(at)).is_some())
    }

    /// Program units of `logical` up to its last unit outside of `target`, including those in
    /// flight.
    fn program_units_of(&self, logical: u32, target: u32) -> u32 {
        let units = self.block_units.get();
        let last = (0..units).rev().find(|offset| {
            let lpn = logical * units + offset;
            let outside = |at| self.layout.block_of_unit(at).0 != target;
            self.in_flight.contains(lpn) || self.lookup(lpn).is_some_and(outside)
        });
        last.map_or(0, |last| last / self.layout.units_per_program_unit() + 1)
    }

    /// The cause of the operations that empty `victim`.
    #[must_use]
    pub fn cause_of_cleaning(&self, victim: BlockId) -> Cause {
        if self.is_failed(victim.0) { Cause::Retire } else { Cause::Merge }
    }

    /// Plans the next program unit of the merge that [`Hybrid::pick_victim`] began with `victim`;
    /// `cursor` counts its program units. The plan is empty once all program units are planned.
    /// Offsets whose unit does not exist are padding. If the host writes further program units
    /// meanwhile, the merge is extended: a complete merge has reached every unit that was
    /// programmed before its last program unit, which is how recovery recognises it.
    pub fn gather(
        &mut self,
        victim: BlockId,
        cursor: &mut u32,
        to_program: &mut Units,
        reads: &mut Vec<ReadRun>,
    ) {
        reads.clear();
        to_program.clear();
        let die_group = self.die_group_of(victim.0);
        let step = self.die_groups[die_group].step.expect("a step was begun");
        let (Step::Copy { logical, first, end, .. } | Step::Fill { logical, first, end, .. }) =
            step
        else {
            return;
        };
        if self.is_lost(step) {
            return;
        }
        let mut program_unit = first + *cursor;
        if program_unit >= end {
            let Some(further) = self.extend(die_group, program_unit) else { return };
            program_unit = further;
        }
        *cursor = program_unit - first + 1;
        let units = self.layout.units_per_program_unit();
        let mut pages = 0;
        for offset in program_unit * units..(program_unit + 1) * units {
            let lpn = logical * self.block_units.get() + offset;
            let source = self.lookup(lpn);
            self.die_groups[die_group].sources[offset as usize] = source.map_or(0, |at| at.0 + 1);
            if let Some(at) = source {
                to_program.push(UnitWrite { lpn, source, version: 0 });
                plan::add_read(&self.layout, at, &mut pages, reads);
            } else {
                to_program.push(UnitWrite::pad());
            }
        }
    }

    /// Extends the merge of `die_group` from `program_unit` on, or after the padding that follows
    /// it, if the host has written more units meanwhile. Returns the next program unit.
    fn extend(&mut self, die_group: usize, program_unit: u32) -> Option<u32> {
        let Some(Step::Copy { logical, target, first, .. }) = self.die_groups[die_group].step
        else {
            return None;
        };
        let program_unit = program_unit.max(self.next[target as usize]);
        let end = self.program_units_of(logical, target);
        if end <= program_unit {
            return None;
        }
        self.die_groups[die_group].step = Some(Step::Copy { logical, target, first, end });
        Some(program_unit)
    }

    /// Reserves the program unit for the plan of the last [`Hybrid::gather`]; program units have to
    /// be programmed in the order in which they are reserved.
    pub fn reserve_copy(&mut self, victim: BlockId) -> ProgramUnitId {
        let die_group = self.die_group_of(victim.0);
        let step = self.die_groups[die_group].step.expect("a step was begun");
        let (Step::Copy { target, .. } | Step::Fill { target, .. }) = step else {
            unreachable!("a step that copies")
        };
        self.take_program_unit(target)
    }

    /// Every copy of the step is programmed: it takes effect, unless its target has failed; then
    /// the merge restarts with the next [`Hybrid::pick_victim`]. Returns the block to be erased
    /// now, if any.
    pub fn emptied(&mut self, victim: BlockId) -> Option<BlockId> {
        let die_group = self.die_group_of(victim.0);
        let step = self.die_groups[die_group].step.take().expect("a step was begun");
        let logical = match step {
            Step::Erase | Step::EraseLog => return Some(victim),
            Step::Copy { logical, .. } | Step::Fill { logical, .. } => logical,
        };
        if self.is_lost(step) {
            self.give_up(die_group, step, logical);
            return None;
        }
        self.apply(die_group, step);
        self.groups[(logical / self.config.group_blocks) as usize].merging = None;
        let Step::Copy { target, first, end, .. } = step else {
            self.after_fill(logical);
            return None;
        };
        let old = self.data[logical as usize].checked_sub(1);
        if let Some(old) = old {
            assert!(self.valid[old as usize] == 0, "a data block with valid units was replaced");
            self.uses[old as usize] = Use::Dead;
        }
        if target == victim.0 {
            self.die_groups[die_group].victim = None;
            self.retire_log(target);
        }
        debug_assert!(
            self.next[target as usize] >= end.max(first),
            "all program units are reserved"
        );
        self.become_data(target, logical);
        match old {
            Some(old) if self.is_failed(old) => {
                self.retire(old);
                None
            }
            old => old.map(BlockId),
        }
    }

    /// The copies may have replaced the last valid unit of the data block of `logical`. It is
    /// erased now, or once its replacement is complete.
    pub(super) fn after_fill(&mut self, logical: u32) {
        let Some(data) = self.data[logical as usize].checked_sub(1) else { return };
        if self.valid[data as usize] == 0 {
            self.drained(data);
        }
    }

    /// Points the map to the copies where it still points to their sources.
    fn apply(&mut self, die_group: usize, step: Step) {
        let (Step::Copy { logical, target, first, end }
        | Step::Fill { logical, target, first, end }) = step
        else {
            return;
        };
        let units = self.layout.units_per_program_unit();
        let start = target * self.layout.units_per_block();
        for offset in first * units..end * units {
            let source = std::mem::take(&mut self.die_groups[die_group].sources[offset as usize]);
            let lpn = logical * self.block_units.get() + offset;
            if source != 0 && self.l2p[lpn as usize] == source {
                self.unmap(lpn);
                self.map(lpn, Pun(start + offset));
            }
        }
    }

    fn become_data(&mut self, block: u32, logical: u32) {
        self.logical[block as usize] = logical;
        if self.valid[block as usize] == 0 {
            self.data[logical as usize] = 0;
            self.mark_dead(block);
        } else {
            self.uses[block as usize] = Use::Data;
            self.data[logical as usize] = block + 1;
        }
    }

    /// The erase of `block` has ended, on all its dies: it is free again, unless it is bad.
    ///
    /// # Panics
    /// If it was not being erased.
    pub fn erased(&mut self, block: BlockId) {
        let index = block.0 as usize;
        assert!(self.valid[index] == 0, "{block:?} was erased with valid units in it");
        match self.uses[index] {
            Use::Dead => {}
            Use::Spent => self.retire_log(block.0),
            other => panic!("{block:?} was erased while in use: {other:?}"),
        }
        self.erases[index] += 1;
        if self.is_failed(block.0) {
            self.uses[index] = Use::Retired;
            return;
        }
        self.uses[index] = Use::Free;
        self.free_total += 1;
        let die_group = self.die_group_of(block.0);
        self.die_groups[die_group].free.push_back(block.0);
    }
}
