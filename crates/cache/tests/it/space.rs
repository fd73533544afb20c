//! What stores report about free slabs.

use prism_segments::Store;

use crate::common::{Level, new_memory, store};

/// On a device without timing a block that is being read is erased when the read ends, which
/// neither opens nor frees a slab: a cache that waits for space must see it.
#[test]
fn a_slab_that_was_freed_during_a_read_becomes_available() {
    for level in [Level::Raw, Level::Function, Level::Ideal] {
        let mut store = store(level, new_memory(prism_flash::Cache::None), true);
        let shape = store.shape();
        for slab in store.used().unwrap() {
            store.free(slab).unwrap();
        }
        while store.erasing() > 0 && store.wait(None) {
            assert!(store.poll().is_none(), "{level:?}: only erases are in flight");
        }
        let slab = store.open().unwrap().expect("a new device has space");
        while store.open().unwrap().is_some() {}
        let data = store.buffer(shape.segment_bytes as usize);
        store.write(slab, 0, data, 1);
        finish(&mut *store, 1);
        let data = store.buffer(shape.page_bytes as usize);
        store.read(slab, 0, data, 2);
        store.free(slab).unwrap();
        let begun = store.available() + store.erasing();
        assert_eq!(begun, 1, "{level:?}: a slab is free, or will be");
        finish(&mut *store, 2);
        for _ in 0..100 {
            if store.available() == 1 {
                break;
            }
            store.wait(None);
            store.poll();
        }
        assert_eq!((store.available(), store.erasing()), (1, 0), "{level:?}");
        assert_eq!(store.open(), Ok(Some(slab)), "{level:?}");
    }
}

fn finish(store: &mut dyn Store, tag: u64) {
    loop {
        match store.poll() {
            Some(done) => return assert_eq!((done.tag, done.result), (tag, Ok(())), "a command"),
            None => assert!(store.wait(None), "a command is in flight"),
        }
    }
}
