//! The drive in simulated time.
//!
//! Life of a write: link, firmware, buffer (complete, if the cache is write-back), row,
//! flash, map. Life of a read: firmware, then buffer or flash, then link. The host calls
//! [`Drive::submit`] and [`Drive::advance`]; nothing happens in between. Design:
//! docs/design/drive.md.

mod durability;
mod write_path;

use std::collections::VecDeque;

use prism_base::{Bytes, EventQueue, Nanos, SimTime};
use prism_engine::slab::Slab;
use prism_engine::{Done, Engine, FlashCounts, HostUnit};
use prism_ftl::{PageMap, ReadRun, TrimRange};
use prism_nand::timing::transfer_time;
use prism_nand::{Cause, Nand};

use crate::buffer::Buffer;
use crate::device::{Device, DeviceError};
use crate::request::{Completion, Cost, HostOp, Request, SubmitError};

/// A request inside the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) request: Request,
    submitted: SimTime,
    cost: Cost,
    /// Flash reads under way.
    reads_left: u32,
    /// Next mapping unit to go into the buffer, and the end.
    next: u32,
    end: u32,
    /// When it began to wait for the buffer.
    waits_since: SimTime,
}

impl Default for Slot {
    fn default() -> Self {
        let request =
            Request { op: HostOp::Flush, offset: 0, len: 0, fua: false, preflush: false, tag: 0 };
        Self {
            request,
            submitted: SimTime::ZERO,
            cost: Cost::default(),
            reads_left: 0,
            next: 0,
            end: 0,
            waits_since: SimTime::ZERO,
        }
    }
}

/// A request waits for the epoch to be durable, and what comes then.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    epoch: u64,
    slot: u32,
    then: Then,
}

/// What a request does once the flush it waits for is done.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The flush came before it: its own work comes next.
    Perform,
    /// Its own work was what had to become durable.
    Finish,
}

/// Sums that the laws are checked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Requests taken, flushes included.
    pub submitted: u64,
    /// Requests done, flushes included.
    pub completed: u64,
    /// Bytes of completed writes.
    pub bytes_written: u64,
    /// Bytes of completed reads.
    pub bytes_read: u64,
    /// Integral of requests in flight over time, in nanoseconds.
    pub in_flight_ns: u128,
    /// Sum of the latencies of completed requests, in nanoseconds.
    pub latency_ns: u128,
}

/// A simulated drive.
#[derive(Debug)]
pub struct Drive {
    pub(crate) device: Device,
    pub(crate) engine: Engine,
    pub(crate) buffer: Buffer,
    capacity: u64,
    unit: u64,
    row_units: usize,
    events: EventQueue,
    slots: Slab<Slot>,
    waiting_for_buffer: VecDeque<u32>,
    waiting_for_flush: VecDeque<Waiter>,
    link_in: SimTime,
    link_out: SimTime,
    pub(crate) now: SimTime,
    pub(crate) next_version: u64,
    /// Trimmed ranges that no tombstone holds yet (without power-loss protection).
    open_trims: Vec<TrimRange>,
    counts: HostCounts,
    last_change: SimTime,
    done: Vec<Done>,
    row: Vec<HostUnit>,
    runs: Vec<ReadRun>,
}

/// Event kinds, in the low bits of the payload above which the slot stands.
const START: u32 = 0;
const FINISH: u32 = 1;
const KIND_BITS: u32 = 1;
/// Tags of flash reads with this bit complete a buffered unit, others belong to a slot.
const FILL: u32 = 1 << 31;

impl Drive {
    /// An empty drive. `seed` feeds policies that draw lots.
    ///
    /// # Errors
    /// [`DeviceError`] if the description makes no sense.
    pub fn new(device: Device, seed: u64) -> Result<Self, DeviceError> {
        Self::with_nand(device.clone(), Nand::new(device.geometry()), seed)
    }

    /// An empty drive over erased flash, which may keep content.
    ///
    /// # Errors
    /// [`DeviceError`] if the description makes no sense.
    ///
    /// # Panics
    /// If the flash has another shape than the description says, or is not erased.
    pub fn with_nand(device: Device, nand: Nand, seed: u64) -> Result<Self, DeviceError> {
        device.check()?;
        assert!(*nand.geometry() == device.geometry(), "flash of another shape");
        assert!(nand.rows_programmed_total() == 0, "flash that was written before");
        let ftl = PageMap::new(device.geometry(), device.ftl_config(), seed)?;
        Ok(Self::assemble(device, nand, ftl, 1))
    }

    pub(crate) fn assemble(device: Device, nand: Nand, ftl: PageMap, next_version: u64) -> Self {
        let unit = device.ftl.mapping_unit.0;
        let buffer_units = (device.drive.write_buffer.0 / unit).min(1 << 30) as u32;
        Self {
            capacity: device.capacity().0,
            unit,
            row_units: device.geometry().units_per_row() as usize,
            engine: Engine::new(nand, ftl, device.timing()),
            buffer: Buffer::new(buffer_units),
            events: EventQueue::new(),
            slots: Slab::new(),
            waiting_for_buffer: VecDeque::new(),
            waiting_for_flush: VecDeque::new(),
            link_in: SimTime::ZERO,
            link_out: SimTime::ZERO,
            now: SimTime::ZERO,
            next_version,
            open_trims: Vec::new(),
            counts: HostCounts::default(),
            last_change: SimTime::ZERO,
            done: Vec::new(),
            row: Vec::new(),
            runs: Vec::new(),
            device,
        }
    }

    /// What the drive is.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Flash, layer and their counts.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Flash operations by cause since the drive was made.
    #[must_use]
    pub fn flash_counts(&self) -> &FlashCounts {
        self.engine.counts()
    }

    /// Sums over requests.
    #[must_use]
    pub fn host_counts(&self) -> &HostCounts {
        &self.counts
    }

    /// Requests taken and not done.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.slots.in_use() as u32
    }

    /// Whether another request may be submitted.
    #[must_use]
    pub fn can_accept(&self) -> bool {
        self.in_flight() < self.device.drive.queue_depth
    }

    /// The time the drive has reached.
    #[must_use]
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// When the drive will do something next by itself; `None` if it is idle.
    #[must_use]
    pub fn next_event(&self) -> Option<SimTime> {
        match (self.engine.next_event(), self.events.peek()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes a request at `now`, which is not before [`Drive::now`].
    ///
    /// # Errors
    /// [`SubmitError`]; the drive is unchanged then.
    ///
    /// # Panics
    /// If `now` lies in the past, or before an event that [`Drive::advance`] has not
    /// been told to reach.
    pub fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError> {
        let depth = self.device.drive.queue_depth;
        if !self.can_accept() {
            return Err(SubmitError::QueueFull { depth });
        }
        if request.op != HostOp::Flush {
            if request.len == 0 {
                return Err(SubmitError::ZeroLength);
            }
            let (offset, len, capacity) = (request.offset, request.len, self.capacity);
            if offset.checked_add(len).is_none_or(|end| end > capacity) {
                return Err(SubmitError::BeyondEnd { offset, len, capacity });
            }
        }
        assert!(now >= self.now, "a request submitted in the past");
        assert!(self.next_event().is_none_or(|at| at >= now), "events before {now:?} are due");
        self.now = now;
        self.account();
        self.counts.submitted += 1;
        let slot = self.slots.take();
        self.slots[slot] = Slot { request, submitted: now, ..Slot::default() };
        let start = if request.op == HostOp::Write {
            self.link_in = now.max(self.link_in) + self.link_time(request.len);
            self.link_in + self.device.drive.firmware_write
        } else {
            now + self.device.drive.firmware_read
        };
        self.events.push(start, (slot << KIND_BITS) | START);
        Ok(())
    }

    /// Lets everything happen up to and including `until`; completions are added to
    /// `out` in the order in which they happen.
    pub fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while let Some(at) = self.next_event() {
            if at > until {
                break;
            }
            self.step(out);
        }
        self.now = self.now.max(until);
    }

    /// Lets the next event happen; completions are added to `out`.
    ///
    /// # Panics
    /// If there is none.
    pub fn step(&mut self, out: &mut Vec<Completion>) {
        let at = self.next_event().expect("an event to step to");
        self.now = at;
        if self.engine.next_event() == Some(at) {
            let mut done = std::mem::take(&mut self.done);
            self.engine.step(&mut done);
            for event in done.drain(..) {
                self.flash_done(event);
            }
            self.done = done;
            self.pump(out);
        } else {
            let (_, payload) = self.events.pop().expect("an event was there");
            let slot = payload >> KIND_BITS;
            match payload & ((1 << KIND_BITS) - 1) {
                START => self.start(slot, out),
                FINISH => self.finish(slot, out),
                _ => unreachable!("event kinds are START and FINISH"),
            }
        }
    }

    fn start(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let preflush = self.slots[slot].request.preflush;
        if !(preflush && self.wait_for_flush(slot, Then::Perform)) {
            self.perform(slot, out);
        }
        self.pump(out);
    }

    fn perform(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let request = self.slots[slot].request;
        match request.op {
            HostOp::Read => self.start_read(slot),
            HostOp::Write => self.queue_write(slot),
            HostOp::Discard => {
                self.trim(&request);
                if !(request.fua && self.wait_for_flush(slot, Then::Finish)) {
                    self.finish(slot, out);
                }
            }
            HostOp::WriteZeroes => {
                self.trim(&request);
                self.queue_write(slot);
            }
            HostOp::Flush => {
                if !self.wait_for_flush(slot, Then::Finish) {
                    self.finish(slot, out);
                }
            }
        }
    }

    fn start_read(&mut self, slot: u32) {
        let request = self.slots[slot].request;
        let first = (request.offset / self.unit) as u32;
        let last = ((request.offset + request.len - 1) / self.unit) as u32;
        let mut cost = Cost::default();
        let mut planes = 0;
        self.runs.clear();
        for lpn in first..=last {
            if self.buffer.find(lpn).is_some() {
                cost.buffer_hits += 1;
            } else if let Some(at) = self.engine.ftl().lookup(lpn) {
                self.engine.ftl().add_read(at, &mut planes, &mut self.runs);
            } else {
                cost.unmapped += 1;
            }
        }
        for &run in &self.runs {
            cost.flash_reads += run.pages;
            self.engine.read(run, Cause::Host, slot, self.now);
        }
        let state = &mut self.slots[slot];
        state.cost = cost;
        state.reads_left = self.runs.len() as u32;
        if self.runs.is_empty() {
            self.send(slot);
        }
    }

    /// The data of a read is there: over the link, then done.
    fn send(&mut self, slot: u32) {
        let len = self.slots[slot].request.len;
        self.link_out = self.now.max(self.link_out) + self.link_time(len);
        self.events.push(self.link_out, (slot << KIND_BITS) | FINISH);
    }

    fn version(&mut self) -> u64 {
        let version = self.next_version;
        self.next_version += 1;
        version
    }

    fn flash_done(&mut self, event: Done) {
        match event {
            Done::Wrote { tag } => self.buffer.remove(tag),
            Done::Read { tag } if tag & FILL != 0 => {
                self.buffer.filled(tag & !FILL);
            }
            Done::Read { tag } => {
                let state = &mut self.slots[tag];
                state.reads_left -= 1;
                if state.reads_left == 0 {
                    self.send(tag);
                }
            }
        }
    }

    fn finish(&mut self, slot: u32, out: &mut Vec<Completion>) {
        self.account();
        let state = &self.slots[slot];
        let completion = Completion {
            tag: state.request.tag,
            op: state.request.op,
            len: state.request.len,
            submitted: state.submitted,
            completed: self.now,
            cost: state.cost,
        };
        self.counts.completed += 1;
        self.counts.latency_ns += u128::from(self.now.since(state.submitted).0);
        match completion.op {
            HostOp::Read => self.counts.bytes_read += completion.len,
            HostOp::Write => self.counts.bytes_written += completion.len,
            HostOp::Discard | HostOp::WriteZeroes | HostOp::Flush => {}
        }
        self.slots.give(slot);
        out.push(completion);
    }

    /// Adds the time since the last change to the integral of requests in flight.
    fn account(&mut self) {
        let span = self.now.since(self.last_change);
        self.counts.in_flight_ns += u128::from(span.0) * self.slots.in_use() as u128;
        self.last_change = self.now;
    }

    fn link_time(&self, len: u64) -> Nanos {
        let rate = self.device.drive.link_bandwidth;
        rate.map_or(Nanos::ZERO, |rate| transfer_time(Bytes(len), rate))
    }

    /// Units in the write buffer that are not on flash.
    #[must_use]
    pub fn buffered_units(&self) -> u32 {
        self.buffer.used()
    }

    /// The laws that hold at any instant; with an idle drive also Little's law, exactly.
    ///
    /// # Panics
    /// If one is broken: that is a bug, and no result can be trusted.
    pub fn assert_conserved(&self) {
        self.engine.assert_conserved();
        let c = &self.counts;
        let in_flight = u64::from(self.in_flight());
        assert_eq!(c.submitted, c.completed + in_flight, "requests submitted = completed + rest");
        if in_flight == 0 {
            assert_eq!(c.in_flight_ns, c.latency_ns, "integral of queue depth = sum of latencies");
        }
    }

    /// Every law, counted anew over the whole map and all blocks.
    ///
    /// # Panics
    /// If one is broken.
    pub fn assert_consistent(&self) {
        self.assert_conserved();
        self.engine.nand().assert_conserved();
        self.engine.ftl().assert_consistent();
    }
}
