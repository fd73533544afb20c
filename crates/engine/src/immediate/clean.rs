//! Cleaning in the immediate engine: when, and how much at once.

use std::borrow::BorrowMut;
use std::mem::take;

use prism_ftl::{Ftl, HostPlace, UnitWrite};
use prism_nand::{BlockId, Cause, DieGroupId, Pun, Status};

use super::Immediate;
use crate::flash::Flash;

/// How cleaning is spread over host program units.
///
/// Cleaning begins on a die group below the low watermark of erased blocks and ends at the high
/// one. Below [`Pace::CRITICAL`], or if a program unit could not be written otherwise, it has
/// priority over the host under either pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All of it before the one program unit that found the die group below the low watermark.
    ToHigh,
    /// At most this many program units of copies for each host program unit that is written to the
    /// die group. Erases of blocks that are already empty are not counted. In page-level mapping
    /// they are made with the next host program unit that is not urgent. On flash with real
    /// latencies that program unit is written to another die group and does not wait for them, and
    /// an urgent one goes before them.
    ProgramUnits(u32),
}

impl Pace {
    /// Erased blocks of a die group below which cleaning has priority over the host, in page-level
    /// mapping. Block-level and hybrid mapping wait until a host program unit needs a merge.
    pub const CRITICAL: u32 = 2;
}

/// How soon a program unit has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Alternately with cleaning.
    Normal,
    /// Before any cleaning that can be deferred.
    Urgent,
}

/// No limit on program units of copies.
pub(super) const ALL: u32 = u32::MAX;

/// The state of cleaning on a die group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cleaner {
    /// Between the low and the high watermark.
    active: bool,
    /// The block being emptied, and the cause.
    victim: Option<(BlockId, Cause)>,
    /// Next unit of the victim to be examined.
    cursor: u32,
    /// An erase has ended since wear levelling was last checked.
    check_wear: bool,
}

/// The goal of cleaning.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The high watermark.
    High,
    /// Room for a program unit of this stream on the die group.
    ProgramUnit(u32),
    /// Room for a program unit of this stream that begins with this unit, if the FTL chooses the
    /// die group.
    Place(u32, u32),
    /// A write cache that is empty as far as idle time empties it.
    Folded,
}

impl<F: Flash, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// Makes up to `program_units` program units of copies on die groups below their high
    /// watermark, for a caller with time to spare; [`u32::MAX`] for no limit. Returns whether any
    /// flash operation was made.
    ///
    /// # Errors
    /// As [`Immediate::write_program_unit`].
    pub fn clean_idle(&mut self, program_units: u32) -> Result<bool, F::Error> {
        let mut left = program_units;
        let mut did = false;
        for die_group in (0..self.cleaners.len() as u32).map(DieGroupId) {
            did |= self.clean(die_group, Goal::High, &mut left)?;
        }
        Ok(did)
    }

    /// The die group of the next program unit of `stream`, cleaned as far as the program unit has
    /// to wait for it.
    pub(super) fn choose_die_group(
        &mut self,
        stream: u32,
        first: u32,
        urgency: Urgency,
    ) -> Result<DieGroupId, F::Error> {
        if self.ftl().host_place(stream, first) != HostPlace::Any {
            return self.named_die_group(stream, first, urgency);
        }
        if self.pace != Pace::ToHigh
            && urgency == Urgency::Normal
            && let Some(due) = self.clean_due.take()
        {
            self.clean_for(due, urgency)?;
        }
        let die_groups = self.flash.geometry().die_groups();
        if urgency == Urgency::Urgent {
            // The next die group in rotation that has room without cleaning.
            for _ in 0..die_groups {
                let die_group = self.take_turn(die_groups);
                if self.ftl().balanced(die_group, stream)
                    && self.is_reached(die_group, Goal::ProgramUnit(stream))
                {
                    return Ok(die_group);
                }
            }
        }
        // The next die group in rotation that holds no more than its share.
        for _ in 0..die_groups {
            let die_group = self.take_turn(die_groups);
            if !self.ftl().balanced(die_group, stream) {
                continue;
            }
            if self.pace == Pace::ToHigh {
                self.clean_for(die_group, urgency)?;
            }
            let paced = self.pace != Pace::ToHigh || urgency == Urgency::Urgent;
            if paced && !self.is_reached(die_group, Goal::ProgramUnit(stream)) {
                self.clean(die_group, Goal::ProgramUnit(stream), &mut { ALL })?;
            }
            if self.ftl().host_may_write(die_group, stream) {
                return Ok(die_group);
            }
        }
        assert!(
            self.ftl().is_read_only(),
            "no die group accepts a program unit: over-provisioning is too small for this FTL"
        );
        Ok(DieGroupId(0))
    }

    fn take_turn(&mut self, die_groups: u32) -> DieGroupId {
        let die_group = DieGroupId(self.next_die_group);
        self.next_die_group =
            if self.next_die_group + 1 == die_groups { 0 } else { self.next_die_group + 1 };
        die_group
    }

    fn named_die_group(
        &mut self,
        stream: u32,
        first: u32,
        urgency: Urgency,
    ) -> Result<DieGroupId, F::Error> {
        let mut cleaned = false;
        // Each iteration ends with an erase or with one log block less.
        for _ in 0..=2 * self.flash.geometry().blocks() {
            if self.ftl().is_read_only() {
                return Ok(DieGroupId(0));
            }
            match self.ftl().host_place(stream, first) {
                HostPlace::DieGroup(die_group) if cleaned => return Ok(die_group),
                HostPlace::DieGroup(die_group) => self.clean_for(die_group, urgency)?,
                HostPlace::Blocked => self.make_room(stream, first)?,
                HostPlace::Any => unreachable!("the FTL has chosen a die group"),
            }
            cleaned = true;
        }
        panic!("merges make no room, contrary to the contract of the FTL");
    }

    /// Cleans `die_group` for a host program unit, as the pace requires.
    pub(super) fn clean_for(
        &mut self,
        die_group: DieGroupId,
        urgency: Urgency,
    ) -> Result<(), F::Error> {
        let low = self.ftl().below_low(die_group);
        let index = die_group.0 as usize;
        match (self.pace, urgency) {
            (_, Urgency::Urgent) => {}
            (Pace::ToHigh, Urgency::Normal) => {
                if low {
                    self.clean(die_group, Goal::High, &mut { ALL })?;
                }
            }
            (Pace::ProgramUnits(program_units), Urgency::Normal) => {
                if low || self.cleaners[index].active {
                    self.clean(die_group, Goal::High, &mut { program_units })?;
                    self.cleaners[index].active = !self.ftl().reached_high(die_group);
                }
            }
        }
        Ok(())
    }

    /// Merges until a program unit of `stream` can be written, or as far as the pace requires.
    fn make_room(&mut self, stream: u32, first: u32) -> Result<(), F::Error> {
        let place = Goal::Place(stream, first);
        let goal = if self.pace == Pace::ToHigh { Goal::High } else { place };
        let die_group = self.ftl_mut().make_room(stream, first);
        let did = match die_group {
            Some(die_group) => self.clean(die_group, goal, &mut { ALL })?,
            None => false,
        };
        if did || self.ftl().host_place(stream, first) != HostPlace::Blocked {
            return Ok(());
        }
        // That die group waits for another: for an unfinished merge of the same group, or for the
        // erase of a block.
        for die_group in (0..self.cleaners.len() as u32).map(DieGroupId) {
            let waits = !self.is_reached(die_group, place);
            if waits && self.ftl().below_low(die_group) {
                self.clean(die_group, goal, &mut { ALL })?;
            }
        }
        Ok(())
    }

    /// Cleans `die_group` until `goal` is reached, `program_units` program units of copies are
    /// made, or no progress is possible. Returns whether any flash operation was made.
    pub(super) fn clean(
        &mut self,
        die_group: DieGroupId,
        goal: Goal,
        program_units: &mut u32,
    ) -> Result<bool, F::Error> {
        let mut did = false;
        while !self.ftl().is_read_only() {
            // A victim is not begun if its first program unit cannot follow at once: recovery of
            // hybrid mapping relies on that.
            let begun = self.cleaners[die_group.0 as usize].victim.is_some();
            if !begun && (*program_units == 0 || !self.choose(die_group, goal)?)
                || !self.step(die_group, program_units)?
            {
                return Ok(did);
            }
            did = true;
        }
        Ok(did)
    }

    /// Chooses the next victim. Returns whether there is one.
    fn choose(&mut self, die_group: DieGroupId, goal: Goal) -> Result<bool, F::Error> {
        let index = die_group.0 as usize;
        if let Some(victim) = self.ftl_mut().pick_failed(die_group) {
            self.cleaners[index].victim = Some((victim, Cause::Retire));
            return Ok(true);
        }
        if std::mem::take(&mut self.cleaners[index].check_wear)
            && let Some(victim) = self.ftl_mut().pick_for_wear(die_group)
        {
            self.cleaners[index].victim = Some((victim, Cause::Wear));
            return Ok(true);
        }
        if self.is_reached(die_group, goal) {
            return Ok(false);
        }
        // Copies must not be durable before their sources, and a block must not lose its last valid
        // unit to program units that are not durable.
        self.sync()?;
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        let chosen = match goal {
            Goal::Folded => ftl.pick_in_idle(die_group),
            Goal::High | Goal::ProgramUnit(_) | Goal::Place(..) => ftl.pick_victim(die_group),
        };
        self.cleaners[index].victim = chosen.map(|victim| (victim, ftl.cause_of_cleaning(victim)));
        Ok(self.cleaners[index].victim.is_some())
    }

    fn is_reached(&self, die_group: DieGroupId, goal: Goal) -> bool {
        let ftl = self.ftl();
        match goal {
            Goal::High => ftl.reached_high(die_group),
            Goal::ProgramUnit(stream) => {
                ftl.free_blocks(die_group) >= Pace::CRITICAL
                    && ftl.host_may_write(die_group, stream)
            }
            Goal::Place(stream, first) => ftl.host_place(stream, first) != HostPlace::Blocked,
            Goal::Folded => !ftl.folds_when_idle(die_group),
        }
    }

    /// Makes the next program unit of copies out of the victim of `die_group`, or ends the victim.
    /// Returns false if `program_units` is used up.
    fn step(&mut self, die_group: DieGroupId, program_units: &mut u32) -> Result<bool, F::Error> {
        let Cleaner { victim, mut cursor, .. } = self.cleaners[die_group.0 as usize];
        let (victim, why) = victim.expect("a victim was chosen");
        let cause = self.ftl().cause_of_copies(victim, why);
        if *program_units == ALL && cursor == 0 && self.in_bulk() {
            self.move_in_bulk(victim, cause)?;
            return self.end_victim(die_group, victim, why).map(|()| true);
        }
        let (mut units, mut reads) = (take(&mut self.copied), take(&mut self.copy_reads));
        self.ftl_mut().gather(victim, &mut cursor, &mut units, &mut reads);
        let done = if units.is_empty() {
            self.end_victim(die_group, victim, why).map(|()| true)
        } else if *program_units == 0 {
            Ok(false)
        } else {
            *program_units -= u32::from(*program_units != ALL);
            self.cleaners[die_group.0 as usize].cursor = cursor;
            for run in &reads {
                self.counts.reads[cause] += u64::from(run.pages);
            }
            self.copy(die_group, victim, cause, &units).map(|()| true)
        };
        (self.copied, self.copy_reads) = (units, reads);
        done
    }

    /// Programs a program unit of copies.
    fn copy(
        &mut self,
        die_group: DieGroupId,
        victim: BlockId,
        cause: Cause,
        units: &[UnitWrite],
    ) -> Result<(), F::Error> {
        // The host may have written to the blocks that a merge reads since the merge was begun.
        let layout = self.flash.layout();
        let mut sources = units.iter().filter_map(|unit| unit.source);
        if sources.any(|at| self.unsynced.contains(&layout.block_of_unit(at))) {
            self.sync()?;
        }
        if self.ftl().copies_in_order(victim) {
            // If it fails, the merge abandons its target and restarts.
            let program_unit = self.ftl_mut().reserve_copy(die_group, victim);
            return self.program(program_unit, cause, units, &[], &[]).map(drop);
        }
        loop {
            if self.flash.may_fail()
                && self.ftl().next_copy_program_unit(die_group, victim).is_none()
            {
                // Failures have used up the erased blocks.
                self.ftl_mut().set_read_only();
                return Ok(());
            }
            let program_unit = self.ftl_mut().reserve_copy(die_group, victim);
            if self.program(program_unit, cause, units, &[], &[])? == Status::Passed {
                return Ok(());
            }
        }
    }

    /// All valid units of `victim` are copied: erases the block that is then to be erased.
    fn end_victim(
        &mut self,
        die_group: DieGroupId,
        victim: BlockId,
        why: Cause,
    ) -> Result<(), F::Error> {
        let cleaner = &mut self.cleaners[die_group.0 as usize];
        (cleaner.victim, cleaner.cursor) = (None, 0);
        cleaner.check_wear = why != Cause::Wear;
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        let Some(block) = ftl.emptied(victim) else { return Ok(()) };
        let members = self.flash.erase(block, why)?;
        self.erase_unsynced = true;
        let planes = self.flash.geometry().planes_ganged;
        self.counts.erases[why] += u64::from(members * planes);
        if self.flash.take_status() == Status::Passed {
            ftl.erased(block);
        } else {
            self.counts.faults.erase_failures += 1;
            ftl.erase_failed(block);
        }
        // The immediate engine has no cache of translation pages to update.
        while ftl.take_moved().is_some() {}
        Ok(())
    }

    fn move_in_bulk(&mut self, victim: BlockId, cause: Cause) -> Result<(), F::Error> {
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        let moved = ftl.move_all(victim, &mut self.scratch, &mut self.runs);
        self.counts.reads[cause] += moved.pages_read;
        let per_program_unit = self.flash.layout().units_per_program_unit();
        let mut left = moved.units;
        for run in &self.runs {
            self.flash.program_bulk(run.first, run.program_units)?;
            let full = run.program_units.min(left / per_program_unit);
            let (geometry, layout) = (self.flash.geometry(), self.flash.layout());
            let before = self.counts.before_slc(layout, run.first);
            self.counts.count_full_program_units(geometry, cause, full);
            self.counts.count_slc(before);
            left -= full * per_program_unit;
        }
        if let (Some(run), 1..) = (self.runs.last().copied(), left) {
            let unit = UnitWrite { lpn: 0, source: Some(Pun(0)), version: 0 };
            self.count(run.first, cause, &vec![unit; left as usize]);
        }
        Ok(())
    }
}
