//! Requests to the host FTL, translated to commands to the drive.

use std::collections::VecDeque;
use std::ops::Range;

use prism_base::SimTime;
use prism_ssd::{BlockDevice, Completion, Cost, HostOp, Request, Status, SubmitError};

use super::clean::COPY;
use super::{HostFtl, Pun, ZoneUse};

/// A request in flight.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    request: Request,
    submitted: SimTime,
    cost: Cost,
    /// The status of its completion.
    pub(super) status: Status,
    /// Commands to the drive in flight.
    pub(super) parts: u32,
    /// Logical units to be written.
    pub(super) left: VecDeque<Range<u32>>,
    /// Physical units of failed writes: logical units that still map to them are rewritten.
    pub(super) to_rewrite: VecDeque<Range<Pun>>,
    /// Partly written units whose rest could not be read.
    unreadable_rest: Vec<u32>,
    /// Has units to write.
    pub(super) queued: bool,
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
            to_rewrite: VecDeque::new(),
            unreadable_rest: Vec::new(),
            queued: false,
        }
    }
}

impl HostFtl {
    pub(super) fn check(&self, request: &Request) -> Result<(), SubmitError> {
        if !self.can_accept(0) {
            let depth = self.drive.device().drive.queue_depth;
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
        self.slots[slot] = Slot { request, submitted: self.drive.now(), ..Slot::default() };
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
            HostOp::Flush => self.send_part(slot, Request { tag: 0, ..request }),
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
        if state.parts == 0 && !state.queued {
            self.ready.push_back(slot);
        }
        self.submit_writes();
    }

    fn unmap(&mut self, units: Range<u32>) {
        for lpn in units {
            self.ftl_counts.discarded += u64::from(self.unset(lpn));
        }
        self.clean();
    }

    fn send_part(&mut self, slot: u32, request: Request) {
        self.slots[slot].parts += 1;
        self.send(Request { tag: u64::from(slot), ..request });
    }

    /// Reads the bytes `range` with one command per run of consecutive physical units.
    fn read(&mut self, slot: u32, range: Range<u64>) {
        let mut run: Option<(Pun, Range<u64>)> = None;
        let units = (range.start / self.unit) as u32..range.end.div_ceil(self.unit) as u32;
        for lpn in units {
            let begin = u64::from(lpn) * self.unit;
            let part = range.start.max(begin)..range.end.min(begin + self.unit);
            let pun = self.pun_of(lpn);
            if self.lost.contains(&lpn) {
                self.slots[slot].status = Status::Unreadable;
            }
            match (&mut run, pun) {
                (Some((last, bytes)), Some(pun))
                    if *last + 1 == pun && pun % self.zone_units != 0 =>
                {
                    *last = pun;
                    bytes.end += part.end - part.start;
                }
                _ => {
                    self.send_read(slot, run.take());
                    run = pun.map(|pun| {
                        let at = self.offset_of(pun) + (part.start - begin);
                        (pun, at..at + (part.end - part.start))
                    });
                    self.slots[slot].cost.unmapped += u32::from(pun.is_none());
                }
            }
        }
        self.send_read(slot, run);
    }

    fn send_read(&mut self, slot: u32, run: Option<(Pun, Range<u64>)>) {
        let Some((pun, bytes)) = run else { return };
        let zone = self.zone_of(pun);
        self.zones[zone].readers += 1;
        let urgent = self.slots[slot].request.urgent;
        let read = Request::new(HostOp::Read, bytes.start, bytes.end - bytes.start, 0);
        self.send_part(slot, Request { urgent, ..read });
    }

    /// Writes logical units; partly covered ones are read first.
    fn write(&mut self, slot: u32, units: [Range<u32>; 2]) {
        let request = self.slots[slot].request;
        let covered = request.offset..request.offset + request.len;
        let ends = units.iter().filter(|units| !units.is_empty());
        let mut partial: Vec<u32> = ends.flat_map(|u| [u.start, u.end - 1]).collect();
        partial.dedup();
        for lpn in partial {
            let begin = u64::from(lpn) * self.unit;
            let whole = covered.start <= begin && begin + self.unit <= covered.end;
            if !whole && self.lost.contains(&lpn) {
                self.slots[slot].unreadable_rest.push(lpn);
            }
            if !whole && let Some(pun) = self.pun_of(lpn) {
                let at = self.offset_of(pun);
                self.ftl_counts.completed += 1;
                self.send_read(slot, Some((pun, at..at + self.unit)));
            }
        }
        let state = &mut self.slots[slot];
        state.left = units.into_iter().filter(|units| !units.is_empty()).collect();
        state.queued = !state.left.is_empty();
        if state.queued && state.parts == 0 {
            self.writing.push_back(slot);
        }
    }

    /// Submits waiting writes to the drive as long as there are zones for them.
    pub(super) fn submit_writes(&mut self) {
        if self.read_only.is_some() {
            self.refuse_waiting();
        }
        while let Some(&slot) = self.writing.front() {
            let Some(units) = self.next_units(slot) else {
                self.writing.pop_front();
                self.slots[slot].queued = false;
                if self.slots[slot].parts == 0 {
                    // The units of its failed writes have been overwritten or trimmed since.
                    self.ready.push_back(slot);
                }
                continue;
            };
            // One empty zone is reserved for the cleaner, and some for zones that fail.
            let zone = match self.host_zone {
                Some(zone) => Some(zone),
                None => self.open_zone(1 + self.spare_zones),
            };
            let Some(zone) = zone else { break };
            let (pun, count) = self.allocate(zone, units.len() as u32);
            self.host_zone = Some(zone).filter(|&z| self.zones[z as usize].used == ZoneUse::Open);
            let to_rewrite = !self.slots[slot].to_rewrite.is_empty();
            for (lpn, pun) in (units.start..).zip(pun..pun + count) {
                self.set(lpn, pun);
                if self.slots[slot].unreadable_rest.contains(&lpn) {
                    self.lost.insert(lpn);
                }
            }
            if to_rewrite {
                self.ftl_counts.rewritten += u64::from(count);
            } else {
                self.ftl_counts.written += u64::from(count);
                self.slots[slot].left[0].start += count;
            }
            let Request { fua, preflush, urgent, .. } = self.slots[slot].request;
            let (at, len) = (self.offset_of(pun), u64::from(count) * self.unit);
            let write = Request::new(HostOp::Write, at, len, 0);
            self.send_part(slot, Request { fua, preflush, urgent, ..write });
        }
        self.clean();
    }

    /// The next units that `slot` has to write: first those of failed writes that are still
    /// current.
    fn next_units(&mut self, slot: u32) -> Option<Range<u32>> {
        while let Some(puns) = self.slots[slot].to_rewrite.front().cloned() {
            let found = puns.clone().find_map(|pun| Some((pun, self.valid_at(pun)?)));
            if let Some((first, lpn)) = found {
                let run = (first..puns.end).zip(lpn..);
                let same = |&(pun, lpn): &(Pun, u32)| self.valid_at(pun) == Some(lpn);
                let count = run.take_while(same).count() as u32;
                return Some(lpn..lpn + count);
            }
            self.slots[slot].to_rewrite.pop_front();
        }
        let left = &mut self.slots[slot].left;
        while left.front().is_some_and(Range::is_empty) {
            left.pop_front();
        }
        left.front().cloned()
    }

    /// A command to the drive has completed.
    pub(super) fn completed(&mut self, done: &Completion, out: &mut Vec<Completion>) {
        let zone = (done.offset / self.zone_size) as usize;
        match done.op {
            HostOp::Read => self.zones[zone].readers -= 1,
            HostOp::Write => self.zones[zone].writers -= 1,
            _ => {}
        }
        if done.tag & COPY != 0 {
            self.copy_done(done);
            self.submit_writes();
            return;
        }
        let slot = done.tag as u32;
        self.handle_status(slot, done);
        let state = &mut self.slots[slot];
        state.parts -= 1;
        state.cost.flash_reads += done.cost.flash_reads;
        state.cost.buffer_hits += done.cost.buffer_hits;
        state.cost.units_written += done.cost.units_written;
        state.cost.unmapped += done.cost.unmapped;
        let reading = done.op == HostOp::Read && state.queued;
        if state.parts == 0 && reading {
            self.writing.push_back(slot);
            self.submit_writes();
        } else if state.parts == 0 && !state.queued {
            self.finish(slot, out);
        } else if done.op == HostOp::Write && done.status != Status::Done {
            self.submit_writes();
        }
        self.clean();
    }

    /// Handles the status of a command of `slot`.
    fn handle_status(&mut self, slot: u32, done: &Completion) {
        let of_read = self.slots[slot].request.op == HostOp::Read;
        match (done.op, done.status) {
            (_, Status::Done) => {}
            (HostOp::Read, _) if of_read => self.slots[slot].status = Status::Unreadable,
            (HostOp::Read, _) => {
                let units = self.puns_of(done).filter_map(|pun| self.valid_at(pun));
                let units: Vec<u32> = units.collect();
                self.slots[slot].unreadable_rest.extend(units);
            }
            (HostOp::Write, _) => self.write_failed(slot, done),
            (_, status) => self.slots[slot].status = status,
        }
    }

    pub(super) fn finish(&mut self, slot: u32, out: &mut Vec<Completion>) {
        self.account();
        let now = self.drive.now();
        let state = &self.slots[slot];
        let Slot { request, submitted, cost, status, .. } = state;
        let completion = Completion {
            tag: request.tag,
            op: request.op,
            offset: request.offset,
            len: request.len,
            submitted: *submitted,
            completed: now,
            status: *status,
            cost: *cost,
        };
        self.counts.completed += 1;
        self.counts.failed += u64::from(completion.status != Status::Done);
        self.counts.latency_ns += u128::from(now.since(*submitted).0);
        match completion.op {
            _ if completion.status != Status::Done => {}
            HostOp::Read => self.counts.bytes_read += completion.len,
            HostOp::Write => self.counts.bytes_written += completion.len,
            _ => {}
        }
        self.slots.give(slot);
        out.push(completion);
    }
}
