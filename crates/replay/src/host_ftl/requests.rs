//! Requests to a log, as commands to its drive.

use std::collections::VecDeque;
use std::ops::Range;

use prism_base::SimTime;
use prism_ssd::{Completion, Cost, HostOp, Request, Status, SubmitError};

use super::clean::COPY;
use super::{HostFtl, Place, Use};
use crate::block_device::BlockDevice;

/// A request to the log.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    request: Request,
    submitted: SimTime,
    cost: Cost,
    /// How it will end.
    pub(super) status: Status,
    /// Commands to the drive in flight.
    pub(super) parts: u32,
    /// Units still to be written.
    pub(super) left: VecDeque<Range<u32>>,
    /// Places whose writes have failed: the units that they still stand for are written again.
    pub(super) again: VecDeque<Range<Place>>,
    /// Units of which a part is written, while the rest could not be read.
    spoiled: Vec<u32>,
    /// Waits for its turn to write.
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
            again: VecDeque::new(),
            spoiled: Vec::new(),
            queued: false,
        }
    }
}

impl HostFtl {
    pub(super) fn check(&self, request: &Request) -> Result<(), SubmitError> {
        if !self.can_accept() {
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

    /// Begins the work on a request that is legal.
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
        self.write_on();
    }

    fn unmap(&mut self, units: Range<u32>) {
        for lpn in units {
            self.log.discarded += u64::from(self.unset(lpn));
        }
        self.clean();
    }

    fn send_part(&mut self, slot: u32, request: Request) {
        self.slots[slot].parts += 1;
        self.send(Request { tag: u64::from(slot), ..request });
    }

    /// Reads the bytes `range`: a command for each run of places that follow one another.
    fn read(&mut self, slot: u32, range: Range<u64>) {
        let mut run: Option<(Place, Range<u64>)> = None;
        let units = (range.start / self.unit) as u32..range.end.div_ceil(self.unit) as u32;
        for lpn in units {
            let begin = u64::from(lpn) * self.unit;
            let part = range.start.max(begin)..range.end.min(begin + self.unit);
            let place = self.place_of(lpn);
            if self.lost.contains(&lpn) {
                self.slots[slot].status = Status::Unreadable;
            }
            match (&mut run, place) {
                (Some((last, bytes)), Some(place))
                    if *last + 1 == place && place % self.zone_units != 0 =>
                {
                    *last = place;
                    bytes.end += part.end - part.start;
                }
                _ => {
                    self.send_read(slot, run.take());
                    run = place.map(|place| {
                        let at = self.offset_of(place) + (part.start - begin);
                        (place, at..at + (part.end - part.start))
                    });
                    self.slots[slot].cost.unmapped += u32::from(place.is_none());
                }
            }
        }
        self.send_read(slot, run);
    }

    fn send_read(&mut self, slot: u32, run: Option<(Place, Range<u64>)>) {
        let Some((place, bytes)) = run else { return };
        let zone = self.zone_of(place);
        self.zones[zone].readers += 1;
        let urgent = self.slots[slot].request.urgent;
        let read = Request::new(HostOp::Read, bytes.start, bytes.end - bytes.start, 0);
        self.send_part(slot, Request { urgent, ..read });
    }

    /// Writes `units` of the log. What a request covers in part is read first.
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
                self.slots[slot].spoiled.push(lpn);
            }
            if !whole && let Some(place) = self.place_of(lpn) {
                let at = self.offset_of(place);
                self.log.completed += 1;
                self.send_read(slot, Some((place, at..at + self.unit)));
            }
        }
        let state = &mut self.slots[slot];
        state.left = units.into_iter().filter(|units| !units.is_empty()).collect();
        state.queued = !state.left.is_empty();
        if state.queued && state.parts == 0 {
            self.writing.push_back(slot);
        }
    }

    /// Gives units that wait to the drive, as long as there are zones for them.
    pub(super) fn write_on(&mut self) {
        if self.read_only.is_some() {
            self.refuse_waiting();
        }
        while let Some(&slot) = self.writing.front() {
            let Some(units) = self.next_units(slot) else {
                self.writing.pop_front();
                self.slots[slot].queued = false;
                if self.slots[slot].parts == 0 {
                    // What it had to write again nobody wants any more.
                    self.ready.push_back(slot);
                }
                continue;
            };
            // One empty zone is the cleaner's, and some are kept for zones that fail.
            let zone = match self.host_zone {
                Some(zone) => Some(zone),
                None => self.open_zone(1 + self.spare_zones),
            };
            let Some(zone) = zone else { break };
            let (place, count) = self.take_places(zone, units.len() as u32);
            self.host_zone = Some(zone).filter(|&z| self.zones[z as usize].used == Use::Open);
            let again = !self.slots[slot].again.is_empty();
            for (lpn, place) in (units.start..).zip(place..place + count) {
                self.set(lpn, place);
                if self.slots[slot].spoiled.contains(&lpn) {
                    self.lost.insert(lpn);
                }
            }
            if again {
                self.log.rewritten += u64::from(count);
            } else {
                self.log.written += u64::from(count);
                self.slots[slot].left[0].start += count;
            }
            let Request { fua, preflush, urgent, .. } = self.slots[slot].request;
            let (at, len) = (self.offset_of(place), u64::from(count) * self.unit);
            let write = Request::new(HostOp::Write, at, len, 0);
            self.send_part(slot, Request { fua, preflush, urgent, ..write });
        }
        self.clean();
    }

    /// The next units that `slot` has to write: those of writes that have failed first, as far
    /// as nothing newer has been written.
    fn next_units(&mut self, slot: u32) -> Option<Range<u32>> {
        while let Some(places) = self.slots[slot].again.front().cloned() {
            let found = places.clone().find_map(|place| Some((place, self.valid_at(place)?)));
            if let Some((first, lpn)) = found {
                let run = (first..places.end).zip(lpn..);
                let same = |&(place, lpn): &(Place, u32)| self.valid_at(place) == Some(lpn);
                let count = run.take_while(same).count() as u32;
                return Some(lpn..lpn + count);
            }
            self.slots[slot].again.pop_front();
        }
        let left = &mut self.slots[slot].left;
        while left.front().is_some_and(Range::is_empty) {
            left.pop_front();
        }
        left.front().cloned()
    }

    /// A command is done.
    pub(super) fn completed(&mut self, done: &Completion, out: &mut Vec<Completion>) {
        let zone = (done.offset / self.zone_size) as usize;
        match done.op {
            HostOp::Read => self.zones[zone].readers -= 1,
            HostOp::Write => self.zones[zone].writers -= 1,
            _ => {}
        }
        if done.tag & COPY != 0 {
            self.copy_done(done);
            self.write_on();
            return;
        }
        let slot = done.tag as u32;
        self.look_at_status(slot, done);
        let state = &mut self.slots[slot];
        state.parts -= 1;
        state.cost.flash_reads += done.cost.flash_reads;
        state.cost.buffer_hits += done.cost.buffer_hits;
        state.cost.units_written += done.cost.units_written;
        state.cost.unmapped += done.cost.unmapped;
        let reading = done.op == HostOp::Read && state.queued;
        if state.parts == 0 && reading {
            self.writing.push_back(slot);
            self.write_on();
        } else if state.parts == 0 && !state.queued {
            self.finish(slot, out);
        } else if done.op == HostOp::Write && done.status != Status::Done {
            self.write_on();
        }
        self.clean();
    }

    /// A part of `slot` may have failed.
    fn look_at_status(&mut self, slot: u32, done: &Completion) {
        let of_read = self.slots[slot].request.op == HostOp::Read;
        match (done.op, done.status) {
            (_, Status::Done) => {}
            (HostOp::Read, _) if of_read => self.slots[slot].status = Status::Unreadable,
            (HostOp::Read, _) => {
                let units = self.places_of(done).filter_map(|place| self.valid_at(place));
                let units: Vec<u32> = units.collect();
                self.slots[slot].spoiled.extend(units);
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
