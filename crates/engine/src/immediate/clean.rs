//! When an engine without time cleans, and how much of it at once.

use std::borrow::BorrowMut;
use std::mem::take;

use prism_ftl::{Ftl, HostPlace, UnitWrite};
use prism_nand::{BlockId, Cause, LaneId, Pun, Status};

use super::Immediate;
use crate::flash::Flash;

/// How cleaning is spread over the rows of the host.
///
/// It begins on a lane below the low watermark of erased blocks and ends at the high one.
/// Below [`Pace::CRITICAL`], or where the row could not be taken otherwise, it waits for
/// nobody under either pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All of it before the one row that found the lane below the low watermark.
    ToHigh,
    /// At most so many rows of copies for each host row that goes to the lane. Erases of
    /// blocks that are empty by then are not counted. In mappings by unit they are made when
    /// the next row comes that is not urgent. On flash with time that row goes to another lane
    /// and does not stand behind them, and an urgent one goes before them.
    Rows(u32),
}

impl Pace {
    /// Erased blocks of a lane below which cleaning waits for nobody, in mappings by unit.
    /// Mappings by block wait until a host row needs a merge.
    pub const CRITICAL: u32 = 2;
}

/// How soon a row has to be on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// In turn with cleaning.
    Normal,
    /// Before any cleaning that can wait.
    Urgent,
}

/// As many rows of copies as it takes.
pub(super) const ALL: u32 = u32::MAX;

/// Where the cleaning of a lane stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cleaner {
    /// Between the low and the high watermark.
    active: bool,
    /// The block being emptied, and why.
    victim: Option<(BlockId, Cause)>,
    /// Next unit of the victim to look at.
    cursor: u32,
    /// An erase has ended since wear was last looked at.
    look_at_wear: bool,
}

/// What cleaning is to bring about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The high watermark.
    High,
    /// Room for a row of this stream on the lane.
    Row(u32),
    /// A place for a row of this stream that begins with this unit, where the FTL names it.
    Place(u32, u32),
    /// Nothing in a write cache that idle time would empty.
    Folded,
}

impl<F: Flash, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// Makes up to `rows` rows of copies on lanes below their high watermark, for a caller
    /// who has time to spare; [`u32::MAX`] for all that is to be done. Returns whether
    /// anything was done to the flash.
    ///
    /// # Errors
    /// As [`Immediate::write_row`].
    pub fn clean_idle(&mut self, rows: u32) -> Result<bool, F::Error> {
        let mut left = rows;
        let mut did = false;
        for lane in (0..self.cleaners.len() as u32).map(LaneId) {
            did |= self.clean(lane, Goal::High, &mut left)?;
        }
        Ok(did)
    }

    /// The lane of the next row of `stream`, cleaned as far as the row has to wait for it.
    pub(super) fn choose_lane(
        &mut self,
        stream: u32,
        first: u32,
        urgency: Urgency,
    ) -> Result<LaneId, F::Error> {
        if self.ftl().host_place(stream, first) != HostPlace::Any {
            return self.named_lane(stream, first, urgency);
        }
        if self.pace != Pace::ToHigh
            && urgency == Urgency::Normal
            && let Some(due) = self.clean_due.take()
        {
            self.clean_for(due, urgency)?;
        }
        let lanes = self.flash.geometry().lanes();
        if urgency == Urgency::Urgent {
            // The next in turn that has room as it is.
            for _ in 0..lanes {
                let lane = self.take_turn(lanes);
                if self.ftl().balanced(lane, stream) && self.is_reached(lane, Goal::Row(stream)) {
                    return Ok(lane);
                }
            }
        }
        // The next in turn that holds no more than its share.
        for _ in 0..lanes {
            let lane = self.take_turn(lanes);
            if !self.ftl().balanced(lane, stream) {
                continue;
            }
            if self.pace == Pace::ToHigh {
                self.clean_for(lane, urgency)?;
            }
            let paced = self.pace != Pace::ToHigh || urgency == Urgency::Urgent;
            if paced && !self.is_reached(lane, Goal::Row(stream)) {
                self.clean(lane, Goal::Row(stream), &mut { ALL })?;
            }
            if self.ftl().host_may_write(lane, stream) {
                return Ok(lane);
            }
        }
        assert!(
            self.ftl().is_read_only(),
            "no lane can take a row: over-provisioning is too small for this FTL"
        );
        Ok(LaneId(0))
    }

    fn take_turn(&mut self, lanes: u32) -> LaneId {
        let lane = LaneId(self.next_lane);
        self.next_lane = if self.next_lane + 1 == lanes { 0 } else { self.next_lane + 1 };
        lane
    }

    fn named_lane(
        &mut self,
        stream: u32,
        first: u32,
        urgency: Urgency,
    ) -> Result<LaneId, F::Error> {
        let mut cleaned = false;
        // Each turn ends with an erase or with a log block less.
        for _ in 0..=2 * self.flash.geometry().blocks() {
            if self.ftl().is_read_only() {
                return Ok(LaneId(0));
            }
            match self.ftl().host_place(stream, first) {
                HostPlace::Lane(lane) if cleaned => return Ok(lane),
                HostPlace::Lane(lane) => self.clean_for(lane, urgency)?,
                HostPlace::Blocked => self.make_room(stream, first)?,
                HostPlace::Any => unreachable!("an FTL that names no lane"),
            }
            cleaned = true;
        }
        panic!("merges make no room: the FTL promised that they do");
    }

    /// What a host row that goes to `lane` brings with it under the pace.
    pub(super) fn clean_for(&mut self, lane: LaneId, urgency: Urgency) -> Result<(), F::Error> {
        let low = self.ftl().below_low(lane);
        let index = lane.0 as usize;
        match (self.pace, urgency) {
            (_, Urgency::Urgent) => {}
            (Pace::ToHigh, Urgency::Normal) => {
                if low {
                    self.clean(lane, Goal::High, &mut { ALL })?;
                }
            }
            (Pace::Rows(rows), Urgency::Normal) => {
                if low || self.cleaners[index].active {
                    self.clean(lane, Goal::High, &mut { rows })?;
                    self.cleaners[index].active = !self.ftl().reached_high(lane);
                }
            }
        }
        Ok(())
    }

    /// Merges until a row of `stream` has a place, or as far as the pace says.
    fn make_room(&mut self, stream: u32, first: u32) -> Result<(), F::Error> {
        let place = Goal::Place(stream, first);
        let goal = if self.pace == Pace::ToHigh { Goal::High } else { place };
        let asked = self.ftl_mut().make_room(stream, first);
        let did = match asked {
            Some(lane) => self.clean(lane, goal, &mut { ALL })?,
            None => false,
        };
        if did || self.ftl().host_place(stream, first) != HostPlace::Blocked {
            return Ok(());
        }
        // That lane waits for another: for a merge of the same group that was left half
        // done, or for the erase of a block.
        for lane in (0..self.cleaners.len() as u32).map(LaneId) {
            let waits = !self.is_reached(lane, place);
            if waits && self.ftl().below_low(lane) {
                self.clean(lane, goal, &mut { ALL })?;
            }
        }
        Ok(())
    }

    /// Cleans `lane` until `goal` is reached, `rows` rows of copies are made, or nothing is
    /// left to gain. Returns whether anything was done to the flash.
    pub(super) fn clean(
        &mut self,
        lane: LaneId,
        goal: Goal,
        rows: &mut u32,
    ) -> Result<bool, F::Error> {
        let mut did = false;
        while !self.ftl().is_read_only() {
            // A victim whose first row cannot follow at once is not begun: recovery of
            // mappings by block relies on that.
            let begun = self.cleaners[lane.0 as usize].victim.is_some();
            if !begun && (*rows == 0 || !self.choose(lane, goal)?) || !self.step(lane, rows)? {
                return Ok(did);
            }
            did = true;
        }
        Ok(did)
    }

    /// Chooses what to empty next. Returns whether there is anything.
    fn choose(&mut self, lane: LaneId, goal: Goal) -> Result<bool, F::Error> {
        let index = lane.0 as usize;
        if let Some(victim) = self.ftl_mut().pick_failed(lane) {
            self.cleaners[index].victim = Some((victim, Cause::Retire));
            return Ok(true);
        }
        if std::mem::take(&mut self.cleaners[index].look_at_wear)
            && let Some(victim) = self.ftl_mut().pick_for_wear(lane)
        {
            self.cleaners[index].victim = Some((victim, Cause::Wear));
            return Ok(true);
        }
        if self.is_reached(lane, goal) {
            return Ok(false);
        }
        // Copies may not outlive what they were copied from, and a block may not be without
        // live units on account of rows that are lost.
        self.sync()?;
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        let chosen = match goal {
            Goal::Folded => ftl.pick_in_idle(lane),
            Goal::High | Goal::Row(_) | Goal::Place(..) => ftl.pick_victim(lane),
        };
        self.cleaners[index].victim = chosen.map(|victim| (victim, ftl.cause_of_cleaning(victim)));
        Ok(self.cleaners[index].victim.is_some())
    }

    fn is_reached(&self, lane: LaneId, goal: Goal) -> bool {
        let ftl = self.ftl();
        match goal {
            Goal::High => ftl.reached_high(lane),
            Goal::Row(stream) => {
                ftl.free_blocks(lane) >= Pace::CRITICAL && ftl.host_may_write(lane, stream)
            }
            Goal::Place(stream, first) => ftl.host_place(stream, first) != HostPlace::Blocked,
            Goal::Folded => !ftl.folds_when_idle(lane),
        }
    }

    /// The next row of copies out of the victim of `lane`, or what ends it. Returns false if
    /// there are no `rows` left for that.
    fn step(&mut self, lane: LaneId, rows: &mut u32) -> Result<bool, F::Error> {
        let Cleaner { victim, mut cursor, .. } = self.cleaners[lane.0 as usize];
        let (victim, why) = victim.expect("a victim was chosen");
        let cause = self.ftl().cause_of_copies(victim, why);
        if *rows == ALL && cursor == 0 && self.at_once() {
            self.move_at_once(victim, cause)?;
            return self.end_victim(lane, victim, why).map(|()| true);
        }
        let (mut units, mut reads) = (take(&mut self.copied), take(&mut self.copy_reads));
        self.ftl_mut().gather(victim, &mut cursor, &mut units, &mut reads);
        let done = if units.is_empty() {
            self.end_victim(lane, victim, why).map(|()| true)
        } else if *rows == 0 {
            Ok(false)
        } else {
            *rows -= u32::from(*rows != ALL);
            self.cleaners[lane.0 as usize].cursor = cursor;
            for run in &reads {
                self.counts.reads[cause] += u64::from(run.pages);
            }
            self.copy(lane, victim, cause, &units).map(|()| true)
        };
        (self.copied, self.copy_reads) = (units, reads);
        done
    }

    /// Programs a row of copies.
    fn copy(
        &mut self,
        lane: LaneId,
        victim: BlockId,
        cause: Cause,
        units: &[UnitWrite],
    ) -> Result<(), F::Error> {
        // The host may have written since a merge was begun, into the blocks it reads.
        let layout = self.flash.layout();
        let mut sources = units.iter().filter_map(|unit| unit.source);
        if sources.any(|at| self.rows_unsynced.contains(&layout.block_of_unit(at))) {
            self.sync()?;
        }
        if self.ftl().copies_in_order(victim) {
            // One that fails gives up its target, and the merge begins anew.
            let row = self.ftl_mut().reserve_copy(lane, victim);
            return self.program(row, cause, units, &[], &[]).map(drop);
        }
        loop {
            if self.flash.may_fail() && self.ftl().next_copy_row(lane, victim).is_none() {
                // Failures came faster than cleaning.
                self.ftl_mut().set_read_only();
                return Ok(());
            }
            let row = self.ftl_mut().reserve_copy(lane, victim);
            if self.program(row, cause, units, &[], &[])? == Status::Passed {
                return Ok(());
            }
        }
    }

    /// Everything valid is out of `victim`: erases what that leaves to erase.
    fn end_victim(&mut self, lane: LaneId, victim: BlockId, why: Cause) -> Result<(), F::Error> {
        let cleaner = &mut self.cleaners[lane.0 as usize];
        (cleaner.victim, cleaner.cursor) = (None, 0);
        cleaner.look_at_wear = why != Cause::Wear;
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
        // Nobody keeps translation pages up to date here.
        while ftl.take_moved().is_some() {}
        Ok(())
    }

    fn move_at_once(&mut self, victim: BlockId, cause: Cause) -> Result<(), F::Error> {
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        let moved = ftl.move_all(victim, &mut self.scratch, &mut self.runs);
        self.counts.reads[cause] += moved.pages_read;
        let per_row = self.flash.layout().units_per_row();
        let mut left = moved.units;
        for run in &self.runs {
            self.flash.program_rows(run.first, run.rows)?;
            let full = run.rows.min(left / per_row);
            let (geometry, layout) = (self.flash.geometry(), self.flash.layout());
            let before = self.counts.before_slc(layout, run.first);
            self.counts.count_full_rows(geometry, cause, full);
            self.counts.count_slc(before);
            left -= full * per_row;
        }
        if let (Some(run), 1..) = (self.runs.last().copied(), left) {
            let unit = UnitWrite { lpn: 0, source: Some(Pun(0)), version: 0 };
            self.count(run.first, cause, &vec![unit; left as usize]);
        }
        Ok(())
    }
}
