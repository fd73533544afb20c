//! Errors of reads, and reads of a whole stripe that rebuild a program unit.

use prism_base::{SimTime, Slab};
use prism_ftl::{ReadRecovery, ReadRun};
use prism_nand::{Cause, DieId, ProgramUnitId, Pun};

use super::die::{Op, ReadFor, ReadOp};
use super::{Ended, Job, SimDevice};

impl SimDevice {
    /// The outcome of a read of the unit at `at` that begins now. Adds its retries and rebuild to
    /// `recovery`, and returns whether the unit is lost.
    pub(super) fn sample_errors(
        &mut self,
        at: Pun,
        now: SimTime,
        recovery: &mut ReadRecovery,
    ) -> bool {
        let read = self.nand.read_unit(at, now);
        if read.retries > 0 {
            recovery.add_retries(read.retries);
            self.counts.faults.retried_units += 1;
        }
        if read.lost && self.stripe_has(at, now) {
            recovery.add_rebuild();
            self.counts.faults.rebuilt_units += 1;
            return false;
        }
        read.lost
    }

    /// Whether the unit at `at` can be rebuilt: its stripe is complete, and every other member can
    /// be read.
    fn stripe_has(&mut self, at: Pun, now: SimTime) -> bool {
        if !self.nand.geometry().parity || self.nand.is_marked_lost(at) {
            return false;
        }
        let program_unit = self.layout.program_unit_of(at);
        let place = at.0 - self.layout.first_unit(program_unit).0;
        self.rest_of_stripe(program_unit).all(|other| {
            let there = Pun(self.layout.first_unit(other).0 + place);
            self.nand.holds(other) && !self.nand.read_unit(there, now).lost
        })
    }

    /// The other program units of the stripe of `program_unit`.
    fn rest_of_stripe(
        &self,
        program_unit: ProgramUnitId,
    ) -> impl Iterator<Item = ProgramUnitId> + use<> {
        let dies = self.layout.dies_per_die_group();
        let first = self.layout.first_program_unit(self.layout.block_of(program_unit)).0;
        let stripe = program_unit.0 - (program_unit.0 - first) % dies;
        (stripe..stripe + dies).map(ProgramUnitId).filter(move |&other| other != program_unit)
    }

    /// The reads of the rest of the stripe that rebuild `read`, one on each other die.
    fn reads_of_stripe(&self, read: ReadOp) -> impl Iterator<Item = ReadOp> + use<> {
        let recovery = ReadRecovery::default();
        self.rest_of_stripe(read.program_unit).map(move |program_unit| ReadOp {
            program_unit,
            cause: Cause::Parity,
            recovery,
            ..read
        })
    }

    /// Reads `read`, which will fail, and the rest of its stripe, as one read.
    pub(super) fn read_stripe(
        &mut self,
        jobs: &mut Slab<Job>,
        read: ReadOp,
        passes: bool,
        now: SimTime,
    ) {
        let place = jobs.take();
        let all = ReadOp { tag: place, why: ReadFor::Rebuild, ..read };
        jobs[place].reads_left = self.layout.dies_per_die_group();
        jobs[place].tags.clear();
        jobs[place].tags.push(read.tag);
        let rest: Vec<ReadOp> = self.reads_of_stripe(all).collect();
        for op in std::iter::once(all).chain(rest) {
            self.enqueue(jobs, self.layout.die_of(op.program_unit), Op::Read(op), passes, now);
        }
    }

    /// Reads what rebuilds the units that the copy `job` reads by `run`. Returns the number of
    /// reads.
    pub(super) fn read_rest_of_stripe(
        &mut self,
        jobs: &Slab<Job>,
        job: u32,
        run: &ReadRun,
        now: SimTime,
    ) -> u32 {
        let reads: Vec<ReadOp> = self.reads_of_stripe(self.copy_read(job, run)).collect();
        for &op in &reads {
            self.enqueue(jobs, self.layout.die_of(op.program_unit), Op::Read(op), false, now);
        }
        reads.len() as u32
    }

    /// One of the reads of a stripe has ended. With the last one, the read of the caller is done.
    #[inline(never)]
    pub(super) fn stripe_read_done(
        &mut self,
        jobs: &mut Slab<Job>,
        die: DieId,
        read: &ReadOp,
    ) -> Option<Ended> {
        let job = &mut jobs[read.tag];
        job.reads_left -= 1;
        if read.cause != Cause::Parity {
            // The die on which the caller's read is counted.
            job.die_group = die.0;
        }
        if job.reads_left > 0 {
            return None;
        }
        let (tag, die) = (job.tags[0], DieId(job.die_group));
        jobs.give(read.tag);
        Some(Ended::Read { tag, die })
    }
}
