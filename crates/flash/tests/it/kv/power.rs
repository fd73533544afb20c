//! Power failures at every operation: flushed calls survive, and a prefix of the rest.

use prism_flash::{Cache, FlashError, MediumError};
use prism_testkit::{all_seeds, seeds};

use super::world::World;

fn is_cut(error: &FlashError) -> bool {
    matches!(error, FlashError::Medium(MediumError::PowerLost))
}

/// Works until power fails after `operations` more of the device.
fn work_until_cut(world: &mut World, operations: u64) {
    world.handle.cut_power_after(operations);
    let seed = world.seed;
    // A store too full for any call is idle when power fails.
    for _ in 0..1000 {
        if world.handle.lost_power() {
            break;
        }
        if let Err(error) = world.step() {
            assert!(is_cut(&error), "seed {seed}: {error}");
        }
    }
}

/// Restores power; it may fail again while the store is opened, `again` times. Returns the number
/// of power failures.
fn recover(world: &mut World, again: u64) -> u64 {
    let mut cuts = 1;
    for left in (0..=again).rev() {
        let World { handle, rng, .. } = world;
        handle.restart(rng);
        if left > 0 {
            let operations = world.rng.below(6);
            world.handle.cut_power_after(operations);
        }
        match world.reopen() {
            Ok(()) => break,
            Err(error) => assert!(is_cut(&error) && left > 0, "seed {}: {error}", world.seed),
        }
        cuts += 1;
    }
    world.handle.cut_power_after(u64::MAX / 2);
    world.check_recovered();
    cuts
}

/// A store after random calls, perhaps full.
fn settled(seed: u64, cache: Cache) -> World {
    let mut world = World::any(seed, cache);
    if seed.is_multiple_of(2) {
        for number in 0u16.. {
            // Counting goes through all records; in a store of few each one matters.
            if number < 64 || number % 8 == 0 {
                let stats = world.store().stats();
                if stats.charged_bytes * 10 > stats.capacity_bytes * 8 {
                    break;
                }
            }
            let key = [&[255], &number.to_le_bytes()[..]].concat();
            world.store().set(&key, &[9; 200]).unwrap();
            world.expected.insert(key, vec![9; 200]);
        }
        world.store().flush().unwrap();
        world.durable = world.expected.clone();
    }
    for _ in 0..world.rng.below(400) {
        world.step().unwrap();
    }
    world
}

fn cuts(fixed: std::ops::Range<u64>, cache: Cache, each: u64) -> u64 {
    let mut count = 0;
    for seed in seeds(fixed) {
        let mut world = settled(seed, cache);
        for _ in 0..each {
            let far = [3, 10, 60][world.rng.below(3) as usize];
            let operations = world.rng.below(far);
            work_until_cut(&mut world, operations);
            let again = [0, 0, 2][world.rng.below(3) as usize];
            count += recover(&mut world, again);
        }
        // It still works: a value can be set, read and deleted.
        let key = world.expected.keys().next().cloned();
        if let Some(key) = key {
            assert_eq!(world.store().delete(&key), Ok(true), "seed {seed}");
            world.store().set(&key, b"x").unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            world.store().flush().unwrap();
            world.reopen().unwrap();
            assert_eq!(world.store().get(&key).unwrap().unwrap(), b"x", "seed {seed}");
        }
    }
    count
}

#[test]
fn random_cuts_of_flash_that_is_durable_at_once() {
    let cuts = cuts(1000..1040, Cache::None, 40);
    assert!(!all_seeds() || cuts > 1600, "{cuts} cuts");
}

#[test]
fn random_cuts_behind_a_volatile_cache() {
    let cuts = cuts(2000..2040, Cache::Volatile, 40);
    assert!(!all_seeds() || cuts > 1600, "{cuts} cuts");
}

/// From the same state, power fails in the first operation, the second, and so on.
#[test]
fn random_stores_cut_at_every_operation() {
    for seed in seeds(1..4) {
        let cache = if seed.is_multiple_of(3) { Cache::Volatile } else { Cache::None };
        for operations in 0..200 {
            let mut world = settled(seed, cache);
            work_until_cut(&mut world, operations);
            recover(&mut world, 0);
        }
    }
}

/// Short lives one after the other, with no cleaning ever complete: the reserve is not used
/// up, and the store takes every call in the end.
#[test]
fn random_short_lives_leave_a_store_that_works() {
    for seed in seeds(3000..3020) {
        let cache = if seed.is_multiple_of(2) { Cache::None } else { Cache::Volatile };
        let mut world = settled(seed & !1, cache);
        world.seed = seed;
        for _ in 0..60 {
            let operations = 1 + world.rng.below(4);
            work_until_cut(&mut world, operations);
            recover(&mut world, 0);
        }
        for step in 0..400 {
            world.step().unwrap_or_else(|e| panic!("seed {seed}, step {step}: {e}"));
        }
        assert_eq!(world.dump(), world.expected, "seed {seed}");
    }
}
