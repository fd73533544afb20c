//! A store of which the bytes are counted that the engine reads and writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prism_flash::Buffer;
use prism_segments::{Store, Wrapper};

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

impl<S: Store> Wrapper for Counted<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.store
    }

    fn inner_mut(&mut self) -> &mut S {
        &mut self.store
    }

    fn on_write(&mut self, _segment: u32, _offset: u32, data: &Buffer) {
        self.amounts.written.fetch_add(data.len() as u64, Ordering::Relaxed);
    }

    fn on_read(&mut self, data: &Buffer) {
        self.amounts.read.fetch_add(data.len() as u64, Ordering::Relaxed);
    }
}
