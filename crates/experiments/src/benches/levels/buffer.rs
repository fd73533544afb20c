//! The write buffer of the stores at the raw and the function level, as the drive has one: a write
//! is complete when its page is in the buffer.

use std::collections::{BTreeMap, VecDeque};

use prism_base::SimTime;

use super::Done;

#[derive(Default)]
pub(super) struct WriteBuffer {
    /// Pages at most.
    limit: usize,
    /// Pages to be written, in the order in which they were accepted.
    order: VecDeque<usize>,
    dirty: BTreeMap<usize, Vec<u8>>,
    /// Pages on their way to flash. A page that is written again meanwhile is also in `dirty`.
    writing: BTreeMap<usize, Vec<u8>>,
    /// Writes that wait for a place.
    waiting: VecDeque<(usize, Done)>,
    /// Completed requests.
    pub(super) done: VecDeque<Done>,
}

impl WriteBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Takes a write at `done.end`; it completes when there is a place for its page.
    pub(super) fn write(&mut self, page: usize, done: Done) {
        let now = done.end;
        self.waiting.push_back((page, done));
        self.accept(now);
    }

    fn accept(&mut self, now: SimTime) {
        let is_full = |buffer: &Self| buffer.dirty.len() + buffer.writing.len() >= buffer.limit;
        while let Some((page, mut done)) = self.waiting.pop_front() {
            if is_full(self) && !self.dirty.contains_key(&page) {
                return self.waiting.push_front((page, done));
            }
            if self.dirty.insert(page, done.data.clone()).is_none() {
                self.order.push_back(page);
            }
            done.end = now;
            self.done.push_back(done);
        }
    }

    /// Reads a page at `done.end`, if it is buffered; otherwise returns `done`.
    pub(super) fn read(&mut self, page: usize, mut done: Done) -> Option<Done> {
        let Some(data) = self.dirty.get(&page).or(self.writing.get(&page)) else {
            return Some(done);
        };
        done.data.copy_from_slice(data);
        self.done.push_back(done);
        None
    }

    /// The next page that goes to flash. Of two versions of a page one goes after the other.
    pub(super) fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        let place = self.order.iter().position(|page| !self.writing.contains_key(page))?;
        let page = self.order.remove(place)?;
        let data = self.dirty.remove(&page)?;
        self.writing.insert(page, data.clone());
        Some((page, data))
    }

    /// A page is on flash.
    pub(super) fn written(&mut self, page: usize, now: SimTime) {
        self.writing.remove(&page);
        self.accept(now);
    }

    /// Whether [`WriteBuffer::next`] returns a page.
    pub(super) fn has_next(&self) -> bool {
        self.order.iter().any(|page| !self.writing.contains_key(page))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.writing.is_empty()
    }
}
