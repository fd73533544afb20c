//! Word lines whose pages are programmed one after another, on a drive without protection.
//!
//! A loss of power amid a program may take the earlier pages of its word line with it. So the
//! rows of a word line *take effect together*, when the last of them is programmed: until then
//! the map points to what was there before, what is copied stays at its source, and the
//! caller keeps what it wrote. That alone keeps every promise, because nothing is promised,
//! and nothing erased, on account of a row that is not in the map. Who cannot wait has the
//! word line filled up with padding. Design: docs/design/power.md.

use prism_base::SimTime;
use prism_nand::{Cause, LaneId, RowId};

use super::{Done, Engine, Job};

impl Engine {
    /// The row of a job is programmed. If it is the last of its word line, all of them take
    /// effect; else it waits, unless it has no effect that could be lost.
    #[inline(never)]
    pub(super) fn word_line_done(&mut self, place: u32, done: &mut Vec<Done>) {
        // The die may take another row, and blocks without rows under way may be merged.
        self.freed = true;
        let row = RowId(self.jobs[place].row);
        let end = self.nand.word_line_end(row);
        let die = self.layout.die_of(row).0 as usize;
        let is_empty = matches!(self.jobs[place].cause, Some(Cause::Parity | Cause::Pad));
        if row != end && !is_empty {
            self.count_held(place, true);
            self.dies[die].held.push(place);
            return;
        }
        if row == end {
            let held = std::mem::take(&mut self.dies[die].held);
            for earlier in held {
                if self.nand.word_line_end(RowId(self.jobs[earlier].row)) == end {
                    self.count_held(earlier, false);
                    self.commit(earlier, done);
                } else {
                    self.dies[die].held.push(earlier);
                }
            }
        }
        self.commit(place, done);
    }

    pub(super) fn count_held(&mut self, place: u32, held: bool) {
        let job = &self.jobs[place];
        let change = |count: &mut u32, by: u32| {
            *count = if held { *count + by } else { *count - by };
        };
        match job.cause {
            Some(Cause::Host) => change(&mut self.units_held, job.tags.len() as u32),
            _ => change(&mut self.lanes[job.lane as usize].cleaner.held, 1),
        }
    }

    /// Fills up the word lines of copies that the cleaning of `lane` waits for.
    #[inline(never)]
    pub(super) fn close_copies(&mut self, lane: LaneId, now: SimTime) {
        let jobs = &self.jobs;
        let is_copy = |job: &Job| job.lane == lane.0 && job.cause != Some(Cause::Host);
        let held = self.dies.iter().flat_map(|die| &die.held).copied();
        let waiting: Vec<u32> = held.filter(|&place| is_copy(&jobs[place])).collect();
        waiting.into_iter().for_each(|place| self.close_word_line(place, now));
    }

    /// Fills up the word lines of rows that are programmed and hold a unit for which
    /// `wanted` says, by its tag, that somebody waits.
    pub fn close_word_lines(&mut self, wanted: impl Fn(u32) -> bool, now: SimTime) {
        if self.units_held == 0 {
            return;
        }
        let jobs = &self.jobs;
        let is_wanted = |&place: &u32| {
            let job = &jobs[place];
            job.cause == Some(Cause::Host) && job.tags.iter().any(|&tag| wanted(tag))
        };
        let held = self.dies.iter().flat_map(|die| &die.held).copied();
        let waiting: Vec<u32> = held.filter(is_wanted).collect();
        waiting.into_iter().for_each(|place| self.close_word_line(place, now));
    }

    /// Programs nothing into the rest of the word line of a job, as far as no other rows are
    /// on their way there.
    fn close_word_line(&mut self, place: u32, now: SimTime) {
        let (row, lane) = (RowId(self.jobs[place].row), LaneId(self.jobs[place].lane));
        let (block, until) = (self.layout.block_of(row), self.nand.word_line_end(row));
        while let Some(pad) = self.ftl.reserve_pad(block, until) {
            self.program_empty(lane, pad, Cause::Pad, now);
            self.program_parity(lane, now);
        }
    }

    /// Units of the caller that are programmed and wait for the rest of their word line.
    #[must_use]
    pub fn units_held(&self) -> u32 {
        self.units_held
    }

    /// Rows of the caller that wait for or run on any die.
    #[must_use]
    pub fn host_rows(&self) -> u32 {
        self.lanes.iter().map(|lane| lane.host_rows).sum()
    }
}
