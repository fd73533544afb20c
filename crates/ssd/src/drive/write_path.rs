//! From a write command into the buffer, and from the buffer to flash.

use prism_engine::HostUnit;
use prism_ftl::{ReadRun, UnitWrite};
use prism_nand::Cause;

use super::{Drive, FILL, Then};
use crate::buffer::State;
use crate::device::WriteCache;
use crate::request::{Completion, HostOp};

impl Drive {
    pub(super) fn queue_write(&mut self, slot: u32) {
        let (now, unit) = (self.now, self.unit);
        let state = &mut self.slots[slot];
        state.next = (state.request.offset / unit) as u32;
        state.end = state.request.offset.wrapping_add(state.request.len).div_ceil(unit) as u32;
        state.waits_since = now;
        self.waiting_for_buffer.push_back(slot);
    }

    /// Moves on whatever can move: writes into the buffer, rows to flash, flushes that
    /// have waited to their end.
    pub(super) fn pump(&mut self, out: &mut Vec<Completion>) {
        loop {
            self.drain_buffer();
            let admitted = self.admit(out);
            let flushed = self.end_flushes(out);
            if !admitted && !flushed {
                return;
            }
        }
    }

    /// Programs full rows, and rows that are not full if a flush waits for them.
    fn drain_buffer(&mut self) {
        while self.buffer.dirty() >= self.row_units || self.buffer.flush_wants_row() {
            let Some(die) = self.engine.writable_die() else { return };
            let mut row = std::mem::take(&mut self.row);
            row.clear();
            while row.len() < self.row_units {
                let Some(tag) = self.buffer.take_dirty() else { break };
                let entry = self.buffer.entry(tag);
                let write = UnitWrite { lpn: entry.lpn, source: None, version: entry.version };
                row.push(HostUnit { write, tag });
            }
            self.engine.write(die, &row, self.now);
            self.row = row;
        }
    }

    /// Lets writes that wait go into the buffer, first come first served. Returns
    /// whether anything moved; a part of a request counts, since a request larger than
    /// the buffer gets on only by rows of its own going to flash.
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
            state.cost.buffer_wait = self.now.since(state.waits_since);
            let through = self.device.drive.write_cache == WriteCache::WriteThrough;
            let durable = state.request.fua || through;
            if !(durable && self.wait_for_flush(slot, Then::Finish)) {
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
            let begin = u64::from(lpn) * self.unit;
            let whole =
                begin >= request.offset && begin + self.unit <= request.offset + request.len;
            if request.op == HostOp::WriteZeroes && whole {
                // Whole units are unmapped already; only the last may be left to write.
                self.slots[slot].next = (lpn + 1).max(end - 1);
                let last = u64::from(end) * self.unit <= request.offset + request.len;
                if last {
                    self.slots[slot].next = end;
                }
                continue;
            }
            if !self.admit_unit(slot, lpn, whole) {
                return false;
            }
            self.slots[slot].next += 1;
        }
    }

    fn admit_unit(&mut self, slot: u32, lpn: u32, whole: bool) -> bool {
        if let Some(place) = self.buffer.find(lpn) {
            let state = self.buffer.entry(place).state;
            if state != State::InFlight {
                let version = self.version();
                self.buffer.replace(place, version);
                self.slots[slot].cost.buffer_hits += 1;
                return true;
            }
        }
        if self.buffer.is_full() {
            return false;
        }
        // A newer part over a unit that is on its way to flash finds the rest in the
        // buffer; otherwise the rest is read from flash, if it is there.
        let rest = if whole || self.buffer.find(lpn).is_some() {
            None
        } else {
            self.engine.ftl().lookup(lpn)
        };
        let version = self.version();
        let place = self.buffer.add(lpn, version, rest.is_some());
        self.slots[slot].cost.units_written += 1;
        if let Some(at) = rest {
            let run = ReadRun { row: self.device_row(at), pages: 1, units: 1 };
            self.slots[slot].cost.flash_reads += 1;
            self.engine.read(run, Cause::Rmw, place | FILL, self.now);
        }
        true
    }

    fn device_row(&self, at: prism_nand::Pun) -> prism_nand::RowId {
        self.engine.nand().geometry().row_of(at)
    }
}
