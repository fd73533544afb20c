//! Segments at the policy level: the program has addresses, and the library maps, cleans and levels
//! wear.
//!
//! With block-level mapping a segment is a block, and the library copies nothing. With page-level
//! mapping this is what a conventional drive does, where the FTL does not know segments.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_base::{Nanos, SimTime};
use prism_flash::policy::{Policy, Queue};
use prism_flash::{Buffer, FlashError};

use crate::{DEPTH, Done, FlashCounts, Shape, Store, counts_of, now_of, pass_rest};

/// A store on addresses.
pub struct PolicyStore {
    policy: Arc<Policy>,
    queue: Queue<Arc<Policy>>,
    begin: u64,
    free: VecDeque<u32>,
    identity: u64,
    shape: Shape,
}

impl PolicyStore {
    /// A store on the range that begins at `begin`, of `bytes` bytes; `identity` is that of its
    /// device.
    #[must_use]
    pub fn new(policy: Policy, begin: u64, bytes: u64, identity: u64) -> Self {
        Self::shared(Arc::new(policy), begin, bytes, identity)
    }

    /// As [`PolicyStore::new`], on a level that others use too: stores of other ranges, or, with
    /// queues of their own, threads that read this one.
    #[must_use]
    pub fn shared(policy: Arc<Policy>, begin: u64, bytes: u64, identity: u64) -> Self {
        let (segment_bytes, unit) = (policy.block_bytes(), policy.unit());
        let geometry = policy.share().geometry();
        let (channels, page) =
            geometry.map_or((1, unit), |found| (found.channels.len() as u32, found.page_size));
        // Whole pages, as at the other levels, where blocks of the range consist of them.
        let whole = page > unit && segment_bytes.is_multiple_of(page.into());
        let shape = Shape {
            segments: (bytes / segment_bytes) as u32,
            segment_bytes: segment_bytes as u32,
            page_bytes: if whole { page } else { unit },
            channels,
            dynamic_reserve: false,
        };
        let queue = Queue::new(Arc::clone(&policy), DEPTH);
        Self { policy, queue, begin, free: VecDeque::new(), identity, shape }
    }

    fn address(&self, segment: u32, offset: u32) -> u64 {
        self.begin + u64::from(segment) * u64::from(self.shape.segment_bytes) + u64::from(offset)
    }
}

impl Store for PolicyStore {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    /// All segments: what was never written reads as zeros, in which there is no segment.
    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        Ok((0..self.shape.segments).collect())
    }

    fn available(&mut self) -> u32 {
        self.free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.free.pop_back())
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let address = self.address(segment, offset);
        self.queue.submit_write(address, data, tag).expect("the queue is long");
    }

    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let address = self.address(segment, offset);
        self.queue.submit(address, data, tag).expect("the queue is long");
    }

    /// The segment is soon overwritten from its beginning to its end, so a trim would gain little,
    /// and cost a page of the library's journal. The program's state says that its items are gone.
    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        self.free.push_front(segment);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        self.queue.submit_flush(tag).expect("the queue is long");
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.policy.share().device().buffer(len)
    }

    fn poll(&mut self) -> Option<Done> {
        let done = self.queue.poll()?;
        Some(Done { tag: done.tag, end: done.end, result: done.result, data: done.data })
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        let begun = self.now();
        self.queue.wait(timeout) || pass_rest(&self.policy.share(), begun, timeout)
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.event_fd()
    }

    fn counts(&self) -> FlashCounts {
        counts_of(&self.policy.share())
    }

    fn now(&self) -> SimTime {
        now_of(&self.policy.share())
    }
}
