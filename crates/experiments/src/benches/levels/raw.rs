//! Flash at the raw level: the store allocates blocks and erases them.

use prism_flash::raw::{Address, Command, Completion, Queue, Raw};
use prism_flash::{Result, Share};

use super::log::Flash;

/// Commands in flight: reads of the user and of victims, a write for each LUN, and erases.
const DEPTH: usize = 4096;

pub(super) struct RawFlash<'a> {
    raw: &'a Raw,
    queue: Queue<&'a Raw>,
    erased: Vec<Address>,
}

impl<'a> RawFlash<'a> {
    pub(super) fn new(raw: &'a Raw) -> Self {
        Self { raw, queue: raw.queue(DEPTH), erased: raw.blocks().collect() }
    }

    fn submit(&mut self, command: Command, tag: u64) {
        self.queue.submit(command, tag).expect("the queue is long");
    }
}

impl Flash for RawFlash<'_> {
    fn share(&self) -> Share {
        self.raw.share().clone()
    }

    fn read(&mut self, at: Address, data: Vec<u8>, tag: u64) {
        self.submit(Command::read(at, data), tag);
    }

    fn write(&mut self, at: Address, data: Vec<u8>, tag: u64) {
        self.submit(Command::write(at, data), tag);
    }

    fn erase(&mut self, at: Address, tag: u64) {
        self.submit(Command::Erase { at }, tag);
    }

    fn erased(&mut self, at: Address) {
        self.erased.push(at);
    }

    fn allocate(&mut self, lun: Address) -> Result<Option<Address>> {
        let is_of = |at: &Address| (at.channel, at.lun) == (lun.channel, lun.lun);
        let place = self.erased.iter().position(is_of);
        Ok(place.map(|place| self.erased.swap_remove(place)))
    }

    fn complete(&mut self) -> Result<Option<Completion>> {
        Ok(self.queue.complete())
    }

    fn sync(&self) -> Result<()> {
        self.raw.sync()
    }
}
