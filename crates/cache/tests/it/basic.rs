//! Setting, getting, removing; filling slabs, cleaning; restarts.

use std::collections::{BTreeMap, BTreeSet};

use prism_base::Rng;
use prism_cache::cache::state_bytes;
use prism_cache::items::{Items, Refusal};
use prism_cache::store::Store;
use prism_cache::{Cache, Memory};

use crate::common::{CONFIG, Level, NOW, get, new_cache, new_memory, set, store};

fn value(rng: &mut Rng, key: u64, version: u64) -> Vec<u8> {
    let len = rng.below(600) as usize;
    let mut value = format!("{key}:{version}:").into_bytes();
    value.resize(value.len() + len, version as u8);
    value
}

#[test]
fn items_are_found_until_they_expire_or_are_removed() {
    let mut cache = new_cache(Level::Function, 4);
    set(&mut cache, b"a", b"one", 0);
    set(&mut cache, b"b", b"two", NOW + 10);
    set(&mut cache, b"a", b"three", 0);
    assert_eq!(cache.len(), 2);
    assert_eq!(get(&mut cache, b"a", NOW).unwrap().0, b"three");
    assert_eq!(get(&mut cache, b"b", NOW + 9).unwrap().0, b"two");
    assert_eq!(get(&mut cache, b"b", NOW + 10), None);
    assert_eq!(get(&mut cache, b"c", NOW), None);
    assert_eq!(cache.remove(b"a"), Ok(true));
    assert_eq!(cache.remove(b"a"), Ok(false));
    assert_eq!((get(&mut cache, b"a", NOW), cache.len()), (None, 0));
}

#[test]
fn an_item_may_fill_a_slab() {
    let mut cache = new_cache(Level::Function, 4);
    let longest = cache.longest();
    let long = vec![3; longest - 1];
    set(&mut cache, b"x", &long, 0);
    set(&mut cache, b"y", &long, 0);
    assert_eq!(get(&mut cache, b"x", NOW).unwrap().0, long);
    let meta = prism_cache::items::Meta::default();
    let value: [&[u8]; 2] = [&long, b"1"];
    let item = prism_cache::items::NewItem { key: b"z", value, flags: 0, version: 1, meta };
    assert_eq!(cache.insert(item, NOW), Err(Refusal::TooLarge));
}

/// A cache is filled several times over. Every value found is the last one set, and of the keys
/// used most nearly all are found.
#[test]
fn a_full_cache_returns_current_values() {
    Level::ALL.into_iter().for_each(fill);
}

fn fill(level: Level) {
    let mut cache = new_cache(level, 6);
    let mut rng = Rng::stream(1, "cache");
    let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let (mut hot, mut hits, mut flash) = (0, 0, 0);
    for step in 0..60_000_u64 {
        let is_hot = rng.below(2) == 0;
        let key = if is_hot { rng.below(500) } else { 500 + rng.below(40_000) };
        let name = format!("key-{key}").into_bytes();
        match rng.below(10) {
            0 => {
                assert!(cache.remove(&name).is_ok());
                model.remove(&key);
            }
            1..=5 => {
                let value = value(&mut rng, key, step);
                set(&mut cache, &name, &value, 0);
                model.insert(key, value);
            }
            _ => {
                let found = get(&mut cache, &name, NOW);
                if let Some((value, _, from_flash)) = &found {
                    assert_eq!(Some(value), model.get(&key), "step {step}, key {key}");
                    flash += u64::from(*from_flash);
                }
                if is_hot && model.contains_key(&key) {
                    hot += 1;
                    hits += u64::from(found.is_some());
                }
            }
        }
        if step % 1000 == 0 {
            cache.assert_consistent();
        }
    }
    let counts = cache.counts();
    assert!(counts.slabs_cleaned > 100 && counts.copied > 100, "{level:?}: {counts:?}");
    assert!(flash > 1000, "{flash} from flash");
    assert!(hits * 100 > hot * 85, "{level:?}: {hits} of {hot} hot items");
}

#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Shared {
    fn copy(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

/// Memory whose content a test can take when the process "dies".
struct Kept {
    bytes: Vec<u8>,
    last: Shared,
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
    fn synced(&self) -> u64 {
        0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        *self.last.0.lock().unwrap() = std::mem::take(&mut self.bytes);
    }
}

/// The process dies without a word, between any two calls: nothing acknowledged is lost that was
/// not cleaned away, and nothing old comes back.
#[test]
fn after_a_crash_of_the_process_the_content_is_there() {
    Level::ALL.into_iter().for_each(crash);
}

fn crash(level: Level) {
    let memory = new_memory(prism_flash::Cache::Volatile);
    let (state, buffers) = (Shared::default(), Shared::default());
    let mut rng = Rng::stream(2, "crash");
    let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let (mut before, mut without_cleaning) = (BTreeSet::new(), 0);
    for round in 0..40_u64 {
        let store = store(level, memory.clone(), round == 0);
        let shape = store.shape();
        if round == 0 {
            *state.0.lock().unwrap() = vec![0; state_bytes(&shape) as usize];
            *buffers.0.lock().unwrap() = vec![0; 5 * shape.slab_bytes as usize];
        }
        let keep = |last: &Shared| Box::new(Kept { bytes: last.copy(), last: last.clone() });
        let mut cache = Cache::open(store, keep(&state), keep(&buffers), CONFIG, NOW).unwrap();
        cache.assert_consistent();
        let mut lost = 0;
        for key in 0..3000 {
            let name = format!("key-{key}").into_bytes();
            let found = get(&mut cache, &name, NOW);
            lost += u64::from(found.is_none() && before.contains(&key));
            if let Some((value, ..)) = found {
                assert_eq!(Some(&value), model.get(&key), "{level:?}, round {round}, key {key}");
            }
        }
        let dropped = cache.counts().dropped;
        assert!(lost <= dropped, "{level:?}: {lost} items are lost, cleaning dropped {dropped}");
        without_cleaning += u64::from(dropped == 0);
        for step in 0..rng.below(4000) {
            let key = rng.below(3000);
            let name = format!("key-{key}").into_bytes();
            if rng.below(8) == 0 {
                cache.remove(&name).unwrap();
                model.remove(&key);
            } else {
                let value = value(&mut rng, key, round << 32 | step);
                set(&mut cache, &name, &value, 0);
                model.insert(key, value);
            }
        }
        let mut has = |key: &u64| cache.peek(format!("key-{key}").as_bytes(), NOW).is_some();
        before = (0..3000).filter(&mut has).collect();
        assert!(before.len() > 500 || round < 3, "{} items", before.len());
        // Forgets what is in memory, and what the device did not sync.
        drop(cache);
        memory.restart(&mut Rng::stream(round, "restart"));
    }
    assert!(without_cleaning > 0, "{without_cleaning}");
}
