//! A cache in a program of one's own: items on a device in memory, and reads that are queued.
//!
//! `cargo run -p prism-cache --example embedded`

use prism_base::{Bytes, Nanos};
use prism_cache::cache::{Eviction, state_bytes};
use prism_cache::items::{Items, Lookup, Meta, NewItem, Refusal};
use prism_cache::{Cache, Config};
use prism_flash::raw::Raw;
use prism_flash::{Allocation, Device, DeviceGeometry, MemoryDevice, Options};
use prism_segments::{RawStore, Store};

/// Seconds since 1970, which the program knows better than the cache.
const NOW: u32 = 1_800_000_000;

/// Opens a cache, inserts, reads from flash and removes.
///
/// # Errors
/// Those of the device.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `prism_flashfile::FlashFile` in place of `MemoryDevice` keeps the items in a file.
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 16,
        pages_per_block: 16,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, prism_flash::Cache::None)?;
    let device = Device::format(memory, Options::default())?;
    let share = device.allocate("cache", Allocation::new(Bytes(device.lun_capacity().0 * 3), 0))?;
    let store = RawStore::new(Raw::open(share)?, 1);
    let shape = store.shape();
    let config = Config {
        index_bytes: 1 << 20,
        eviction: Eviction::Integrated { most: 20 },
        buffers: 4,
        chunk: 16 << 10,
        seed: 1,
        payload: true,
    };
    // Mapped files in place of these two vectors outlive the process.
    let state = vec![0; state_bytes(&shape) as usize];
    let buffers = vec![0; usize::from(config.buffers) * shape.segment_bytes as usize];
    let mut cache = Cache::open(store, Box::new(state), Box::new(buffers), config, NOW)?;

    for number in 0..2000_u32 {
        let (key, value) = (number.to_le_bytes(), [number as u8; 500]);
        let (version, meta) = (cache.next_version(), Meta::default());
        let item = NewItem { key: &key, value: [&value, b""], flags: 0, version, meta };
        // All buffers may wait for flash: then so does the program.
        while let Err(refusal) = cache.insert(item, NOW) {
            assert_eq!(refusal, Refusal::Busy, "the device works, and the item is short");
            cache.wait(None);
        }
        // Takes what flash has completed, and begins what follows: writes, syncs, cleaning.
        cache.progress(Nanos(0));
    }

    // Old items are on flash: the lookup begins a read, whose completion has its tag.
    let tag = 7;
    assert!(matches!(cache.lookup(&900_u32.to_le_bytes(), tag, NOW), Lookup::Reading(_)));
    // A program with an event loop watches `event_fd`, which becomes readable when flash has
    // completed something, and then calls `progress` and `finished`. A device in memory has none.
    assert!(cache.event_fd().is_none());
    let mut found = None;
    while !cache.finished(NOW, &mut |done, item| {
        assert_eq!(done, tag);
        found = item.map(|item| item.value.to_vec());
    }) {
        cache.wait(None);
    }
    assert_eq!(found, Some(vec![900_u32 as u8; 500]));

    assert!(cache.remove(&900_u32.to_le_bytes()));
    assert_eq!(cache.lookup(&900_u32.to_le_bytes(), tag, NOW), Lookup::Miss);
    cache.close()?;
    assert_eq!(cache.len(), 1999);
    Ok(())
}
