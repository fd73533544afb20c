//! Flash at the function level: the library allocates blocks, erases them in the background, and
//! lets reads go before writes.

use std::sync::Arc;

use prism_flash::function::{Channel, Function, Queue, Unit};
use prism_flash::raw::{Address, Completion};
use prism_flash::{Result, Share};

use super::log::Flash;

/// Commands in flight: reads of the user and of victims, and a write for each LUN.
const DEPTH: usize = 4096;
const FULL: &str = "the queue is long";

pub(super) struct FunctionFlash {
    function: Arc<Function>,
    queue: Queue<Arc<Function>>,
}

impl FunctionFlash {
    pub(super) fn new(function: Function) -> Self {
        let function = Arc::new(function);
        Self { queue: Queue::new(Arc::clone(&function), DEPTH), function }
    }
}

impl Flash for FunctionFlash {
    fn share(&self) -> Share {
        self.function.share()
    }

    fn read(&mut self, at: Address, data: Vec<u8>, tag: u64) {
        self.queue.submit_read(at, data, tag).expect(FULL);
    }

    fn write(&mut self, at: Address, data: Vec<u8>, tag: u64) {
        self.queue.submit_write(at, data, tag).expect(FULL);
    }

    fn erase(&mut self, at: Address, tag: u64) {
        self.queue.submit_trim(at, Unit::Block, tag).expect(FULL);
    }

    fn erased(&mut self, _: Address) {
        // The trim is complete, and the erase is the library's.
    }

    fn allocate(&mut self, lun: Address) -> Result<Option<Address>> {
        if self.function.free(lun.channel)? == 0 {
            return Ok(None);
        }
        let new = self.function.address_mapper(Channel::Number(lun.channel), Unit::Block)?;
        Ok(Some(new.at))
    }

    fn complete(&mut self) -> Result<Option<Completion>> {
        let done = self.queue.complete();
        if done.is_none() {
            self.function.drain()?;
        }
        Ok(done)
    }

    fn sync(&self) -> Result<()> {
        self.function.sync()
    }
}
