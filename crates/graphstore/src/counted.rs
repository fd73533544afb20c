//! A store of which the bytes are counted that the engine reads and writes.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prism_base::{Nanos, SimTime};
use prism_flash::{Buffer, FlashError};
use prism_segments::{Done, FlashCounts, Shape, Store};

/// Bytes that were read and written.
#[derive(Debug, Default)]
pub(crate) struct Amounts {
    read: AtomicU64,
    written: AtomicU64,
}

impl Amounts {
    /// Bytes that were read, and written.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.read.load(Ordering::Relaxed), self.written.load(Ordering::Relaxed))
    }
}

/// The store.
pub(crate) struct Counted<S> {
    pub(crate) store: S,
    pub(crate) amounts: Arc<Amounts>,
}

impl<S: Store> Store for Counted<S> {
    fn shape(&self) -> Shape {
        self.store.shape()
    }
    fn identity(&self) -> u64 {
        self.store.identity()
    }
    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        self.store.used()
    }
    fn available(&mut self) -> u32 {
        self.store.available()
    }
    fn erasing(&mut self) -> u32 {
        self.store.erasing()
    }
    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        self.store.open()
    }
    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.amounts.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.store.write(segment, offset, data, tag);
    }
    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.amounts.read.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.store.read(segment, offset, data, tag);
    }
    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        self.store.free(segment)
    }
    fn sync(&mut self, tag: u64) {
        self.store.sync(tag);
    }
    fn syncs_writes_in_flight(&self) -> bool {
        self.store.syncs_writes_in_flight()
    }
    fn buffer(&self, len: usize) -> Buffer {
        self.store.buffer(len)
    }
    fn poll(&mut self) -> Option<Done> {
        self.store.poll()
    }
    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        self.store.wait(timeout)
    }
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.store.event_fd()
    }
    fn counts(&self) -> FlashCounts {
        self.store.counts()
    }
    fn now(&self) -> SimTime {
        self.store.now()
    }
}
