//! Cleaning in the engine without time: all of it before the program unit that finds its die group
//! below the low watermark.

use std::borrow::BorrowMut;
use std::mem::take;

use prism_ftl::{Ftl, HostPlace, UnitWrite};
use prism_nand::{BlockId, Cause, DieGroupId, Pun, Status};

use super::Immediate;
use crate::flash::{Flash, LAWFUL};

/// The goal of cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// The high watermark.
    High,
    /// A write cache that is empty as far as idle time empties it.
    Folded,
}

impl<F: Flash, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// The die group of the next program unit of `stream`, which begins with `first`, cleaned if
    /// it is below its low watermark.
    pub(super) fn choose_die_group(&mut self, stream: u32, first: u32) -> DieGroupId {
        if self.ftl().host_place(stream, first) != HostPlace::Any {
            return self.named_die_group(stream, first);
        }
        let die_groups = self.flash.nand().geometry().die_groups();
        // The next die group in rotation that holds no more than its share.
        for _ in 0..die_groups {
            let die_group = DieGroupId(self.next_die_group);
            self.next_die_group =
                if self.next_die_group + 1 == die_groups { 0 } else { self.next_die_group + 1 };
            if !self.ftl().balanced(die_group, stream) {
                continue;
            }
            self.clean_if_low(die_group);
            if self.ftl().host_may_write(die_group, stream) {
                return die_group;
            }
        }
        assert!(
            self.ftl().is_read_only(),
            "no die group accepts a program unit: over-provisioning is too small for this FTL"
        );
        DieGroupId(0)
    }

    fn named_die_group(&mut self, stream: u32, first: u32) -> DieGroupId {
        let mut cleaned = false;
        // Each iteration ends with an erase or with one log block less.
        for _ in 0..=2 * self.flash.nand().geometry().blocks() {
            if self.ftl().is_read_only() {
                return DieGroupId(0);
            }
            match self.ftl().host_place(stream, first) {
                HostPlace::DieGroup(die_group) if cleaned => return die_group,
                HostPlace::DieGroup(die_group) => self.clean_if_low(die_group),
                HostPlace::Blocked => self.make_room(stream, first),
                HostPlace::Any => unreachable!("the FTL has chosen a die group"),
            }
            cleaned = true;
        }
        panic!("merges make no room, contrary to the contract of the FTL");
    }

    fn clean_if_low(&mut self, die_group: DieGroupId) {
        if self.ftl().below_low(die_group) {
            self.clean(die_group, Goal::High);
        }
    }

    /// Merges until a program unit of `stream` can be written.
    fn make_room(&mut self, stream: u32, first: u32) {
        let die_group = self.ftl_mut().make_room(stream, first);
        let did = die_group.is_some_and(|die_group| self.clean(die_group, Goal::High));
        if did || self.ftl().host_place(stream, first) != HostPlace::Blocked {
            return;
        }
        // That die group waits for another: for an unfinished merge of the same group, or for the
        // erase of a block.
        for die_group in (0..self.check_wear.len() as u32).map(DieGroupId) {
            if self.ftl().host_place(stream, first) == HostPlace::Blocked {
                self.clean_if_low(die_group);
            }
        }
    }

    /// Cleans `die_group` until `goal` is reached, or no progress is possible. Returns whether any
    /// flash operation was made.
    pub(super) fn clean(&mut self, die_group: DieGroupId, goal: Goal) -> bool {
        let mut did = false;
        while !self.ftl().is_read_only() {
            let Some((victim, why)) = self.choose(die_group, goal) else { break };
            self.empty(die_group, victim, why);
            did = true;
        }
        did
    }

    /// Chooses the next victim, and why it is emptied.
    fn choose(&mut self, die_group: DieGroupId, goal: Goal) -> Option<(BlockId, Cause)> {
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        if let Some(victim) = ftl.pick_failed(die_group) {
            return Some((victim, Cause::Retire));
        }
        if take(&mut self.check_wear[die_group.0 as usize])
            && let Some(victim) = ftl.pick_for_wear(die_group)
        {
            return Some((victim, Cause::Wear));
        }
        let chosen = match goal {
            Goal::High if ftl.reached_high(die_group) => None,
            Goal::High => ftl.pick_victim(die_group),
            Goal::Folded if !ftl.folds_when_idle(die_group) => None,
            Goal::Folded => ftl.pick_in_idle(die_group),
        };
        chosen.map(|victim| (victim, ftl.cause_of_cleaning(victim)))
    }

    /// Copies the valid units of `victim`, then erases the block that is to be erased.
    fn empty(&mut self, die_group: DieGroupId, victim: BlockId, why: Cause) {
        if self.in_bulk() {
            let cause = self.ftl().cause_of_copies(victim, why);
            self.move_in_bulk(victim, cause);
            return self.end_victim(die_group, victim, why);
        }
        let (mut units, mut reads) = (take(&mut self.copied), take(&mut self.copy_reads));
        let mut cursor = 0;
        while !self.ftl().is_read_only() {
            let cause = self.ftl().cause_of_copies(victim, why);
            self.ftl_mut().gather(victim, &mut cursor, &mut units, &mut reads);
            if units.is_empty() {
                self.end_victim(die_group, victim, why);
                break;
            }
            for run in &reads {
                self.counts.reads[cause] += u64::from(run.pages);
            }
            self.copy(die_group, victim, cause, &units);
        }
        (self.copied, self.copy_reads) = (units, reads);
    }

    /// Programs a program unit of copies.
    fn copy(&mut self, die_group: DieGroupId, victim: BlockId, cause: Cause, units: &[UnitWrite]) {
        if self.ftl().copies_in_order(victim) {
            // If it fails, the merge abandons its target and restarts.
            let program_unit = self.ftl_mut().reserve_copy(die_group, victim);
            self.program(program_unit, cause, units, &[]);
            return;
        }
        loop {
            if self.flash.may_fail()
                && self.ftl().next_copy_program_unit(die_group, victim).is_none()
            {
                // Failures have used up the erased blocks.
                self.ftl_mut().set_read_only();
                return;
            }
            let program_unit = self.ftl_mut().reserve_copy(die_group, victim);
            if self.program(program_unit, cause, units, &[]) == Status::Passed {
                return;
            }
        }
    }

    /// All valid units of `victim` are copied: erases the block that is then to be erased.
    fn end_victim(&mut self, die_group: DieGroupId, victim: BlockId, why: Cause) {
        self.check_wear[die_group.0 as usize] = why != Cause::Wear;
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        let Some(block) = ftl.emptied(victim) else { return };
        let members = self.flash.erase(block, why);
        let planes = self.flash.nand().geometry().planes_ganged;
        self.counts.erases[why] += u64::from(members * planes);
        if self.flash.take_status() == Status::Passed {
            ftl.erased(block);
        } else {
            self.counts.faults.erase_failures += 1;
            ftl.erase_failed(block);
        }
        // The engine without time has no cache of translation pages to update.
        while ftl.take_moved().is_some() {}
    }

    fn move_in_bulk(&mut self, victim: BlockId, cause: Cause) {
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        let moved = ftl.page_mut().move_all(victim, &mut self.scratch, &mut self.runs);
        self.counts.reads[cause] += moved.pages_read;
        let per_program_unit = self.flash.nand().layout().units_per_program_unit();
        let mut left = moved.units;
        for run in &self.runs {
            self.flash.nand_mut().program_bulk(run.first, run.program_units).expect(LAWFUL);
            let full = run.program_units.min(left / per_program_unit);
            let (geometry, layout) = (self.flash.nand().geometry(), self.flash.nand().layout());
            let before = self.counts.before_slc(layout, run.first);
            self.counts.count_full_program_units(geometry, cause, full);
            self.counts.count_slc(before);
            left -= full * per_program_unit;
        }
        if let (Some(run), 1..) = (self.runs.last().copied(), left) {
            let unit = UnitWrite { lpn: 0, source: Some(Pun(0)), version: 0 };
            self.count(run.first, cause, &vec![unit; left as usize]);
        }
    }
}
