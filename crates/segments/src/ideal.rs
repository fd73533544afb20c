//! Segments on the device itself, without the library's monitor: no shares, no spare blocks, no
//! wear levelling. This is the ideal of the Prism-SSD paper, a program that is bound to its device.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_base::{Nanos, SimTime};
use prism_flash::medium::execute;
use prism_flash::{Buffer, FlashError, Medium, MediumQueue, Op, PageState, Reply, Request};

use crate::{Done, FlashCounts, Shape, Store};

/// Commands that the queue keeps in flight.
const DEPTH: usize = 128;
/// The tag of syncs that the store needs itself.
const OWN: u64 = u64::MAX;

/// A store on all blocks of a device.
pub struct IdealStore {
    medium: Arc<dyn Medium>,
    /// `None` for a device whose calls do not wait.
    queue: Option<Box<dyn MediumQueue>>,
    done: VecDeque<Reply>,
    erased: VecDeque<u32>,
    /// Blocks whose erase is not durable, before and since the sync in flight.
    freed: [Vec<u32>; 2],
    syncing: bool,
    identity: u64,
    shape: Shape,
    counts: FlashCounts,
}

impl IdealStore {
    /// A store on a device that has no tables of the library; `identity` is its own.
    #[must_use]
    pub fn new(medium: Arc<dyn Medium>, identity: u64) -> Self {
        let geometry = *medium.geometry();
        let shape = Shape {
            segments: geometry.blocks(),
            segment_bytes: geometry.block_bytes() as u32,
            page_bytes: geometry.page_size,
            channels: geometry.channels,
            dynamic_reserve: true,
        };
        let queue = Arc::clone(&medium).queue(DEPTH);
        Self {
            medium,
            queue,
            done: VecDeque::new(),
            erased: VecDeque::new(),
            freed: [Vec::new(), Vec::new()],
            syncing: false,
            identity,
            shape,
            counts: FlashCounts::default(),
        }
    }

    fn submit(&mut self, op: Op, data: Buffer, tag: u64) {
        let request = Request { tag, op, data, oob: Vec::new() };
        match &mut self.queue {
            Some(queue) => queue.submit(request),
            None => self.done.push_back(execute(&*self.medium, request)),
        }
    }

    fn next_reply(&mut self) -> Option<Reply> {
        self.done.pop_front().or_else(|| self.queue.as_mut()?.take())
    }

    /// Blocks can be programmed once their erase is durable.
    fn sync_erases(&mut self) {
        if !self.syncing && !self.freed[1].is_empty() {
            self.syncing = true;
            self.freed.swap(0, 1);
            self.submit(Op::Sync, Buffer::default(), OWN);
        }
    }
}

impl Store for IdealStore {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        let good = (0..self.shape.segments).filter(|&block| !self.medium.is_factory_bad(block));
        let (mut used, mut free) = (Vec::new(), Vec::new());
        for block in good {
            // A block whose erase was interrupted has no pages, and still has to be erased.
            let is_used = self.medium.write_pointer(block) > 0
                || self.medium.read(block, 0, 0, &mut [], &mut [])? == PageState::Torn;
            if is_used { used.push(block) } else { free.push(block) }
        }
        // Neighbours are on the same LUN: those of all LUNs take turns.
        let luns = self.medium.geometry().luns();
        let per_lun = self.shape.segments / luns;
        free.sort_by_key(|block| (block % per_lun, block / per_lun));
        self.erased = free.into();
        Ok(used)
    }

    fn available(&mut self) -> u32 {
        self.erased.len() as u32
    }

    fn erasing(&mut self) -> u32 {
        self.freed.iter().map(|freed| freed.len() as u32).sum()
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.erased.pop_front())
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let page = offset / self.shape.page_bytes;
        self.counts.programs += (data.len() / self.shape.page_bytes as usize) as u64;
        self.submit(Op::Program { block: segment, page }, data, tag);
    }

    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let page = offset / self.shape.page_bytes;
        self.counts.reads += (data.len() / self.shape.page_bytes as usize) as u64;
        self.submit(Op::Read { block: segment, page, offset: 0 }, data, tag);
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        self.medium.erase(segment)?;
        self.counts.erases += 1;
        self.freed[1].push(segment);
        self.sync_erases();
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        self.submit(Op::Sync, Buffer::default(), tag);
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.medium.buffer(len)
    }

    fn poll(&mut self) -> Option<Done> {
        loop {
            let Reply { tag, result, data, .. } = self.next_reply()?;
            if tag == OWN {
                self.syncing = false;
                let synced = std::mem::take(&mut self.freed[0]);
                match result {
                    Ok(_) => self.erased.extend(synced),
                    // The device is read-only from now on, and says so to every write.
                    Err(_) => self.freed[1].clear(),
                }
                self.sync_erases();
                continue;
            }
            let result = match result {
                Ok(PageState::Written) => Ok(()),
                // The checksums of the program find out that nothing was there.
                Ok(PageState::Erased | PageState::Torn) => {
                    Err(FlashError::Invalid { what: "the page is not written".into() })
                }
                Err(error) => Err(error.into()),
            };
            return Some(Done { tag, end: SimTime::ZERO, result, data });
        }
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        let waits = |queue: &mut Box<dyn MediumQueue>| queue.wait(timeout);
        !self.done.is_empty() || self.queue.as_mut().is_some_and(waits)
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.as_ref()?.event_fd()
    }

    fn counts(&self) -> FlashCounts {
        self.counts
    }
}
