//! A store whose completions come late and in any order, as those of a disk do. Devices in memory
//! complete every command at once, so that nothing would ever happen between two of them.

use prism_base::{Nanos, Rng, SimTime};
use prism_flash::{Buffer, FlashError};
use prism_segments::{Done, FlashCounts, Shape, Store};

pub struct Late {
    store: Box<dyn Store>,
    held: Vec<Done>,
    rng: Rng,
    /// A caller waits, so the next completion comes.
    waited: bool,
}

impl Late {
    pub fn new(store: Box<dyn Store>, rng: Rng) -> Self {
        Self { store, held: Vec::new(), rng, waited: false }
    }
}

impl Store for Late {
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
    fn write(&mut self, slab: u32, offset: u32, data: Buffer, tag: u64) {
        self.store.write(slab, offset, data, tag);
    }
    fn read(&mut self, slab: u32, offset: u32, data: Buffer, tag: u64) {
        self.store.read(slab, offset, data, tag);
    }
    fn free(&mut self, slab: u32) -> Result<(), FlashError> {
        self.store.free(slab)
    }
    fn sync(&mut self, tag: u64) {
        self.store.sync(tag);
    }
    fn buffer(&self, len: usize) -> Buffer {
        self.store.buffer(len)
    }

    fn poll(&mut self) -> Option<Done> {
        while let Some(done) = self.store.poll() {
            self.held.push(done);
        }
        let now = std::mem::take(&mut self.waited) || self.rng.below(8) == 0;
        if self.held.is_empty() || !now {
            return None;
        }
        let which = self.rng.below(self.held.len() as u64) as usize;
        Some(self.held.swap_remove(which))
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        self.waited = !self.held.is_empty() || self.store.wait(timeout);
        self.waited
    }

    fn counts(&self) -> FlashCounts {
        self.store.counts()
    }
    fn now(&self) -> SimTime {
        self.store.now()
    }
}
