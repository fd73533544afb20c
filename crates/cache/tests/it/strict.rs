//! Losses of power of a cache whose changes are durable before they are acknowledged: what was
//! acknowledged is found afterwards, at each level, with cleaning at work and while recovery itself
//! is cut.
//!
//! An item may be missing only if the cache had dropped it before, or if a change of it was not
//! acknowledged yet. A value that an acknowledged change has replaced or removed never comes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use prism_base::{Nanos, Rng};
use prism_cache::cache::{Durability, Eviction, state_bytes};
use prism_cache::items::Items;
use prism_cache::{Cache, Config};
use prism_flash::{MemoryDevice, SharedMemory};
use prism_segments::Store;
use prism_testkit::{all_seeds, seeds};

use crate::common::{Level, NOW, find, insert, store, try_store};
use crate::disk::{Disk, Mapped};
use crate::late::Late;
use crate::power::{SMALL, SMALL_CONFIG, is_power, value};

/// Cleaning copies much.
const CONFIG: Config = Config { eviction: Eviction::Greedy { most: 50 }, ..SMALL_CONFIG };

type Value = Option<Vec<u8>>;

/// What may be found of a key.
#[derive(Default)]
struct Key {
    /// The last value that was acknowledged and later ones, each with the number of the change.
    values: Vec<(Value, u64)>,
    /// The last value that was acknowledged must be found.
    required: bool,
}

struct World {
    memory: SharedMemory,
    level: Level,
    state: Arc<Mutex<Disk>>,
    buffers: Arc<Mutex<Disk>>,
    keys: BTreeMap<u64, Key>,
    /// The last value, in order to make each one different.
    last: u64,
    /// Items that had to be found, and copies that cleaning made.
    required: u64,
    copied: u64,
}

impl World {
    fn new(level: Level, rng: &mut Rng) -> Self {
        let memory: SharedMemory =
            MemoryDevice::new(SMALL, prism_flash::Cache::Volatile).unwrap().into();
        let shape = store(level, memory.clone(), true).shape();
        let mut disk =
            |len, name| Arc::new(Mutex::new(Disk::late(len, Rng::stream(rng.next_u64(), name))));
        let state = disk(state_bytes(&shape) as usize, "state");
        let buffers = disk(5 * shape.segment_bytes as usize, "buffers");
        // Their items, of 800 bytes on average, fill two thirds of the flash.
        let count = u64::from(shape.segments) * u64::from(shape.segment_bytes) / 1200;
        let keys = (0..count).map(|key| (key, Key { values: vec![(None, 0)], required: false }));
        let keys = keys.collect();
        Self { memory, level, state, buffers, keys, last: 0, required: 0, copied: 0 }
    }

    /// Opens the cache; `None` if power is lost meanwhile.
    fn open(&self, rng: &mut Rng) -> Option<Cache<Box<dyn Store>>> {
        let store = try_store(self.level, self.memory.clone())?;
        let store: Box<dyn Store> = Box::new(Late::new(store, Rng::stream(rng.next_u64(), "late")));
        let memory = (Mapped::new(&self.state), Mapped::new(&self.buffers));
        let cache = Cache::open(store, memory.0, memory.1, CONFIG, NOW).ok()?;
        Some(cache.with_durability(Durability::PowerLoss))
    }

    fn change(&mut self, key: u64, value: Value, number: u64) {
        self.keys.get_mut(&key).unwrap().values.push((value, number));
    }

    /// Sets, removes and reads until power is lost, or for some operations.
    fn work(&mut self, cache: &mut Cache<Box<dyn Store>>, rng: &mut Rng) -> bool {
        let mut now = 0;
        // Few keys have many versions, many fill the cache.
        let keys = if rng.below(3) == 0 { 5 } else { self.keys.len() as u64 };
        for _ in 0..20 + rng.below(400) {
            let key = rng.below(keys);
            let name = key.to_le_bytes();
            match rng.below(8) {
                0 => {
                    cache.remove(&name);
                    self.change(key, None, cache.changes());
                }
                // Items that were used are copied by cleaning.
                1 | 2 => drop(cache.lookup(&name, 1, NOW)),
                _ => {
                    self.last += 1;
                    let value = value(self.last, rng);
                    if !insert(cache, &name, &value, 0) {
                        return true;
                    }
                    self.change(key, Some(value), cache.changes());
                }
            }
            now += rng.below(400_000_000);
            cache.progress(Nanos(now));
            while cache.finished(NOW, &mut |_, _| {}) {}
            if cache.failure().is_some_and(is_power) {
                return true;
            }
        }
        false
    }

    /// Power is about to go: what is acknowledged now must be found.
    fn note(&mut self, cache: &mut Cache<Box<dyn Store>>) {
        let durable = cache.durable();
        self.copied += cache.counts().copied;
        for (key, info) in &mut self.keys {
            let last = info.values.iter().rposition(|(_, number)| *number <= durable);
            let changed = last.is_some_and(|last| info.values[last].1 > 0);
            info.values.drain(..last.unwrap_or(0));
            let is_item = info.values[0].0.is_some() && info.values.len() == 1;
            let there = cache.peek(&key.to_le_bytes(), NOW).is_some();
            info.required = is_item && there && (changed || info.required);
        }
    }

    fn check(&mut self, cache: &mut Cache<Box<dyn Store>>) {
        cache.assert_consistent();
        for (key, info) in &self.keys {
            let there = cache.peek(&key.to_le_bytes(), NOW).is_some();
            assert!(there || !info.required, "key {key}: an acknowledged value is lost");
            self.required += u64::from(info.required);
        }
        for (key, info) in &mut self.keys {
            let found = find(cache, &key.to_le_bytes());
            let place = info.values.iter().position(|(value, _)| *value == found);
            let dropped = found.is_none();
            assert!(place.is_some() || dropped, "key {key}: a value came back");
            assert_eq!(cache.counts().lost_reads, 0, "key {key}: a record is damaged");
            if let Some(place) = place {
                info.values = vec![(info.values[place].0.clone(), 0)];
            } else {
                // Cleaning has dropped it, and the next loss of power may undo that.
                info.values.iter_mut().for_each(|(_, number)| *number = 0);
            }
            info.required = !dropped;
        }
    }

    fn restart(&mut self, rng: &mut Rng) {
        self.memory.restart(rng);
        self.state.lock().unwrap().lose_power(rng);
        self.buffers.lock().unwrap().lose_power(rng);
    }
}

/// Cuts power this often. Returns how many items had to be found, and how many were copied.
fn cuts(level: Level, rounds: u64, seed: u64) -> (u64, u64) {
    let mut rng = Rng::stream(seed, "strict");
    let mut world = World::new(level, &mut rng);
    for _ in 0..rounds {
        // The recovery itself may be cut, at its end or at an operation.
        while rng.below(4) == 0 {
            match rng.below(3) {
                0 => world.memory.cut_power_after(rng.below(20)),
                _ => {
                    let flash = world.memory.clone();
                    world.state.lock().unwrap().cut_power_after(rng.below(4), flash);
                }
            }
            drop(world.open(&mut rng));
            world.restart(&mut rng);
        }
        let mut cache = world.open(&mut rng).expect("power is on");
        world.check(&mut cache);
        world.memory.cut_power_after(rng.below(150));
        world.work(&mut cache, &mut rng);
        world.note(&mut cache);
        drop(cache);
        world.restart(&mut rng);
    }
    (world.required, world.copied)
}

/// Losses of power for each seed; the level changes with the seed.
const ROUNDS: u64 = 300;

#[test]
fn random_what_is_acknowledged_survives_a_loss_of_power() {
    let (mut total, mut copies) = (0, 0);
    for seed in seeds(0..25) {
        let level = Level::ALL[seed as usize % 5];
        let (required, copied) = cuts(level, ROUNDS, seed);
        assert!(required > 4 * ROUNDS, "{level:?}: only {required} items had to be found");
        total += ROUNDS;
        copies += copied;
    }
    assert!(!all_seeds() || copies > 10_000, "only {copies} copies");
    assert!(!all_seeds() || total >= 7_000, "{total} losses of power");
}

/// Cases that fuzzing found: power is lost while slabs are erased, and before any is written. The
/// cache has to fail then, not to refuse items as busy for ever; in the second case one slab is
/// left.
#[test]
fn a_device_that_fails_in_erases_fails_the_cache() {
    cuts(Level::Raw, ROUNDS, 713_634_985);
    cuts(Level::Function, ROUNDS, 820_086_596);
}

/// Cases that fuzzing found: an item was dropped for want of space in the index, or because the
/// table of a slab to be cleaned could not be read; its removal was acknowledged at once, as there
/// was no such item; and it came back after a loss of power.
#[test]
fn a_removal_of_what_was_dropped_is_acknowledged_when_that_is_durable() {
    cuts(Level::Policy, ROUNDS, 1_396_096_372);
    for seed in [3_031_546_522, 3_578_919_121, 2_146_826_233] {
        cuts(Level::ALL[seed as usize % 5], ROUNDS, seed);
    }
}
