//! Prefetched reads: started early, fetched later, or abandoned.

use super::{Read, Uring, Use};

/// Prefetches that are submitted together.
const HINTS_AT_ONCE: usize = 4;

impl Uring {
    /// Starts a prefetch; returns whether there was a buffer for it.
    pub(crate) fn prefetch(&mut self, page_at: u64, from: u64, len: usize) -> bool {
        self.prefetches += 1;
        let at = page_at + from;
        if self.writing.contains_key(&page_at) || self.reading.contains_key(&at) {
            return true;
        }
        if self.reading.len() >= self.depth {
            self.forget_stale();
        }
        let room = self.reading.len() < self.depth && !self.free.is_empty();
        let room = room && !self.failed.contains_key(&page_at);
        match room.then(|| self.begin_read(at, len)) {
            Some(Ok(index)) => {
                self.reading.insert(at, index);
                // A system call for each would cost more than it gains.
                self.queued() < HINTS_AT_ONCE.min(self.depth) || self.submit().is_ok()
            }
            Some(Err(_)) | None => false,
        }
    }

    /// Waits until more than `known` prefetches are complete and not yet fetched, or none is in
    /// flight. Returns how many are complete. The read itself returns any error.
    pub(crate) fn arrivals(&mut self, known: usize) -> usize {
        self.take_completions();
        while self.arrived <= known && self.arrived < self.reading.len() {
            if self.reap(1).is_err() {
                break;
            }
        }
        self.arrived
    }

    /// Whether no prefetch of this position is in flight, as far as is known.
    pub(crate) fn has_arrived(&self, at: u64) -> bool {
        let index = self.reading.get(&at);
        index.is_none_or(|&index| !matches!(self.uses[index], Use::Reading(_)))
    }

    /// Abandons the prefetches of a page that is about to change.
    pub(super) fn forget_reads(&mut self, page_at: u64) {
        if self.reading.is_empty() {
            return;
        }
        let page = page_at..page_at + self.page_size as u64;
        self.forget(|read| page.contains(&read.at));
    }

    /// Abandons old prefetches that were not fetched.
    fn forget_stale(&mut self) {
        /// Number of later prefetches after which one is stale, in multiples of the depth.
        const STALE: u64 = 4;
        let oldest = self.prefetches.saturating_sub(STALE * self.depth as u64);
        self.forget(|read| read.hint < oldest);
    }

    fn forget(&mut self, which: impl Fn(Read) -> bool) {
        for index in 0..self.uses.len() {
            match self.uses[index] {
                Use::Reading(read) if which(read) => self.uses[index] = Use::Abandoned,
                Use::Read(read, _) if which(read) && self.held != Some(index) => {
                    self.arrived -= 1;
                    self.put_buffer(index);
                }
                _ => continue,
            }
            self.reading.retain(|_, &mut other| other != index);
        }
    }
}
