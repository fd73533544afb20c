//! Failures of flash: failed programs that are repeated elsewhere, reads with retries or a rebuild
//! from the stripe, and lost units.

use prism_base::SimTime;
use prism_ftl::{HostPlace, ReadRecovery};
use prism_nand::{BlockId, Cause, DieGroupId, ProgramUnitId, Pun};

use super::{Controller, Done};
use crate::device::FlashDevice;

impl<D: FlashDevice> Controller<D> {
    /// Whether fault injection is enabled.
    #[must_use]
    #[inline]
    pub fn has_faults(&self) -> bool {
        self.faulty
    }

    /// Whether no more data is written, because too few good blocks are left.
    #[must_use]
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.faulty && self.ftl.is_read_only()
    }

    /// The outcome of a read of the unit at `at` that begins now. Adds its retries and rebuild to
    /// `recovery`, and returns whether the unit is lost.
    pub fn sample_read_errors(
        &mut self,
        at: Pun,
        now: SimTime,
        recovery: &mut ReadRecovery,
    ) -> bool {
        self.device.sample_read_errors(at, now, recovery)
    }

    /// Counts a unit read by the host that could not be corrected.
    pub fn note_unreadable(&mut self) {
        self.device.counts_mut().faults.unreadable_units += 1;
    }

    /// Counts the content of the unit at `at` as lost, unless it was lost before.
    pub fn note_lost(&mut self, at: Pun) {
        self.device.counts_mut().faults.lost_units += u64::from(!self.device.is_marked_lost(at));
    }

    /// Determines the read errors of the copies of a job: its reads get retries and rebuilds, and
    /// lost units are recorded.
    #[inline(never)]
    pub(super) fn sample_copy_read_errors(&mut self, place: u32, victim: BlockId, now: SimTime) {
        let together = self.ftl.copies_in_order(victim);
        let units = std::mem::take(&mut self.jobs[place].units);
        let mut reads = std::mem::take(&mut self.copy_reads);
        let mut lost = std::mem::take(&mut self.jobs[place].lost);
        let (logical, die_group) =
            (self.ftl.logical_units(), DieGroupId(self.jobs[place].die_group));
        let (mut run, mut seen) = (0, 0);
        for (number, unit) in units.iter().enumerate() {
            let Some(source) = unit.source else { continue };
            // Units are in the order of the reads that fetch them.
            if seen == reads[run].units {
                (run, seen) = (run + 1, 0);
            }
            seen += 1;
            let gone = self.sample_read_errors(source, now, &mut reads[run].recovery);
            // The drive also has the units that it writes for itself in memory.
            if gone && unit.lpn < logical {
                lost.push(number as u32);
                if !together {
                    self.note_lost(source);
                } else if !self.device.is_marked_lost(source) {
                    // Counted when the merge takes effect.
                    self.die_groups[die_group.0 as usize].cleaner.lost_units += 1;
                }
            }
        }
        (self.jobs[place].units, self.jobs[place].lost) = (units, lost);
        self.copy_reads = reads;
    }

    /// Adds the reads that a copy needs to rebuild units.
    #[inline(never)]
    pub(super) fn rebuild_copies(&mut self, place: u32, now: SimTime) {
        for run in self.copy_reads.iter().filter(|run| run.recovery.is_rebuilt()) {
            let reads = self.device.rebuild_for_copy(&mut self.jobs, place, run, now);
            self.jobs[place].reads_left += reads;
        }
    }

    /// The units of a job are on flash: marks the lost ones.
    #[inline(never)]
    pub(super) fn mark_lost(&mut self, place: u32) {
        let job = &self.jobs[place];
        let first = self.layout.first_unit(ProgramUnitId(job.program_unit)).0;
        for &number in &job.lost {
            self.device.mark_lost(Pun(first + number));
        }
    }

    /// The program of a job has failed, or is not attempted because its block has failed. Its units
    /// get another program unit at the end of the current event, because program units have to be
    /// queued in the order in which they are reserved.
    #[inline(never)]
    pub(super) fn lose_program_unit(&mut self, place: u32) {
        let job = &mut self.jobs[place];
        // The data is transferred again.
        job.copied_back = 0;
        self.ftl.program_failed(ProgramUnitId(job.program_unit));
        self.jobs_without_program_unit.push_back(place);
    }

    /// Host units and copies of the failed `block` that are programmed and wait for the rest of
    /// their wordline get other program units, because the rest is never programmed.
    #[inline(never)]
    pub(super) fn lose_held(&mut self, block: BlockId) {
        if self.device.wordline_program_units() == 1 {
            return;
        }
        let die_group = self.layout.die_group_of(block);
        for die in self.layout.dies_of(die_group) {
            let held = std::mem::take(&mut self.held[die.0 as usize]);
            let block_of =
                |place: u32| self.layout.block_of(ProgramUnitId(self.jobs[place].program_unit));
            let (lost, kept): (Vec<u32>, _) =
                held.into_iter().partition(|&place| self.ftl.has_failed(block_of(place)));
            self.held[die.0 as usize] = kept;
            for place in lost {
                self.count_held(place, false);
                // As if their programs were still pending.
                if self.jobs[place].cause == Some(Cause::Host) {
                    self.device.load_mut(die).host_program_units += 1;
                    self.device.load_mut(die).host_ops += 1;
                    self.die_groups[die_group.0 as usize].host_program_units += 1;
                } else {
                    let die_group = self.jobs[place].die_group;
                    self.die_groups[die_group as usize].cleaner.copies += 1;
                }
                self.lose_program_unit(place);
            }
        }
    }

    /// The next job that has lost its program unit. Those whose programs the device has refused,
    /// because their block has failed, lose it now.
    fn next_without_program_unit(&mut self) -> Option<u32> {
        for job in self.device.take_refused() {
            self.lose_program_unit(job);
        }
        self.jobs_without_program_unit.pop_front()
    }

    /// Finds other program units for jobs that have lost theirs. Parity and padding are dropped,
    /// and so are copies with program units fixed by a merge, which restarts with another target.
    /// Obsolete host data ends as if it were on flash.
    #[inline(never)]
    pub(super) fn resolve_lost_programs(&mut self, done: &mut Vec<Done>, now: SimTime) {
        while let Some(place) = self.next_without_program_unit() {
            let job = &self.jobs[place];
            let (program_unit, die_group) =
                (ProgramUnitId(job.program_unit), DieGroupId(job.die_group));
            match (job.cause, job.victim) {
                (Some(Cause::Parity | Cause::Pad), _) => self.jobs.give(place),
                (Some(Cause::Host), _) => {
                    let die = self.layout.die_of(program_unit);
                    self.device.load_mut(die).host_program_units -= 1;
                    self.die_groups[die_group.0 as usize].host_program_units -= 1;
                    if self.ftl.is_obsolete(program_unit) {
                        done.extend(self.jobs[place].tags.iter().map(|&tag| Done::Wrote { tag }));
                        self.jobs.give(place);
                    } else {
                        self.units_to_relocate.push_back(place);
                    }
                    self.list(die_group);
                    self.host_op_done(die, now);
                    self.replace_program_units(now);
                }
                (_, Some(victim)) if self.ftl.copies_in_order(victim) => {
                    let cleaner = &mut self.die_groups[die_group.0 as usize].cleaner;
                    cleaner.copies -= 1;
                    cleaner.lost_units = 0;
                    self.jobs.give(place);
                }
                _ => self.place_copy(place, now),
            }
            // Host data may have another destination now.
            self.freed |= self.ftl.places_host();
            self.clean(die_group, now);
            self.look_for_garbage(now);
        }
    }

    /// Reserves program units for host units whose programs have failed, as far as die groups have
    /// room.
    #[inline]
    pub(super) fn replace_program_units(&mut self, now: SimTime) {
        if !self.units_to_relocate.is_empty() {
            self.replace_all_program_units(now);
        }
    }

    #[inline(never)]
    fn replace_all_program_units(&mut self, now: SimTime) {
        // Operations that begin here may call this function again, with a new list.
        let mut waiting = std::mem::take(&mut self.units_to_relocate);
        let mut blocked = Vec::new();
        for _ in 0..waiting.len() {
            let place = waiting.pop_front().expect("the list has one for each iteration");
            let job = &self.jobs[place];
            let (stream, own, first) = (job.stream, job.die_group, job.units[0].lpn);
            // Program units of a stream stay in order.
            let die_group = match blocked.contains(&stream) {
                true => None,
                false => self.new_die_group(stream, first, DieGroupId(own), now),
            };
            let Some(die_group) = die_group else {
                blocked.push(stream);
                waiting.push_back(place);
                continue;
            };
            let program_unit = self.ftl.reserve_host(die_group, stream, first);
            while let Some(pad) = self.ftl.take_pad() {
                self.program_empty(die_group, pad, Cause::Pad, now);
            }
            self.recount_overflow(place, program_unit, stream);
            (self.jobs[place].program_unit, self.jobs[place].die_group) =
                (program_unit.0, die_group.0);
            let die = self.layout.die_of(program_unit);
            self.device.load_mut(die).host_program_units += 1;
            self.device.load_mut(die).host_ops += 1;
            self.die_groups[die_group.0 as usize].host_program_units += 1;
            self.submit_program(place, now);
            self.program_parity(die_group, now);
            self.clean(die_group, now);
        }
        waiting.append(&mut self.units_to_relocate);
        self.units_to_relocate = waiting;
    }

    /// Gives up host units whose programs have failed, as no more data is written: adds their tags
    /// to `tags`. They are not reported as [`Done::Wrote`].
    pub fn give_up_lost_programs(&mut self, tags: &mut Vec<u32>) {
        for place in std::mem::take(&mut self.units_to_relocate) {
            tags.extend_from_slice(&self.jobs[place].tags);
            self.jobs.give(place);
        }
    }

    /// A die group that can be given the units of `stream` that begin with `first`, even if it is
    /// busy; preferably `own`, on which their program failed.
    fn new_die_group(
        &mut self,
        stream: u32,
        first: u32,
        own: DieGroupId,
        now: SimTime,
    ) -> Option<DieGroupId> {
        if self.ftl.is_read_only() {
            return None;
        }
        if self.ftl.host_place(stream, first) != HostPlace::Any {
            return self.place(stream, first, now);
        }
        let die_groups = self.die_groups.len() as u32;
        let mut all = (own.0..die_groups).chain(0..own.0).map(DieGroupId);
        all.find(|&die_group| self.ftl.host_may_write(die_group, stream))
    }

    /// The units of a job get `program_unit` instead of the one that failed, which may be an SLC
    /// block or not.
    fn recount_overflow(&mut self, place: u32, program_unit: ProgramUnitId, stream: u32) {
        let job = &self.jobs[place];
        let units = job.units.len() as u64;
        let before = self.ftl.is_overflow(ProgramUnitId(job.program_unit), stream);
        self.device.counts_mut().slc_overflow +=
            units * u64::from(self.ftl.is_overflow(program_unit, stream));
        self.device.counts_mut().slc_overflow -= units * u64::from(before);
    }

    /// Reserves a program unit for a copy whose reads are done. If no erased block is left for it,
    /// failures have used up the spare blocks, and the FTL becomes read-only.
    #[inline(always)]
    pub(super) fn place_copy(&mut self, place: u32, now: SimTime) {
        let job = &self.jobs[place];
        let die_group = DieGroupId(job.die_group);
        let victim = job.victim.expect("a copy empties a block");
        if self.faulty && self.ftl.next_copy_program_unit(die_group, victim).is_none() {
            self.ftl.set_read_only();
            self.die_groups[die_group.0 as usize].cleaner.copies -= 1;
            self.jobs.give(place);
            return;
        }
        let program_unit = self.ftl.reserve_copy(die_group, victim);
        self.jobs[place].program_unit = program_unit.0;
        self.submit_program(place, now);
        self.program_parity(die_group, now);
    }
}
