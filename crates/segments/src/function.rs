//! Segments at the function level: the library allocates and erases blocks, the program cleans. The
//! program keeps as many blocks erased as its model says, so the library's own reserve
//! (`Flash_SetOPS` in the paper) stays 0.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_base::{Nanos, SimTime};
use prism_flash::function::{Channel, Function, Queue, Unit};
use prism_flash::{Address, Buffer, FlashError};

use crate::{
    DEPTH, Done, FlashCounts, Numbering, Reader, Shape, Store, Syncer, counts_of, now_of, pass_rest,
};

/// A store on blocks that the library allocates.
pub struct FunctionStore {
    function: Arc<Function>,
    queue: Queue<Arc<Function>>,
    numbering: Arc<Numbering>,
    identity: u64,
    shape: Shape,
    /// On a device with timing: blocks free and being erased at a time. There they change with
    /// time, and by [`Store::open`] and [`Store::free`]; on others also when a command ends.
    space: Option<(SimTime, [u32; 2])>,
}

impl FunctionStore {
    /// A store on this level of a share; `identity` is that of its device.
    #[must_use]
    pub fn new(function: Function, identity: u64) -> Self {
        let geometry = function.geometry();
        let function = Arc::new(function);
        let numbering = Arc::new(Numbering::new(&geometry));
        let shape = Shape {
            segments: numbering.segments(),
            segment_bytes: geometry.block_bytes() as u32,
            page_bytes: geometry.page_size,
            channels: geometry.channels.len() as u32,
            dynamic_reserve: true,
        };
        let queue = Queue::new(Arc::clone(&function), DEPTH);
        Self { function, queue, numbering, identity, shape, space: None }
    }

    fn space(&mut self) -> [u32; 2] {
        let now = self.function.share().is_timed().then(|| self.now());
        if let Some((_, space)) = self.space.filter(|&(at, _)| Some(at) == now) {
            return space;
        }
        let space = self.function.free_and_erasing().unwrap_or_default();
        self.space = now.map(|now| (now, space));
        space
    }

    fn page(&self, segment: u32, offset: u32) -> Address {
        self.numbering.address(segment).with_page(offset / self.shape.page_bytes)
    }
}

impl Store for FunctionStore {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        let allocated = self.function.allocated()?;
        Ok(allocated.iter().map(|(at, _)| self.numbering.segment(*at)).collect())
    }

    fn available(&mut self) -> u32 {
        self.space()[0]
    }

    fn erasing(&mut self) -> u32 {
        self.space()[1]
    }

    fn unused(&mut self) -> u32 {
        self.space().iter().sum()
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        self.space = None;
        match self.function.address_mapper(Channel::Any, Unit::Block) {
            Ok(new) => Ok(Some(self.numbering.segment(new.at))),
            Err(FlashError::ChannelFull { .. } | FlashError::OnlyReserve { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let at = self.page(segment, offset);
        self.queue.submit_write(at, data, tag).expect("the queue is long");
    }

    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let at = self.page(segment, offset);
        self.queue.submit_read(at, data, tag).expect("the queue is long");
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        self.space = None;
        self.function.trim(self.numbering.address(segment), Unit::Block)
    }

    fn sync(&mut self, tag: u64) {
        self.queue.submit_sync(tag).expect("the queue is long");
    }

    /// On a device with timing a sync takes time of the share's clock, which the store passes.
    fn syncer(&self) -> Option<Syncer> {
        if self.function.share().is_timed() {
            return None;
        }
        let (function, ticket) = (Arc::clone(&self.function), self.function.ticket());
        Some(Box::new(move || function.sync_to(ticket)))
    }

    /// None on a device with timing, where a read takes time of the share's clock.
    fn reader(&self) -> Option<Reader> {
        if self.function.share().is_timed() {
            return None;
        }
        let (function, numbering) = (Arc::clone(&self.function), Arc::clone(&self.numbering));
        let page_bytes = self.shape.page_bytes;
        Some(Arc::new(move |segment, offset, data: &mut [u8]| {
            function.read(numbering.address(segment).with_page(offset / page_bytes), data)
        }))
    }

    fn syncs_writes_in_flight(&self) -> bool {
        true
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.function.share().device().buffer(len)
    }

    fn poll(&mut self) -> Option<Done> {
        let done = self.queue.poll()?;
        Some(Done { tag: done.tag, end: done.end, result: done.result, data: done.data })
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        let begun = self.now();
        let any = match self.queue.is_empty() {
            true => self.function.wait_for_erase(timeout).unwrap_or(false),
            false => self.queue.wait(timeout),
        };
        any || pass_rest(&self.function.share(), begun, timeout)
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.event_fd()
    }

    fn counts(&self) -> FlashCounts {
        counts_of(&self.function.share())
    }

    fn now(&self) -> SimTime {
        now_of(&self.function.share())
    }
}
