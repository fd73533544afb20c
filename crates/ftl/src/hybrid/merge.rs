//! Merges: log blocks become data blocks.
//!
//! A log block whose live units are those of one logical block at their own offsets, behind
//! which nothing of the old data block is live, becomes the data block itself: at once if
//! nothing is left to copy (*switch*), else after the rest has been copied behind (*partial*
//! merge). Any other log block is merged logical block by logical block: the newest of all
//! units of it, wherever they are, are copied to a fresh block (*full* merge). A log block
//! with nothing live in it is only erased.
//!
//! Copies of a logical block take effect together, when all are programmed, so that at any
//! instant its data is in its data block and the log blocks, and a merge that is cut off
//! leaves nothing but a block to erase.

use prism_nand::{BlockId, Cause, DieGroupId, ProgramUnitId, Pun};

use super::{Hybrid, Use};
use crate::plan::{self, ReadRun, UnitWrite, Units};

/// Merges by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// A full log block became a data block without a copy.
    pub switches: u64,
    /// A log block became a data block after the rest of the logical block was copied, or
    /// without a rest before it was full.
    pub partial: u64,
    /// Logical blocks gathered into a fresh block.
    pub full: u64,
    /// Log and data blocks erased because nothing in them was live.
    pub empty: u64,
}

impl MergeCounts {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            switches: self.switches - earlier.switches,
            partial: self.partial - earlier.partial,
            full: self.full - earlier.full,
            empty: self.empty - earlier.empty,
        }
    }

    /// Adds what `other` counted.
    pub fn add(&mut self, other: &Self) {
        self.switches += other.switches;
        self.partial += other.partial;
        self.full += other.full;
        self.empty += other.empty;
    }
}

/// What a die group does until its next erase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Nothing is copied, the victim is erased.
    Erase,
    /// The same with a log block, for whose room a group may be waiting.
    EraseLog,
    /// Program units `first..end` of `logical` are copied to `target`, which then is its data
    /// block.
    Copy { logical: u32, target: u32, first: u32, end: u32 },
    /// The same, and the host goes on to write to `target`.
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

/// How a log block can be merged.
enum Kind {
    /// It becomes the data block of this logical block.
    InPlace(u32),
    /// This logical block goes to a fresh block, others perhaps later.
    Full(u32),
}

impl Hybrid {
    /// Erased blocks of `die_group`.
    #[must_use]
    pub fn free_blocks(&self, die_group: DieGroupId) -> u32 {
        self.die_groups[die_group.0 as usize].free.len() as u32
    }

    /// Whether the die group should work on merges or erases.
    #[must_use]
    pub fn below_low(&self, die_group: DieGroupId) -> bool {
        self.is_asked(die_group) || self.could_merge(die_group, self.config.free_blocks_low)
    }

    /// Whether it may stop.
    #[must_use]
    pub fn reached_high(&self, die_group: DieGroupId) -> bool {
        !self.is_asked(die_group) && !self.could_merge(die_group, self.config.free_blocks_high)
    }

    /// Whether a group waits for the die group, or something is begun there.
    #[must_use]
    pub fn is_asked(&self, die_group: DieGroupId) -> bool {
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

    /// Begins the next step of `die_group`, whose [`Hybrid::gather`] and [`Hybrid::emptied`] then
    /// go by the block returned: what is dead is erased first, then data is moved out of a
    /// block that has failed, then a merge goes on, then those that groups wait for, then the
    /// oldest full log block of the die group. `None` if nothing can begin now.
    pub fn pick_victim(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        let index = die_group.0 as usize;
        assert!(self.die_groups[index].step.is_none(), "one step at a time on {die_group:?}");
        let begun = self.begin_step(index);
        if begun.is_none() && self.is_asked(die_group) {
            self.note_end();
        }
        begun
    }

    fn begin_step(&mut self, index: usize) -> Option<BlockId> {
        if let Some(place) =
            self.die_groups[index].dead.iter().position(|&block| self.is_quiet(block))
        {
            let block = self.die_groups[index].dead.remove(place).expect("it was found there");
            self.merges.empty += 1;
            return Some(self.begin_erase(index, block));
        }
        if let Some(log) = self.next_fill(index) {
            return Some(BlockId(log));
        }
        if let Some(data) = self.next_failed(index) {
            let target = self.take_free().expect("an erased block was seen");
            self.begin_full(index, self.logical[data as usize], target);
            return Some(BlockId(data));
        }
        self.go_on_merging(index)
    }

    /// The next step of the merge of `die_group`, or of one that is begun.
    fn go_on_merging(&mut self, index: usize) -> Option<BlockId> {
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
                Kind::InPlace(logical) | Kind::Full(logical) if self.data_is_written(logical) => {
                    return None;
                }
                Kind::InPlace(logical) if self.data[logical as usize] == 0 => {
                    // Nothing to erase, nothing to copy: the map says it all.
                    self.count_in_place(victim, 0);
                    self.retire_log(victim);
                    self.die_groups[index].victim = None;
                    self.become_data(victim, logical);
                }
                Kind::InPlace(logical) => {
                    let first = self.next[victim as usize];
                    let end = self.program_units_of(logical, victim).max(first);
                    self.count_in_place(victim, end - first);
                    self.begin_copy(index, Step::Copy { logical, target: victim, first, end });
                    return Some(BlockId(victim));
                }
                Kind::Full(logical) => {
                    let target = self.take_free()?;
                    self.begin_full(index, logical, target);
                    return Some(BlockId(victim));
                }
            }
        }
    }

    /// Whether no merge in the group of `block` may still read it.
    pub(super) fn is_quiet(&self, block: u32) -> bool {
        self.groups[self.group_of[block as usize] as usize].merging.is_none()
    }

    fn begin_erase(&mut self, die_group: usize, block: u32) -> BlockId {
        let spent = self.uses[block as usize] == Use::Spent;
        self.die_groups[die_group].step = Some(if spent { Step::EraseLog } else { Step::Erase });
        BlockId(block)
    }

    /// Whether program units of the data block of `logical` are in flight: what they hold would be
    /// missed by a merge that begins now.
    fn data_is_written(&self, logical: u32) -> bool {
        self.data[logical as usize].checked_sub(1).is_some_and(|data| !self.is_idle(data))
    }

    /// Begins to copy what a log block needs from the data block before the host goes on.
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

    /// Begins to gather `logical` in `target`, a fresh block.
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

    /// The log block that is merged next on `die_group`.
    fn next_victim(&mut self, die_group: usize) -> Option<u32> {
        let wanted = &self.die_groups[die_group].wanted;
        if !wanted.is_empty() {
            let place = wanted.iter().position(|&block| self.is_quiet(block))?;
            let block =
                self.die_groups[die_group].wanted.remove(place).expect("it was found there");
            return Some(self.become_victim(die_group, block));
        }
        // What waits for its erase makes room without any copy.
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

    /// How `log`, in which something is live, can be merged.
    fn kind_of(&self, log: u32) -> Kind {
        let units = self.layout.units_per_block();
        let start = log * units;
        let mut live = (0..units).filter_map(|at| Some((at, self.live(Pun(start + at))?)));
        let (place, lpn) = live.next().expect("something is live in the log block");
        let (logical, offset) = self.block_units.split(lpn);
        let at_home = |(at, lpn)| lpn == logical * units + at;
        let in_place = place == offset && live.all(at_home);
        let written = self.next[log as usize] * self.layout.units_per_program_unit();
        if in_place && !self.is_failed(log) && !self.data_is_live(logical, written) {
            Kind::InPlace(logical)
        } else {
            Kind::Full(logical)
        }
    }

    /// Whether the data block of `logical` holds something live below offset `end`.
    fn data_is_live(&self, logical: u32, end: u32) -> bool {
        let Some(block) = self.data[logical as usize].checked_sub(1) else { return false };
        let start = block * self.layout.units_per_block();
        (start..start + end).any(|at| self.live(Pun(at)).is_some())
    }

    /// Program units that `logical` needs up to its last unit outside of `target`, those on their
    /// way to flash included.
    fn program_units_of(&self, logical: u32, target: u32) -> u32 {
        let units = self.block_units.get();
        let last = (0..units).rev().find(|offset| {
            let lpn = logical * units + offset;
            let outside = |at| self.layout.block_of_unit(at).0 != target;
            self.in_flight.contains(lpn) || self.lookup(lpn).is_some_and(outside)
        });
        last.map_or(0, |last| last / self.layout.units_per_program_unit() + 1)
    }

    /// Why `victim` is emptied.
    #[must_use]
    pub fn cause_of_cleaning(&self, victim: BlockId) -> Cause {
        if self.is_failed(victim.0) { Cause::Retire } else { Cause::Merge }
    }

    /// Plans the next program unit of the merge that [`Hybrid::pick_victim`] began with `victim`;
    /// `cursor` counts its program units. The plan is empty once all program units are planned.
    /// Places whose unit does not exist are padding. What the host writes behind the last program
    /// unit meanwhile makes the merge longer, so that one which is complete has reached every
    /// unit that was programmed before its last program unit: recovery tells it by that.
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

    /// Lets the merge of `die_group` go on from `program_unit` on, or behind the padding that
    /// stands there, if the host has written so far meanwhile. Returns the program unit that is
    /// next then.
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

    /// Takes the program unit for what [`Hybrid::gather`] has just planned; program units are to
    /// be programmed in the order in which they are taken.
    pub fn reserve_copy(&mut self, victim: BlockId) -> ProgramUnitId {
        let die_group = self.die_group_of(victim.0);
        let step = self.die_groups[die_group].step.expect("a step was begun");
        let (Step::Copy { target, .. } | Step::Fill { target, .. }) = step else {
            unreachable!("a step that copies")
        };
        self.take_program_unit(target)
    }

    /// Every copy of the step is programmed: it takes effect. If its target has failed, it has
    /// none, and the merge begins anew when the die group asks again. Returns the block that has to
    /// be erased now, if any.
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
            assert!(self.valid[old as usize] == 0, "a data block replaced with live units in it");
            self.uses[old as usize] = Use::Dead;
        }
        if target == victim.0 {
            self.die_groups[die_group].victim = None;
            self.retire_log(target);
        }
        debug_assert!(self.next[target as usize] >= end.max(first), "all program units are taken");
        self.become_data(target, logical);
        match old {
            Some(old) if self.is_failed(old) => {
                self.retire(old);
                None
            }
            old => old.map(BlockId),
        }
    }

    /// The data block of `logical` may have lost the last it held to the copies; it is erased
    /// once what replaces it is complete, or now.
    pub(super) fn after_fill(&mut self, logical: u32) {
        let Some(data) = self.data[logical as usize].checked_sub(1) else { return };
        if self.valid[data as usize] == 0 {
            self.drained(data);
        }
    }

    /// The map goes over to the copies, where it still points to what was copied.
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
            self.bury(block);
        } else {
            self.uses[block as usize] = Use::Data;
            self.data[logical as usize] = block + 1;
        }
    }

    /// The erase of `block` has ended, on all its dies: it is free again, unless it is bad.
    ///
    /// # Panics
    /// If it was not to be erased.
    pub fn erased(&mut self, block: BlockId) {
        let index = block.0 as usize;
        assert!(self.valid[index] == 0, "{block:?} was erased with live units in it");
        match self.uses[index] {
            Use::Dead => {}
            Use::Spent => self.retire_log(block.0),
            other => panic!("{block:?} was erased but not dead: {other:?}"),
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
