//! Caches for tests.

use std::sync::{Arc, Mutex};

use prism_base::{Bytes, Nanos};
use prism_cache::cache::{Eviction, state_bytes};
use prism_cache::items::{Item, Items, Lookup, Meta, NewItem, Refusal};
use prism_cache::{Cache, Config, Memory};
use prism_flash::function::Function;
use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::raw::Raw;
use prism_flash::{Allocation, Device, DeviceGeometry, MemoryDevice, Options, SharedMemory};
use prism_segments::{FunctionStore, IdealStore, PolicyStore, RawStore, Store};

/// A time at which tests begin.
pub const NOW: u32 = 1_700_000_000;

pub const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 2,
    blocks_per_lun: 16,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

pub const CONFIG: Config = Config {
    index_bytes: 1 << 20,
    eviction: Eviction::Integrated { most: 20 },
    buffers: 5,
    seed: 5,
    chunk: 8192,
    payload: true,
};

/// A level of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Raw,
    Function,
    Policy,
    /// The policy level as a conventional drive.
    Original,
    /// The device itself.
    Ideal,
}

impl Level {
    pub const ALL: [Self; 5] =
        [Self::Raw, Self::Function, Self::Policy, Self::Original, Self::Ideal];
}

/// The store of a level on a device in memory.
pub fn store(level: Level, memory: SharedMemory, is_new: bool) -> Box<dyn Store> {
    if is_new && level != Level::Ideal {
        let device = Device::format(memory.clone(), Options::default()).unwrap();
        let capacity = Bytes(device.lun_capacity().0 * 3);
        drop(device.allocate("cache", Allocation::new(capacity, 0)).unwrap());
    }
    try_store(level, memory).expect("power is on")
}

/// The store of a level on a device that has it; `None` if the device fails.
pub fn try_store(level: Level, memory: SharedMemory) -> Option<Box<dyn Store>> {
    if level == Level::Ideal {
        return Some(Box::new(IdealStore::new(memory.into(), 1)));
    }
    let device = Device::open(memory, Options::default()).ok()?;
    let share = device.attach("cache").ok()?;
    let mapping = match level {
        Level::Raw => return Some(Box::new(RawStore::new(Raw::open(share).ok()?, 1))),
        Level::Function => {
            return Some(Box::new(FunctionStore::new(Function::open(share).ok()?, 1)));
        }
        Level::Policy => Mapping::Block,
        Level::Original => Mapping::Page,
        Level::Ideal => unreachable!("as above"),
    };
    let share_blocks = share.geometry().ok()?.blocks();
    let policy = Policy::open(share).ok()?;
    let bytes = u64::from(share_blocks * 3 / 8) * policy.block_bytes();
    if policy.ranges().is_empty() {
        policy.configure(0, bytes, RangeConfig::new(mapping, Cleaning::Greedy)).ok()?;
    }
    Some(Box::new(PolicyStore::new(policy, 0, bytes, 1)))
}

pub fn new_memory(cache: prism_flash::Cache) -> SharedMemory {
    MemoryDevice::new(GEOMETRY, cache).unwrap().into()
}

/// A new cache on memory that goes with it.
pub fn new_cache(level: Level, buffers: u16) -> Cache<Box<dyn Store>> {
    new_cache_with(level, Config { buffers, ..CONFIG })
}

/// As [`new_cache`], with these settings.
pub fn new_cache_with(level: Level, config: Config) -> Cache<Box<dyn Store>> {
    Outliving::default().open(store(level, new_memory(prism_flash::Cache::None), true), config)
}

/// Sets an item, and waits for flash as long as the cache is busy; false if the device has failed.
pub fn insert<S: Store>(cache: &mut Cache<S>, key: &[u8], value: &[u8], expires: u32) -> bool {
    let version = cache.next_version();
    let meta = Meta { expires, last_access: NOW, ..Meta::default() };
    let item = NewItem { key, value: [value, &[]], flags: 7, version, meta };
    loop {
        match cache.insert(item, NOW) {
            Ok(()) => return true,
            Err(Refusal::Busy) => assert!(cache.wait(None), "nothing to wait for: {cache:?}"),
            Err(Refusal::Failed) => return false,
            Err(refusal) => panic!("{refusal}: {cache:?}"),
        }
    }
}

/// As [`insert`], and begins what follows; the device works.
pub fn set<S: Store>(cache: &mut Cache<S>, key: &[u8], value: &[u8], expires: u32) {
    assert!(insert(cache, key, value, expires), "the device has failed: {cache:?}");
    cache.progress(Nanos(0));
}

/// The value of a key, with its version, and whether it came from flash.
pub fn get<S: Store>(cache: &mut Cache<S>, key: &[u8], now: u32) -> Option<(Vec<u8>, u64, bool)> {
    let copy = |item: &Item<'_>| {
        assert_eq!((item.key, item.flags), (key, 7));
        (item.value.to_vec(), item.version, item.from_flash)
    };
    match cache.lookup(key, 99, now) {
        Lookup::Miss => return None,
        Lookup::Found(item) => return Some(copy(&item)),
        Lookup::Reading(_) => {}
    }
    loop {
        let mut found = None;
        let mut take = |tag: u64, item: Option<Item<'_>>| {
            assert_eq!(tag, 99);
            found = Some(item.map(|item| copy(&item)));
        };
        cache.progress(Nanos(0));
        if cache.finished(now, &mut take) {
            return found.unwrap();
        }
        cache.wait(None);
    }
}

/// Waits for the value of a key, wherever it is.
pub fn find<S: Store>(cache: &mut Cache<S>, key: &[u8]) -> Option<Vec<u8>> {
    match cache.lookup(key, 1, NOW) {
        Lookup::Miss => return None,
        Lookup::Found(item) => return Some(item.value.to_vec()),
        Lookup::Reading(_) => {}
    }
    let mut found = None;
    while !cache.finished(NOW, &mut |_, item| found = item.map(|item| item.value.to_vec())) {
        cache.wait(None);
    }
    found
}

/// The state and the buffers of a cache, which outlive it as a mapped file does.
#[derive(Default)]
pub struct Outliving {
    state: SharedBytes,
    buffers: SharedBytes,
}

impl Outliving {
    /// Opens a cache that finds in them what the last one left.
    pub fn open(&self, store: Box<dyn Store>, config: Config) -> Cache<Box<dyn Store>> {
        let shape = store.shape();
        let state = self.state.kept(state_bytes(&shape) as usize);
        let bytes = usize::from(config.buffers) * shape.segment_bytes as usize;
        Cache::open(store, state, self.buffers.kept(bytes), config, NOW).unwrap()
    }
}

/// Bytes that outlive a cache.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    /// Memory that begins with these bytes, and zeros up to `len`, and leaves its own when it is
    /// dropped.
    fn kept(&self, len: usize) -> Box<Kept> {
        let mut bytes = self.0.lock().unwrap().clone();
        bytes.resize(len.max(bytes.len()), 0);
        Box::new(Kept { bytes, last: self.clone() })
    }
}

/// Memory whose content a test can take when the process "dies".
struct Kept {
    bytes: Vec<u8>,
    last: SharedBytes,
}

impl Memory for Kept {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
    fn begin_sync(&mut self) -> u64 {
        0
    }
    fn synced(&self) -> Option<u64> {
        Some(0)
    }
    fn wait_sync(&mut self, _number: u64) {}
}

impl Drop for Kept {
    fn drop(&mut self) {
        *self.last.0.lock().unwrap() = std::mem::take(&mut self.bytes);
    }
}
