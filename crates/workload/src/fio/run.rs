//! Runs jobs on one block device, in simulated time.
//!
//! I/Os that jobs issue while the device's queue is full wait in order, and their latency counts
//! from the issue. The run asserts that every issued I/O completes.

mod account;
mod acknowledged;
mod exchange;

use std::collections::VecDeque;

use prism_base::{EventQueue, Nanos, SimTime, Slab, Symbol, Symbols};
use prism_ssd::{
    BlockDevice, Completion, Drive, HostOp, NandError, Request, SubmitError, ZoneState,
};

use super::job::Job;
use super::stats::JobStats;
use super::worker::{Io, NextAction, State, Worker};
use super::zbd::{ZoneTable, ZonedIo};
use crate::measure::Measured;
use crate::observe::Observer;

use account::Before;
pub use account::{Row, RunResult, Stage};
pub use acknowledged::{Acknowledged, AfterCut};

/// Why a run ends without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A rate is so low, or pauses so long, that simulated time ends first.
    #[error("job {job}: its rate or pauses lead beyond 292 years of simulated time")]
    TooLong {
        /// The job's name.
        job: String,
    },
    /// The observer interrupted the run.
    #[error("interrupted")]
    Interrupted,
    /// The content of a unit cannot be read.
    #[error("the content of the drive cannot be read: {0}")]
    Content(#[from] NandError),
}

/// What jobs do when the drive becomes read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtReadOnly {
    /// They continue to their end; refused I/Os are counted as errors.
    GoOn,
    /// They stop issuing I/Os.
    Stop,
}

/// The latest time of an event: half of what simulated time can represent.
const CLOCK_END: SimTime = SimTime(u64::MAX / 2);
/// Completions between two checks of the conservation laws.
const CHECK_STEP: u64 = 4096;

/// The table of job names, and the symbol of each job.
#[must_use]
pub fn symbols(jobs: &[Job]) -> (Symbols, Vec<Symbol>) {
    let mut symbols = Symbols::new();
    let of_jobs = jobs.iter().map(|job| symbols.intern(&job.name)).collect();
    (symbols, of_jobs)
}

/// Runs `jobs` on `drive`, from its current time until all have ended.
///
/// # Errors
/// [`RunError`]; requests may still be in flight then.
///
/// # Panics
/// If a conservation law is violated, which would be a bug, or if a job's region lies beyond the
/// end of the drive.
pub fn run(
    drive: &mut Drive,
    jobs: &[Job],
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    run_until(drive, jobs, observer, AtReadOnly::GoOn)
}

/// As [`run`], with a choice of what jobs do when the drive becomes read-only.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_until(
    drive: &mut Drive,
    jobs: &[Job],
    observer: &mut dyn Observer,
    at_read_only: AtReadOnly,
) -> Result<RunResult, RunError> {
    let mut runner = Runner::new(drive, jobs, observer);
    runner.use_zones(ZoneTable::new(runner.device), take_failed_zone);
    runner.at_read_only = at_read_only;
    runner.start_jobs();
    runner.work()?;
    let outcome = runner.outcome();
    drive.assert_consistent();
    Ok(outcome)
}

/// As [`run`], on any block device, by jobs without zones. The device need not report work on
/// flash; then the figures about it are zero.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_on(
    device: &mut dyn BlockDevice,
    jobs: &[Job],
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    let mut runner = Runner::new(device, jobs, observer);
    runner.start_jobs();
    runner.work()?;
    Ok(runner.outcome())
}

/// The next zone of `drive` that has failed, and whether it cannot be read either.
fn take_failed_zone(drive: &mut Drive) -> Option<(u32, bool)> {
    let zone = drive.take_failed_zone()?;
    let info = drive.zone_info(zone);
    Some((zone, info.is_some_and(|info| info.state == ZoneState::Offline)))
}

/// Runs `jobs` until `requests` of their I/Os have completed, or all jobs have ended, and returns
/// what the drive has acknowledged until then. The next step is [`Drive::power_cut`].
///
/// # Errors
/// As [`run`]; [`RunError::Content`] if flash cannot be read.
///
/// # Panics
/// As [`run`]; if the drive has zones, or its flash keeps no content.
pub fn run_until_cut(
    drive: &mut Drive,
    jobs: &[Job],
    observer: &mut dyn Observer,
    requests: u64,
) -> Result<Acknowledged, RunError> {
    assert!(!drive.device().is_zoned(), "zones are not supported");
    let mut acknowledged = Acknowledged::new();
    let mut runner = Runner::new(drive, jobs, observer);
    // Every I/O gets a tag of its own, by which its completion is recognised.
    runner.submits_at_once = false;
    runner.cut = Some((requests, &mut acknowledged));
    runner.start_jobs();
    runner.work()?;
    Ok(acknowledged)
}

/// What notes the requests of a run.
trait Log<D: ?Sized> {
    /// A request is about to be submitted.
    fn submitted(&mut self, device: &D, request: Request) -> Result<(), NandError>;

    /// A request has completed.
    fn completed_one(&mut self, device: &D, completion: &Completion) -> Result<(), NandError>;

    /// Requests completed.
    fn completed(&self) -> u64;
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    io: Io,
    issued: SimTime,
    /// I/Os of the job in flight when it was issued, itself included, and of all jobs before it.
    depth: u32,
    before: u32,
}

impl Default for Pending {
    fn default() -> Self {
        let io = Io { op: HostOp::Flush, offset: 0, len: 0, fua: false, handle: 0 };
        Self { io, issued: SimTime::ZERO, depth: 0, before: 0 }
    }
}

/// The tag of an I/O: its job, and its place in [`Runner::pending`]. If an I/O is submitted when it
/// is issued and no observer receives it, its completion has all that is needed but the depth at
/// its issue. The tag has that instead of a place, which saves cache misses.
#[derive(Clone, Copy, Debug)]
struct Tag {
    job: u32,
    /// The place, or the depth.
    slot: u32,
    has_depth: bool,
}

impl Tag {
    const HAS_DEPTH: u64 = 1 << 63;

    #[inline(always)]
    fn of(completion: &Completion) -> Self {
        let tag = completion.tag;
        let job = (tag & !Self::HAS_DEPTH) >> 32;
        Self { job: job as u32, slot: tag as u32, has_depth: tag & Self::HAS_DEPTH != 0 }
    }

    #[inline(always)]
    fn encoded(self) -> u64 {
        let has_depth = if self.has_depth { Self::HAS_DEPTH } else { 0 };
        has_depth | u64::from(self.job) << 32 | u64::from(self.slot)
    }
}

struct Runner<'a, D: ?Sized> {
    device: &'a mut D,
    jobs: &'a [Job],
    observer: &'a mut dyn Observer,
    /// Whether the observer receives requests.
    observed: bool,
    symbols: Vec<Symbol>,
    workers: Vec<Worker<'a>>,
    /// The zones of a zoned drive, and for each job the I/O that waits for a zone.
    zones: Option<ZoneTable>,
    /// Returns the next zone that has failed, and whether it cannot be read either.
    take_failed_zone: fn(&mut D) -> Option<(u32, bool)>,
    blocked: Vec<Option<Io>>,
    wakes: EventQueue,
    pending: Slab<Pending>,
    /// The device has one queue and refuses no I/O, so that I/Os are submitted in the order in
    /// which they are issued: one that fits need not enter the backlog, if no observer receives
    /// it.
    submits_at_once: bool,
    /// Issued and not yet submitted to the device, for each of its queues.
    backlogs: Vec<VecDeque<Tag>>,
    /// Number of I/Os in all backlogs.
    waiting: usize,
    in_flight: u32,
    last_change: SimTime,
    /// Measured time with I/Os in flight; of the current stage, the integral of their number, and
    /// the most.
    busy: u64,
    in_flight_ns: u128,
    in_flight_max: u32,
    done: Vec<Completion>,
    /// I/Os that were exchanged for others and are not counted yet.
    exchanged: Vec<Completion>,
    rows: Vec<Row>,
    /// The row of each job.
    row_of: Vec<usize>,
    stages: Vec<Stage>,
    stage: usize,
    /// Jobs of the current stage that have not ended.
    stage_left: usize,
    before: Option<Before>,
    run_start: SimTime,
    /// The zero of time in charts.
    origin: Option<SimTime>,
    issued: u64,
    completed: u64,
    at_read_only: AtReadOnly,
    /// The I/Os after whose completion the run ends, because power fails, and what was
    /// acknowledged.
    cut: Option<(u64, &'a mut dyn Log<D>)>,
}

impl<'a, D: BlockDevice + ?Sized> Runner<'a, D> {
    fn new(device: &'a mut D, jobs: &'a [Job], observer: &'a mut dyn Observer) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        let mut row_of = Vec::with_capacity(jobs.len());
        let mut stages: Vec<Stage> = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let same_row = job.group_reporting
                && rows.last().is_some_and(|row| jobs[row.first].group == job.group);
            match rows.last_mut().filter(|_| same_row) {
                Some(row) => row.jobs += 1,
                None => rows.push(Row { first: number, jobs: 1, stats: JobStats::default() }),
            }
            row_of.push(rows.len() - 1);
            if stages.len() <= job.stage as usize {
                stages.push(Stage { jobs: number..number, measured: Measured::default() });
            }
            stages.last_mut().expect("one was added").jobs.end = number + 1;
        }
        let run_start = device.now();
        let observed = observer.needs_requests();
        Self {
            symbols: symbols(jobs).1,
            workers: jobs.iter().map(Worker::new).collect(),
            submits_at_once: device.queues() == 1 && !observed,
            zones: None,
            take_failed_zone: |_| None,
            blocked: vec![None; jobs.len()],
            jobs,
            observed,
            observer,
            wakes: EventQueue::new(),
            pending: Slab::new(),
            backlogs: vec![VecDeque::new(); device.queues() as usize],
            waiting: 0,
            in_flight: 0,
            last_change: run_start,
            busy: 0,
            in_flight_ns: 0,
            in_flight_max: 0,
            done: Vec::new(),
            exchanged: Vec::new(),
            rows,
            row_of,
            stage_left: stages.first().map_or(0, |stage| stage.jobs.len()),
            stages,
            stage: 0,
            before: None,
            run_start,
            origin: None,
            issued: 0,
            completed: 0,
            at_read_only: AtReadOnly::GoOn,
            cut: None,
            device,
        }
    }

    /// Jobs may use the zones of the device, if it has any.
    fn use_zones(
        &mut self,
        zones: Option<ZoneTable>,
        take_failed: fn(&mut D) -> Option<(u32, bool)>,
    ) {
        self.submits_at_once &= zones.is_none();
        (self.zones, self.take_failed_zone) = (zones, take_failed);
    }

    /// Starts the jobs of the current stage that no longer wait for others.
    fn start_jobs(&mut self) {
        let now = self.device.now();
        let Some(stage) = self.stages.get(self.stage) else { return };
        for number in stage.jobs.clone() {
            let waits = self.jobs[number].wait_for.clone();
            let ready = self.workers[waits].iter().all(|other| other.state == State::Done);
            let worker = &mut self.workers[number];
            if worker.state == State::Waiting && ready {
                worker.begin(now, self.run_start);
                self.wakes.push(now, number as u32);
                if worker.measured_from > now {
                    self.wakes.push(worker.measured_from, number as u32);
                }
            }
        }
    }

    fn work(&mut self) -> Result<(), RunError> {
        loop {
            if self.is_cut() {
                return Ok(());
            }
            self.feed()?;
            self.exchange()?;
            // Refused I/Os are done when they are submitted.
            if self.done.is_empty() && !self.advance()? {
                break;
            }
            self.take_done()?;
        }
        assert!(self.workers.iter().all(|worker| worker.state == State::Done), "every job ends");
        assert_eq!(self.issued, self.completed, "requests issued = completed");
        self.device.assert_conserved();
        Ok(())
    }

    /// Lets the device work until an I/O completes or a job wakes up. Returns false if there is
    /// nothing left to wait for.
    fn advance(&mut self) -> Result<bool, RunError> {
        if self.wakes.is_empty() && self.device.in_flight() == 0 {
            return Ok(false);
        }
        let completed = self.device.next_completion_before(self.wakes.next_at(), &mut self.done);
        self.take_failed_zones();
        if !completed {
            let (at, number) = self.wakes.pop().expect("requests in flight complete");
            self.workers[number as usize].wake_at = None;
            self.device.advance(at, &mut self.done);
            self.take_failed_zones();
            self.take_done()?;
            self.run_job(number as usize)?;
        }
        Ok(true)
    }

    /// Processes the zones that have failed since the last call.
    fn take_failed_zones(&mut self) {
        let Some(zones) = &mut self.zones else { return };
        while let Some((zone, lost)) = (self.take_failed_zone)(self.device) {
            zones.has_failed(zone, lost);
        }
    }

    /// Submits waiting I/Os as long as the device's queues have space.
    fn feed(&mut self) -> Result<(), RunError> {
        if self.waiting == 0 {
            return Ok(());
        }
        for queue in 0..self.backlogs.len() {
            while self.device.can_accept(queue as u16) {
                let Some(tag) = self.backlogs[queue].pop_front() else { break };
                self.waiting -= 1;
                let Pending { io, issued, .. } = self.pending[tag.slot];
                if let Some((_, acknowledged)) = &mut self.cut {
                    let request = Request {
                        fua: io.fua,
                        ..Request::new(io.op, io.offset, io.len, tag.encoded())
                    };
                    acknowledged.submitted(self.device, request)?;
                }
                self.submit(tag, io, queue as u16);
                let waited = self.device.now().since(issued);
                if waited > Nanos::ZERO {
                    let measured = &mut self.stages[self.stage].measured;
                    measured.held_back += 1;
                    measured.held_back_ns += u128::from(waited.0);
                    measured.behind_max = measured.behind_max.max(waited);
                }
            }
        }
        Ok(())
    }

    /// Whether the run ends here, because power fails.
    fn is_cut(&self) -> bool {
        self.cut.as_ref().is_some_and(|(requests, done)| done.completed() >= *requests)
    }

    #[inline(always)]
    fn submit(&mut self, tag: Tag, io: Io, queue: u16) {
        let now = self.device.now();
        let request = Request {
            fua: io.fua,
            handle: io.handle,
            urgent: self.jobs[tag.job as usize].urgent,
            queue,
            ..Request::new(io.op, io.offset, io.len, tag.encoded())
        };
        match self.device.submit(request, now) {
            Ok(()) => {}
            Err(SubmitError::ZoneState { .. }) => {
                self.done.push(Completion::refused(&request, now))
            }
            Err(error) => panic!("the device accepts the I/Os of jobs: {error}"),
        }
    }

    /// Lets a job issue I/Os until it has to wait.
    fn run_job(&mut self, number: usize) -> Result<(), RunError> {
        let now = self.device.now();
        if self.workers[number].state != State::Running {
            return Ok(());
        }
        if self.workers[number].measures(now) {
            self.rows[self.row_of[number]].stats.begin(now);
            self.begin_stage(now)?;
        }
        if self.at_read_only == AtReadOnly::Stop && self.device.is_read_only() {
            self.workers[number].stop();
        }
        loop {
            if self.zones.is_some()
                && let Some(io) = self.blocked[number].take()
                && !self.issue_placed(number, io)
            {
                return Ok(());
            }
            self.workers[number].draw_ahead(|offset| self.device.prefetch(offset));
            match self.workers[number].next_action(now) {
                NextAction::Issue(io) if self.jobs[number].zbd.is_some() => {
                    self.blocked[number] = Some(io)
                }
                NextAction::Issue(io) => {
                    self.issue(number, io);
                    if self.workers[number].is_full() {
                        return Ok(());
                    }
                }
                NextAction::Wait => return Ok(()),
                NextAction::At(at) if at > CLOCK_END => {
                    return Err(RunError::TooLong { job: self.jobs[number].name.clone() });
                }
                NextAction::At(at) => {
                    let worker = &mut self.workers[number];
                    if worker.wake_at.is_none_or(|noted| at < noted) {
                        worker.wake_at = Some(at);
                        self.wakes.push(at, number as u32);
                    }
                    return Ok(());
                }
                NextAction::Done => {
                    self.ended(now);
                    return Ok(());
                }
            }
        }
    }

    /// Issues `io` of a job with `zonemode=zbd` at its place in a zone, or first the zone
    /// management command that it needs. Returns whether the job may continue; otherwise `io` is
    /// tried again later.
    fn issue_placed(&mut self, number: usize, io: Io) -> bool {
        let job = &self.jobs[number];
        let (Some(zones), Some(zbd)) = (&mut self.zones, &job.zbd) else {
            unreachable!("jobs by zones are refused on a drive without them")
        };
        match zones.place(job, zbd, io) {
            ZonedIo::At(placed) => {
                zones.issued(&placed);
                self.workers[number].placed(&io, &placed);
                self.issue(number, placed);
                return true;
            }
            ZonedIo::Nowhere => {
                self.workers[number].cannot_place(&io);
                return true;
            }
            // The job's I/Os in flight have to complete first; `io` itself counts as one.
            ZonedIo::After(..) if self.workers[number].in_flight > 1 => {}
            ZonedIo::After(op, zone) => {
                let command = zones.command(op, zone);
                zones.issued(&command);
                self.workers[number].in_flight += 1;
                self.issue(number, command);
            }
            ZonedIo::Later if self.workers[number].in_flight > 1 => {}
            ZonedIo::Later => {
                // I/Os of another job have to complete: tries again at the device's next event.
                let at = self.device.next_event().unwrap_or_else(|| self.device.now());
                self.wakes.push(at, number as u32);
            }
        }
        self.blocked[number] = Some(io);
        false
    }

    // Inlined, as what it calls, so that the I/O is not built in memory and loaded again right
    // after the stores (docs/design/event-core.md).
    #[inline(always)]
    fn issue(&mut self, number: usize, io: Io) {
        let now = self.device.now();
        self.issued += 1;
        self.set_in_flight(now, self.in_flight + 1);
        if self.submits_at_once && self.waiting == 0 && self.device.can_accept(0) {
            let depth = self.workers[number].in_flight;
            self.submit(Tag { job: number as u32, slot: depth, has_depth: true }, io, 0);
        } else {
            self.put_off(number, io);
        }
    }

    /// Appends an I/O to the backlog of its queue.
    #[inline(never)]
    fn put_off(&mut self, number: usize, io: Io) {
        let tag = Tag { job: number as u32, slot: self.pending.take(), has_depth: false };
        self.pending[tag.slot] = Pending {
            io,
            issued: self.device.now(),
            depth: self.workers[number].in_flight,
            before: self.in_flight - 1,
        };
        // Jobs are spread over the queues, as a kernel spreads threads over hardware queues.
        let mut queue = number % self.backlogs.len();
        if self.jobs[number].zbd.is_some() {
            // Writes to a zone have to stay in order.
            queue = 0;
        }
        self.backlogs[queue].push_back(tag);
        self.waiting += 1;
    }

    fn take_done(&mut self) -> Result<(), RunError> {
        let mut done = std::mem::take(&mut self.done);
        for completion in &done {
            self.complete(completion)?;
            self.completed += 1;
            if let Some((_, acknowledged)) = &mut self.cut {
                acknowledged.completed_one(self.device, completion)?;
                if self.is_cut() {
                    // The host does not learn of the others.
                    return Ok(());
                }
            }
            if self.completed.is_multiple_of(CHECK_STEP) {
                self.device.assert_conserved();
                self.report(self.completed)?;
            }
        }
        // All completions have been counted, so that each job sees all of its own.
        let now = self.device.now();
        for completion in &done {
            let number = Tag::of(completion).job as usize;
            if self.at_read_only == AtReadOnly::GoOn
                && let Some(io) = self.workers[number].next_certain(now)
            {
                self.issue(number, io);
                if self.workers[number].is_full() {
                    continue;
                }
            }
            self.run_job(number)?;
        }
        done.clear();
        self.done = done;
        Ok(())
    }

    /// Handles the end of a job of the current stage.
    fn ended(&mut self, now: SimTime) {
        self.stage_left -= 1;
        if self.stage_left == 0 {
            self.end_stage(now);
            self.stage += 1;
            self.stage_left = self.stages.get(self.stage).map_or(0, |stage| stage.jobs.len());
        }
        self.start_jobs();
    }
}
