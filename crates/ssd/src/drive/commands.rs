//! The way of a command into the drive: submission, arbitration, the link and firmware.
//!
//! A command stays in its submission queue until the drive fetches it: at once if there is no limit
//! on commands in service. With a limit, weighted round-robin arbitration over the queues and the
//! scheduler decide which command is fetched next.

use std::collections::VecDeque;

use prism_base::{SimTime, snapshot_fields};
use prism_engine::Scheduler;

use super::slots::{Slot, Then};
use super::{Completion, Drive};
use crate::spec::ControllerSpec;
use prism_engine::block::{HostOp, Request, Status, SubmitError};

/// The submission queues and the numbers of commands outstanding and in service.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Commands to be fetched, by queue.
    waiting: Vec<VecDeque<u32>>,
    waiting_total: u32,
    /// Commands outstanding, by queue.
    outstanding: Vec<u32>,
    /// Commands in service, and their limit.
    in_service: u32,
    in_service_max: u32,
    /// Urgent commands, in service or waiting.
    urgent: u32,
    /// The queue whose turn it is, and the commands that it may still fetch in this turn.
    turn: usize,
    left: u32,
    weights: Vec<u32>,
    /// When each firmware core is free; empty if there is no limit.
    cores: Vec<SimTime>,
}

snapshot_fields!(Queues { values: turn, left; });

impl Queues {
    pub(crate) fn new(spec: &ControllerSpec) -> Self {
        let queues = spec.queues as usize;
        let weights = match spec.queue_weights.is_empty() {
            true => vec![1; queues],
            false => spec.queue_weights.clone(),
        };
        Self {
            waiting: vec![VecDeque::new(); queues],
            waiting_total: 0,
            outstanding: vec![0; queues],
            in_service: 0,
            in_service_max: if spec.in_service == 0 { u32::MAX } else { spec.in_service },
            urgent: 0,
            turn: 0,
            left: weights[0],
            weights,
            cores: vec![SimTime::ZERO; spec.firmware_cores as usize],
        }
    }

    #[inline]
    pub(crate) fn has_room(&self, queue: u16, depth: u32) -> bool {
        self.outstanding.get(usize::from(queue)).is_some_and(|&outstanding| outstanding < depth)
    }

    /// Whether there is the queue whose turn it is.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self.weights.get(self.turn) {
            Some(&weight) if self.left <= weight => Ok(()),
            _ => Err("it is the turn of a queue that there is not"),
        }
    }

    /// The next command by weighted round robin.
    fn arbitrate(&mut self) -> Option<u32> {
        if self.waiting_total == 0 {
            return None;
        }
        loop {
            if self.left > 0
                && let Some(slot) = self.waiting[self.turn].pop_front()
            {
                self.left -= 1;
                self.waiting_total -= 1;
                return Some(slot);
            }
            self.turn = (self.turn + 1) % self.waiting.len();
            self.left = self.weights[self.turn];
        }
    }

    /// Removes and returns the waiting command with the least `key`; among equals the first one of
    /// the first queue.
    fn take_least<K: Ord>(&mut self, key: impl Fn(u32) -> K) -> Option<u32> {
        let places = self.waiting.iter().enumerate();
        let all = places.flat_map(|(queue, waiting)| {
            waiting.iter().enumerate().map(move |(place, &slot)| (queue, place, slot))
        });
        let (queue, place, slot) = all.min_by_key(|&(.., slot)| key(slot))?;
        self.waiting[queue].remove(place);
        self.waiting_total -= 1;
        Some(slot)
    }
}

impl Drive {
    /// Takes a request at `now`, which is not before [`Drive::now`].
    ///
    /// # Errors
    /// [`SubmitError`]; the drive is unchanged.
    ///
    /// # Panics
    /// If `now` lies in the past, or after an event that is pending ([`Drive::advance`] first).
    #[inline(always)]
    pub fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError> {
        self.accept(request, now).map(drop)
    }

    /// As [`Drive::submit`]; returns the slot of the request.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        mut request: Request,
        now: SimTime,
    ) -> Result<u32, SubmitError> {
        self.check(&request)?;
        assert!(now >= self.now, "a request submitted in the past");
        // No event is due before the time that the drive has reached.
        assert!(now == self.now || self.next_at() >= now, "events before {now:?} are due");
        let zoned = request.op.manages_zone() || request.op == HostOp::ZoneAppend;
        if zoned || self.zones.is_some() {
            request = self.take_zoned(request)?;
        }
        self.now = now;
        self.account();
        self.counts.submitted += 1;
        let slot = self.slots.take();
        self.slots[slot] = Slot::new(request, now);
        self.queues.outstanding[usize::from(request.queue)] += 1;
        // The map entry is used once the firmware time has passed.
        self.engine.ftl().prefetch(self.unit_of(request.offset));
        if request.urgent {
            self.queues.urgent += 1;
            self.engine.set_urgent(true, now);
        }
        if self.queues.in_service < self.queues.in_service_max && self.queues.waiting_total == 0 {
            self.fetch(slot);
        } else {
            self.queues.waiting[usize::from(request.queue)].push_back(slot);
            self.queues.waiting_total += 1;
        }
        Ok(slot)
    }

    // Inlined, as its caller, so that the request is not built in memory and loaded again right
    // after the stores (docs/design/event-core.md).
    #[inline(always)]
    fn check(&self, request: &Request) -> Result<(), SubmitError> {
        let spec = &self.device.drive;
        let queue = request.queue;
        if u32::from(queue) >= spec.queues {
            return Err(SubmitError::NoSuchQueue { queue, queues: spec.queues });
        }
        if !self.can_accept(queue) {
            return Err(SubmitError::QueueFull { queue, depth: spec.queue_depth });
        }
        if request.op == HostOp::Flush {
            return Ok(());
        }
        // Zone management commands have no length; they name the zone by its first byte.
        let len = request.len + u64::from(request.op.manages_zone());
        if len == 0 {
            return Err(SubmitError::ZeroLength);
        }
        let (offset, capacity) = (request.offset, self.capacity);
        if offset.checked_add(len).is_none_or(|end| end > capacity) {
            return Err(SubmitError::BeyondEnd { offset, len, capacity });
        }
        Ok(())
    }

    /// Starts a command: the data of a write crosses the link, then firmware begins.
    #[inline]
    fn fetch(&mut self, slot: u32) {
        self.queues.in_service += 1;
        let (op, len) = {
            let request = &self.slots[slot].request;
            (request.op, request.len)
        };
        let is_write = op.is_write();
        let spec = &self.device.drive;
        let firmware = if is_write { spec.firmware_write } else { spec.firmware_read };
        let mut begun = self.now;
        if let Some(core) = self.queues.cores.iter_mut().min() {
            // The wait for a core comes first, so that no core is occupied while data is
            // transferred.
            begun = begun.max(*core);
            *core = begun + firmware;
        }
        if is_write {
            let arrived = self.link.receive(begun, len);
            self.write_starts.push(arrived + firmware, slot);
        } else {
            self.starts.push(begun + firmware, slot);
        }
    }

    /// A command has completed: another may be fetched.
    #[inline]
    pub(super) fn leave(&mut self, queue: u16, urgent: bool) {
        self.queues.outstanding[usize::from(queue)] -= 1;
        self.queues.in_service -= 1;
        if urgent {
            self.queues.urgent -= 1;
            if self.queues.urgent == 0 {
                self.engine.set_urgent(false, self.now);
            }
        }
        if self.queues.waiting_total > 0 {
            self.fetch_waiting();
        }
    }

    fn fetch_waiting(&mut self) {
        while self.queues.waiting_total > 0 && self.queues.in_service < self.queues.in_service_max {
            let next = self.choose();
            let slot = next.expect("a command waits");
            self.fetch(slot);
        }
    }

    /// Removes and returns the waiting command to fetch next.
    fn choose(&mut self) -> Option<u32> {
        let (slots, engine, now, unit) = (&self.slots, &self.engine, self.now, self.unit);
        match self.device.drive.scheduler {
            Scheduler::Fcfs => self.queues.arbitrate(),
            Scheduler::ReadFirst => {
                let is_read = |slot: &u32| slots[*slot].request.op == HostOp::Read;
                if self.queues.waiting.iter().flatten().any(is_read) {
                    self.queues.take_least(|slot| !is_read(&slot))
                } else {
                    self.queues.arbitrate()
                }
            }
            Scheduler::Priority => {
                let urgent = |slot: &u32| slots[*slot].request.urgent;
                if self.queues.waiting.iter().flatten().any(urgent) {
                    self.queues.take_least(|slot| !urgent(&slot))
                } else {
                    self.queues.arbitrate()
                }
            }
            Scheduler::ShortestWait => self.queues.take_least(|slot| {
                let request = &slots[slot].request;
                let first = (request.offset / unit) as u32;
                let at = match request.op {
                    HostOp::Read => engine.ftl().lookup(first),
                    _ => None,
                };
                // Writes go to any free die, other commands need none.
                at.map_or(0, |at| engine.wait_for(at, now).0)
            }),
        }
    }

    #[inline]
    pub(super) fn start(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let request = &self.slots[slot].request;
        if request.op == HostOp::Read && !request.preflush && self.map.is_none() {
            return self.start_read(slot);
        }
        self.start_other(slot, out);
    }

    fn start_other(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let preflush = self.slots[slot].request.preflush;
        if preflush && self.read_only.is_some() && !self.is_durable() {
            self.refuse(slot);
        } else if preflush && self.wait_for_flush(slot, Then::Perform) {
            self.pump(out);
        } else {
            self.begin(slot, out);
        }
    }

    /// Performs a command once the map cache has the entries that it needs.
    pub(super) fn begin(&mut self, slot: u32, out: &mut Vec<Completion>) {
        if self.load_map(slot) {
            self.perform(slot, out);
        } else if self.is_held() {
            // No operation may be in flight whose end would start the rewrites.
            self.pump(out);
        }
    }

    pub(super) fn perform(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let request = self.slots[slot].request;
        if self.engine.is_read_only() && request.op != HostOp::Read {
            if self.read_only.is_none() {
                self.become_read_only(out);
            }
            return self.perform_read_only(slot, out);
        }
        if self.targets_failed_zone(&request) {
            self.slots[slot].status = Status::WriteFault;
            self.finish(slot, out);
            return self.pump(out);
        }
        match request.op {
            HostOp::Read => return self.start_read(slot),
            HostOp::Write | HostOp::ZoneAppend => {
                self.queue_write(slot);
                if self.must_wait_for_space() {
                    return;
                }
            }
            HostOp::Discard => {
                if self.device.drive.discards {
                    self.trim(&request, out);
                }
                if !(request.fua && self.wait_for_flush(slot, Then::Finish)) {
                    self.finish(slot, out);
                }
            }
            HostOp::WriteZeroes => {
                if self.device.unmaps() {
                    self.trim(&request, out);
                }
                self.queue_write(slot);
            }
            HostOp::Flush => {
                if !self.wait_for_flush(slot, Then::Finish) {
                    self.finish(slot, out);
                }
            }
            HostOp::ZoneOpen | HostOp::ZoneClose | HostOp::ZoneFinish | HostOp::ZoneReset => {
                self.manage_zone(slot, out);
            }
        }
        self.pump(out);
    }
}
