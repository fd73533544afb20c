//! Losses of power after every operation of the device, also of mounts, cleaning and checkpoints.
//!
//! What is found must be this: names, links and attributes as they were after some call, not before
//! the last one that made them durable; each block of a file as it was after some call, not before
//! the last one that made that file durable. The check of the file system finds nothing, and a
//! second mount writes nothing.

use std::rc::Rc;

use prism_base::Rng;
use prism_fs::{Fs, S_IFREG};
use prism_testkit::{all_seeds, seeds};

use crate::memory::{Image, Kind, MemoryStore, Replay};
use crate::model::{Content, State, Synced, TIME, World, difference, mount, read_state, summary};
use crate::random::config;

/// The states after each call, with what was durable.
pub struct History {
    /// The state, and the operations of the device, after each call.
    pub states: Vec<(State, usize)>,
    /// For each sync: the call whose state it made durable, the operations of the device by then,
    /// and which files.
    pub syncs: Vec<(usize, usize, Synced)>,
}

fn names(state: &State) -> State {
    let mut state = state.clone();
    state.values_mut().for_each(|file| file.content = Default::default());
    state
}

impl History {
    /// The last call before `ops` operations that made the file durable, or, without a file, that
    /// made metadata durable.
    fn synced(&self, ops: usize, file: Option<u64>) -> usize {
        let covers = |synced: &Synced| match (file, synced) {
            (None, _) | (_, Synced::All) => true,
            (Some(id), Synced::File(other)) => id == *other,
        };
        let calls = self.syncs.iter().filter(|(_, by, synced)| *by <= ops && covers(synced));
        calls.map(|(call, ..)| *call).max().unwrap_or(0)
    }

    /// Checks what was found after a cut at `ops` operations.
    pub fn check(&self, found: &State, ops: usize) {
        // The call in progress may have had its effect.
        let last =
            self.states.partition_point(|(_, after)| *after <= ops).min(self.states.len() - 1);
        let durable = self.synced(ops, None);
        let wanted = names(found);
        let some = (durable..=last).rev().find(|&call| names(&self.states[call].0) == wanted);
        assert!(
            some.is_some(),
            "cut at {ops}: names as after no call from {durable} to {last}: {:?}",
            difference(&wanted, &names(&self.states[durable].0))
        );
        for (id, file) in found.iter().filter(|(_, file)| file.kind == S_IFREG) {
            let from = self.synced(ops, Some(*id));
            let versions: Vec<_> = (from..=last)
                .map(|call| self.states[call].0.get(id).map(|file| &file.content))
                .collect();
            let known = || versions.iter().flatten();
            let sizes: Vec<u64> = known().map(|content| content.size).collect();
            let (least, most) = (sizes.iter().min(), sizes.iter().max());
            // The file may be younger than the call.
            let least = if versions[0].is_none() { 0 } else { *least.expect("a version") };
            let size = file.content.size;
            assert!(
                (least..=*most.expect("a version")).contains(&size),
                "cut at {ops}: file {id} has {size} bytes, since {from} it had {sizes:?}"
            );
            let blocks = known().flat_map(|content| content.blocks.keys().copied());
            let all = blocks.chain(file.content.blocks.keys().copied());
            for at in all.collect::<std::collections::BTreeSet<u64>>() {
                let block = file.content.blocks.get(&at);
                // What is after the end that was found was not written yet.
                let len = size.saturating_sub(at * 4096).min(4096) as usize;
                let bytes = |block: Option<&Rc<Vec<u8>>>| {
                    block.map_or(vec![0; len], |block| block[..len].to_vec())
                };
                // No zeros stand for data at the end that were not written yet.
                let end = size.min((at + 1) * 4096);
                let is = |version: &Option<&Rc<Content>>| match version {
                    Some(content) if content.size >= end => {
                        bytes(content.blocks.get(&at)) == bytes(block)
                    }
                    _ => len == 0,
                };
                assert!(
                    versions.iter().any(is),
                    "cut at {ops}: file {id} block {at} of {size} bytes: {:?}; since call {from}: \
                     sizes {sizes:?}",
                    summary(&bytes(block)),
                );
            }
        }
    }
}

/// Mounts an image, checks all, and mounts it again.
pub fn check_image(image: &Image, kind: Kind, seed: u64) -> (State, MemoryStore) {
    let store = MemoryStore::of(image.clone(), kind, 1);
    let mut fs = mount(store.clone(), config(seed)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(fs.check().unwrap().problems, []);
    let found = read_state(&mut fs);
    if store.writes() == 0 {
        // A second mount would be the same.
        return (found, store);
    }
    let again = MemoryStore::of(store.image(), kind, 1);
    let mut second = mount(again.clone(), config(seed)).unwrap();
    assert_eq!(again.writes(), 0, "a second mount writes nothing");
    assert_eq!(difference(&read_state(&mut second), &found), None, "second mount");
    (found, store)
}

/// Loses power in one of four mounts that wrote something. Returns how often.
pub fn cut_in_mount(
    image: &Image,
    mounted: &MemoryStore,
    found: &State,
    kind: Kind,
    seed: u64,
    rng: &mut Rng,
) -> u64 {
    let recovery = mounted.take_ops();
    if recovery.is_empty() || rng.below(4) > 0 {
        return 0;
    }
    let at = rng.below(recovery.len() as u64 + 1) as usize;
    let image = Replay::new(image.clone(), &recovery, kind).cut(at, rng);
    let (again, _) = check_image(&image, kind, seed);
    assert_eq!(difference(&again, found), None, "a cut in the mount changes nothing");
    1
}

fn run(store: &MemoryStore, mut world: World<MemoryStore>, rng: &mut Rng, calls: usize) -> History {
    let mut history =
        History { states: vec![(world.state.clone(), store.ops())], syncs: Vec::new() };
    for _ in 0..calls {
        world.step(rng);
        history.states.push((world.state.clone(), store.ops()));
        if let Some((call, synced)) = world.synced.clone() {
            history.syncs.push((call, store.ops(), synced));
        }
    }
    history
}

/// One cut after every operation of a run, and some cuts in the mount after it. Returns how many.
fn every_cut(seed: u64) -> u64 {
    let mut rng = Rng::stream(seed, "cuts");
    let kind = if seed.is_multiple_of(2) { Kind::Flash } else { Kind::Drive };
    let small = !seed.is_multiple_of(3);
    let store = MemoryStore::new(if small { 28 } else { 40 }, if small { 16 } else { 32 }, kind);
    drop(Fs::format(store.clone(), 7, config(seed), TIME).unwrap());
    store.take_ops();
    let image = store.image();
    let store = MemoryStore::of(image.clone(), kind, 1);
    let world = World::new(mount(store.clone(), config(seed)).unwrap());
    let history = run(&store, world, &mut rng, 120);
    let ops = store.take_ops();
    let mut replay = Replay::new(image, &ops, kind);
    let mut cuts = 0;
    for at in 0..=ops.len() {
        let image = replay.cut(at, &mut rng);
        let (found, mounted) = check_image(&image, kind, seed);
        history.check(&found, at);
        cuts += 1;
        cuts += cut_in_mount(&image, &mounted, &found, kind, seed, &mut rng);
    }
    cuts
}

#[test]
fn random_a_cut_after_every_operation() {
    let mut cuts = 0;
    for seed in seeds(0..80) {
        cuts += every_cut(seed);
    }
    assert!(!all_seeds() || cuts >= 6_000, "{cuts} losses of power");
}

/// Many cuts in one life, each after a few calls, and four before each of them. Returns how many
/// different images were checked.
fn one_life(seed: u64, rounds: u64) -> usize {
    let mut rng = Rng::stream(seed, "life");
    let kind = if seed.is_multiple_of(2) { Kind::Flash } else { Kind::Drive };
    let store = MemoryStore::new(28, 16, kind);
    drop(Fs::format(store.clone(), 7, config(seed), TIME).unwrap());
    let mut image = store.image();
    let mut cuts = 0;
    for _ in 0..rounds {
        let before = image.clone();
        let mut checked = vec![image.clone()];
        let store = MemoryStore::of(image, kind, 1);
        let mut fs = mount(store.clone(), config(seed)).unwrap();
        assert_eq!(fs.check().unwrap().problems, []);
        let mounted = store.ops();
        let calls = 1 + rng.below(30) as usize;
        let history = run(&store, World::new(fs), &mut rng, calls);
        let ops = store.take_ops();
        let at = mounted + rng.below((ops.len() - mounted) as u64 + 1) as usize;
        let mut replay = Replay::new(before, &ops, kind);
        // Cuts that this life does not go on from.
        for other in (0..4).map(|part| mounted + (at - mounted) * part / 4) {
            let cut = replay.cut(other, &mut rng);
            let (found, _) = check_image(&cut, kind, seed);
            history.check(&found, other);
            if !checked.contains(&cut) {
                checked.push(cut);
            }
        }
        image = replay.cut(at, &mut rng);
        let (found, mounted) = check_image(&image, kind, seed);
        history.check(&found, at);
        cuts += checked.len() - 1 + usize::from(!checked.contains(&image));
        if rng.chance(0.5) {
            image = mounted.image();
        }
    }
    cuts
}

#[test]
fn random_many_cuts_in_one_life() {
    let mut cuts = 0;
    for seed in seeds(0..14) {
        cuts += one_life(seed, 75);
    }
    assert!(!all_seeds() || cuts >= 2_400, "{cuts} losses of power");
}
