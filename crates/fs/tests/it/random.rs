//! Random calls against the model.

use prism_base::Rng;
use prism_fs::{Config, Fs, Victim};
use prism_testkit::seeds;

use crate::memory::{Kind, MemoryStore};
use crate::model::{TIME, World, difference, mount, read_state};

/// Settings by number, so that every policy meets every workload.
pub fn config(number: u64) -> Config {
    let base = match number % 4 {
        0 => Config::NORMAL,
        1 => Config::SFS,
        2 => Config::LFS_CB,
        _ => Config { victim: Victim::Greedy, ..Config::NORMAL },
    };
    Config {
        checkpoint_segments: 6,
        removal_leaves: 1,
        cache_bytes: 20 * 4096,
        caches_written: !number.is_multiple_of(3),
        ..base
    }
}

#[test]
fn random_calls_do_what_the_model_does() {
    for seed in seeds(0..24) {
        let mut rng = Rng::stream(seed, "calls");
        let kind = if seed % 2 == 0 { Kind::Flash } else { Kind::Drive };
        let pages = 1 << (seed % 3);
        let image = vec![vec![None; 64]; 40];
        let store = MemoryStore::of(image, kind, pages);
        let fs = Fs::format(store, 7, config(seed), TIME).unwrap();
        let mut world = World::new(fs);
        world.long = seed % 5 == 0;
        let check_state = |world: &mut World<MemoryStore>, step: u64| {
            assert_eq!(difference(&read_state(&mut world.fs), &world.state), None, "step {step}");
        };
        for step in 0..400 {
            world.step(&mut rng);
            if step % 100 == 99 {
                check_state(&mut world, step);
                world.fs.checkpoint().unwrap();
                let report = world.fs.check().unwrap();
                assert_eq!(report.problems, [], "step {step}");
            }
            if rng.below(60) == 0 {
                if rng.chance(0.5) {
                    world.fs.unmount().unwrap();
                } else {
                    world.fs.sync().unwrap();
                }
                let again = MemoryStore::of(world.fs.store().image(), kind, pages);
                world.remount(mount(again, config(seed)).unwrap());
                assert_eq!(world.fs.check().unwrap().problems, [], "step {step}");
                check_state(&mut world, step);
                let again = MemoryStore::of(world.fs.store().image(), kind, pages);
                world.remount(mount(again, config(seed)).unwrap());
                assert_eq!(world.fs.store().writes(), 0, "a second mount writes nothing");
                check_state(&mut world, step);
            }
        }
    }
}
