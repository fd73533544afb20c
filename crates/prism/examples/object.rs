//! The object level: recordings that grow, are kept or deleted, and an index that is rewritten.
//!
//! The library knows which bytes belong together and which are deleted, so it never copies deleted
//! data, and no file system has to trim.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use prism::object::{Attributes, ObjectStore};
use prism::policy::Lifetime;
use prism::{
    Allocation, Bytes, Cache, Cause, Device, DeviceGeometry, FlashError, MemoryDevice, Options,
    Rng, SharedMemory,
};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 2,
    blocks_per_lun: 64,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

const CHUNK: usize = 64 << 10;

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let memory = SharedMemory::from(MemoryDevice::new(GEOMETRY, Cache::None)?);
    let device = Device::format(memory.clone(), Options::default())?;
    let capacity = Bytes(3 * device.lun_capacity().0);
    let share = device.allocate("recordings", Allocation::new(capacity, 25))?;
    let store = ObjectStore::open(share)?;

    // An index that is rewritten often and has priority, and a cold recording.
    let urgent = Attributes { priority: true, lifetime: Lifetime::Short, ..Attributes::default() };
    let index = store.create(urgent)?;
    let rests = Attributes { cold: true, ..Attributes::default() };
    let keep = store.create(rests)?;
    for part in 0..16 {
        store.append(keep, &[part; CHUNK])?;
    }
    store.set_attributes(keep, Attributes { read_only: true, ..rests })?;
    assert!(matches!(store.append(keep, &[1]), Err(FlashError::Invalid { .. })));

    // Recordings are written and deleted as a whole, many times the size of the device.
    let mut rng = Rng::stream(3, "object");
    let mut kept = Vec::new();
    for number in 0..60u8 {
        let recording = store.create(Attributes::default())?;
        for _ in 0..8 {
            store.append(recording, &[number; CHUNK])?;
        }
        store.write(index, u64::from(number), &[1])?;
        kept.push((number, recording));
        if kept.len() > 8 {
            let (_, old) = kept.swap_remove(rng.below(kept.len() as u64) as usize);
            store.delete(old)?;
        }
        store.flush()?;
    }
    let counts = store.share().counts()?;
    let copies = counts.programs[Cause::Gc];
    assert!(copies * 2 < counts.programs[Cause::Host], "{copies} pages were copied");

    // Flushed data survives a power failure; other data may survive in part.
    let lost = store.create(Attributes::default())?;
    store.append(lost, &[7; CHUNK])?;
    drop((store, device));
    memory.restart(&mut rng);
    let device = Device::open(memory, Options::default())?;
    let store = ObjectStore::open(device.attach("recordings")?)?;
    assert_eq!(store.list().len(), 2 + kept.len());
    for (number, recording) in kept {
        let mut data = vec![0; 8 * CHUNK];
        assert_eq!(store.read(recording, 0, &mut data)?, data.len());
        assert!(data.iter().all(|&byte| byte == number), "recording {number}");
    }
    let mut part = [0; 1];
    store.read(keep, 15 * CHUNK as u64, &mut part)?;
    assert_eq!((part, store.info(index)?.size), ([15], 60));
    assert!(matches!(store.info(lost), Err(FlashError::NotAllocated { .. })));
    let (size, free) = store.capacity();
    println!("{free} of {size} bytes are free; {copies} pages were copied");
    Ok(())
}
