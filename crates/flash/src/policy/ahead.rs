//! Reading ahead within one read of many pages: the device is told of the next ones while the
//! first is waited for.

use super::range::{Range, UnitLocation};

/// Pages that are in flight at once: enough that a fast disk is busy.
const AHEAD: u32 = 32;

/// How far the device was told of what a read is going to want.
pub(super) struct Ahead {
    /// The first byte it was not told of, and the end of the read; equal if nothing more is
    /// to be told.
    at: u64,
    end: u64,
    /// Pages that it was told of and that were not yet asked for.
    pub(super) in_flight: u32,
}

impl Ahead {
    /// For a read of `len` bytes from `at` on. One of a page or less is asked for at once.
    pub(super) fn new(range: &Range, at: u64, len: usize) -> Self {
        let is_run = len > range.flash().format.page_size as usize;
        let more = if is_run && range.flash().share().wants_hints() { len as u64 } else { 0 };
        Self { at, end: at + more, in_flight: 0 }
    }

    /// Tells the device of the next pages.
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
