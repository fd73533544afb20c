//! What has to be on flash before the host is told so: trims and flushes.

use prism_ftl::{TrimRange, UnitWrite};

use super::{Drive, Then, Waiter};
use crate::device::WriteCache;
use crate::request::{Completion, Request};

impl Drive {
    /// Unmaps the whole units of the request's range.
    pub(super) fn trim(&mut self, request: &Request) {
        let start = request.offset.div_ceil(self.unit) as u32;
        let end = ((request.offset + request.len) / self.unit) as u32;
        if start >= end {
            return;
        }
        let owed = self.buffer.trim(start, end);
        let version = self.version();
        if self.device.drive.power_loss_protection {
            self.engine.ftl_mut().trim_now(start, end, version);
            self.engine.look_for_garbage(self.now);
            return;
        }
        self.engine.ftl_mut().trim_later(start, end, version);
        self.open_trims.push(TrimRange { start, count: end - start, version });
        if let Some(epoch) = owed {
            let number = self.begin_tombstone();
            self.buffer.add_tombstone_in(epoch, number);
        } else if self.open_trims.len() == self.unit as usize / TrimRange::ENCODED {
            self.seal_trims();
        }
    }

    /// Puts the trims so far into a tombstone, which goes to flash as a unit.
    fn seal_trims(&mut self) {
        if self.open_trims.is_empty() {
            return;
        }
        let number = self.begin_tombstone();
        self.buffer.add(UnitWrite::TOMBSTONE, number, false);
    }

    fn begin_tombstone(&mut self) -> u64 {
        let ranges = std::mem::take(&mut self.open_trims);
        let number = self.version();
        self.engine.ftl_mut().tombstone_begin(number, ranges);
        number
    }

    /// Lets `slot` wait until everything in the buffer is durable. Returns false if
    /// there is nothing to wait for. With power-loss protection the buffer is durable;
    /// a write-through write waits all the same, because it was asked to be on flash.
    pub(super) fn wait_for_flush(&mut self, slot: u32, then: Then) -> bool {
        let through = self.device.drive.write_cache == WriteCache::WriteThrough;
        if self.device.drive.power_loss_protection && !through {
            return false;
        }
        self.seal_trims();
        match self.buffer.close_epoch() {
            None => false,
            Some(epoch) => {
                self.waiting_for_flush.push_back(Waiter { epoch, slot, then });
                true
            }
        }
    }

    pub(super) fn end_flushes(&mut self, out: &mut Vec<Completion>) -> bool {
        let mut progress = false;
        while let Some(&waiter) = self.waiting_for_flush.front() {
            if !self.buffer.is_durable(waiter.epoch) {
                break;
            }
            progress = true;
            self.waiting_for_flush.pop_front();
            match waiter.then {
                Then::Perform => self.perform(waiter.slot, out),
                Then::Finish => self.finish(waiter.slot, out),
            }
        }
        progress
    }
}
