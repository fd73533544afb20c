//! Execution of operations on dies: beginning, ending, and what follows.

use prism_base::{Nanos, SimTime};
use prism_ftl::ReadRecovery;
use prism_nand::{BlockId, Cause, DieGroupId, DieId, ProgramUnitId, Status};

use super::channel::Channel;
use super::die::{Op, ReadFor, ReadOp};
use super::{Done, Engine, HOST_PROGRAM_UNITS_MAX};
use crate::config::{ChannelArbitration, Scheduler};
use crate::content;

/// Stands for no die, between steps.
pub(super) const NO_DIE: DieId = DieId(u32::MAX);
/// How often a program or an erase may be suspended.
const SUSPENSIONS_MAX: u32 = 16;

impl Engine {
    /// Ends the earliest phase of an operation; adds completions for the caller to `done`. Returns
    /// the time of the event.
    ///
    /// # Panics
    /// If there is none.
    #[inline(never)]
    pub fn step(&mut self, done: &mut Vec<Done>) -> SimTime {
        let (now, index) = self.timers.first().expect("an event to step to");
        let die = DieId(index);
        (self.stepping, self.turn) = (die, die);
        let state = &mut self.dies[index as usize];
        if state.array_until == now {
            self.array_done(die, done, now);
        } else {
            let op = state.take_register().expect("a phase ends now");
            self.register_done(die, op, done, now);
        }
        self.stepping = NO_DIE;
        self.start_next(die, now);
        if self.faulty {
            self.resolve_lost_programs(done, now);
            self.replace_program_units(now);
        }
        self.turn = NO_DIE;
        now
    }

    /// As [`Engine::enqueue`] for a read, which most dies can begin at once. `read` is a closure so
    /// that the operation is built in place: copying it from the stack would wait for the stores
    /// (docs/design/event-core.md).
    #[inline(always)]
    pub(super) fn enqueue_read(
        &mut self,
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
        self.enqueue(die, Op::Read(read()), passes, now);
    }

    #[inline(always)]
    pub(super) fn enqueue(&mut self, die: DieId, op: Op, passes: bool, now: SimTime) {
        if self.config.scheduler == Scheduler::ShortestWait {
            let time = self.estimate(op);
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
            self.start_queued(die, now);
        }
    }

    #[inline(never)]
    fn start_queued(&mut self, die: DieId, now: SimTime) {
        self.start_of_several(die, now);
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
    fn start_next(&mut self, die: DieId, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        if !self.fcfs_only || state.waiting.has_passing() {
            self.start_of_several(die, now);
        } else if state.next_at() == SimTime::NEVER {
            // No operation is in flight, and the oldest one of the queue is next.
            self.start_first(die, now);
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
    fn start_first(&mut self, die: DieId, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        let Some(&op) = state.waiting.first() else { return };
        state.waiting.leave();
        self.operations += 1;
        self.start(die, op, now);
    }

    #[inline(always)]
    fn start(&mut self, die: DieId, op: Op, now: SimTime) {
        match op {
            Op::Read(read) => self.start_read(die, read, now),
            Op::Program { job } => self.start_program(die, job, now),
            Op::Erase { block, member, .. } => self.start_erase(die, op, block, member, now),
        }
    }

    /// Begins operations on `die` if more than one may be next, or flash fails.
    #[inline(never)]
    fn start_of_several(&mut self, die: DieId, now: SimTime) {
        while self.has_work(die) && self.may_begin(die) && self.start_one(die, now) {}
    }

    /// Whether an operation is queued for `die` or suspended.
    fn has_work(&self, die: DieId) -> bool {
        let state = &self.dies[die.0 as usize];
        !state.waiting.is_empty() || state.suspended.is_some()
    }

    /// Begins the next operation queued for `die`, if it may begin now. Returns whether another one
    /// may begin after it.
    fn start_one(&mut self, die: DieId, now: SimTime) -> bool {
        let Some(op) = self.take_next(die) else { return self.resume(die, now) };
        if self.faulty && self.has_no_program_unit(&op) {
            let Op::Program { job } = op else { unreachable!("only programs have program units") };
            self.lose_program_unit(job);
            return true;
        }
        self.operations += 1;
        self.start(die, op, now);
        !self.reserves_transfer_early
    }

    /// Takes the next operation of `die` from the queue, if it may begin now.
    fn take_next(&mut self, die: DieId) -> Option<Op> {
        let cache_read = self.config.cache_read;
        let state = &mut self.dies[die.0 as usize];
        // A suspended operation is resumed before any of the rest begins.
        let (op, passes) = state.waiting.next(state.suspended.is_some())?;
        if state.sensed.is_some() || !state.may_begin(&op, cache_read) {
            return None;
        }
        state.waiting.take(passes);
        if self.config.scheduler == Scheduler::ShortestWait {
            let time = self.estimate(op);
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
    fn start_program(&mut self, die: DieId, job: u32, now: SimTime) {
        let (transfer, time) = self.begin_program(job, now);
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
    fn begin_program(&mut self, place: u32, now: SimTime) -> (Nanos, Nanos) {
        let job = &self.jobs[place];
        let cause = job.cause.expect("a job with a cause");
        let program_unit = ProgramUnitId(job.program_unit);
        let times = (self.program_transfer(job), self.program_time(job));
        content::program_begin(&mut self.nand, &self.ftl, program_unit, &job.units, &job.payloads)
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

    /// Sends the command of an operation to `die`; returns when it has been sent.
    #[inline(always)]
    fn send_command(&mut self, die: DieId, now: SimTime) -> SimTime {
        if self.instant_commands { now } else { self.arbitrate(die, Nanos::ZERO, now) }
    }

    /// Sends the command of a program to `die`, then its data, for `transfer`; returns when the
    /// data has been sent.
    #[inline(never)]
    fn send_program(&mut self, die: DieId, transfer: Nanos, now: SimTime) -> SimTime {
        if !self.interrupts_transfers {
            return self.arbitrate(die, transfer, now);
        }
        let sent = self.arbitrate(die, Nanos::ZERO, now);
        self.reserve_channel(die, transfer, sent, now)
    }

    /// Sends a command to `die`, and data for `transfer` with it; returns when both have been sent.
    #[inline(never)]
    fn arbitrate(&mut self, die: DieId, transfer: Nanos, now: SimTime) -> SimTime {
        let time = self.config.timing.t_command + transfer;
        // Commands that take no time wait for the same transfers as those that take little: not for
        // one that is requested at the same time.
        let first = self.config.timing.t_command == Nanos::ZERO;
        let turn = (now, if first { 0 } else { self.turn.0 });
        let arbitration = self.config.channel_arbitration;
        let (channel, moved) = self.channel_of(die);
        match arbitration {
            ChannelArbitration::CommandsFirst => channel.interrupt(time, now, moved),
            ChannelArbitration::Fifo => channel.occupy(time, turn, moved),
            ChannelArbitration::DataFirst => channel.wait_for_data(time, turn, moved),
        }
    }

    /// Takes the channel of `die` for a transfer as soon as it is free; returns when the transfer
    /// ends.
    #[inline]
    fn occupy_channel(&mut self, die: DieId, time: Nanos, now: SimTime) -> SimTime {
        if time == Nanos::ZERO { now } else { self.take_channel(die, time, now) }
    }

    #[inline(always)]
    fn take_channel(&mut self, die: DieId, time: Nanos, now: SimTime) -> SimTime {
        if self.interrupts_transfers {
            return self.reserve_channel(die, time, now, now);
        }
        let turn = (now, self.turn.0);
        let (channel, moved) = self.channel_of(die);
        channel.occupy(time, turn, moved)
    }

    /// Reserves the channel of `die` for `time` as soon as it is free after `asks`, when the cells
    /// will be done; returns when the transfer ends.
    #[inline(always)]
    fn reserve_channel(&mut self, die: DieId, time: Nanos, asks: SimTime, now: SimTime) -> SimTime {
        if time == Nanos::ZERO {
            return asks;
        }
        let (turn, interruptible) = ((now, self.turn.0), self.interrupts_transfers);
        let (channel, moved) = self.channel_of(die);
        if interruptible {
            return channel.reserve_interruptible(time, (asks, die.0), now, moved);
        }
        channel.reserve(time, (asks, die.0), turn, moved)
    }

    /// The channel of `die`, and the function to be called for dies whose transfer moves: by how
    /// much, and to when.
    #[inline]
    fn channel_of(&mut self, die: DieId) -> (&mut Channel, impl FnMut(u32, Nanos, SimTime)) {
        let (dies, timers) = (&mut self.dies, &mut self.timers);
        let moved = |die: u32, later, until| {
            let state = &mut dies[die as usize];
            if state.register.is_some() {
                state.register_until = until;
            } else {
                state.delay_program(later, until);
            }
            timers.set(die, state.next_at());
        };
        (&mut self.channels[self.layout.channel_of(die) as usize], moved)
    }

    #[inline]
    fn array_done(&mut self, die: DieId, done: &mut Vec<Done>, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        // The frequent case, which needs only the job.
        if let Some(Op::Program { job }) = state.array {
            state.clear_array();
            self.program_done(job, done, now);
        } else {
            self.read_or_erase_done(die, done, now);
        }
        if self.config.cache_program {
            self.start_loaded(die, now);
        }
    }

    #[inline(never)]
    fn read_or_erase_done(&mut self, die: DieId, done: &mut Vec<Done>, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        match state.take_array().expect("a phase ends now") {
            Op::Read(read) => {
                if state.register.is_some() {
                    state.sensed = Some(read);
                } else {
                    self.send(die, read, done, now);
                }
            }
            Op::Program { .. } => unreachable!("programs end in array_done"),
            Op::Erase { block, member, die_group } => {
                self.erase_done(block, member, DieGroupId(die_group), now);
            }
        }
    }

    #[inline]
    fn register_done(&mut self, die: DieId, op: Op, done: &mut Vec<Done>, now: SimTime) {
        match op {
            Op::Read(read) => {
                self.read_done(die, &read, done, now);
                if self.config.cache_read {
                    self.send_sensed(die, done, now);
                }
            }
            Op::Program { job } => self.dies[die.0 as usize].loaded = Some(job),
            Op::Erase { .. } => unreachable!("an erase has no transfer"),
        }
        if self.config.cache_program {
            self.start_loaded(die, now);
        }
    }

    /// A program whose data is in the register continues in the array.
    #[inline(never)]
    fn start_loaded(&mut self, die: DieId, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        if state.array.is_some() || state.suspended.is_some() {
            return;
        }
        let Some(job) = state.loaded.take() else { return };
        let time = self.program_time(&self.jobs[job]);
        self.begin_array(die, Op::Program { job }, now, now + time);
    }

    /// A read that waited for the register continues with its transfer.
    #[inline(never)]
    fn send_sensed(&mut self, die: DieId, done: &mut Vec<Done>, now: SimTime) {
        if let Some(read) = self.dies[die.0 as usize].sensed.take() {
            self.send(die, read, done, now);
        }
    }

    /// The array is done with a read: its data is transferred over the channel.
    #[inline]
    fn send(&mut self, die: DieId, read: ReadOp, done: &mut Vec<Done>, now: SimTime) {
        let end = self.occupy_channel(die, self.transfer_of(&read), now);
        if end == now {
            self.read_done(die, &read, done, now);
            return;
        }
        self.dies[die.0 as usize].set_register(Op::Read(read), end);
    }

    #[inline(always)]
    fn read_done(&mut self, die: DieId, read: &ReadOp, done: &mut Vec<Done>, now: SimTime) {
        match read.why {
            ReadFor::Copy => self.copy_read_done(read.tag, now),
            ReadFor::Caller => {
                done.push(Done::Read { tag: read.tag });
                self.host_op_done(die, now);
            }
            ReadFor::Rebuild => self.stripe_read_done(die, read, done, now),
        }
    }

    #[inline(always)]
    fn program_done(&mut self, place: u32, done: &mut Vec<Done>, now: SimTime) {
        let job = &self.jobs[place];
        let (program_unit, cause) = (ProgramUnitId(job.program_unit), job.cause);
        let die_group = DieGroupId(job.die_group);
        if self.nand.program_end(program_unit) == Status::Failed {
            self.counts.faults.program_failures += 1;
            self.lose_program_unit(place);
            self.lose_held(self.layout.block_of(program_unit));
            return;
        }
        if self.faulty && self.ftl.is_void(program_unit) {
            self.lose_program_unit(place);
            return;
        }
        if self.config.wordline_program_units > 1 {
            let fails = || self.ftl.has_failed(self.layout.block_of(program_unit));
            if self.faulty && fails() && program_unit != self.nand.wordline_end(program_unit) {
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
                self.dies[die.0 as usize].host_program_units -= 1;
                self.die_groups[die_group.0 as usize].host_program_units -= 1;
                self.list(die_group);
                self.host_op_done(die, now);
            }
            Some(Cause::Parity) => {}
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
        let state = &mut self.dies[die.0 as usize];
        state.host_ops -= 1;
        if state.host_ops == 0 && self.paused > 0 {
            self.resume_cleaning(DieGroupId(die.0 / self.layout.dies_per_die_group()), now);
        }
    }

    /// Lists `die_group` as ready for host program units, if it has room for one.
    #[inline(always)]
    pub(super) fn list(&mut self, die_group: DieGroupId) {
        let dies = self.layout.dies_per_die_group();
        let state = &mut self.die_groups[die_group.0 as usize];
        if !state.listed && state.host_program_units < HOST_PROGRAM_UNITS_MAX * dies {
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
        self.enqueue(self.layout.die_of(program_unit), Op::Program { job: place }, false, now);
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
