//! Damage of any block, and what a repair makes of it.

use prism_base::Rng;
use prism_fs::{Access, Damage, Fs, FsError};
use prism_testkit::{all_seeds, seeds};

use crate::memory::{Kind, MemoryStore};
use crate::model::{TIME, World, difference, mount, read_state};
use crate::random::config;

#[test]
fn random_a_repair_leaves_nothing_to_repair() {
    let (mut repaired, mut refused) = (0, 0);
    for seed in seeds(0..60) {
        let mut rng = Rng::stream(seed, "repair");
        let store = MemoryStore::new(40, 32, Kind::Flash);
        let mut world = World::new(Fs::format(store.clone(), 7, config(seed), TIME).unwrap());
        for _ in 0..200 {
            world.step(&mut rng);
        }
        world.fs.unmount().unwrap();
        for _ in 0..4 {
            let copy = MemoryStore::of(store.image(), Kind::Flash, 1);
            for _ in 0..1 + rng.below(40) {
                let (segment, page) = (rng.below(40) as usize, rng.below(32) as usize);
                copy.damage(segment, page, rng.below(4096) as usize);
            }
            let damage = Damage::Accept;
            let mounted = Fs::mount(copy.clone(), config(seed), TIME, Access::ReadWrite, damage);
            let mut fs = match mounted {
                Ok(fs) => fs,
                Err(FsError::NotFormatted) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            repaired += u64::from(!fs.repair().unwrap().is_empty());
            let left = fs.check().unwrap().problems;
            let other: Vec<_> = left.iter().filter(|problem| !problem.is_unrepairable).collect();
            assert!(other.is_empty(), "seed {seed}: {other:?}");
            assert_eq!(fs.repair().unwrap(), [], "a second repair finds nothing to repair");
            if left.is_empty() {
                let found = read_state(&mut fs);
                fs.unmount().unwrap();
                let image = fs.store().image();
                let again = mount(MemoryStore::of(image, Kind::Flash, 1), config(seed));
                assert_eq!(difference(&read_state(&mut again.unwrap()), &found), None);
            }
        }
    }
    assert!(!all_seeds() || (repaired > 60 && refused < 200), "{repaired} {refused}");
}
