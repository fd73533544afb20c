//! Reads ahead: begun by a hint, asked for later, or given up.

use super::{Read, Uring, Use};

/// Reads ahead that are given to the kernel together.
const HINTS_AT_ONCE: usize = 4;

impl Uring {
    /// Begins a read that is going to be asked for; whether there was room for it.
    pub(crate) fn prefetch(&mut self, page_at: u64, from: u64, len: usize) -> bool {
        self.hints += 1;
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
                // A call into the kernel for each costs more than it gains.
                self.queued() < HINTS_AT_ONCE.min(self.depth) || self.submit().is_ok()
            }
            Some(Err(_)) | None => false,
        }
    }

    /// Waits until more than `known` reads have come that nobody has asked for yet, or no other
    /// is on its way; how many have come. What goes wrong is told by the read itself.
    pub(crate) fn arrivals(&mut self, known: usize) -> usize {
        self.take_completions();
        while self.arrived <= known && self.arrived < self.reading.len() {
            if self.reap(1).is_err() {
                break;
            }
        }
        self.arrived
    }

    /// Whether no read ahead that begins there is on its way, as far as is known.
    pub(crate) fn has_arrived(&self, at: u64) -> bool {
        let index = self.reading.get(&at);
        index.is_none_or(|&index| !matches!(self.uses[index], Use::Reading(_)))
    }

    /// Gives up what was read ahead of a page that is about to change.
    pub(super) fn forget_reads(&mut self, page_at: u64) {
        if self.reading.is_empty() {
            return;
        }
        let page = page_at..page_at + self.page_size as u64;
        self.forget(|read| page.contains(&read.at));
    }

    /// Gives up what was read ahead long ago, and nobody has asked for.
    fn forget_stale(&mut self) {
        /// Hints after which one is stale, in depths.
        const STALE: u64 = 4;
        let oldest = self.hints.saturating_sub(STALE * self.depth as u64);
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
