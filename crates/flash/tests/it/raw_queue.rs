//! A queue over a medium that prefetches: commands complete in the order in which reads complete.

use std::any::Any;

use prism_base::Bytes;
use prism_flash::raw::{Address, Command, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, Medium, MediumError, MemoryDevice,
    Options, PageState,
};

/// How the prefetches of a medium complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// This many at a time, those started last first.
    LastFirst(usize),
    /// None before it is fetched, as if waiting failed.
    Never,
}

/// Memory that prefetches.
struct Ahead {
    memory: MemoryDevice,
    order: Order,
    on_their_way: Vec<(u32, u32)>,
    come: Vec<(u32, u32)>,
}

impl Medium for Ahead {
    fn prefetch(&mut self, block: u32, page: u32, _offset: u32, _len: u32) -> bool {
        self.on_their_way.push((block, page));
        true
    }

    fn arrivals(&mut self, known: usize) -> usize {
        let Order::LastFirst(at_a_time) = self.order else { return 0 };
        while self.come.len() <= known && !self.on_their_way.is_empty() {
            let left = self.on_their_way.len().saturating_sub(at_a_time);
            self.come.extend(self.on_their_way.drain(left..));
        }
        self.come.len()
    }

    fn has_arrived(&self, block: u32, page: u32) -> bool {
        !self.on_their_way.contains(&(block, page))
    }

    fn read(
        &mut self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        self.come.retain(|&read| read != (block, page));
        self.on_their_way.retain(|&read| read != (block, page));
        self.memory.read(block, page, offset, data, oob)
    }

    fn geometry(&self) -> &DeviceGeometry {
        self.memory.geometry()
    }

    fn write_pointer(&self, block: u32) -> u32 {
        self.memory.write_pointer(block)
    }

    fn is_open(&self, block: u32) -> bool {
        self.memory.is_open(block)
    }

    fn is_factory_bad(&self, block: u32) -> bool {
        self.memory.is_factory_bad(block)
    }

    fn has_volatile_cache(&self) -> bool {
        self.memory.has_volatile_cache()
    }

    fn program(
        &mut self,
        block: u32,
        page: u32,
        data: &[u8],
        oob: &[u8],
    ) -> Result<(), MediumError> {
        self.memory.program(block, page, data, oob)
    }

    fn erase(&mut self, block: u32) -> Result<(), MediumError> {
        self.memory.erase(block)
    }

    fn finish(&mut self, block: u32) -> Result<(), MediumError> {
        self.memory.finish(block)
    }

    fn sync(&mut self) -> Result<(), MediumError> {
        self.memory.sync()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The raw level over a whole device of which the first eight pages are written.
fn raw(order: Order) -> Raw {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 2,
        blocks_per_lun: 16,
        pages_per_block: 8,
        page_size: 512,
        oob_size: 0,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let medium = Ahead { memory, order, on_their_way: Vec::new(), come: Vec::new() };
    let device = Device::format(Box::new(medium), Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * 2);
    let raw = Raw::open(device.allocate("a", Allocation::new(capacity, 0)).unwrap()).unwrap();
    for page in 0..8 {
        raw.write_page(Address::default().with_page(page), &[page as u8; 512]).unwrap();
    }
    raw
}

/// The tags in the order of completion, of reads of pages 0 to 7 that were submitted in that
/// order.
fn order_of_completion(order: Order) -> Vec<u64> {
    let raw = raw(order);
    let mut queue = raw.queue(8);
    for page in 0..8 {
        let at = Address::default().with_page(page);
        queue.submit(Command::Read { at, data: vec![0xEE; 512] }, page.into()).unwrap();
    }
    let done = std::iter::from_fn(|| queue.complete());
    let tags = done.map(|done| {
        assert!(done.result.is_ok() && done.data == [done.tag as u8; 512], "{done:?}");
        done.tag
    });
    tags.collect()
}

#[test]
fn reads_complete_in_the_order_of_the_device() {
    assert_eq!(order_of_completion(Order::LastFirst(1)), [7, 6, 5, 4, 3, 2, 1, 0]);
    // Of those that are complete, the one that was submitted first.
    assert_eq!(order_of_completion(Order::LastFirst(3)), [5, 6, 7, 2, 3, 4, 0, 1]);
}

#[test]
fn reads_without_arrivals_complete_as_submitted() {
    assert_eq!(order_of_completion(Order::Never), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// A completed read of another queue does not end the wait for those of this one.
#[test]
fn queues_wait_for_their_own_reads() {
    let raw = raw(Order::LastFirst(2));
    let mut queues = [raw.queue(4), raw.queue(4)];
    for page in 0..8 {
        let at = Address::default().with_page(page);
        let read = Command::Read { at, data: vec![0; 512] };
        queues[page as usize / 4].submit(read, page.into()).unwrap();
    }
    let tags = queues.map(|mut queue| [(); 4].map(|()| queue.complete().unwrap().tag));
    assert_eq!(tags, [[2, 3, 0, 1], [4, 5, 6, 7]]);
}

/// A command that became invalid after its submission returns its error without a wait.
#[test]
fn reads_of_a_released_share_end() {
    let raw = raw(Order::Never);
    let mut queue = raw.queue(8);
    for tag in 0..4 {
        let read = Command::Read { at: Address::default(), data: vec![0; 512] };
        queue.submit(read, tag).unwrap();
    }
    raw.share().clone().release().unwrap();
    for tag in 0..4 {
        let done = queue.complete().unwrap();
        assert_eq!((done.tag, done.result), (tag, Err(FlashError::Released)));
    }
    assert!(queue.complete().is_none());
}
