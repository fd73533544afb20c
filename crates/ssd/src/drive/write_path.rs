//! From a write command into the buffer, and from the buffer to flash.

use prism_engine::HostUnit;
use prism_ftl::{ReadRecovery, ReadRun, UnitWrite};
use prism_nand::{Cause, DieGroupId, Pun};

use super::slots::Then;
use super::{Drive, FILL, KIND_BITS, MERGE};
use crate::buffer::State;
use crate::request::{Completion, HostOp, Request};

/// Streams that are asked in turn whether a program unit of theirs can go. Those that cannot wait
/// for merges or die groups, which do not depend on who asks; asking more costs time at every
/// event and finds little.
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

    /// Moves on whatever can move: writes into the buffer, program units to flash, flushes that
    /// have waited to their end.
    pub(crate) fn pump(&mut self, out: &mut Vec<Completion>) {
        // What is moved on may call for this again: one round more, not one level deeper.
        self.pump_again = true;
        if self.pumping {
            return;
        }
        self.pumping = true;
        let mut only_admitted = false;
        while std::mem::take(&mut self.pump_again) {
            while let Some(slot) = self.rewrite_pages() {
                self.begin(slot, out);
            }
            let drained = self.drain_buffer();
            if only_admitted && !drained && !self.pump_again {
                // The buffer is as full as the last round has left it.
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

    /// Whether a write that has just been queued can do nothing but wait: there is no room,
    /// others come before it, and what makes room will see to all of them.
    pub(super) fn only_waits(&mut self) -> bool {
        let plain = self.map.is_none() && self.zones.is_none() && !self.has_faults_or_wordlines;
        plain
            && self.waiting_for_buffer.len() > 1
            && self.buffer.is_full()
            && self.buffer.oldest_partial().is_none()
    }

    /// Whether requests wait for units to leave the buffer.
    pub(super) fn waits_for_room(&self) -> bool {
        !self.waiting_for_buffer.is_empty() || self.is_held()
    }

    /// Programs full program units, program units that are not full if somebody waits for them,
    /// and, where streams have filled the buffer without filling a program unit, the longest.
    /// Returns whether there was any.
    fn drain_buffer(&mut self) -> bool {
        let mut any = false;
        while let Some((stream, die_group)) = self.next_program_unit() {
            self.write_program_unit(stream, die_group);
            any = true;
        }
        any
    }

    /// Programs the next program unit of `stream` with what waits for it.
    pub(super) fn write_program_unit(&mut self, stream: u32, die_group: DieGroupId) {
        let mut program_unit = std::mem::take(&mut self.program_unit);
        program_unit.clear();
        while program_unit.len() < self.units_per_program_unit {
            let Some(tag) = self.buffer.take_dirty(stream) else { break };
            let entry = self.buffer.entry(tag);
            let write = UnitWrite { lpn: entry.lpn, source: None, version: entry.version };
            program_unit.push(HostUnit { write, tag, lost: entry.lost });
        }
        self.engine.write(die_group, stream, &program_unit, self.now);
        self.program_unit = program_unit;
    }

    /// The stream whose program unit leaves next, and its die group. Where any die group takes
    /// any stream, the first stream that has a program unit; where the FTL names die groups, or
    /// die groups have blocks of two kinds, the first of those asked whose die group takes one,
    /// so that streams do not wait for the merges, or the cleaning, of others.
    fn next_program_unit(&mut self) -> Option<(u32, DieGroupId)> {
        if self.zones.is_some() {
            let (engine, now) = (&mut self.engine, self.now);
            // Which unit a program unit begins with follows from the zone.
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
            // As after most program units: then it does not matter what would go there.
            return None;
        }
        let full = self.buffer.full_stream().or_else(|| self.buffer.wanted_stream());
        let stream = full.or_else(|| self.buffer.pressed_stream(self.is_held()))?;
        let first = self.buffer.first_unit(stream)?;
        let die_group = self.engine.writable_die_group(stream, first, self.now)?;
        self.buffer.program_unit_leaves(stream);
        Some((stream, die_group))
    }

    /// Lets writes that wait go into the buffer, first come first served. Returns
    /// whether anything moved; a part of a request counts, since a request larger than
    /// the buffer gets on only by program units of its own going to flash.
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
                    // The units it unmapped have to become durable as well.
                    !(self.waits_for_flash(&request) && self.wait_for_flush(slot, Then::Finish))
                }
                _ => state.units_left == 0,
            };
            if done {
                self.finish(slot, out);
            }
        }
        progress
    }

    /// Puts units of `slot` into the buffer until all are in or it is full.
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
                // Whole units are unmapped already; only the last may be left to write.
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

    /// The parts of unit `lpn` that `request` covers, as bits: a sixty-fourth of the unit
    /// each, or a sector if that is more. A part that is covered in part does not count.
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
        // What lies beyond the last part counts as covered, so that all ones are a whole.
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
            self.slots[slot].cost.buffer_hits += 1;
            self.count_waiter(slot, place, waits);
            return true;
        }
        if self.buffer.is_full() {
            // What waits for its rest makes room only if it waits no longer.
            self.end_oldest_merge();
            return false;
        }
        let ftl = self.engine.ftl();
        let stream = ftl.stream_for(lpn, u32::from(request.handle), request.len);
        let version = self.version();
        self.slots[slot].cost.units_written += 1;
        // A newer part over a unit that is on its way to flash finds the rest in the
        // buffer; otherwise the rest is read from flash, if it is there.
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

    /// Reads the rest of a unit from flash; returns the pages read.
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
            // The host wrote a part of what is now one unit that cannot be read.
            self.buffer.mark_lost(place);
            self.engine.note_lost(at);
        }
        let run = ReadRun { program_unit, level: level as u8, pages, units: 1, recovery };
        self.engine.read(&run, cause, place | FILL, urgent, self.now);
        u32::from(pages)
    }

    /// The time of a unit to wait for its rest is over, if it still waits.
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

    /// A flush waits for every unit, whole or not.
    pub(super) fn end_merges(&mut self) {
        while let Some(place) = self.buffer.oldest_partial() {
            self.stop_merging(place);
        }
    }
}
