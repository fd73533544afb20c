//! The function level: a cache of slabs of one block each, as in key-value caches.
//!
//! The library allocates, erases and counts wear. The cache may simply drop a slab, which the
//! library cannot know. So it never copies data.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::VecDeque;
use std::error::Error;

use prism::function::{Channel, Function, Unit};
use prism::raw::Address;
use prism::{
    Allocation, Bytes, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Nanos, Options,
    PageTimes, Timing,
};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 1,
    blocks_per_lun: 32,
    pages_per_block: 8,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: None,
};

const SLAB: usize = 8 * 4096;

const TIMING: Timing = Timing {
    t_read: PageTimes::uniform(Nanos(60_000)),
    t_program: PageTimes::uniform(Nanos(1_400_000)),
    t_erase: Nanos(5_000_000),
    t_command: Nanos(200),
    bus_bytes_per_second: Some(400_000_000),
};

/// Slabs, oldest first.
struct SlabCache {
    flash: Function,
    slabs: VecDeque<(u8, Address)>,
}

impl SlabCache {
    /// Stores a slab on the channel with the least work. Drops the oldest slab when the channel has
    /// no free block left, so that its erase is complete before the next allocation.
    fn put(&mut self, byte: u8) -> prism::Result<Address> {
        let new = loop {
            match self.flash.address_mapper(Channel::Any, Unit::Block) {
                Err(FlashError::ChannelFull { .. } | FlashError::OnlyReserve { .. })
                    if !self.slabs.is_empty() =>
                {
                    self.evict()?;
                }
                other => break other?,
            }
        };
        self.flash.write(new.at, &[byte; SLAB])?;
        self.slabs.push_back((byte, new.at));
        if new.free_left == 0 {
            self.evict()?;
        }
        Ok(new.at)
    }

    fn evict(&mut self) -> prism::Result<()> {
        let (_, at) = self.slabs.pop_front().expect("the caller has seen one");
        self.flash.trim(at, Unit::Block)
    }

    fn check(&self) -> prism::Result<()> {
        for &(byte, at) in &self.slabs {
            let mut slab = vec![0; SLAB];
            self.flash.read(at, &mut slab)?;
            assert!(slab == [byte; SLAB], "slab {byte}");
        }
        Ok(())
    }
}

/// A read that is queued after writes on the same LUN is executed before them.
fn reads_go_first(cache: &SlabCache) -> prism::Result<()> {
    let flash = &cache.flash;
    let mut queue = flash.queue(8);
    let (byte, old) = cache.slabs[0];
    let channel = Channel::Number(old.channel);
    for tag in 0..2 {
        let new = flash.address_mapper(channel, Unit::Block)?;
        queue.submit_write(new.at, vec![1; SLAB], tag).expect("the queue is not full");
    }
    queue.submit_read(old, vec![0; 4096], 9).expect("the queue is not full");
    let done: Vec<_> = std::iter::from_fn(|| queue.complete()).collect();
    assert_eq!(done.iter().map(|done| done.tag).collect::<Vec<_>>(), [9, 0, 1]);
    assert_eq!((done[0].data[0], &done[0].result), (byte, &Ok(())));
    Ok(())
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let memory = MemoryDevice::new(GEOMETRY, Cache::None)?;
    let device = Device::format(memory, Options { timing: Some(TIMING), wear: None })?;
    let capacity = Bytes(2 * device.lun_capacity().0);
    let share = device.allocate("cache", Allocation::new(capacity, 0))?;
    let mut cache = SlabCache { flash: Function::open(share)?, slabs: VecDeque::new() };

    for byte in 0..200 {
        cache.put(byte)?;
    }
    cache.check()?;

    // Blocks in use cannot become over-provisioning; the error has the number that is missing.
    let Err(FlashError::OverProvisioning { blocks, must_free }) = cache.flash.set_ops(25) else {
        panic!("the cache has filled the share");
    };
    for _ in 0..must_free {
        cache.evict()?;
    }
    assert_eq!(cache.flash.set_ops(25)?, blocks);

    // An application that writes in bursts can drop the over-provisioning before one.
    cache.flash.set_ops(0)?;
    reads_go_first(&cache)?;

    // One slab stays while the others are replaced. Levelling moves it to a worn block, and its
    // address stays.
    let rests = cache.put(77)?;
    cache.slabs.retain(|&(_, at)| at != rests);
    for round in 0..1000 {
        cache.put(round as u8)?;
    }
    let level = cache.flash.wear_level(2, 10)?;
    assert!(!level.pairs.is_empty() && level.max - level.min > 10, "{level:?}");
    let mut slab = vec![0; SLAB];
    cache.flash.read(rests, &mut slab)?;
    assert!(slab == [77; SLAB]);
    cache.check()?;
    println!("{} slabs; erases {} to {} a block", cache.slabs.len(), level.min, level.max);
    Ok(())
}
