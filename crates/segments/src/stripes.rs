//! Segments over all channels at the function level: one block of each channel, whose pages take
//! turns, so that a single writer uses all of them. The segments of [`crate::FunctionStore`] are
//! blocks of one channel each.

use std::collections::VecDeque;
use std::sync::Arc;

use prism_base::{Nanos, SimTime, Slab as Places};
use prism_flash::function::{Channel, Function, Queue, Unit};
use prism_flash::{Address, Buffer, FlashError};

use crate::{DEPTH, Done, FlashCounts, Shape, Store, counts_of, now_of, pass_rest};

/// A read or write, of which each channel does a part.
#[derive(Debug)]
struct Transfer {
    tag: u64,
    parts_left: u32,
    is_read: bool,
    data: Buffer,
    result: Result<(), FlashError>,
}

/// What a command of the queue is.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Pages of the transfer at this place, from this one on, each as many pages after the last one
    /// as there are channels.
    Transfer(u32, usize),
    /// The tag of a sync.
    Sync(u64),
}

/// A store on a share that is new.
pub struct StripeStore {
    function: Arc<Function>,
    queue: Queue<Arc<Function>>,
    shape: Shape,
    /// The blocks of each segment that is open, one for each channel.
    blocks: Vec<Vec<Address>>,
    free: VecDeque<u32>,
    parts: Places<Option<Part>>,
    transfers: Places<Option<Transfer>>,
}

impl StripeStore {
    /// A store of this many segments; the share has a block of each channel for each of them, and
    /// some more.
    #[must_use]
    pub fn new(function: Function, segments: u32) -> Self {
        let geometry = function.geometry();
        let channels = geometry.channels.len() as u32;
        let shape = Shape {
            segments,
            segment_bytes: geometry.block_bytes() as u32 * channels,
            page_bytes: geometry.page_size,
            channels,
            dynamic_reserve: true,
        };
        let function = Arc::new(function);
        let queue = Queue::new(Arc::clone(&function), DEPTH);
        let blocks = vec![Vec::new(); segments as usize];
        let (parts, transfers) = (Places::new(), Places::new());
        Self { function, queue, shape, blocks, free: (0..segments).collect(), parts, transfers }
    }

    fn transfer(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64, is_read: bool) {
        let (page, channels) = (self.shape.page_bytes as usize, self.shape.channels as usize);
        let (first, count) = (offset as usize / page, data.len() / page);
        let place = self.transfers.take();
        let parts = count.min(channels);
        for number in 0..parts {
            let block = self.blocks[segment as usize][(first + number) % channels];
            let at = block.with_page(((first + number) / channels) as u32);
            let pages = (number..count).step_by(channels);
            let mut part = self.buffer(pages.len() * page);
            if !is_read {
                for (to, from) in part.chunks_mut(page).zip(pages) {
                    to.copy_from_slice(&data[from * page..(from + 1) * page]);
                }
            }
            let id = self.parts.take();
            self.parts[id] = Some(Part::Transfer(place, number));
            let queued = match is_read {
                true => self.queue.submit_read(at, part, id.into()),
                false => self.queue.submit_write(at, part, id.into()),
            };
            queued.expect("the queue is long");
        }
        let (parts_left, result) = (parts as u32, Ok(()));
        self.transfers[place] = Some(Transfer { tag, parts_left, is_read, data, result });
    }
}

impl Store for StripeStore {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        1
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        Ok(Vec::new())
    }

    fn available(&mut self) -> u32 {
        self.free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        let Some(segment) = self.free.pop_front() else { return Ok(None) };
        let block =
            |channel| Ok(self.function.address_mapper(Channel::Number(channel), Unit::Block)?.at);
        let blocks = (0..self.shape.channels).map(block).collect::<Result<_, FlashError>>();
        self.blocks[segment as usize] = blocks?;
        Ok(Some(segment))
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.transfer(segment, offset, data, tag, false);
    }

    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.transfer(segment, offset, data, tag, true);
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        self.free.push_back(segment);
        let blocks = std::mem::take(&mut self.blocks[segment as usize]);
        blocks.into_iter().try_for_each(|block| self.function.trim(block, Unit::Block))
    }

    fn sync(&mut self, tag: u64) {
        let id = self.parts.take();
        self.parts[id] = Some(Part::Sync(tag));
        self.queue.submit_sync(id.into()).expect("the queue is long");
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.function.share().device().buffer(len)
    }

    fn poll(&mut self) -> Option<Done> {
        loop {
            let done = self.queue.poll()?;
            let id = done.tag as u32;
            let part = self.parts[id].take().expect("in flight");
            self.parts.give(id);
            let (place, first) = match part {
                Part::Sync(tag) => {
                    let (end, result, data) = (done.end, done.result, done.data);
                    return Some(Done { tag, end, result, data });
                }
                Part::Transfer(place, first) => (place, first),
            };
            let (page, channels) = (self.shape.page_bytes as usize, self.shape.channels as usize);
            let transfer = self.transfers[place].as_mut().expect("in flight");
            match done.result {
                Ok(()) if transfer.is_read => {
                    let pages = transfer.data.chunks_mut(page).skip(first).step_by(channels);
                    pages.zip(done.data.chunks(page)).for_each(|(to, from)| {
                        to.copy_from_slice(from);
                    });
                }
                Ok(()) => {}
                Err(error) => transfer.result = Err(error),
            }
            transfer.parts_left -= 1;
            if transfer.parts_left == 0 {
                let Transfer { tag, data, result, .. } =
                    self.transfers[place].take().expect("in flight");
                self.transfers.give(place);
                return Some(Done { tag, end: done.end, result, data });
            }
        }
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        let begun = self.now();
        let any = match self.queue.is_empty() {
            true => self.function.wait_for_erase(timeout).unwrap_or(false),
            false => self.queue.wait(timeout),
        };
        any || pass_rest(&self.function.share(), begun, timeout)
    }

    fn counts(&self) -> FlashCounts {
        counts_of(&self.function.share())
    }

    fn now(&self) -> SimTime {
        now_of(&self.function.share())
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;
    use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};

    use super::*;

    #[test]
    fn pages_of_a_segment_are_read_as_they_were_written() {
        let geometry = DeviceGeometry {
            channels: 3,
            luns_per_channel: 1,
            blocks_per_lun: 12,
            pages_per_block: 4,
            page_size: 512,
            oob_size: 64,
            max_open_blocks: None,
        };
        let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
        let device = Device::format(memory, Options::default()).unwrap();
        let all = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
        let share = device.allocate("test", Allocation::new(all, 0)).unwrap();
        let mut store = StripeStore::new(Function::open(share).unwrap(), 5);
        let shape = store.shape();
        assert_eq!((shape.segments, shape.segment_bytes), (5, 3 * 4 * 512));
        for round in 0..20_u8 {
            let segment = store.open().unwrap().unwrap();
            let content: Vec<u8> = (0..12 * 512).map(|at| (at / 512) as u8 + round).collect();
            // Seven pages and five, so that parts begin at any channel.
            for (begin, end) in [(0, 7 * 512), (7 * 512, 12 * 512)] {
                let mut data = store.buffer(end - begin);
                data.copy_from_slice(&content[begin..end]);
                store.write(segment, begin as u32, data, begin as u64);
            }
            for _ in 0..2 {
                assert_eq!(store.poll().unwrap().result, Ok(()));
            }
            let data = store.buffer(4 * 512);
            store.read(segment, 5 * 512, data, 9);
            let done = store.poll().unwrap();
            assert_eq!((done.tag, &done.data[..]), (9, &content[5 * 512..9 * 512]));
            store.free(segment).unwrap();
        }
        assert_eq!(store.counts().programs, 20 * 12);
        assert!(store.counts().erases >= 15 * 3);
    }
}
