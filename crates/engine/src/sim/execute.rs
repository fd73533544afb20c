//! Execution of operations on dies: beginning, ending, and what follows on the die.

use prism_base::{Nanos, SimTime, Slab};
use prism_ftl::ReadRecovery;
use prism_nand::{BlockId, DieId, ProgramUnitId};

use super::die::{Op, ReadFor, ReadOp};
use super::{Ended, Job, SimDevice};
use crate::config::Scheduler;
use crate::content;

/// Stands for no die, between steps.
pub(super) const NO_DIE: DieId = DieId(u32::MAX);
/// How often a program or an erase may be suspended.
const SUSPENSIONS_MAX: u32 = 16;

impl SimDevice {
    /// Ends the earliest phase of an operation, and returns its time, and the operation if that was
    /// its last phase. The caller processes what has ended, and may submit operations; then it
    /// calls [`SimDevice::begin_next`].
    ///
    /// # Panics
    /// If no operation is in flight.
    #[inline(always)]
    pub(super) fn end_phase(&mut self, jobs: &mut Slab<Job>) -> (SimTime, Option<Ended>) {
        let (now, index) = self.timers.first().expect("an event to step to");
        let die = DieId(index);
        (self.stepping, self.turn) = (die, die);
        let state = &mut self.dies[index as usize];
        if state.array_until == now {
            return (now, self.array_done(jobs, die, now));
        }
        let op = state.take_register().expect("a phase ends now");
        (now, self.register_done(jobs, die, op))
    }

    /// Begins what may follow on the die whose phase has ended. Returns a read that ends at once,
    /// because its transfer takes no time: the caller processes it and calls this again.
    #[inline(always)]
    pub(super) fn begin_next(&mut self, jobs: &mut Slab<Job>, now: SimTime) -> Option<Ended> {
        let die = self.stepping;
        if self.overlaps
            && let Some(ended) = self.continue_overlapped(jobs, die, now)
        {
            return Some(ended);
        }
        self.stepping = NO_DIE;
        self.start_next(jobs, die, now);
        None
    }

    /// The operations that waited for the register or the array of `die` continue. Returns a read
    /// that ends at once.
    #[inline(never)]
    fn continue_overlapped(
        &mut self,
        jobs: &mut Slab<Job>,
        die: DieId,
        now: SimTime,
    ) -> Option<Ended> {
        if self.config.cache_read
            && let Some(ended) = self.send_sensed(jobs, die, now)
        {
            return Some(ended);
        }
        if self.config.cache_program {
            self.start_loaded(jobs, die, now);
        }
        None
    }

    /// As [`SimDevice::enqueue`] for a read, which most dies can begin at once. `read` is a closure
    /// so that the operation is built in place: copying it from the stack would wait for the stores
    /// (docs/design/event-core.md).
    #[inline(always)]
    pub(super) fn enqueue_read(
        &mut self,
        jobs: &Slab<Job>,
        die: DieId,
        read: impl Fn() -> ReadOp,
        passes: bool,
        now: SimTime,
    ) {
        let state = &mut self.dies[die.0 as usize];
        if state.is_idle() && (self.fcfs_only || state.is_clear()) {
            if !passes {
                state.waiting.none_passed();
            }
            self.operations += 1;
            self.start_read(die, read(), now);
            return self.note_time(die);
        }
        self.enqueue(jobs, die, Op::Read(read()), passes, now);
    }

    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        jobs: &Slab<Job>,
        die: DieId,
        op: Op,
        passes: bool,
        now: SimTime,
    ) {
        if self.config.scheduler == Scheduler::ShortestWait {
            let time = self.estimate(jobs, op);
            self.dies[die.0 as usize].backlog += time;
        }
        let state = &mut self.dies[die.0 as usize];
        match passes {
            false => state.waiting.push(op),
            true => state.waiting.push_passing(op),
        }
        // A busy die begins queued operations when its current phase ends, and the die of the
        // current step at the end of the step.
        if die != self.stepping && self.may_begin(die) {
            self.start_queued(jobs, die, now);
        }
    }

    #[inline(never)]
    fn start_queued(&mut self, jobs: &Slab<Job>, die: DieId, now: SimTime) {
        self.start_of_several(jobs, die, now);
        self.note_time(die);
    }

    /// Whether an operation may begin on `die` before the current one is done.
    #[inline(always)]
    fn may_begin(&self, die: DieId) -> bool {
        let state = &self.dies[die.0 as usize];
        if self.reserves_transfer_early {
            return state.next_at() == SimTime::NEVER;
        }
        state.array.is_none() || self.config.cache_program
    }

    /// Begins the operations that can begin on `die`, and sets its timer.
    #[inline(always)]
    fn start_next(&mut self, jobs: &Slab<Job>, die: DieId, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        if !self.fcfs_only || state.waiting.has_passing() {
            self.start_of_several(jobs, die, now);
        } else if state.next_at() == SimTime::NEVER {
            // No operation is in flight, and the oldest one of the queue is next.
            self.start_first(jobs, die, now);
        }
        self.note_time(die);
    }

    /// Sets the timer of `die`; that of the current step's die is set at the end of the step.
    #[inline(always)]
    fn note_time(&mut self, die: DieId) {
        if die != self.stepping {
            self.timers.set(die.0, self.dies[die.0 as usize].next_at());
        }
    }

    /// Begins the oldest operation queued for `die`, if there is one.
    #[inline(always)]
    fn start_first(&mut self, jobs: &Slab<Job>, die: DieId, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        let Some(&op) = state.waiting.first() else { return };
        state.waiting.leave();
        self.operations += 1;
        self.start(jobs, die, op, now);
    }

    #[inline(always)]
    fn start(&mut self, jobs: &Slab<Job>, die: DieId, op: Op, now: SimTime) {
        match op {
            Op::Read(read) => self.start_read(die, read, now),
            Op::Program { job } => self.start_program(jobs, die, job, now),
            Op::Erase { block, member, .. } => self.start_erase(die, op, block, member, now),
        }
    }

    /// Begins operations on `die` if more than one may be next, or flash fails.
    #[inline(never)]
    fn start_of_several(&mut self, jobs: &Slab<Job>, die: DieId, now: SimTime) {
        while self.has_work(die) && self.may_begin(die) && self.start_one(jobs, die, now) {}
    }

    /// Whether an operation is queued for `die` or suspended.
    fn has_work(&self, die: DieId) -> bool {
        let state = &self.dies[die.0 as usize];
        !state.waiting.is_empty() || state.suspended.is_some()
    }

    /// Begins the next operation queued for `die`, if it may begin now. Returns whether another one
    /// may begin after it.
    fn start_one(&mut self, jobs: &Slab<Job>, die: DieId, now: SimTime) -> bool {
        let Some(op) = self.take_next(jobs, die) else { return self.resume(die, now) };
        if self.faulty
            && let Op::Program { job } = op
            && self.nand.is_bad(self.layout.block_of(ProgramUnitId(jobs[job].program_unit)))
        {
            self.refused.push(job);
            return true;
        }
        self.operations += 1;
        self.start(jobs, die, op, now);
        !self.reserves_transfer_early
    }

    /// Takes the next operation of `die` from the queue, if it may begin now.
    fn take_next(&mut self, jobs: &Slab<Job>, die: DieId) -> Option<Op> {
        let cache_read = self.config.cache_read;
        let state = &mut self.dies[die.0 as usize];
        // A suspended operation is resumed before any of the rest begins.
        let (op, passes) = state.waiting.next(state.suspended.is_some())?;
        if state.sensed.is_some() || !state.may_begin(&op, cache_read) {
            return None;
        }
        state.waiting.take(passes);
        if self.config.scheduler == Scheduler::ShortestWait {
            let time = self.estimate(jobs, op);
            let backlog = &mut self.dies[die.0 as usize].backlog;
            *backlog = Nanos(backlog.0 - time.0);
        }
        Some(op)
    }

    #[inline(always)]
    fn start_read(&mut self, die: DieId, read: ReadOp, now: SimTime) {
        let begun = self.send_command(die, now);
        let time = self.begin_read(&read);
        let penalty = if self.fcfs_only { Nanos::ZERO } else { self.take_penalty(die) };
        let sensed = begun + penalty + time;
        if self.reserves_transfer_early {
            let end = self.reserve_channel(die, self.transfer_of(&read), sensed, now);
            self.dies[die.0 as usize].set_register(Op::Read(read), end);
        } else {
            self.begin_array(die, Op::Read(read), begun, sensed);
        }
    }

    /// The additional time of a read on `die`, because an operation is suspended first.
    fn take_penalty(&mut self, die: DieId) -> Nanos {
        std::mem::take(&mut self.dies[die.0 as usize].penalty)
    }

    #[inline(always)]
    fn start_program(&mut self, jobs: &Slab<Job>, die: DieId, job: u32, now: SimTime) {
        let (transfer, time) = self.begin_program(jobs, job, now);
        let loaded = if self.instant_commands {
            self.occupy_channel(die, transfer, now)
        } else {
            self.send_program(die, transfer, now)
        };
        if self.config.cache_program {
            self.dies[die.0 as usize].set_register(Op::Program { job }, loaded);
        } else {
            self.begin_array(die, Op::Program { job }, loaded, loaded + time);
        }
    }

    /// The array of `die` executes `op`: its cells change from `from` to `until`.
    #[inline(always)]
    fn begin_array(&mut self, die: DieId, op: Op, from: SimTime, until: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        state.set_array(op, until);
        if self.config.suspend.is_some() {
            (state.array_from, state.suspensions) = (from, 0);
        }
    }

    /// Begins `op`, the erase of member `member` of `block`.
    #[inline(never)]
    fn start_erase(&mut self, die: DieId, op: Op, block: BlockId, member: u32, now: SimTime) {
        let begun = self.send_command(die, now);
        self.nand.erase_begin(block, member).expect("a victim is on the device");
        let until = begun + self.erase_time(block);
        self.begin_array(die, op, begun, until);
    }

    #[inline(always)]
    fn begin_read(&mut self, read: &ReadOp) -> Nanos {
        // Checked in tests only, because on a large device the state of the block is not in the
        // cache.
        debug_assert!(
            self.nand.check_read_program_unit(read.program_unit).is_ok(),
            "a read of a program unit that is not readable"
        );
        self.counts.reads[read.cause] += u64::from(read.pages);
        let once = self.read_time(read.program_unit, read.level);
        if read.recovery == ReadRecovery::default() {
            return once;
        }
        let retries = u64::from(read.recovery.retries());
        self.counts.faults.read_retries += retries;
        Nanos(once.0 * (1 + retries))
    }

    /// Begins the program on the flash and counts it; returns the times of transfer and cells.
    #[inline(always)]
    fn begin_program(&mut self, jobs: &Slab<Job>, place: u32, now: SimTime) -> (Nanos, Nanos) {
        let job = &jobs[place];
        let cause = job.cause.expect("a job with a cause");
        let program_unit = ProgramUnitId(job.program_unit);
        let times = (self.program_transfer(job), self.program_time(job));
        content::program_begin(
            &mut self.nand,
            program_unit,
            &job.units,
            &job.payloads,
            &job.tombstones,
        )
        .expect("a reserved program unit is the next of its block");
        let logical = self.logical_units;
        let (geometry, layout) = (self.nand.geometry(), self.nand.layout());
        let before = self.counts.before_slc(layout, program_unit);
        self.counts.count_program(geometry, layout, cause, logical, &job.units);
        self.counts.count_slc(before);
        self.counts.reads[cause] += u64::from(job.copied_back);
        if self.faulty {
            self.nand.programmed_at(program_unit, now);
        }
        times
    }

    #[inline(always)]
    fn array_done(&mut self, jobs: &mut Slab<Job>, die: DieId, now: SimTime) -> Option<Ended> {
        let state = &mut self.dies[die.0 as usize];
        // The frequent case, which needs only the job.
        if let Some(Op::Program { job }) = state.array {
            state.clear_array();
            let program_unit = ProgramUnitId(jobs[job].program_unit);
            return Some(Ended::Program { job, status: self.nand.program_end(program_unit) });
        }
        self.read_or_erase_done(jobs, die, now)
    }

    #[inline(never)]
    fn read_or_erase_done(
        &mut self,
        jobs: &mut Slab<Job>,
        die: DieId,
        now: SimTime,
    ) -> Option<Ended> {
        let state = &mut self.dies[die.0 as usize];
        match state.take_array().expect("a phase ends now") {
            Op::Read(read) => {
                if state.register.is_none() {
                    return self.send(jobs, die, read, now);
                }
                state.sensed = Some(read);
                None
            }
            Op::Program { .. } => unreachable!("programs end in array_done"),
            Op::Erase { block, member, die_group } => {
                let status = self.nand.erase_end(block, member);
                Some(Ended::Erase { block, die_group, status })
            }
        }
    }

    #[inline(always)]
    fn register_done(&mut self, jobs: &mut Slab<Job>, die: DieId, op: Op) -> Option<Ended> {
        match op {
            Op::Read(read) => self.read_done(jobs, die, &read),
            Op::Program { job } => {
                self.dies[die.0 as usize].loaded = Some(job);
                None
            }
            Op::Erase { .. } => unreachable!("an erase has no transfer"),
        }
    }

    #[inline(always)]
    fn read_done(&mut self, jobs: &mut Slab<Job>, die: DieId, read: &ReadOp) -> Option<Ended> {
        match read.why {
            ReadFor::Copy => Some(Ended::CopyRead { job: read.tag }),
            ReadFor::Caller => Some(Ended::Read { tag: read.tag, die }),
            ReadFor::Rebuild => self.stripe_read_done(jobs, die, read),
        }
    }

    /// A program whose data is in the register continues in the array.
    #[inline(never)]
    fn start_loaded(&mut self, jobs: &Slab<Job>, die: DieId, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        if state.array.is_some() || state.suspended.is_some() {
            return;
        }
        let Some(job) = state.loaded.take() else { return };
        let time = self.program_time(&jobs[job]);
        self.begin_array(die, Op::Program { job }, now, now + time);
    }

    /// A read that waited for the register continues with its transfer.
    #[inline(never)]
    fn send_sensed(&mut self, jobs: &mut Slab<Job>, die: DieId, now: SimTime) -> Option<Ended> {
        let state = &mut self.dies[die.0 as usize];
        if state.register.is_some() {
            return None;
        }
        let read = state.sensed.take()?;
        self.send(jobs, die, read, now)
    }

    /// The array is done with a read: its data is transferred over the channel.
    #[inline]
    fn send(
        &mut self,
        jobs: &mut Slab<Job>,
        die: DieId,
        read: ReadOp,
        now: SimTime,
    ) -> Option<Ended> {
        let end = self.occupy_channel(die, self.transfer_of(&read), now);
        if end == now {
            return self.read_done(jobs, die, &read);
        }
        self.dies[die.0 as usize].set_register(Op::Read(read), end);
        None
    }

    /// Suspends the operation of the array of `die`, if it may be suspended for a read.
    #[inline(never)]
    pub(super) fn suspend(&mut self, die: DieId, now: SimTime) {
        let Some(suspend) = self.config.suspend else { return };
        let state = &mut self.dies[die.0 as usize];
        let may = match state.array {
            Some(Op::Program { .. }) => suspend.programs,
            Some(Op::Erase { .. }) => suspend.erases,
            Some(Op::Read(_)) | None => false,
        };
        let changing = now >= state.array_from;
        let left = state.array_until.0.saturating_sub(now.0);
        let alone = state.register.is_none() && state.loaded.is_none();
        let often = state.suspensions == SUSPENSIONS_MAX;
        if may && changing && alone && left > suspend.cost.0 && !often {
            let op = state.take_array().expect("an operation is in the array");
            state.suspended = Some((op, Nanos(left), state.suspensions + 1));
            state.penalty = suspend.cost;
        }
    }

    /// Resumes the suspended operation, now that no read is queued. Returns whether there was one.
    #[inline(never)]
    fn resume(&mut self, die: DieId, now: SimTime) -> bool {
        let state = &mut self.dies[die.0 as usize];
        if state.array.is_some() || state.register.is_some() {
            return false;
        }
        let Some((op, left, suspensions)) = state.suspended.take() else { return false };
        self.begin_array(die, op, now, now + left);
        self.dies[die.0 as usize].suspensions = suspensions;
        true
    }
}
