//! Stores over another store, which observe what it does or change when it completes.

use std::os::fd::BorrowedFd;

use prism_base::{Nanos, SimTime};
use prism_flash::{Buffer, FlashError};

use crate::{Done, FlashCounts, Reader, Shape, Store, Syncer};

/// A store over another one. Every call goes to the inner store, except those that the wrapper
/// defines itself.
pub trait Wrapper {
    /// The inner store.
    type Inner: Store + ?Sized;

    /// The inner store.
    fn inner(&self) -> &Self::Inner;

    /// The inner store, for calls that change it.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Observes a write before the inner store gets it.
    fn on_write(&mut self, _segment: u32, _offset: u32, _data: &Buffer) {}

    /// Observes a read before the inner store gets it.
    fn on_read(&mut self, _data: &Buffer) {}

    /// Observes that the inner store is asked for new memory of this length.
    fn on_buffer(&self, _len: usize) {}

    /// As [`Store::reader`]. None by default, since a wrapper does not see such reads.
    fn thread_reader(&self) -> Option<Reader> {
        None
    }

    /// As [`Store::poll`].
    fn next_done(&mut self) -> Option<Done> {
        self.inner_mut().poll()
    }

    /// As [`Store::wait`].
    fn wait_for(&mut self, timeout: Option<Nanos>) -> bool {
        self.inner_mut().wait(timeout)
    }
}

impl<T: Wrapper> Store for T {
    fn shape(&self) -> Shape {
        self.inner().shape()
    }
    fn identity(&self) -> u64 {
        self.inner().identity()
    }
    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        self.inner_mut().used()
    }
    fn available(&mut self) -> u32 {
        self.inner_mut().available()
    }
    fn erasing(&mut self) -> u32 {
        self.inner_mut().erasing()
    }
    fn unused(&mut self) -> u32 {
        self.inner_mut().unused()
    }
    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        self.inner_mut().open()
    }
    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.on_write(segment, offset, &data);
        self.inner_mut().write(segment, offset, data, tag);
    }
    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.on_read(&data);
        self.inner_mut().read(segment, offset, data, tag);
    }
    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        self.inner_mut().free(segment)
    }
    fn sync(&mut self, tag: u64) {
        self.inner_mut().sync(tag);
    }
    fn syncer(&self) -> Option<Syncer> {
        self.inner().syncer()
    }
    fn reader(&self) -> Option<Reader> {
        self.thread_reader()
    }
    fn syncs_writes_in_flight(&self) -> bool {
        self.inner().syncs_writes_in_flight()
    }
    fn buffer(&self, len: usize) -> Buffer {
        self.on_buffer(len);
        self.inner().buffer(len)
    }
    fn poll(&mut self) -> Option<Done> {
        self.next_done()
    }
    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        self.wait_for(timeout)
    }
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner().event_fd()
    }
    fn counts(&self) -> FlashCounts {
        self.inner().counts()
    }
    fn now(&self) -> SimTime {
        self.inner().now()
    }
}

impl<T: Store + ?Sized> Wrapper for Box<T> {
    type Inner = T;

    fn inner(&self) -> &T {
        self
    }

    fn inner_mut(&mut self) -> &mut T {
        self
    }

    fn thread_reader(&self) -> Option<Reader> {
        self.inner().reader()
    }
}
