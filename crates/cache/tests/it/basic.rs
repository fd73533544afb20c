//! Setting, getting, removing; filling slabs, cleaning; restarts.

use std::collections::{BTreeMap, BTreeSet};

use prism_base::Rng;
use prism_cache::index::{self, Entry, Index};
use prism_cache::items::{Items, Refusal};
use prism_cache::{Cache, Config};
use prism_segments::Store;

use crate::common::{
    CONFIG, Level, NOW, Outliving, get, new_cache, new_cache_with, new_memory, set, store,
};
use crate::late::Late;

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
    assert!(cache.remove(b"a"));
    assert!(!cache.remove(b"a"));
    assert_eq!((get(&mut cache, b"a", NOW), cache.len()), (None, 0));
}

/// The keys and values that are listed as being in memory.
fn listed<S: Store>(cache: &Cache<S>, now: u32) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    cache.buffered(now, &mut |item| {
        assert_eq!(found.insert(item.key.to_vec(), item.value.to_vec()), None, "listed once");
        true
    });
    found
}

#[test]
fn current_items_in_memory_are_listed() {
    let mut cache = new_cache(Level::Function, 4);
    set(&mut cache, b"a", b"one", 0);
    set(&mut cache, b"b", b"two", NOW + 10);
    set(&mut cache, b"a", b"three", 0);
    let keys = |found: BTreeMap<Vec<u8>, Vec<u8>>| found.into_keys().collect::<Vec<_>>().concat();
    assert_eq!(listed(&cache, NOW)[&b"a"[..]], b"three");
    assert_eq!(keys(listed(&cache, NOW)), b"ab");
    assert_eq!(keys(listed(&cache, NOW + 10)), b"a");
    cache.flush_all(NOW + 3, NOW);
    assert_eq!(keys(listed(&cache, NOW + 2)), b"ab");
    assert!(listed(&cache, NOW + 3).is_empty());

    // Some are on flash, and many were replaced.
    let mut cache = new_cache(Level::Function, 4);
    for round in 0..4 {
        for key in 0..4000_u32 {
            set(&mut cache, &key.to_le_bytes(), &[round; 500], 0);
        }
    }
    let found = listed(&cache, NOW);
    let (mut in_memory, mut on_flash) = (0, 0);
    for key in 0..4000_u32 {
        let key = key.to_le_bytes();
        match get(&mut cache, &key, NOW) {
            Some((value, _, false)) => {
                assert_eq!(found[&key[..]], value);
                in_memory += 1;
            }
            _ => on_flash += u32::from(!found.contains_key(&key[..])),
        }
    }
    assert!(in_memory > 0 && on_flash > 0 && in_memory == found.len(), "{in_memory}, {on_flash}");
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
                cache.remove(&name);
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

/// With a limit of writes some sets are not kept; then an older value must not be found either.
#[test]
fn sets_beyond_the_limit_of_writes_leave_nothing() {
    for level in Level::ALL {
        let cache = new_cache(level, 5);
        let mut cache = cache.with_write_limit(prism_base::Bytes(1 << 20));
        let mut kept = 0;
        for number in 0..12_000_u32 {
            // 4 MB a second of which 1 MiB may be programmed.
            cache.progress(prism_base::Nanos(u64::from(number) * 1_000_000));
            let key = (number % 3).to_le_bytes();
            set(&mut cache, &key, &[number as u8; 4000], 0);
            if let Some((value, ..)) = get(&mut cache, &key, NOW) {
                assert_eq!(value, [number as u8; 4000], "{level:?}");
                kept += 1;
            }
        }
        let counts = cache.counts();
        let flash = cache.store().counts();
        let programmed = (flash.programs + flash.copies) * 4096;
        assert!(programmed <= (12 + 4 + 1) << 20, "{level:?}: {programmed} bytes");
        assert!(programmed > 8 << 20, "{level:?}: {programmed} bytes");
        assert_eq!((counts.inserts, counts.not_admitted), (kept, 12_000 - kept), "{level:?}");
    }
}

/// More than fit, so that slabs are being cleaned when the process dies.
const KEYS: u64 = 8000;

/// The process dies without a word, between any two calls: nothing acknowledged is lost that was
/// not cleaned away, and nothing old comes back.
#[test]
fn after_a_crash_of_the_process_the_content_is_there() {
    Level::ALL.into_iter().for_each(crash);
}

/// The keys that the index has.
fn present(cache: &mut Cache<Box<dyn Store>>) -> BTreeSet<u64> {
    let mut has = |key: &u64| cache.peek(format!("key-{key}").as_bytes(), NOW).is_some();
    (0..KEYS).filter(&mut has).collect()
}

/// Nothing is lost, and nothing else is found.
fn check_found(
    cache: &mut Cache<Box<dyn Store>>,
    before: &BTreeSet<u64>,
    model: &BTreeMap<u64, Vec<u8>>,
    what: &str,
) {
    let now = present(cache);
    let lost = before.difference(&now).count();
    assert_eq!((lost, cache.counts().dropped), (0, 0), "{what}");
    for key in 0..KEYS {
        let name = format!("key-{key}").into_bytes();
        let found = get(cache, &name, NOW);
        if let Some((value, ..)) = found {
            assert_eq!(Some(&value), model.get(&key), "{what}, key {key}");
        }
    }
}

fn crash(level: Level) {
    let (memory, outliving) = (new_memory(prism_flash::Cache::Volatile), Outliving::default());
    let mut rng = Rng::stream(2, "crash");
    let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let (mut before, mut again) = (BTreeSet::new(), 0);
    for round in 0..40_u64 {
        let late = Rng::stream(round, "late");
        let late = Late::new(store(level, memory.clone(), round == 0), late);
        // A process with less memory writes what is in all buffers, and then uses fewer.
        let config = Config { buffers: 4 + rng.below(6) as u16, ..CONFIG };
        let mut cache = outliving.open(Box::new(late), config);
        cache.assert_consistent();
        assert_eq!(cache.counts().lost_slabs, 0, "{level:?}, round {round}: a false alarm");
        check_found(&mut cache, &before, &model, &format!("{level:?}, round {round}"));
        let mut step = round << 32;
        let mut change = |cache: &mut Cache<Box<dyn Store>>| {
            step += 1;
            let key = rng.below(KEYS);
            let name = format!("key-{key}").into_bytes();
            if rng.below(8) == 0 {
                cache.remove(&name);
                model.remove(&key);
            } else {
                let value = value(&mut rng, key, step);
                set(cache, &name, &value, 0);
                model.insert(key, value);
            }
        };
        (0..40 * (round % 41)).for_each(|_| change(&mut cache));
        // The end is when cleaning has just dropped items.
        let (earlier, dropped) = (present(&mut cache), cache.counts().dropped);
        for _ in 0..4000 {
            if cache.counts().dropped != dropped {
                break;
            }
            change(&mut cache);
        }
        // What cleaning dropped just now may still be on flash; it is set and removed once more.
        let now = present(&mut cache);
        let recent = earlier.difference(&now).filter(|key| model.contains_key(key)).take(10);
        for key in recent.copied().collect::<Vec<u64>>() {
            let name = format!("key-{key}").into_bytes();
            set(&mut cache, &name, b"new", 0);
            cache.remove(&name);
            model.remove(&key);
            again += 1;
        }
        before = present(&mut cache);
        assert!(before.len() > 500 || round < 3, "{} items", before.len());
        // Forgets what is in memory, and what the device did not sync.
        drop(cache);
        memory.restart(&mut Rng::stream(round, "restart"));
    }
    assert!(again > 100, "{level:?}: {again}");
}

/// Two keys that the index cannot distinguish, for this seed of hashes and the smallest index.
fn twins() -> [Vec<u8>; 2] {
    let mut by_tag: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for key in 0_u64.. {
        let hash = index::hash(&key.to_le_bytes(), CONFIG.seed);
        let others = by_tag.entry(hash >> 44).or_default();
        for other in others.iter() {
            let mut index = Index::new(0);
            let of_other = index::hash(&other.to_le_bytes(), CONFIG.seed);
            index.insert(of_other, &Entry { units: 1, ..Entry::default() }, 0);
            if index.find(hash, |_| true).is_some() {
                return [other.to_le_bytes().to_vec(), key.to_le_bytes().to_vec()];
            }
        }
        others.push(key);
    }
    unreachable!("there are twins among some thousand keys")
}

/// Of two keys with one hash the cache keeps one. Whatever is done to either, in memory or on
/// flash, a value that was replaced or removed is not returned.
#[test]
fn keys_with_one_hash_do_not_bring_old_values_back() {
    let twins = twins();
    let mut rng = Rng::stream(4, "twins");
    let mut found = 0;
    for round in 0..100_u64 {
        let mut cache = new_cache_with(Level::Function, Config { index_bytes: 0, ..CONFIG });
        let mut current = [None, None];
        for step in 0..30 {
            let which = rng.below(2) as usize;
            match rng.below(5) {
                0 => {
                    cache.remove(&twins[which]);
                    current[which] = None;
                }
                1 | 2 => {
                    let value = format!("{round} {step}").into_bytes();
                    set(&mut cache, &twins[which], &value, 0);
                    current[which] = Some(value);
                }
                // Fills slabs, so that what was set is on flash.
                3 => (0..40).for_each(|n| set(&mut cache, &[n], &vec![0; 9000], 0)),
                _ => {
                    let value = get(&mut cache, &twins[which], NOW).map(|(value, ..)| value);
                    found += u64::from(value.is_some());
                    assert!(value.is_none() || value == current[which], "round {round}");
                }
            }
        }
    }
    assert!(found > 100, "{found}");
}

/// A full cache whose items are not read keeps the newest ones, whatever their lengths, and also
/// those of a slab that was not full when the process ended.
#[test]
fn the_newest_items_stay() {
    for level in Level::ALL {
        let (memory, outliving) = (new_memory(prism_flash::Cache::None), Outliving::default());
        let mut rng = Rng::stream(7, "newest");
        let mut next = 0_u64;
        for round in 0..3 {
            let store = store(level, memory.clone(), round == 0);
            let shape = store.shape();
            let mut cache = outliving.open(store, Config { buffers: 6, ..CONFIG });
            // Items of 350 bytes on average with their headers.
            let items = u64::from(shape.segments) * u64::from(shape.segment_bytes) / 350;
            let fill = |cache: &mut Cache<_>, rng: &mut Rng, next: &mut u64, count: u64| {
                for _ in 0..count {
                    let value = value(rng, *next, 1);
                    set(cache, &next.to_le_bytes(), &value, 0);
                    *next += 1;
                }
            };
            let newest = next.saturating_sub(10)..next;
            fill(&mut cache, &mut rng, &mut next, items / 4);
            for key in newest {
                let found = get(&mut cache, &key.to_le_bytes(), NOW);
                assert!(found.is_some(), "{level:?}, round {round}: {key} of {next}");
            }
            fill(&mut cache, &mut rng, &mut next, items * 2 + 11);
            for key in next - items / 3..next {
                let found = get(&mut cache, &key.to_le_bytes(), NOW);
                assert!(found.is_some(), "{level:?}, round {round}: {key} of {next}");
            }
        }
    }
}
