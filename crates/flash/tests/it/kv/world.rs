//! A device that tests can reach while a store uses it, and the expected content of the store.

use std::collections::BTreeMap;

use prism_base::{Bytes, Rng};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, KvStore, MemoryDevice, Options,
    SharedMemory,
};

/// The expected content of a store.
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// A device, its store, and every call in order.
pub struct World {
    pub seed: u64,
    pub rng: Rng,
    pub handle: SharedMemory,
    pub store: Option<KvStore>,
    /// The durable content, and the calls since then.
    pub durable: Pairs,
    pub calls: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The content after these calls.
    pub expected: Pairs,
    pub keys: u64,
    pub value_max: u64,
}

impl World {
    /// A device of any geometry, with a share over a part of it or all.
    pub fn any(seed: u64, cache: Cache) -> Self {
        let mut rng = Rng::stream(seed, "kv.world");
        let mut pick = |of: &[u32]| of[rng.below(of.len() as u64) as usize];
        let mut geometry = DeviceGeometry {
            channels: pick(&[1, 2, 2, 4]),
            luns_per_channel: pick(&[1, 2]) + 1,
            blocks_per_lun: 4,
            pages_per_block: pick(&[2, 4, 8]),
            page_size: pick(&[512, 512, 1024, 4096]),
            oob_size: pick(&[0, 64]),
            max_open_blocks: [None, Some(4), Some(6), Some(14)][pick(&[0, 1, 2, 3]) as usize],
        };
        // LUNs of the share, in addition to the blocks that the device needs itself.
        let blocks = u64::from(pick(&[6, 9, 9, 25]));
        loop {
            let memory = MemoryDevice::new(geometry, cache).unwrap();
            let device = Device::format(memory, Options::default());
            let bytes = device.map_or(0, |device| device.lun_capacity().0);
            if bytes >= blocks * u64::from(geometry.pages_per_block * geometry.page_size) {
                break;
            }
            geometry.blocks_per_lun += 1;
        }
        let percent = pick(&[0, 10, 30]);
        Self::new(seed, geometry, cache, percent)
    }

    pub fn new(seed: u64, geometry: DeviceGeometry, cache: Cache, percent: u32) -> Self {
        let mut rng = Rng::stream(seed, "kv.calls");
        let handle = SharedMemory::from(MemoryDevice::new(geometry, cache).unwrap());
        let device = Device::format(handle.clone(), Options::default());
        let device = device.unwrap_or_else(|e| panic!("seed {seed}: {geometry:?}: {e}"));
        let luns = u64::from(geometry.luns()) * 100 / u64::from(100 + percent);
        let capacity = Bytes(device.lun_capacity().0 * luns.max(1));
        let open_blocks = geometry.max_open_blocks.map(|max| max - 2);
        let wanted = Allocation { open_blocks, ..Allocation::new(capacity, percent) };
        let share = device.allocate("pairs", wanted).unwrap();
        let store =
            KvStore::open(share).unwrap_or_else(|e| panic!("seed {seed}: {geometry:?}: {e}"));
        let keys = [5, 20, 60][rng.below(3) as usize];
        let block = u64::from(geometry.pages_per_block * geometry.page_size);
        let value_max = [30, 700, block][rng.below(3) as usize];
        Self {
            seed,
            rng,
            handle,
            store: Some(store),
            durable: Pairs::new(),
            calls: Vec::new(),
            expected: Pairs::new(),
            keys,
            value_max,
        }
    }

    pub fn store(&self) -> &KvStore {
        self.store.as_ref().unwrap()
    }

    /// A key of those in use.
    pub fn key(&mut self) -> Vec<u8> {
        let number = self.rng.below(self.keys);
        let mut key = format!("key {number}").into_bytes();
        if number % 7 == 3 {
            key.resize(self.store().key_max(), b'.');
        }
        key
    }

    pub fn value(&mut self) -> Vec<u8> {
        let short = if self.rng.chance(0.7) { self.value_max.min(100) } else { self.value_max };
        let mut value = vec![0; self.rng.below(short + 1) as usize];
        let mut mark = self.rng.next_u64();
        for bytes in value.chunks_mut(8) {
            bytes.copy_from_slice(&mark.to_le_bytes()[..bytes.len()]);
            mark = mark.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        value
    }

    /// Records a call that may take effect.
    fn note(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        apply(&mut self.expected, &key, value.as_deref());
        self.calls.push((key, value));
    }

    /// A random call; an error only if power fails during it.
    pub fn step(&mut self) -> Result<(), FlashError> {
        let key = self.key();
        match self.rng.below(20) {
            0 => {
                self.store().flush()?;
                self.durable = self.expected.clone();
                self.calls.clear();
            }
            1..5 => {
                let had = self.expected.contains_key(&key);
                let done = self.store().delete(&key);
                if had {
                    self.note(key, None);
                }
                assert_eq!(done?, had, "seed {}", self.seed);
            }
            5 => {
                let found = self.store().get(&key)?;
                assert_eq!(found.as_ref(), self.expected.get(&key), "seed {}", self.seed);
            }
            _ => {
                let value = self.value();
                match self.store().set(&key, &value) {
                    Ok(()) => self.note(key, Some(value)),
                    Err(FlashError::NoSpace { .. }) => {}
                    Err(error) => {
                        self.note(key, Some(value));
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Opens device and store again; an error only if power fails meanwhile.
    pub fn reopen(&mut self) -> Result<(), FlashError> {
        self.store = None;
        let device = Device::open(self.handle.clone(), Options::default())?;
        self.store = Some(KvStore::open(device.attach("pairs")?)?);
        Ok(())
    }

    pub fn dump(&self) -> Pairs {
        self.store().scan(.., usize::MAX).unwrap().into_iter().collect()
    }

    /// Checks that the store has the content after all calls or a prefix of them, with all durable
    /// ones.
    pub fn check_recovered(&mut self) {
        let found = self.dump();
        let mut state = std::mem::take(&mut self.durable);
        let mut calls = std::mem::take(&mut self.calls).into_iter();
        while state != found {
            let Some((key, value)) = calls.next() else {
                let (seed, keys) = (self.seed, found.len());
                panic!("seed {seed}: the store holds no prefix of the calls: {keys} keys");
            };
            apply(&mut state, &key, value.as_deref());
        }
        self.expected = state.clone();
        self.durable = state;
    }
}

fn apply(pairs: &mut Pairs, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => pairs.insert(key.to_vec(), value.to_vec()),
        None => pairs.remove(key),
    };
}
