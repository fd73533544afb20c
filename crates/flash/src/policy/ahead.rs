//! Read-ahead within one read of many pages: prefetches the next pages while it waits for the
//! first.

use super::range::{Range, UnitLocation};

/// Prefetches in flight: enough to keep a fast disk busy.
const AHEAD: u32 = 32;

/// How far a read is prefetched.
pub(super) struct Ahead {
    /// The first byte that is not prefetched, and the end of the read; equal at the end.
    at: u64,
    end: u64,
    /// Pages that are prefetched and not yet read.
    pub(super) in_flight: u32,
}

impl Ahead {
    /// For a read of `len` bytes from `at` on. A read of a page or less is not prefetched.
    pub(super) fn new(range: &Range, at: u64, len: usize) -> Self {
        let is_run = len > range.flash().format.page_size as usize;
        let more =
            if is_run && range.flash().share().gains_from_prefetch() { len as u64 } else { 0 };
        Self { at, end: at + more, in_flight: 0 }
    }

    /// Prefetches the next pages.
    #[inline]
    pub(super) fn go_on(&mut self, range: &Range) {
        while self.at < self.end && self.in_flight < AHEAD {
            let (place, within, len) = range.piece(self.at, (self.end - self.at) as usize);
            if let UnitLocation::Flash(pun) = place {
                if !range.flash().prefetch_unit(pun, within, len) {
                    self.end = self.at;
                    return;
                }
                self.in_flight += 1;
            }
            self.at += len as u64;
        }
    }
}
