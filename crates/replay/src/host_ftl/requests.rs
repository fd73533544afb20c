//! Requests to the host FTL: reads become commands to the drive, writes units for the controller.

use std::collections::VecDeque;
use std::ops::Range;

use prism_base::{Bytes, SimTime};
use prism_engine::{Done, FlashDevice, HostUnit};
use prism_ftl::UnitWrite;
use prism_nand::{BlockId, Pun};
use prism_ssd::{BlockDevice, Completion, Cost, HostOp, ReadOnly, Request, Status, SubmitError};

use super::HostFtl;

/// A request in flight.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    request: Request,
    submitted: SimTime,
    cost: Cost,
    /// The status of its completion.
    status: Status,
    /// Commands to the drive and units that are written, in flight.
    parts: u32,
    /// Logical units to be written.
    left: VecDeque<Range<u32>>,
    /// Partly written units whose rest is read, by the offset of that on the drive.
    rests: Vec<(u64, u32)>,
    /// Partly written units whose rest is lost.
    unreadable_rests: Vec<u32>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            request: Request::new(HostOp::Flush, 0, 0, 0),
            submitted: SimTime::ZERO,
            cost: Cost::default(),
            status: Status::Done,
            parts: 0,
            left: VecDeque::new(),
            rests: Vec::new(),
            unreadable_rests: Vec::new(),
        }
    }
}

impl HostFtl {
    pub(super) fn check(&self, request: &Request) -> Result<(), SubmitError> {
        if !self.can_accept(0) {
            let depth = self.flash().drive.device().drive.queue_depth;
            return Err(SubmitError::QueueFull { queue: request.queue, depth });
        }
        if !HostOp::COMMON.contains(&request.op) {
            return Err(SubmitError::NoZones { op: request.op.name() });
        }
        if request.op == HostOp::Flush {
            return Ok(());
        }
        if request.len == 0 {
            return Err(SubmitError::ZeroLength);
        }
        let (offset, len, capacity) = (request.offset, request.len, self.units() * self.unit);
        if offset.checked_add(len).is_none_or(|end| end > capacity) {
            return Err(SubmitError::BeyondEnd { offset, len, capacity });
        }
        Ok(())
    }

    /// Starts a valid request.
    pub(super) fn begin(&mut self, request: Request) {
        let slot = self.slots.take();
        self.slots[slot] = Slot { request, submitted: self.time(), ..Slot::default() };
        let end = request.offset + request.len;
        let (first, last) = ((request.offset / self.unit) as u32, end.div_ceil(self.unit) as u32);
        let whole = (request.offset.div_ceil(self.unit) as u32)..((end / self.unit) as u32);
        let changes = !matches!(request.op, HostOp::Read | HostOp::Flush);
        if self.read_only.is_some() && changes {
            self.slots[slot].status = Status::ReadOnly;
            self.ready.push_back(slot);
            return;
        }
        match request.op {
            HostOp::Read => self.read(slot, request.offset..end),
            HostOp::Flush => self.send_part(slot, request),
            HostOp::Discard => self.unmap(whole),
            HostOp::WriteZeroes if whole.is_empty() => self.write(slot, [first..last, 0..0]),
            HostOp::WriteZeroes => {
                let ends = [first..whole.start, whole.end..last];
                self.unmap(whole);
                self.write(slot, ends);
            }
            _ => self.write(slot, [first..last, 0..0]),
        }
        let state = &self.slots[slot];
        if state.parts == 0 && state.left.is_empty() {
            self.ready.push_back(slot);
        }
        self.submit_writes();
    }

    fn unmap(&mut self, units: Range<u32>) {
        if units.is_empty() {
            return;
        }
        let (now, version) = (self.time(), self.version);
        self.version += 1;
        let ftl = self.controller.ftl_mut();
        let before = ftl.mapped();
        ftl.trim_now(units.start, units.end, version);
        self.discarded += before - ftl.mapped();
        self.controller.look_for_garbage(now);
    }

    fn send_part(&mut self, slot: u32, request: Request) {
        self.slots[slot].parts += 1;
        self.controller.device_mut().submit_part(slot, request);
    }

    /// Where a logical unit is; whether its content is lost.
    fn place_of(&self, lpn: u32) -> (Option<Pun>, bool) {
        let at = self.controller.ftl().lookup(lpn);
        (at, at.is_some_and(|at| self.flash().is_marked_lost(at)))
    }

    /// Reads the bytes `range` with one command per run of consecutive physical units.
    fn read(&mut self, slot: u32, range: Range<u64>) {
        let mut run: Option<(Pun, Range<u64>)> = None;
        let units = (range.start / self.unit) as u32..range.end.div_ceil(self.unit) as u32;
        for lpn in units {
            let begin = u64::from(lpn) * self.unit;
            let part = range.start.max(begin)..range.end.min(begin + self.unit);
            let (at, lost) = self.place_of(lpn);
            if lost {
                self.slots[slot].status = Status::Unreadable;
            }
            match (&mut run, at.filter(|_| !lost)) {
                (Some((last, bytes)), Some(at))
                    if last.0 + 1 == at.0 && !self.flash().begins_zone(at) =>
                {
                    *last = at;
                    bytes.end += part.end - part.start;
                }
                (_, readable) => {
                    self.send_read(slot, run.take());
                    run = readable.map(|at| {
                        let from = self.flash().offset_of(at) + (part.start - begin);
                        (at, from..from + (part.end - part.start))
                    });
                    self.slots[slot].cost.unmapped += u32::from(at.is_none());
                }
            }
        }
        self.send_read(slot, run);
    }

    fn send_read(&mut self, slot: u32, run: Option<(Pun, Range<u64>)>) {
        let Some((_, bytes)) = run else { return };
        let urgent = self.slots[slot].request.urgent;
        let read = Request::new(HostOp::Read, bytes.start, bytes.end - bytes.start, 0);
        self.send_part(slot, Request { urgent, ..read });
    }

    /// Writes logical units; the rest of partly covered ones is read first.
    fn write(&mut self, slot: u32, units: [Range<u32>; 2]) {
        let request = self.slots[slot].request;
        let covered = request.offset..request.offset + request.len;
        let ends = units.iter().filter(|units| !units.is_empty());
        let mut partial: Vec<u32> = ends.flat_map(|u| [u.start, u.end - 1]).collect();
        partial.dedup();
        for lpn in partial {
            let begin = u64::from(lpn) * self.unit;
            let (at, lost) = self.place_of(lpn);
            let Some(at) = at else { continue };
            if covered.start <= begin && begin + self.unit <= covered.end {
                continue;
            }
            if lost {
                self.slots[slot].unreadable_rests.push(lpn);
                continue;
            }
            let from = self.flash().offset_of(at);
            self.completed += 1;
            self.slots[slot].rests.push((from, lpn));
            self.send_read(slot, Some((at, from..from + self.unit)));
        }
        let state = &mut self.slots[slot];
        state.left = units.into_iter().filter(|units| !units.is_empty()).collect();
        if !state.left.is_empty() && state.parts == 0 {
            self.writing.push_back(slot);
        }
    }

    /// Passes units of waiting writes to the controller, as long as there are zones for them.
    fn submit_writes(&mut self) {
        if self.controller.is_read_only() {
            self.end_writing();
        }
        let now = self.time();
        while let Some(&slot) = self.writing.front() {
            let Slot { request, left, .. } = &self.slots[slot];
            let lpn = left.front().expect("a waiting write has units").start;
            let Some(die_group) = self.controller.writable_die_group(0, lpn, now) else {
                // At first nothing has begun to clean.
                self.controller.begin_cleaning(now);
                break;
            };
            self.controller.device_mut().writing_for = Some(*request);
            let state = &mut self.slots[slot];
            let lost = state.unreadable_rests.contains(&lpn);
            let write = UnitWrite { lpn, source: None, version: self.version };
            self.controller.write(die_group, 0, &[HostUnit { write, tag: slot, lost }], now);
            self.version += 1;
            self.written += 1;
            state.parts += 1;
            state.left[0].start += 1;
            if state.left[0].is_empty() {
                state.left.pop_front();
            }
            if state.left.is_empty() {
                self.writing.pop_front();
            }
        }
        self.controller.device_mut().writing_for = None;
        self.controller.device_mut().submit_runs();
    }

    /// Lets the drive go on to its next event, and processes what has ended.
    pub(super) fn step_drive(&mut self, out: &mut Vec<Completion>) {
        let mut done = std::mem::take(&mut self.done);
        self.controller.step(&mut done);
        self.notice_failures();
        for ended in done.drain(..) {
            let Done::Wrote { tag } = ended else { unreachable!("reads bypass the controller") };
            self.slots[tag].cost.units_written += 1;
            self.part_done(tag, out);
        }
        self.done = done;
        let mut parts = std::mem::take(&mut self.controller.device_mut().parts);
        for (slot, completion) in parts.drain(..) {
            self.command_done(slot, &completion, out);
        }
        self.controller.device_mut().parts = parts;
        self.submit_writes();
    }

    /// A command of `slot` has completed.
    fn command_done(&mut self, slot: u32, done: &Completion, out: &mut Vec<Completion>) {
        let state = &mut self.slots[slot];
        state.cost.flash_reads += done.cost.flash_reads;
        state.cost.buffer_hits += done.cost.buffer_hits;
        state.cost.unmapped += done.cost.unmapped;
        let rest = state.rests.iter().find(|&&(from, _)| from == done.offset);
        match (done.status, rest) {
            (Status::Done, _) => {}
            (_, Some(&(_, lpn))) => state.unreadable_rests.push(lpn),
            (status, None) => state.status = status,
        }
        self.part_done(slot, out);
    }

    /// A part of `slot` is done: begins to write what waited for reads, or completes the request.
    fn part_done(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let state = &mut self.slots[slot];
        state.parts -= 1;
        if state.parts > 0 {
            return;
        }
        if state.left.is_empty() {
            self.finish(slot, out);
        } else if !self.writing.contains(&slot) {
            self.writing.push_back(slot);
        }
    }

    /// Reports the zones that have failed since the last call to the FTL.
    fn notice_failures(&mut self) {
        if !self.flash().may_fail() {
            return;
        }
        let mut any = false;
        while let Some(zone) = self.controller.device_mut().drive.take_failed_zone() {
            if zone < self.controller.ftl().geometry().blocks() {
                self.controller.ftl_mut().page_mut().block_failed(BlockId(zone));
                any = true;
            }
        }
        if self.flash().drive.read_only().is_some() {
            self.controller.ftl_mut().set_read_only();
        }
        if any {
            self.controller.begin_cleaning(self.time());
        }
    }

    /// Makes the host FTL read-only, and refuses what is not written yet.
    fn end_writing(&mut self) {
        if self.read_only.is_none() {
            let (since, written) = (self.time(), Bytes(self.counts.bytes_written));
            self.read_only = Some(ReadOnly { since, written });
        }
        let mut given_up = Vec::new();
        self.controller.give_up_lost_programs(&mut given_up);
        for slot in given_up {
            self.slots[slot].parts -= 1;
            self.refuse(slot);
        }
        for slot in std::mem::take(&mut self.writing) {
            self.refuse(slot);
        }
    }

    /// Refuses the rest of a write.
    fn refuse(&mut self, slot: u32) {
        let state = &mut self.slots[slot];
        state.left.clear();
        state.status = Status::ReadOnly;
        if state.parts == 0 && !self.ready.contains(&slot) {
            self.ready.push_back(slot);
        }
    }

    pub(super) fn finish(&mut self, slot: u32, out: &mut Vec<Completion>) {
        self.account();
        let now = self.time();
        let Slot { request, submitted, cost, status, .. } = self.slots[slot].clone();
        let completion = Completion {
            tag: request.tag,
            op: request.op,
            offset: request.offset,
            len: request.len,
            submitted,
            completed: now,
            status,
            cost,
        };
        self.counts.completed += 1;
        self.counts.failed += u64::from(status != Status::Done);
        self.counts.latency_ns += u128::from(now.since(submitted).0);
        match completion.op {
            _ if status != Status::Done => {}
            HostOp::Read => self.counts.bytes_read += completion.len,
            HostOp::Write => self.counts.bytes_written += completion.len,
            _ => {}
        }
        self.slots.give(slot);
        out.push(completion);
    }
}
