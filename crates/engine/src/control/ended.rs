//! Ends of operations: what takes effect, and what follows.

use prism_base::SimTime;
use prism_nand::{Cause, DieGroupId, DieId, ProgramUnitId, Status};

use super::{Controller, Done};
use crate::device::{Ended, FlashDevice};

impl<D: FlashDevice> Controller<D> {
    /// Ends the earliest phase of an operation; adds completions for the caller to `done`. Returns
    /// the time of the event.
    ///
    /// # Panics
    /// If there is none.
    #[inline(never)]
    pub fn step(&mut self, done: &mut Vec<Done>) -> SimTime {
        let (now, ended) = self.device.end_next(&mut self.jobs);
        if let Some(ended) = ended {
            self.process(ended, done, now);
        }
        while let Some(ended) = self.device.go_on(&mut self.jobs, now) {
            self.process_another(ended, done, now);
        }
        if self.faulty {
            self.resolve_lost_programs(done, now);
            self.replace_program_units(now);
        }
        self.device.end_turn();
        now
    }

    #[inline(always)]
    fn process(&mut self, ended: Ended, done: &mut Vec<Done>, now: SimTime) {
        match ended {
            Ended::Read { tag, die } => {
                done.push(Done::Read { tag });
                self.host_op_done(die, now);
            }
            Ended::CopyRead { job } => self.copy_read_done(job, now),
            Ended::Program { job, status } => self.program_done(job, status, done, now),
            Ended::Erase { block, die_group, status } => {
                self.erase_done(block, DieGroupId(die_group), status, now);
            }
        }
    }

    #[inline(never)]
    fn process_another(&mut self, ended: Ended, done: &mut Vec<Done>, now: SimTime) {
        self.process(ended, done, now);
    }

    #[inline(always)]
    fn program_done(&mut self, place: u32, status: Status, done: &mut Vec<Done>, now: SimTime) {
        let job = &self.jobs[place];
        let (program_unit, cause) = (ProgramUnitId(job.program_unit), job.cause);
        let die_group = DieGroupId(job.die_group);
        if status == Status::Failed {
            self.device.counts_mut().faults.program_failures += 1;
            self.lose_program_unit(place);
            self.lose_held(self.layout.block_of(program_unit));
            return;
        }
        if self.faulty && self.ftl.is_void(program_unit) {
            self.lose_program_unit(place);
            return;
        }
        if self.device.wordline_program_units() > 1 {
            let fails = || self.ftl.has_failed(self.layout.block_of(program_unit));
            if self.faulty && fails() && program_unit != self.device.wordline_end(program_unit) {
                // The rest of its wordline will not be programmed.
                self.lose_program_unit(place);
                return;
            }
            self.wordline_done(place, done);
        } else {
            self.commit(place, done);
        }
        match cause {
            Some(Cause::Host) => {
                let die = self.layout.die_of(program_unit);
                self.device.load_mut(die).host_program_units -= 1;
                self.die_groups[die_group.0 as usize].host_program_units -= 1;
                self.list(die_group);
                self.host_op_done(die, now);
            }
            // The region counts the parity of host data that is in flight, so that host data may
            // wait for its end.
            Some(Cause::Parity) => self.freed |= self.ftl.has_slc(),
            // A host program unit may wait for its block without any other notification.
            Some(Cause::Pad) => self.freed = true,
            _ => self.die_groups[die_group.0 as usize].cleaner.copies -= 1,
        }
        self.clean(die_group, now);
        self.look_for_garbage(now);
    }

    /// The program takes effect, and its units are reported as done.
    #[inline(always)]
    pub(super) fn commit(&mut self, place: u32, done: &mut Vec<Done>) {
        let job = &self.jobs[place];
        self.ftl.commit(ProgramUnitId(job.program_unit), &job.units, &[]);
        if !self.no_payload && !job.lost.is_empty() {
            self.mark_lost(place);
        }
        let job = &self.jobs[place];
        if job.cause == Some(Cause::Host) {
            done.extend(job.tags.iter().map(|&tag| Done::Wrote { tag }));
        }
        self.jobs.give(place);
    }

    /// An operation of the caller on `die` has ended.
    pub(super) fn host_op_done(&mut self, die: DieId, now: SimTime) {
        let state = self.device.load_mut(die);
        state.host_ops -= 1;
        if state.host_ops == 0 && self.paused > 0 {
            self.resume_cleaning(DieGroupId(die.0 / self.layout.dies_per_die_group()), now);
        }
    }

    /// Lists `die_group` as ready for host program units, if it has room for one.
    #[inline(always)]
    pub(super) fn list(&mut self, die_group: DieGroupId) {
        let most = self.program_units_max();
        let state = &mut self.die_groups[die_group.0 as usize];
        if !state.listed && state.host_program_units < most {
            state.listed = true;
            self.ready.push_back(die_group.0);
        }
    }

    /// Programs the parity of complete stripes.
    #[inline(always)]
    pub(super) fn program_parity(&mut self, die_group: DieGroupId, now: SimTime) {
        while let Some(program_unit) = self.ftl.take_parity() {
            self.program_empty(die_group, program_unit, Cause::Parity, now);
        }
    }

    /// Programs a program unit without units.
    pub(super) fn program_empty(
        &mut self,
        die_group: DieGroupId,
        program_unit: ProgramUnitId,
        cause: Cause,
        now: SimTime,
    ) {
        let place = self.jobs.take();
        let job = &mut self.jobs[place];
        job.die_group = die_group.0;
        job.program_unit = program_unit.0;
        job.cause = Some(cause);
        job.copied_back = 0;
        job.units.clear();
        job.lost.clear();
        job.payloads.clear();
        self.submit_program(place, now);
    }
}
