//! Simulated flash as a device of the controller.

use prism_base::{Nanos, SimTime};
use prism_ftl::{ReadRecovery, ReadRun};
use prism_nand::{BlockId, Cause, DieId, Geometry, Layout, ProgramUnitId, Pun};

use super::SimDevice;
use super::die::{Op, ReadFor, ReadOp};
use crate::config::Scheduler;
use crate::counts::FlashCounts;
use crate::device::{Ended, FlashDevice, Job, Jobs, Load};

impl FlashDevice for SimDevice {
    fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn uses_payloads(&self) -> bool {
        self.nand.has_faults() || self.nand.keeps_content()
    }

    fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    #[inline]
    fn counts_mut(&mut self) -> &mut FlashCounts {
        &mut self.counts
    }

    #[inline]
    fn load(&self, die: DieId) -> &Load {
        &self.dies[die.0 as usize].load
    }

    #[inline]
    fn load_mut(&mut self, die: DieId) -> &mut Load {
        &mut self.dies[die.0 as usize].load
    }

    #[inline(always)]
    fn read(
        &mut self,
        jobs: &mut Jobs,
        run: &ReadRun,
        cause: Cause,
        tag: u32,
        urgent: bool,
        now: SimTime,
    ) {
        let &ReadRun { program_unit, level, pages, recovery, .. } = run;
        let die = self.layout.die_of(program_unit);
        let read = ReadOp {
            tag,
            program_unit,
            pages,
            parts: self.parts_of(run),
            level,
            cause,
            why: ReadFor::Caller,
            recovery,
        };
        let passes = match self.config.scheduler {
            Scheduler::Fcfs | Scheduler::ShortestWait => false,
            Scheduler::ReadFirst => true,
            Scheduler::Priority => urgent,
        };
        if passes {
            self.suspend(die, now);
        }
        if recovery.is_rebuilt() {
            self.read_stripe(jobs, read, passes, now);
        } else {
            self.enqueue_read(jobs, die, || read, passes, now);
        }
    }

    #[inline(always)]
    fn read_for_copy(&mut self, jobs: &mut Jobs, job: u32, run: &ReadRun, now: SimTime) {
        let &ReadRun { program_unit, level, pages, recovery, .. } = run;
        let (parts, why) = (self.parts_of(run), ReadFor::Copy);
        let cause = jobs[job].cause.expect("a job with a cause");
        let read = || ReadOp { tag: job, program_unit, pages, parts, level, cause, why, recovery };
        self.enqueue_read(jobs, self.layout.die_of(program_unit), read, false, now);
    }

    #[inline(always)]
    fn program(&mut self, jobs: &mut Jobs, job: u32, now: SimTime) {
        let die = self.layout.die_of(ProgramUnitId(jobs[job].program_unit));
        self.enqueue(jobs, die, Op::Program { job }, false, now);
    }

    fn erase(
        &mut self,
        jobs: &mut Jobs,
        block: BlockId,
        _cause: Cause,
        die_group: u32,
        now: SimTime,
    ) -> u32 {
        let members: Vec<u32> = self.nand.members_to_erase(block).collect();
        let first = self.layout.die_group_of(block).0 * self.layout.dies_per_die_group();
        for &member in &members {
            let op = Op::Erase { block, member, die_group };
            self.enqueue(jobs, DieId(first + member), op, false, now);
        }
        members.len() as u32
    }

    #[inline(always)]
    fn end_next(&mut self, jobs: &mut Jobs) -> (SimTime, Option<Ended>) {
        self.end_phase(jobs)
    }

    #[inline(always)]
    fn go_on(&mut self, jobs: &mut Jobs, now: SimTime) -> Option<Ended> {
        self.begin_next(jobs, now)
    }

    #[inline(always)]
    fn end_turn(&mut self) {
        self.turn = super::execute::NO_DIE;
    }

    #[inline]
    fn next_at(&self) -> SimTime {
        self.timers.next_at()
    }

    fn may_fail(&self) -> bool {
        self.faulty
    }

    fn take_refused(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.refused)
    }

    fn sample_read_errors(&mut self, at: Pun, now: SimTime, recovery: &mut ReadRecovery) -> bool {
        self.sample_errors(at, now, recovery)
    }

    fn rebuild_for_copy(&mut self, jobs: &mut Jobs, job: u32, run: &ReadRun, now: SimTime) -> u32 {
        self.read_rest_of_stripe(jobs, job, run, now)
    }

    fn is_marked_lost(&self, at: Pun) -> bool {
        self.nand.is_marked_lost(at)
    }

    fn mark_lost(&mut self, at: Pun) {
        self.nand.mark_lost(at);
    }

    fn wordline_program_units(&self) -> u32 {
        self.config.wordline_program_units
    }

    fn wordline_end(&self, program_unit: ProgramUnitId) -> ProgramUnitId {
        self.nand.wordline_end(program_unit)
    }

    fn copies_back(&self) -> bool {
        self.config.copy_back
    }

    fn copy_back(&self, job: &mut Job, to: ProgramUnitId, reads: &[ReadRun]) -> bool {
        // A copy within the plane bypasses error correction, which reads with errors need.
        let reads_at_once = |run: &ReadRun| run.recovery == ReadRecovery::default();
        if !reads.iter().all(reads_at_once) || !self.stays_in_plane(to, reads) {
            return false;
        }
        let times = reads.iter().map(|run| self.read_time(run.program_unit, run.level));
        job.back_time = times.fold(Nanos::ZERO, |sum, time| sum + time);
        job.copied_back = reads.iter().map(|run| u32::from(run.pages)).sum();
        true
    }

    fn assert_conserved(&self) {
        let geometry = self.nand.geometry();
        let pages = self.counts.programs.total();
        assert_eq!(
            self.counts.units.total() * geometry.unit.0,
            pages * geometry.page.0,
            "units programmed must be as many bytes as pages programmed"
        );
        let program_units = self.nand.program_units_programmed_total() - self.before.0;
        let of_device = program_units * u64::from(geometry.pages_per_program_unit());
        assert_eq!(pages, of_device, "pages by cause must sum to those of the device");
        let planes = u64::from(geometry.planes_ganged);
        let erased = (self.nand.erases_total() - self.before.1) * planes;
        // Erases are counted when they have ended, as the device does.
        assert_eq!(
            self.counts.erases.total(),
            erased,
            "erases by cause must sum to those of the device"
        );
    }
}

impl SimDevice {
    /// Whether a copy of `reads` to `to` stays in its plane.
    fn stays_in_plane(&self, to: ProgramUnitId, reads: &[ReadRun]) -> bool {
        let blocks_per_plane = self.nand.geometry().blocks_per_plane;
        let plane = |program_unit: ProgramUnitId| {
            let (_, in_die_group) = self.layout.split_block(self.layout.block_of(program_unit));
            (self.layout.die_of(program_unit), in_die_group as u32 / blocks_per_plane)
        };
        reads.iter().all(|run| plane(run.program_unit) == plane(to))
    }

    /// The read of `run` for the copy `job`, for a rebuild.
    pub(super) fn copy_read(&self, job: u32, run: &ReadRun) -> ReadOp {
        let &ReadRun { program_unit, level, pages, recovery, .. } = run;
        let (parts, cause, why) = (self.parts_of(run), Cause::Parity, ReadFor::Copy);
        ReadOp { tag: job, program_unit, pages, parts, level, cause, why, recovery }
    }

    /// Power is lost: removes every operation, and returns the jobs whose programs had begun, in
    /// the order in which they would have ended on their die.
    pub(crate) fn take_begun_programs(&mut self) -> Vec<u32> {
        let mut begun = Vec::new();
        for die in &mut self.dies {
            let suspended = die.suspended.take().map(|(op, ..)| op);
            let loaded = die.loaded.take().map(|job| Op::Program { job });
            let in_flight = [suspended, die.take_array(), loaded, die.take_register()];
            let job = |op| if let Op::Program { job } = op { Some(job) } else { None };
            begun.extend(in_flight.into_iter().flatten().filter_map(job));
            die.waiting.clear();
        }
        begun
    }
}
