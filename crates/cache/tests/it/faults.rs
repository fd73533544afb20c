//! Blocks that fail one after the other, and a clock that jumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prism_base::{Nanos, Rng};
use prism_cache::Cache;
use prism_cache::items::Items;
use prism_cache::protocol::{Session, Settings, Shared};
use prism_flash::{Device, FlashError, MediumError, Options};
use prism_segments::{Done, Store, Wrapper};
use prism_testkit::seeds;

use crate::commands::ask;
use crate::common::{
    CONFIG, Level, NOW, Outliving, get, insert, new_cache, new_memory, set, store,
};

/// Sets an item; false if the cache takes no more.
fn try_set<S: Store>(cache: &mut Cache<S>, key: &[u8], value: &[u8]) -> bool {
    let done = insert(cache, key, value, 0);
    if done {
        cache.progress(Nanos(0));
    }
    done
}

/// The library replaces blocks that fail. When no spare is left the cache takes no more items. It
/// never returns a value that was replaced or removed, also not after a restart.
#[test]
fn random_blocks_fail() {
    let (mut replaced, mut worn_out) = (0, 0);
    for seed in seeds(0..12) {
        let mut rng = Rng::stream(seed, "failing blocks");
        for level in [Level::Raw, Level::Function, Level::Policy, Level::Original] {
            let memory = new_memory(prism_flash::Cache::None);
            let mut cache = Outliving::default().open(store(level, memory.clone(), true), CONFIG);
            memory.fail_at_random(if seed % 2 == 0 { 0.002 } else { 0.02 }, seed);
            let mut model = vec![None; 1000];
            for step in 0..12_000_u32 {
                let key = rng.below(1000);
                let name = key.to_le_bytes();
                match rng.below(8) {
                    0 => {
                        cache.remove(&name);
                        model[key as usize] = None;
                    }
                    1..=4 => {
                        let value = [&step.to_le_bytes()[..], &[step as u8; 700]].concat();
                        if !try_set(&mut cache, &name, &value) {
                            worn_out += 1;
                            break;
                        }
                        model[key as usize] = Some(value);
                    }
                    _ => {
                        let found = get(&mut cache, &name, NOW).map(|(value, ..)| value);
                        assert!(found.is_none() || found == model[key as usize], "{level:?}");
                    }
                }
            }
            for (key, value) in (0_u64..).zip(&model) {
                let found = get(&mut cache, &key.to_le_bytes(), NOW).map(|(value, ..)| value);
                assert!(found.is_none() || found == *value, "{level:?}, seed {seed}, key {key}");
            }
            cache.assert_consistent();
            drop(cache);
            // A device without spare blocks may not open.
            replaced += Device::open(memory, Options::default())
                .map_or(0, |device| device.bad_blocks().len());
        }
    }
    if prism_testkit::all_seeds() {
        assert!(replaced > 100 && worn_out > 0, "{replaced} replaced, {worn_out} worn out");
    }
}

/// A store whose commands fail from some time on, as on a full disk.
struct Full {
    store: Box<dyn Store>,
    is_full: Arc<AtomicBool>,
}

impl Wrapper for Full {
    type Inner = Box<dyn Store>;

    fn inner(&self) -> &Self::Inner {
        &self.store
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.store
    }

    fn next_done(&mut self) -> Option<Done> {
        let mut done = self.store.poll()?;
        if self.is_full.load(Ordering::Relaxed) {
            let what = "no space left on device".to_owned();
            done.result = Err(FlashError::Medium(MediumError::Io { what }));
        }
        Some(done)
    }
}

/// A set that a failed device refuses leaves no older value, also not after a restart: the client
/// meant to replace it.
#[test]
fn a_refused_set_removes_the_old_value() {
    let memory = new_memory(prism_flash::Cache::None);
    let is_full = Arc::new(AtomicBool::new(false));
    let outliving = Outliving::default();
    let open = || {
        let store = store(Level::Ideal, memory.clone(), false);
        outliving.open(Box::new(Full { store, is_full: Arc::clone(&is_full) }), CONFIG)
    };
    let mut shared = Shared::new(Settings::default(), NOW);
    let mut session = Session::new(1);
    let mut cache = open();
    let keys = "abcdefghijkl".chars().map(String::from);
    for key in keys.clone() {
        let line = format!("ms {key} 1 E7\r\n1\r\n");
        assert_eq!(ask(&mut session, &line, usize::MAX, &mut cache, &mut shared), "HD\r\n");
    }
    is_full.store(true, Ordering::Relaxed);
    // Smaller and smaller ones: an open slab takes what fits into it.
    for len in [700, 16, 0] {
        let value = vec![0; len];
        assert!((0..u16::MAX).any(|key| !try_set(&mut cache, &key.to_le_bytes(), &value)));
    }
    let no_memory = "SERVER_ERROR out of memory storing object\r\n";
    let new = "3\r\nnew\r\n";
    for (command, answer) in [
        (format!("set a 0 0 {new}"), no_memory),
        ("set b 0 0 3 noreply\r\nnew\r\n".to_owned(), ""),
        (format!("append c 0 0 {new}"), no_memory),
        (format!("prepend d 0 0 {new}"), no_memory),
        (format!("replace e 0 0 {new}"), no_memory),
        ("cas f 0 0 3 7\r\nnew\r\n".to_owned(), no_memory),
        (format!("ms g {new}"), no_memory),
        ("ms h 3 q MR\r\nnew\r\n".to_owned(), no_memory),
        ("ms i 3 MA\r\nnew\r\n".to_owned(), no_memory),
        ("incr j 1\r\n".to_owned(), "SERVER_ERROR out of memory\r\n"),
        // These replace nothing.
        (format!("add k 0 0 {new}"), "NOT_STORED\r\n"),
        ("cas l 0 0 3 8\r\nnew\r\n".to_owned(), "EXISTS\r\n"),
    ] {
        let given = ask(&mut session, &command, usize::MAX, &mut cache, &mut shared);
        assert_eq!(given, answer, "{command:?}");
    }
    let mut check = |cache: &mut Cache<_>| {
        for key in keys.clone() {
            let line = format!("get {key}\r\n");
            let given = ask(&mut session, &line, usize::MAX, cache, &mut shared);
            let is_left = ["k", "l"].contains(&&*key);
            assert_eq!(given.contains("VALUE"), is_left, "{key}: {given}");
        }
        cache.assert_consistent();
    };
    check(&mut cache);
    drop(cache);
    is_full.store(false, Ordering::Relaxed);
    check(&mut open());
}

/// A time before that of the start, or long after it, loses nothing that does not expire.
#[test]
fn a_clock_may_jump() {
    for level in Level::ALL {
        let mut cache = new_cache(level, 5);
        let value = vec![1; 700];
        let times = [NOW, 0, u32::MAX, NOW - 100_000, NOW + 100_000, 1, NOW];
        for (number, time) in (0_u32..).zip(times) {
            for key in 0..200_u32 {
                set(&mut cache, &[key, number].map(u32::to_le_bytes).concat(), &value, 0);
            }
            let mut found = 0;
            for key in 0..200_u32 {
                let name = [key, number].map(u32::to_le_bytes).concat();
                found += u32::from(get(&mut cache, &name, time).is_some());
            }
            assert_eq!(found, 200, "{level:?} at {time}");
            cache.progress(Nanos(if number % 2 == 0 { u64::MAX / 2 } else { 0 }));
            cache.assert_consistent();
        }
        set(&mut cache, b"expires", &value, NOW);
        assert!(get(&mut cache, b"expires", NOW - 1).is_some(), "{level:?}");
        assert!(get(&mut cache, b"expires", NOW).is_none(), "{level:?}");
        assert!(get(&mut cache, b"expires", 0).is_none(), "{level:?}: it was forgotten");
    }
}
