//! The bios that wait for flushes. A worker issues flush requests, without a sector, and one of
//! them may serve several bios.

use std::collections::VecDeque;

use crate::names::Origin;
use crate::record::Flags;
use crate::symbols::Symbol;

/// The most bios that are kept. The block layer gathers all waiting bios into one flush, and a
/// process waits for each of them.
const WAITING_MAX: usize = 1024;

/// A bio that needs a flush before it, after it, or both.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    device: Symbol,
    sector: u64,
    queue_ns: i64,
    origin: Origin,
    stage: Stage,
    /// It needs a flush after its data too.
    after: bool,
    /// It was remapped from a stacked device, and its own queue event has not arrived yet.
    remapped: bool,
}

/// The progress of a bio's flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The flush before its data was not issued yet.
    Before,
    /// The flush before its data was issued, or is not needed.
    After,
}

/// The bios that wait for flushes, in the order in which they were queued.
#[derive(Debug, Default)]
pub(crate) struct FlushWaiters {
    waiters: VecDeque<Waiter>,
}

impl FlushWaiters {
    /// A bio with `flags` was queued.
    pub fn queue(
        &mut self,
        device: Symbol,
        sector: u64,
        flags: Flags,
        queue_ns: i64,
        origin: Origin,
    ) {
        let moved = self
            .waiters
            .iter_mut()
            .find(|waiter| waiter.remapped && waiter.device == device && waiter.sector == sector);
        if let Some(waiter) = moved {
            waiter.remapped = false;
            return;
        }
        let after = flags.has(Flags::FUA);
        let only_after = after && !flags.has(Flags::PREFLUSH);
        let stage = if only_after { Stage::After } else { Stage::Before };
        if self.waiters.len() == WAITING_MAX {
            self.waiters.pop_front();
        }
        let remapped = false;
        self.waiters.push_back(Waiter { device, sector, queue_ns, origin, stage, after, remapped });
    }

    /// A flush was issued to `device`. Returns the queue time and process of the bio that it is
    /// for.
    ///
    /// The flush serves every bio queued so far, so none of them needs another one before its
    /// data. If all of them had that flush already, this is the one after the data of the
    /// oldest bio that needs it; otherwise it is for a bio that was queued while the flush was
    /// being issued.
    pub fn issue(&mut self, device: Symbol) -> Option<(i64, Origin)> {
        let mut first = None;
        let mut after = None;
        let mut oldest = None;
        for waiter in self.waiters.iter_mut().filter(|waiter| waiter.device == device) {
            let found = Some((waiter.queue_ns, waiter.origin));
            oldest = oldest.or(found);
            if waiter.stage == Stage::Before {
                waiter.stage = Stage::After;
                first = first.or(found);
            } else if waiter.after {
                after = after.or(found);
            }
        }
        first.or(after).or(oldest)
    }

    /// The bio at `sector` needs no further flush.
    pub fn end(&mut self, device: Symbol, sector: u64) {
        let place = self.waiters.iter().position(|waiter| {
            waiter.device == device && waiter.sector == sector && waiter.stage == Stage::After
        });
        if let Some(place) = place {
            self.waiters.remove(place);
        }
    }

    /// The oldest bio on `from` moved to `to`.
    pub fn remap(&mut self, from: (Symbol, u64), to: (Symbol, u64)) {
        let moved = self.waiters.iter_mut().find(|waiter| (waiter.device, waiter.sector) == from);
        if let Some(waiter) = moved {
            (waiter.device, waiter.sector) = to;
            waiter.remapped = true;
        }
    }
}
