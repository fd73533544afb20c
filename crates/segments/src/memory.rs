//! Segments in memory, with their bytes and without time: for file systems that end with their
//! process, and for measurements. Pages of zeros take no memory.

use std::collections::VecDeque;

use prism_base::{Nanos, SimTime};
use prism_flash::{Buffer, FlashError};

use crate::{Done, FlashCounts, Shape, Store};

/// A page that was written; `None` if it is zeros.
type Page = Option<Box<[u8]>>;

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    shape: Shape,
    /// Pages by segment, as many as were written.
    pages: Vec<Vec<Page>>,
    free: VecDeque<u32>,
    done: VecDeque<Done>,
    counts: FlashCounts,
}

impl MemoryStore {
    /// An empty store of `segments` segments of `segment_bytes` bytes in pages of `page_bytes`.
    ///
    /// # Panics
    /// If a segment is not a whole number of pages.
    #[must_use]
    pub fn new(segments: u32, segment_bytes: u32, page_bytes: u32) -> Self {
        assert!(segment_bytes.is_multiple_of(page_bytes), "whole pages");
        let shape =
            Shape { segments, segment_bytes, page_bytes, channels: 1, dynamic_reserve: true };
        Self {
            shape,
            pages: (0..segments).map(|_| Vec::new()).collect(),
            free: (0..segments).collect(),
            done: VecDeque::new(),
            counts: FlashCounts::default(),
        }
    }

    fn finish(&mut self, tag: u64, result: Result<(), FlashError>, data: Buffer) {
        self.done.push_back(Done { tag, end: SimTime::ZERO, result, data });
    }
}

impl Store for MemoryStore {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        1
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        let used = |segment: &u32| !self.pages[*segment as usize].is_empty();
        let (used, free): (Vec<u32>, Vec<u32>) = (0..self.shape.segments).partition(used);
        self.free = free.into();
        Ok(used)
    }

    fn available(&mut self) -> u32 {
        self.free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.free.pop_front())
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let page = self.shape.page_bytes;
        let pages = &mut self.pages[segment as usize];
        let is_next = pages.len() as u64 == u64::from(offset / page);
        assert!(is_next && offset.is_multiple_of(page), "segment {segment} is written in order");
        let of_page = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0).then(|| bytes.into());
        pages.extend(data.chunks(page as usize).map(of_page));
        self.counts.programs += u64::from(data.len() as u32 / page);
        self.finish(tag, Ok(()), data);
    }

    fn read(&mut self, segment: u32, offset: u32, mut data: Buffer, tag: u64) {
        let page = self.shape.page_bytes as usize;
        let mut result = Ok(());
        for (to, at) in data.chunks_mut(page).zip(offset as usize / page..) {
            match self.pages[segment as usize].get(at) {
                Some(Some(from)) => to.copy_from_slice(from),
                Some(None) => to.fill(0),
                None => {
                    result = Err(FlashError::Invalid { what: "the page is not written".into() });
                }
            }
        }
        self.counts.reads += (data.len() / page) as u64;
        self.finish(tag, result, data);
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        self.pages[segment as usize] = Vec::new();
        self.counts.erases += 1;
        self.free.push_back(segment);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        self.finish(tag, Ok(()), Buffer::default());
    }

    fn buffer(&self, len: usize) -> Buffer {
        vec![0; len].into()
    }

    fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn wait(&mut self, _timeout: Option<Nanos>) -> bool {
        !self.done.is_empty()
    }

    fn counts(&self) -> FlashCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_until_it_is_freed() {
        let mut store = MemoryStore::new(2, 8192, 4096);
        let segment = store.open().unwrap().unwrap();
        store.write(segment, 0, vec![0; 4096].into(), 1);
        store.write(segment, 4096, vec![7; 4096].into(), 2);
        store.read(segment, 0, vec![1; 8192].into(), 3);
        let done: Vec<Done> = std::iter::from_fn(|| store.poll()).collect();
        assert_eq!(done.iter().map(|done| done.tag).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(done[2].data[..4096].iter().all(|&byte| byte == 0) && done[2].data[4096] == 7);
        assert_eq!((store.used(), store.available()), (Ok(vec![segment]), 1));
        store.free(segment).unwrap();
        store.read(segment, 0, vec![1; 4096].into(), 4);
        assert!(store.poll().unwrap().result.is_err());
        let counts = FlashCounts { programs: 2, copies: 0, reads: 3, erases: 1 };
        assert_eq!((store.counts(), store.available()), (counts, 2));
    }
}
