//! The write path: from a command into the buffer, and from the buffer to flash.

use prism_engine::HostUnit;
use prism_ftl::{ReadRecovery, ReadRun, UnitWrite};
use prism_nand::{Cause, DieGroupId, Pun};

use super::slots::Then;
use super::{Drive, FILL, KIND_BITS, MERGE};
use crate::buffer::State;
use prism_engine::block::{Completion, HostOp, Request};

/// Streams that are tried per search for a program unit that can be programmed. Streams that are
/// blocked wait for merges or die groups, mostly the same ones; trying more costs time at every
/// event and rarely finds one.
const STREAMS_ASKED_MAX: usize = 32;

impl Drive {
    pub(super) fn queue_write(&mut self, slot: u32) {
        let request = self.slots[slot].request;
        let next = self.unit_of(request.offset);
        let end = self.unit_of(request.offset + request.len + self.unit - 1);
        let state = &mut self.slots[slot];
        state.next = next;
        state.end = end;
        state.waits_since = self.now;
        self.waiting_for_buffer.push_back(slot);
    }

    /// Makes all possible progress: admits writes into the buffer, programs program units,
    /// completes flushes.
    pub(crate) fn pump(&mut self, out: &mut Vec<Completion>) {
        // Steps below may call this again, which adds an iteration instead of recursing.
        self.pump_again = true;
        if self.pumping {
            return;
        }
        self.pumping = true;
        let mut only_admitted = false;
        while std::mem::take(&mut self.pump_again) {
            while let Some(slot) = self.rewrite_pages() {
                if self.use_map(slot) {
                    self.perform(slot, out);
                }
            }
            let drained = self.drain_buffer();
            if only_admitted && !drained && !self.pump_again {
                // Nothing has left the buffer since the last iteration filled it.
                break;
            }
            let admitted = self.admit(out);
            let flushed = !self.waiting_for_flush.is_empty() && self.end_flushes(out);
            let ended = self.zones.is_some() && self.end_zones(out);
            only_admitted = !(self.pump_again || flushed || ended);
            self.pump_again |= admitted || flushed || ended;
        }
        self.pumping = false;
    }

    /// Whether a write that has just been queued has to wait: the buffer is full, other writes are
    /// ahead, and the event that frees space will admit all of them.
    pub(super) fn must_wait_for_space(&mut self) -> bool {
        let simple = self.map.is_none() && self.zones.is_none() && !self.has_faults_or_wordlines;
        simple
            && self.waiting_for_buffer.len() > 1
            && self.buffer.is_full()
            && self.buffer.oldest_partial().is_none()
    }

    /// Whether requests wait for units to leave the buffer.
    pub(super) fn waits_for_space(&self) -> bool {
        !self.waiting_for_buffer.is_empty() || self.is_held()
    }

    /// Programs full program units, those that are not full if a request or a flush waits for them,
    /// and, if the buffer is full without a full program unit, the fullest. Returns whether there
    /// was any.
    fn drain_buffer(&mut self) -> bool {
        let mut any = false;
        while let Some((stream, die_group)) = self.next_program_unit() {
            self.write_program_unit(stream, die_group);
            any = true;
        }
        any
    }

    /// Programs a program unit with the oldest dirty units of `stream`.
    pub(super) fn write_program_unit(&mut self, stream: u32, die_group: DieGroupId) {
        let mut program_unit = std::mem::take(&mut self.program_unit);
        program_unit.clear();
        while program_unit.len() < self.units_per_program_unit {
            let Some(tag) = self.buffer.take_dirty(stream) else { break };
            let entry = self.buffer.entry(tag);
            let write = UnitWrite { lpn: entry.lpn, source: None, version: entry.version };
            program_unit.push(HostUnit { write, tag, lost: entry.lost });
        }
        self.program_unit = program_unit;
        let bytes = match self.payloads {
            Some(_) => self.program_unit_bytes(),
            None => Vec::new(),
        };
        self.engine.write_bytes(die_group, stream, &self.program_unit, bytes, self.now);
    }

    /// The next stream to program a program unit of, and the die group for it. If every die group
    /// accepts every stream, this is the first stream with a program unit. If the FTL chooses die
    /// groups, or die groups have SLC and other blocks, it is the first whose die group is ready,
    /// so that streams do not wait for merges or cleaning of others.
    fn next_program_unit(&mut self) -> Option<(u32, DieGroupId)> {
        if self.zones.is_some() {
            let (engine, now) = (&mut self.engine, self.now);
            // The zone determines the first unit of the program unit.
            let die_group = |zone| engine.writable_die_group(zone, UnitWrite::PAD, now);
            return self.buffer.first_full(die_group);
        }
        if self.engine.ftl().places_host() || self.engine.ftl().has_slc() {
            let (engine, now) = (&mut self.engine, self.now);
            return self.buffer.first_stream(STREAMS_ASKED_MAX, |stream, first| {
                engine.writable_die_group(stream, first, now)
            });
        }
        if !self.engine.has_ready_die_group() {
            // The common case, which needs no search for a stream.
            return None;
        }
        let full = self.buffer.full_stream().or_else(|| self.buffer.wanted_stream());
        let stream = full.or_else(|| self.buffer.pressed_stream(self.is_held()))?;
        let first = self.buffer.first_unit(stream)?;
        let die_group = self.engine.writable_die_group(stream, first, self.now)?;
        self.buffer.program_unit_leaves(stream);
        Some((stream, die_group))
    }

    /// Admits waiting writes into the buffer in FCFS order. Returns whether any unit was admitted;
    /// parts of requests count, since a request larger than the buffer can only continue while its
    /// own program units are programmed.
    fn admit(&mut self, out: &mut Vec<Completion>) -> bool {
        let mut progress = false;
        while let Some(&slot) = self.waiting_for_buffer.front() {
            let begun = self.slots[slot].next;
            let through = self.admit_units(slot);
            progress |= through || self.slots[slot].next != begun;
            if !through {
                break;
            }
            self.waiting_for_buffer.pop_front();
            let state = &mut self.slots[slot];
            state.admitted = true;
            state.cost.buffer_wait = self.now.since(state.waits_since);
            let request = state.request;
            let done = match request.op {
                HostOp::WriteZeroes if self.device.unmaps() => {
                    // The trim has to become durable as well.
                    !(self.waits_for_flash(&request) && self.wait_for_flush(slot, Then::Finish))
                }
                _ => state.units_left == 0,
            };
            if done {
                self.finish(slot, out);
            }
        }
        if progress && let Some(map) = &mut self.map {
            map.host_admitted();
        }
        progress
    }

    /// Adds units of `slot` to the buffer until all are in it or it is full. Returns whether all
    /// are.
    fn admit_units(&mut self, slot: u32) -> bool {
        loop {
            let state = &self.slots[slot];
            let (request, lpn, end) = (state.request, state.next, state.end);
            if lpn == end {
                return true;
            }
            let covered = self.covered(&request, lpn);
            let unmapped = request.op == HostOp::WriteZeroes && self.device.unmaps();
            if unmapped && covered == u64::MAX {
                // Whole units are unmapped already; only a partly covered last one is written.
                self.slots[slot].next = (lpn + 1).max(end - 1);
                let last = u64::from(end) * self.unit <= request.offset + request.len;
                if last {
                    self.slots[slot].next = end;
                }
                continue;
            }
            if !self.admit_unit(slot, lpn, covered) {
                return false;
            }
            self.slots[slot].next += 1;
        }
    }

    /// Bitmap of the parts of unit `lpn` that `request` covers. A part is a sixty-fourth of the
    /// unit, or a sector if that is more, and counts only if it is covered completely.
    fn covered(&self, request: &Request, lpn: u32) -> u64 {
        let begin = u64::from(lpn) * self.unit;
        let from = request.offset.saturating_sub(begin);
        let to = (request.offset + request.len - begin).min(self.unit);
        if from == 0 && to == self.unit {
            return u64::MAX;
        }
        let part = (self.unit / 64).max(512);
        let bits = |parts: u64| if parts >= 64 { u64::MAX } else { (1 << parts) - 1 };
        let parts = bits(to / part) & !bits(from.div_ceil(part));
        // Bits beyond the last part are set, so that a whole unit is all ones.
        let beyond = !bits(self.unit.div_ceil(part));
        if parts == 0 { 0 } else { parts | beyond }
    }

    fn admit_unit(&mut self, slot: u32, lpn: u32, covered: u64) -> bool {
        let request = self.slots[slot].request;
        let data = request.op == HostOp::Write || !self.device.unmaps();
        let waits = data && self.waits_for_flash(&request);
        let found = self.buffer.find(lpn);
        if let Some(place) = found.filter(|&place| self.buffer.entry(place).state.may_change()) {
            let version = self.version();
            self.buffer.replace(place, version, covered);
            if self.payloads.is_some() {
                self.buffer_bytes(slot, lpn, place, Some(place));
            }
            self.slots[slot].cost.buffer_hits += 1;
            self.count_waiter(slot, place, waits);
            return true;
        }
        if self.buffer.is_full() {
            // A partly written unit can only leave the buffer once it no longer waits for its rest.
            self.end_oldest_merge();
            return false;
        }
        let ftl = self.engine.ftl();
        let stream = ftl.stream_for(lpn, u32::from(request.handle), request.len);
        let version = self.version();
        self.slots[slot].cost.units_written += 1;
        // A partial write to a unit in flight to flash takes the rest from the buffer; otherwise
        // the rest is read from flash, if the unit is mapped.
        let whole = covered == u64::MAX || found.is_some();
        let wait = self.device.drive.merge_wait;
        let place = if whole {
            let place = self.buffer.add(lpn, version, stream, State::Dirty);
            let lost = found.is_some_and(|older| self.buffer.entry(older).lost);
            if lost && covered != u64::MAX {
                self.buffer.mark_lost(place);
            }
            place
        } else if wait.0 > 0 && !waits {
            let deadline = self.now + wait;
            let place = self.buffer.add_partial(lpn, version, stream, covered, deadline);
            self.timers.push(deadline, (place << KIND_BITS) | MERGE);
            place
        } else {
            let rest = self.engine.ftl().lookup(lpn);
            let state = if rest.is_some() { State::Filling } else { State::Dirty };
            let place = self.buffer.add(lpn, version, stream, state);
            if let Some(at) = rest {
                let pages = self.read_rest(at, place, Cause::Rmw, request.urgent);
                self.slots[slot].cost.flash_reads += pages;
            }
            place
        };
        if self.payloads.is_some() {
            self.buffer_bytes(slot, lpn, place, found);
        }
        self.count_waiter(slot, place, waits);
        true
    }

    fn count_waiter(&mut self, slot: u32, place: u32, waits: bool) {
        if waits {
            if self.buffer.entry(place).state == State::Partial {
                self.stop_merging(place);
            }
            self.buffer.wait_for(place, slot);
            self.slots[slot].units_left += 1;
        }
    }

    /// Reads the rest of a unit from flash. Returns the pages read.
    pub(super) fn read_rest(&mut self, at: Pun, place: u32, cause: Cause, urgent: bool) -> u32 {
        let layout = self.engine.nand().layout();
        let (level, pages) = layout.pages_of(at);
        let pages = pages.count_ones() as u16;
        let program_unit = layout.program_unit_of(at);
        let mut recovery = ReadRecovery::default();
        if self.engine.has_faults()
            && self.engine.sample_read_errors(at, self.now, &mut recovery)
            && cause == Cause::Rmw
        {
            // The unit, of which the host wrote a part, can no longer be read.
            self.buffer.mark_lost(place);
            self.engine.note_lost(at);
        }
        let run = ReadRun::of_unit(program_unit, level as u8, pages, recovery);
        self.engine.read(&run, cause, place | FILL, urgent, self.now);
        u32::from(pages)
    }

    /// Ends the wait of a partly written unit whose deadline has come, if it still waits.
    pub(super) fn end_merge(&mut self, place: u32) {
        let entry = self.buffer.entry(place);
        if entry.state == State::Partial && entry.deadline == self.now {
            self.stop_merging(place);
        }
    }

    fn stop_merging(&mut self, place: u32) {
        let rest = self.engine.ftl().lookup(self.buffer.entry(place).lpn);
        self.buffer.stop_waiting(place, rest.is_some());
        if let Some(at) = rest {
            self.read_rest(at, place, Cause::Rmw, false);
        }
    }

    fn end_oldest_merge(&mut self) {
        if let Some(place) = self.buffer.oldest_partial() {
            self.stop_merging(place);
        }
    }

    /// Ends the waits of all partly written units, because a flush needs them on flash.
    pub(super) fn end_merges(&mut self) {
        while let Some(place) = self.buffer.oldest_partial() {
            self.stop_merging(place);
        }
    }
}
