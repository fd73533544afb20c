//! What it takes to open a cache that has data.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prism_cache::Config;
use prism_cache::items::Items;
use prism_flash::{DeviceGeometry, MemoryDevice, SharedMemory};
use prism_segments::{Store, Wrapper};

use crate::common::{CONFIG, GEOMETRY, Level, Outliving, set, store};

/// A store that counts the bytes of memory that it is asked for.
struct Counted {
    store: Box<dyn Store>,
    bytes: Arc<AtomicUsize>,
}

impl Wrapper for Counted {
    type Inner = Box<dyn Store>;

    fn inner(&self) -> &Self::Inner {
        &self.store
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.store
    }

    fn on_buffer(&self, len: usize) {
        self.bytes.fetch_add(len, Ordering::Relaxed);
    }
}

/// Reads of one page each come first. Their buffers are too short for tables, which is no reason to
/// take new memory for each table.
#[test]
fn memory_of_reads_is_used_again_for_the_tables_of_many_slabs() {
    let geometry = DeviceGeometry { blocks_per_lun: 64, ..GEOMETRY };
    let memory: SharedMemory =
        MemoryDevice::new(geometry, prism_flash::Cache::None).unwrap().into();
    let config = Config { index_bytes: 8 << 20, ..CONFIG };
    let bytes = Arc::new(AtomicUsize::new(0));
    let outliving = Outliving::default();
    let open = || {
        let store = store(Level::Ideal, memory.clone(), true);
        outliving.open(Box::new(Counted { store, bytes: Arc::clone(&bytes) }), config)
    };
    let mut cache = open();
    for key in 0..200_000_u32 {
        set(&mut cache, &key.to_le_bytes(), b"small", 0);
    }
    let before = cache.len();
    assert_eq!((before, cache.counts().slabs_cleaned), (200_000, 0));
    let slabs = cache.counts().slabs_filled as usize;
    cache.close().unwrap();
    drop(cache);
    bytes.store(0, Ordering::Relaxed);
    assert_eq!(open().len(), before);
    // 1,024 items of 48 bytes and their table of 16 bytes each fill a slab.
    let of_tables = slabs * 4 * 4096;
    let taken = bytes.load(Ordering::Relaxed);
    assert!(slabs > 190 && taken < of_tables / 4 * 3, "{taken} bytes for {slabs} slabs");
}
