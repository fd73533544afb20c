//! Wordlines whose pages are programmed one after another, on a drive without power-loss
//! protection.
//!
//! A loss of power during a program may destroy the earlier pages of its wordline. The program
//! units of a wordline therefore *take effect together*, when the last of them is programmed: until
//! then the map points to the previous data, the source of a copy is kept, and the caller keeps its
//! data. This suffices for durability, because nothing is acknowledged as durable, and nothing
//! erased, on the basis of a program unit that is not in the map. A caller that cannot wait has the
//! wordline filled up with padding. Design: docs/design/power.md.

use prism_base::SimTime;
use prism_nand::{Cause, DieGroupId, ProgramUnitId};

use super::{Controller, Done};
use crate::device::{FlashDevice, Job};

impl<D: FlashDevice> Controller<D> {
    /// The program unit of a job is programmed. If it is the last of its wordline, all of them take
    /// effect. Otherwise it waits, unless it is parity or padding.
    #[inline(never)]
    pub(super) fn wordline_done(&mut self, place: u32, done: &mut Vec<Done>) {
        // The die may take another program unit, and blocks without program units in flight may
        // be merged.
        self.freed = true;
        let program_unit = ProgramUnitId(self.jobs[place].program_unit);
        let end = self.device.wordline_end(program_unit);
        let die = self.layout.die_of(program_unit).0 as usize;
        let is_empty = matches!(self.jobs[place].cause, Some(Cause::Parity | Cause::Pad));
        if program_unit != end && !is_empty {
            self.count_held(place, true);
            self.held[die].push(place);
            return;
        }
        if program_unit == end {
            let held = std::mem::take(&mut self.held[die]);
            for earlier in held {
                if self.device.wordline_end(ProgramUnitId(self.jobs[earlier].program_unit)) == end {
                    self.count_held(earlier, false);
                    self.commit(earlier, done);
                } else {
                    self.held[die].push(earlier);
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
            _ => change(&mut self.die_groups[job.die_group as usize].cleaner.held, 1),
        }
    }

    /// Fills up the wordlines of copies that the cleaning of `die_group` waits for.
    #[inline(never)]
    pub(super) fn close_copies(&mut self, die_group: DieGroupId, now: SimTime) {
        let jobs = &self.jobs;
        let is_copy = |job: &Job| job.die_group == die_group.0 && job.cause != Some(Cause::Host);
        let held = self.held.iter().flatten().copied();
        let waiting: Vec<u32> = held.filter(|&place| is_copy(&jobs[place])).collect();
        waiting.into_iter().for_each(|place| self.close_wordline(place, now));
    }

    /// Fills up the wordlines of programmed host program units that have a unit whose tag is
    /// `wanted`.
    pub fn close_wordlines(&mut self, wanted: impl Fn(u32) -> bool, now: SimTime) {
        if self.units_held == 0 {
            return;
        }
        let jobs = &self.jobs;
        let is_wanted = |&place: &u32| {
            let job = &jobs[place];
            job.cause == Some(Cause::Host) && job.tags.iter().any(|&tag| wanted(tag))
        };
        let held = self.held.iter().flatten().copied();
        let waiting: Vec<u32> = held.filter(is_wanted).collect();
        waiting.into_iter().for_each(|place| self.close_wordline(place, now));
    }

    /// Programs padding to the rest of the wordline of a job, unless other program units for it are
    /// in flight.
    fn close_wordline(&mut self, place: u32, now: SimTime) {
        let (program_unit, die_group) =
            (ProgramUnitId(self.jobs[place].program_unit), DieGroupId(self.jobs[place].die_group));
        let (block, until) =
            (self.layout.block_of(program_unit), self.device.wordline_end(program_unit));
        while let Some(pad) = self.ftl.reserve_pad(block, until) {
            self.program_empty(die_group, pad, Cause::Pad, now);
            self.program_parity(die_group, now);
        }
    }

    /// Units of the caller that are programmed and wait for the rest of their wordline.
    #[must_use]
    pub fn units_held(&self) -> u32 {
        self.units_held
    }

    /// Host program units that are queued or in flight on any die.
    #[must_use]
    pub fn host_program_units(&self) -> u32 {
        self.die_groups.iter().map(|die_group| die_group.host_program_units).sum()
    }
}
