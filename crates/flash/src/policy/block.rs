//! A range of the policy level as a block device ([`prism_engine::block`]): requests with bytes,
//! many in flight, in virtual time, in real time, or on media without timing.

use std::collections::VecDeque;
use std::ops::Deref;

use prism_base::{SimTime, Slab};
use prism_engine::block::{
    BlockDevice, Completion, Cost, HostCounts, HostOp, Refused, Request, Status, SubmitError,
};
use prism_engine::{FlashCounts, FlashWork};

use crate::error::{FlashError, Result};
use crate::monitor::{Completion as QueueCompletion, OpCounts, Share};
use crate::policy::{Policy, Queue};

/// Commands of the queue that a request takes at most: a flush before it, itself, and a flush after
/// it.
const COMMANDS_MAX: usize = 3;

/// A request in flight.
#[derive(Debug)]
struct InFlight {
    request: Request,
    submitted: SimTime,
    status: Status,
    /// Whether it was submitted with a buffer.
    has_bytes: bool,
    /// Its commands in flight.
    left: u32,
    bytes: Vec<u8>,
}

impl Default for InFlight {
    fn default() -> Self {
        let request = Request::new(HostOp::Flush, 0, 0, 0);
        let (submitted, status) = (SimTime::ZERO, Status::Done);
        Self { request, submitted, status, has_bytes: false, left: 0, bytes: Vec::new() }
    }
}

/// A range as a block device, whose address 0 is the first of the range.
///
/// Requests take effect in the order of their submission, so that a read returns what was submitted
/// before it. In virtual time a write completes as [`Queue::submit_write`] describes. On a medium
/// without timing the clock stands still, writes are done during their submission, reads and syncs
/// are in flight, and [`BlockDevice::step`] waits for the next of them. A request that fails ends
/// with [`Status::Unreadable`] if it is a read, and [`Status::WriteFault`] otherwise; see
/// [`Block::error`].
#[derive(Debug)]
pub struct Block<R: Deref<Target = Policy>> {
    queue: Queue<R>,
    share: Share,
    begin: u64,
    capacity: u64,
    unit: u64,
    depth: u32,
    requests: Slab<InFlight>,
    returned: VecDeque<(u64, Vec<u8>)>,
    counts: HostCounts,
    last_change: SimTime,
    error: Option<FlashError>,
}

impl<R: Deref<Target = Policy>> Block<R> {
    /// The range of `policy` that begins at `begin`, with at most `depth` requests in flight.
    ///
    /// # Errors
    /// [`FlashError::Invalid`] if no range begins there.
    pub fn new(policy: R, begin: u64, depth: u32) -> Result<Self> {
        let ranges = policy.ranges();
        let Some(range) = ranges.iter().find(|range| range.begin == begin) else {
            let what = format!("no range begins at {begin}; list the ranges");
            return Err(FlashError::Invalid { what });
        };
        let (share, unit) = (policy.share(), policy.unit().into());
        let last_change = share.now()?;
        Ok(Self {
            queue: Queue::new(policy, depth as usize * COMMANDS_MAX),
            share,
            begin,
            capacity: range.end - begin,
            unit,
            depth,
            requests: Slab::new(),
            returned: VecDeque::new(),
            counts: HostCounts::default(),
            last_change,
            error: None,
        })
    }

    /// The level below.
    pub fn policy(&self) -> &Policy {
        self.queue.policy()
    }

    /// The first error of a request.
    pub fn error(&self) -> Option<&FlashError> {
        self.error.as_ref()
    }

    fn clock(&self) -> SimTime {
        self.share.now().unwrap_or(self.last_change)
    }

    fn check(&self, request: &Request) -> std::result::Result<(), SubmitError> {
        let &Request { op, offset, len, queue, .. } = request;
        if queue > 0 {
            return Err(SubmitError::NoSuchQueue { queue, queues: 1 });
        }
        if !self.can_accept(0) {
            return Err(SubmitError::QueueFull { queue, depth: self.depth });
        }
        if !HostOp::COMMON.contains(&op) {
            return Err(SubmitError::NoZones { op: op.name() });
        }
        if op == HostOp::Flush {
            return Ok(());
        }
        if len == 0 {
            return Err(SubmitError::ZeroLength);
        }
        let capacity = self.capacity;
        match offset.checked_add(len) {
            Some(end) if end <= capacity => Ok(()),
            _ => Err(SubmitError::BeyondEnd { offset, len, capacity }),
        }
    }

    fn accept(
        &mut self,
        request: Request,
        bytes: Option<Vec<u8>>,
        now: SimTime,
    ) -> std::result::Result<(), Refused> {
        if let Err(error) = self.check(&request) {
            return Err(Refused { error, bytes: bytes.unwrap_or_default() });
        }
        // A released share has no clock; its commands fail.
        let _ = self.share.reach_if_timed(now);
        self.account();
        self.counts.submitted += 1;
        let place = self.requests.take();
        let has_bytes = bytes.is_some();
        let mut bytes = bytes.unwrap_or_default();
        if request.op == HostOp::Read || request.op == HostOp::Write {
            bytes.resize(request.len as usize, 0);
        }
        let submitted = self.last_change;
        self.requests[place] = InFlight { request, submitted, has_bytes, ..InFlight::default() };
        self.begin(place, bytes);
        Ok(())
    }

    /// Submits the commands of a request.
    fn begin(&mut self, place: u32, bytes: Vec<u8>) {
        let request = self.requests[place].request;
        let Request { op, len, handle, fua, preflush, .. } = request;
        let (at, tag) = (self.begin + request.offset, u64::from(place));
        let full = "no more commands than the queue is deep";
        let mut commands = 1;
        if preflush && op != HostOp::Flush {
            self.queue.submit_flush(tag).expect(full);
            commands += 1;
        }
        match op {
            HostOp::Read => self.queue.submit(at, bytes, tag).expect(full),
            HostOp::Write => {
                let write = self.queue.submit_write_with_handle(at, bytes, u32::from(handle), tag);
                write.expect(full);
            }
            HostOp::Discard => {
                self.requests[place].bytes = bytes;
                let start = request.offset.next_multiple_of(self.unit);
                let end = (request.offset + len) / self.unit * self.unit;
                if start < end {
                    self.queue.submit_trim(self.begin + start, end - start, tag).expect(full);
                } else {
                    // No whole unit: a read of nothing completes at once.
                    self.queue.submit(self.begin, Vec::new(), tag).expect(full);
                }
            }
            HostOp::WriteZeroes => {
                self.requests[place].bytes = bytes;
                self.queue.submit_write_zeroes(at, len, tag).expect(full);
            }
            _ => {
                self.requests[place].bytes = bytes;
                self.queue.submit_flush(tag).expect(full);
            }
        }
        if fua && !matches!(op, HostOp::Read | HostOp::Flush) {
            self.queue.submit_flush(tag).expect(full);
            commands += 1;
        }
        self.requests[place].left = commands;
    }

    /// A command of a request has completed, and with the last one the request.
    fn end(&mut self, done: QueueCompletion, out: &mut Vec<Completion>) {
        let place = done.tag as u32;
        self.account();
        let in_flight = &mut self.requests[place];
        in_flight.left -= 1;
        if let Err(error) = done.result {
            let is_read = in_flight.request.op == HostOp::Read;
            in_flight.status = if is_read { Status::Unreadable } else { Status::WriteFault };
            self.error.get_or_insert(error);
        }
        if !done.data.is_empty() {
            in_flight.bytes = done.data.into_vec();
        }
        if in_flight.left > 0 {
            return;
        }
        let InFlight { request, submitted, status, has_bytes, bytes, .. } =
            std::mem::take(in_flight);
        self.requests.give(place);
        if has_bytes {
            self.returned.push_back((request.tag, bytes));
        }
        let Request { tag, op, offset, len, .. } = request;
        let (completed, cost) = (self.last_change, Cost::default());
        self.counts.completed += 1;
        self.counts.latency_ns += u128::from(completed.since(submitted).0);
        match op {
            _ if status != Status::Done => self.counts.failed += 1,
            HostOp::Read => self.counts.bytes_read += len,
            HostOp::Write => self.counts.bytes_written += len,
            _ => {}
        }
        out.push(Completion { tag, op, offset, len, submitted, completed, status, cost });
    }

    /// Adds the time since the last change to the integral of the requests in flight.
    fn account(&mut self) {
        let now = self.clock().max(self.last_change);
        let span = now.since(self.last_change);
        self.counts.in_flight_ns += u128::from(span.0) * self.requests.in_use() as u128;
        self.last_change = now;
    }
}

impl<R: Deref<Target = Policy>> BlockDevice for Block<R> {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn unit(&self) -> u64 {
        self.unit
    }

    fn now(&self) -> SimTime {
        self.clock()
    }

    fn can_accept(&self, queue: u16) -> bool {
        queue == 0 && (self.requests.in_use() as u32) < self.depth
    }

    fn in_flight(&self) -> u32 {
        self.requests.in_use() as u32
    }

    fn host_counts(&self) -> &HostCounts {
        &self.counts
    }

    /// Operations of the whole share, and the mapping units that the range has programmed.
    fn flash_work(&self) -> Option<FlashWork> {
        let mut policy = self.policy().lock();
        let units = policy.range_of(self.begin, 0).ok()?.0.counts().units;
        let OpCounts { reads, programs, erases } = self.share.counts().ok()?;
        let flash = FlashCounts { reads, programs, erases, units, ..FlashCounts::default() };
        Some(FlashWork { flash, ..FlashWork::default() })
    }

    fn submit(&mut self, request: Request, now: SimTime) -> std::result::Result<(), SubmitError> {
        self.accept(request, None, now).map_err(|refused| refused.error)
    }

    fn submit_bytes(
        &mut self,
        request: Request,
        bytes: Vec<u8>,
        now: SimTime,
    ) -> std::result::Result<(), Refused> {
        request.check_buffer(bytes.len());
        self.accept(request, Some(bytes), now)
    }

    fn take_bytes(&mut self) -> Option<(u64, Vec<u8>)> {
        self.returned.pop_front()
    }

    fn next_event(&self) -> Option<SimTime> {
        if self.requests.in_use() == 0 {
            return None;
        }
        let end = self.queue.next_end(SimTime(u64::MAX));
        Some(end.map_or(self.clock(), |end| end.max(self.clock())))
    }

    fn step(&mut self, out: &mut Vec<Completion>) {
        let done = self.queue.complete().expect("an event to step to");
        self.end(done, out);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while self.queue.next_end(until).is_some_and(|end| end <= until) {
            self.step(out);
        }
        let _ = self.share.reach_if_timed(until);
        while let Some(done) = self.queue.poll() {
            self.end(done, out);
        }
    }
}
