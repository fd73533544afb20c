//! Durability: trims, flushes, and writes that wait for their own units.

use prism_ftl::{TrimRange, UnitWrite};

use super::Drive;
use super::slots::{Then, Waiter};
use crate::buffer::State;
use crate::spec::WriteCache;
use prism_engine::block::{Completion, Request};

impl Drive {
    /// Unmaps the whole units of the request's range.
    pub(super) fn trim(&mut self, request: &Request, out: &mut Vec<Completion>) {
        let start = request.offset.div_ceil(self.unit) as u32;
        let end = ((request.offset + request.len) / self.unit) as u32;
        if start >= end {
            return;
        }
        let waiting = self.buffer.trim(start, end);
        let version = self.version();
        if self.device.drive.power_loss_protection {
            self.engine.ftl_mut().trim_now(start, end, version);
            self.engine.look_for_garbage(self.now);
            for slot in waiting.waiters {
                self.unit_durable(slot, out);
            }
            return;
        }
        self.engine.ftl_mut().page_mut().trim_later(start, end, version);
        self.open_trims.push(TrimRange { start, count: end - start, version });
        if waiting.epoch.is_some() || !waiting.waiters.is_empty() {
            let place = self.seal_trims().expect("a trim was just recorded");
            if let Some(epoch) = waiting.epoch {
                self.buffer.join_epoch(place, epoch);
            }
            for slot in waiting.waiters {
                self.buffer.wait_for(place, slot);
            }
        } else if self.open_trims.len() >= self.unit as usize / TrimRange::ENCODED {
            self.seal_trims();
        }
    }

    /// Puts the open trims into a tombstone, which is written to flash as a unit. Returns its place
    /// in the buffer.
    fn seal_trims(&mut self) -> Option<u32> {
        if self.open_trims.is_empty() {
            return None;
        }
        let ranges = std::mem::take(&mut self.open_trims);
        let number = self.version();
        self.engine.ftl_mut().page_mut().tombstone_begin(number, ranges);
        Some(self.buffer.add(UnitWrite::TOMBSTONE, number, 0, State::Dirty))
    }

    /// Whether a write completes only when its units are on flash. With power-loss protection the
    /// buffer is durable, but a write-through cache waits all the same.
    pub(super) fn waits_for_flash(&self, request: &Request) -> bool {
        let through = self.device.drive.write_cache == WriteCache::WriteThrough;
        through || request.fua && !self.device.drive.power_loss_protection
    }

    /// A unit that `slot` waits for is on flash.
    pub(super) fn unit_durable(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let state = &mut self.slots[slot];
        state.units_left -= 1;
        if state.units_left == 0 && state.admitted {
            self.finish(slot, out);
        }
    }

    /// Makes `slot` wait until everything in the buffer is durable. Returns false if there is
    /// nothing to wait for. With power-loss protection the buffer is durable, but with a
    /// write-through cache a flush waits for programs in flight all the same.
    pub(super) fn wait_for_flush(&mut self, slot: u32, then: Then) -> bool {
        let through = self.device.drive.write_cache == WriteCache::WriteThrough;
        if self.device.drive.power_loss_protection && !through {
            return false;
        }
        self.seal_trims();
        self.end_merges();
        match self.buffer.close_epoch() {
            None => false,
            Some(epoch) => {
                self.waiting_for_flush.push_back(Waiter { epoch, slot, then });
                true
            }
        }
    }

    /// Pads incomplete wordlines that hold units which a request or a flush waits for, unless other
    /// units that are waited for will fill them. Pads all incomplete wordlines if requests wait for
    /// buffer space that no program in flight or pending will free, or if requests are in flight
    /// and the drive has no other event.
    pub(super) fn close_wordlines(&mut self) {
        let moving = self.engine.host_program_units() > 0;
        if moving && self.buffer.has_wanted_program_units() {
            return;
        }
        // Full program units that wait for die groups leave the buffer once these are cleaned;
        // where space comes from merges, the merges may wait for incomplete wordlines.
        let leaving = !self.engine.ftl().places_host() && self.buffer.full_stream().is_some();
        let starved = self.waits_for_space() && !moving && !leaving;
        let all = starved || self.in_flight() > 0 && self.next_event().is_none();
        let buffer = &self.buffer;
        let wanted = |tag| all || buffer.is_wanted_at(tag);
        self.engine.close_wordlines(wanted, self.now);
    }

    /// Runs until no event is left and pads incomplete wordlines, so that a flush would have
    /// nothing to make durable. Completions are added to `out`.
    pub fn come_to_rest(&mut self, out: &mut Vec<Completion>) {
        loop {
            while self.next_event().is_some() {
                self.step(out);
            }
            if self.engine.units_held() == 0 {
                return;
            }
            // No request is in flight, so that no translation page is rewritten meanwhile: each
            // iteration leaves less in the buffer.
            self.engine.close_wordlines(|_| true, self.now);
            assert!(self.next_event().is_some(), "a wordline that cannot be padded");
        }
    }

    #[inline(never)]
    pub(super) fn end_flushes(&mut self, out: &mut Vec<Completion>) -> bool {
        let mut progress = false;
        while let Some(&waiter) = self.waiting_for_flush.front() {
            if !self.buffer.is_durable(waiter.epoch) {
                break;
            }
            progress = true;
            self.waiting_for_flush.pop_front();
            match waiter.then {
                Then::Perform => self.begin(waiter.slot, out),
                Then::Finish => self.finish(waiter.slot, out),
            }
        }
        progress
    }
}
