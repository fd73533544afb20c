//! One run through the trace.

use prism_base::{Nanos, SimTime, Slab};
use prism_ssd::{Completion, HostOp, Request, Status};
use prism_trace::{Flags, Op, Record, Source};
use prism_workload::{Finished, Issuer, Measured, Observer, Progress};

use crate::dependency::Dependencies;
use crate::host_ftl::HostFtlCounts;
use crate::options::Pace;
use crate::replay_device::ReplayDevice;
use crate::run::ReplayError;

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    record: Option<Record>,
    number: u64,
    arrival: SimTime,
    in_flight: u32,
}

/// A replay in progress over one drive.
pub(crate) struct Player<'a, B> {
    pub(crate) drive: &'a mut B,
    pub(crate) observer: &'a mut dyn Observer,
    pace: Pace,
    pending: Slab<Pending>,
    in_flight: u32,
    done: Vec<Completion>,
    dependencies: Dependencies,
    pub(crate) measured: Measured,
    /// Counts of the host FTL in the same passes, if there is one.
    pub(crate) host_ftl: Option<HostFtlCounts>,
    /// Set while requests are passed to the observer: (first pass, start).
    pub(crate) observing: Option<(u32, SimTime)>,
    pub(crate) passes: u32,
    /// No request is submitted once the drive is read-only.
    pub(crate) until_read_only: bool,
}

/// The latest arrival of a request in nanoseconds: 292 years, half of what simulated time can
/// represent. Only traces with a broken clock reach it.
const CLOCK_END: u64 = u64::MAX / 2;

/// Records per batch of prefetches, and their distance ahead of submission.
const PREFETCH_BATCH: usize = 8;

/// Records between two calls of [`Observer::keep_going`].
const PROGRESS_STEP: u64 = 4096;

impl<'a, B: ReplayDevice> Player<'a, B> {
    pub(crate) fn new(drive: &'a mut B, observer: &'a mut dyn Observer, pace: Pace) -> Self {
        Self {
            drive,
            observer,
            pace,
            pending: Slab::new(),
            in_flight: 0,
            done: Vec::new(),
            dependencies: Dependencies::default(),
            measured: Measured::default(),
            host_ftl: None,
            observing: None,
            passes: 0,
            until_read_only: false,
        }
    }

    /// Discards the figures so far.
    pub(crate) fn reset_measurement(&mut self) {
        self.measured = Measured::default();
        self.host_ftl = None;
    }

    /// Prefetches map entries for the next records. In batches: on a large drive each prefetch
    /// needs a page table walk, and these overlap.
    #[inline]
    fn prefetch(&self, batch: &[Record], place: usize) {
        if place.is_multiple_of(PREFETCH_BATCH) {
            let from = if place == 0 { 0 } else { place + PREFETCH_BATCH };
            let to = batch.len().min(place + 2 * PREFETCH_BATCH);
            for next in batch.get(from..to).unwrap_or_default() {
                self.drive.prefetch(next.offset);
            }
        }
    }

    /// Replays the trace once, from the drive's current time to the last completion.
    /// Figures are added to `self.measured`.
    pub(crate) fn pass(&mut self, source: &mut dyn Source) -> Result<(), ReplayError> {
        source.rewind()?;
        self.dependencies = Dependencies::default();
        let start = self.drive.drive().now();
        let host_before = *self.drive.host_counts();
        let work_before = self.drive.flash_work();
        let host_ftl_before = self.drive.host_ftl_counts();
        let mut batch = Vec::new();
        let mut number = 0;
        let mut first_ns = None;
        let mut last_arrival = start;
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for (place, record) in batch.iter().enumerate() {
                self.prefetch(&batch, place);
                if self.until_read_only && self.drive.read_only().is_some() {
                    break;
                }
                if number % PROGRESS_STEP == 0 && !self.report(number) {
                    return Err(ReplayError::Interrupted);
                }
                let origin = *first_ns.get_or_insert(record.issue_ns);
                // The difference fits 64 bits for any two times, since records are in order.
                let since = record.issue_ns.abs_diff(origin);
                let arrival = self.arrival(record, number, since, start)?.max(last_arrival);
                last_arrival = arrival;
                self.submit(record, number, arrival)?;
                number += 1;
            }
        }
        while self.drive.in_flight() > 0 {
            self.step();
        }
        self.passes += 1;
        let m = &mut self.measured;
        m.passes += 1;
        m.simulated += self.drive.drive().now().since(start);
        let host = self.drive.host_counts();
        m.in_flight_ns += host.in_flight_ns - host_before.in_flight_ns;
        if let Some((now, before)) = self.drive.flash_work().zip(work_before) {
            m.add_work(&now.since(&before), self.drive.unit());
        }
        if let Some((now, before)) = self.drive.host_ftl_counts().zip(host_ftl_before) {
            self.host_ftl.get_or_insert_default().add(&now.since(&before));
        }
        self.drive.assert_conserved();
        Ok(())
    }

    fn report(&mut self, submitted: u64) -> bool {
        self.drive.assert_conserved();
        self.observer.keep_going(Progress {
            passes: self.passes,
            submitted,
            measuring: self.observing.is_some(),
        })
    }

    /// When a request should be submitted. Advances the drive if that depends on a completion.
    fn arrival(
        &mut self,
        record: &Record,
        number: u64,
        since: u64,
        start: SimTime,
    ) -> Result<SimTime, ReplayError> {
        let (from, span, speed) = match self.pace {
            Pace::Open { speed } => (start, since, speed),
            Pace::Closed { depth } => {
                while self.drive.in_flight() >= depth {
                    self.step();
                }
                return Ok(self.drive.drive().now());
            }
            Pace::Dependent { speed } => match self.dependencies.next(number, record) {
                None => (start, since, speed),
                Some(dependency) => loop {
                    if let Some(at) = self.dependencies.done_at(dependency.number) {
                        break (at, dependency.think_ns, speed);
                    }
                    self.step();
                },
            },
        };
        let at = from.0.checked_add(scaled(span, speed).0).filter(|&at| at <= CLOCK_END);
        at.map(SimTime).ok_or(ReplayError::TooLong { number: number + 1 })
    }

    fn submit(
        &mut self,
        record: &Record,
        number: u64,
        arrival: SimTime,
    ) -> Result<(), ReplayError> {
        let mut done = std::mem::take(&mut self.done);
        self.drive.advance(arrival.max(self.drive.drive().now()), &mut done);
        self.done = done;
        self.take_done();
        let in_flight = self.drive.in_flight();
        if !self.drive.can_accept(0) {
            self.measured.held_back += 1;
            while !self.drive.can_accept(0) {
                self.step();
            }
            self.measured.held_back_ns += u128::from(self.drive.drive().now().since(arrival).0);
        }
        let late = self.drive.drive().now().since(arrival);
        self.measured.behind_max = self.measured.behind_max.max(late);
        let tag = self.pending.take();
        let request = request_of(record, tag);
        let now = self.drive.drive().now();
        self.drive.submit(request, now).map_err(|error| ReplayError::Refused {
            number: number + 1,
            at_ns: record.issue_ns,
            error,
        })?;
        self.pending[tag] = Pending { record: Some(*record), number, arrival, in_flight };
        self.in_flight += 1;
        self.measured.in_flight_max = self.measured.in_flight_max.max(self.in_flight);
        if let Some((_, origin)) = self.observing {
            let at = SimTime(self.drive.drive().now().since(origin).0);
            self.observer.in_flight(at, self.in_flight);
        }
        Ok(())
    }

    fn step(&mut self) {
        let mut done = std::mem::take(&mut self.done);
        self.drive.step(&mut done);
        self.done = done;
        self.take_done();
    }

    fn take_done(&mut self) {
        for i in 0..self.done.len() {
            let completion = self.done[i];
            let tag = completion.tag as u32;
            let pending = self.pending[tag];
            self.pending.give(tag);
            let record = pending.record.expect("a completion of a pending request");
            if matches!(self.pace, Pace::Dependent { .. }) {
                self.dependencies.completed(pending.number, &record, completion.completed);
            }
            let m = &mut self.measured;
            let latency = completion.completed.since(pending.arrival);
            m.completed(completion.op, completion.len, completion.status, latency);
            let zeroes = completion.op == HostOp::WriteZeroes && completion.status == Status::Done;
            if zeroes && !self.drive.drive().device().unmaps() {
                m.zeroed += completion.len;
            }
            m.buffer_hits += u64::from(completion.cost.buffer_hits);
            m.unmapped += u64::from(completion.cost.unmapped);
            self.in_flight -= 1;
            if let Some((first, origin)) = self.observing {
                let at = SimTime(completion.completed.since(origin).0);
                self.observer.in_flight(at, self.in_flight);
                self.observer.finished(&Finished {
                    offset: record.offset,
                    issue_ns: record.issue_ns,
                    handle: record.stream,
                    issuer: issuer(&record),
                    pass: self.passes - first,
                    origin,
                    arrival: pending.arrival,
                    completion,
                    in_flight: pending.in_flight,
                });
            }
        }
        self.done.clear();
    }
}

fn issuer(record: &Record) -> Issuer {
    Issuer {
        device: record.device,
        comm: record.comm,
        file: record.file,
        phase: record.phase,
        pid: record.pid,
    }
}

fn scaled(span: u64, speed: f64) -> Nanos {
    // The common case stays exact.
    if speed == 1.0 { Nanos(span) } else { Nanos((span as f64 / speed) as u64) }
}

fn request_of(record: &Record, tag: u32) -> Request {
    let op = match record.op {
        Op::Read => HostOp::Read,
        Op::Write => HostOp::Write,
        Op::Discard => HostOp::Discard,
        Op::WriteZeroes => HostOp::WriteZeroes,
        Op::Flush => HostOp::Flush,
    };
    let flush = op == HostOp::Flush;
    let (offset, len) = if flush { (0, 0) } else { (record.offset, record.len) };
    Request {
        fua: record.flags.has(Flags::FUA),
        preflush: record.flags.has(Flags::PREFLUSH),
        // Drives without placement handles ignore it.
        handle: record.stream,
        ..Request::new(op, offset, len, u64::from(tag))
    }
}
