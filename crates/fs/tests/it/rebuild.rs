//! Damage of the last checkpoint: a mount is refused, and a repair finds everything by the log.

use prism_base::Rng;
use prism_fs::format::{CHECKPOINT, Kind as Payload, Summary};
use prism_fs::{Access, Config, Damage, Fs, ROOT};
use prism_testkit::{all_seeds, seeds};

use crate::damage::{Survey, fill, many, mount, repair};
use crate::memory::{Image, Kind, MemoryStore, Replay};
use crate::model::{FILE, TIME, World, difference, formatted, read_state};
use crate::random::config;

/// A page: segment and number.
type PageNumber = (usize, usize);

/// The pages of the last checkpoint: its own and their summaries, and those of the newest state of
/// the node table.
struct LastCheckpoint {
    roots: Vec<PageNumber>,
    tables: Vec<PageNumber>,
}

/// A block of a chunk: its kind, the number in its entry, and its page.
type PayloadBlock = (Payload, u32, PageNumber);

/// The chunks of an image, in their order, with their pages and payloads.
fn chunks(image: &Image) -> Vec<(Summary, PageNumber, Vec<PayloadBlock>)> {
    let mut chunks = Vec::new();
    for (segment, pages) in image.iter().enumerate() {
        let mut at = 0;
        while let Some(Some(block)) = pages.get(at) {
            let Ok(Some((summary, _))) = Summary::decode(block) else { break };
            let begin = (segment, at);
            let mut payload = Vec::new();
            for entry in &summary.entries {
                at += usize::from(entry.kind.has_payload());
                payload.push((entry.kind, entry.id, (segment, at)));
            }
            at += 1;
            chunks.push((summary, begin, payload));
        }
    }
    chunks.sort_by_key(|(summary, ..)| summary.seq);
    chunks
}

impl LastCheckpoint {
    fn of(image: &Image) -> Self {
        let chunks = chunks(image);
        let at = chunks.iter().rposition(|chunk| chunk.0.flags & CHECKPOINT != 0).unwrap();
        let (_, summary, payload) = &chunks[at];
        let mut roots = vec![*summary];
        roots.extend(payload.iter().filter(|(kind, ..)| *kind == Payload::Root).map(|p| p.2));
        let mut tables = std::collections::BTreeMap::new();
        for (_, summary, payload) in &chunks[..at] {
            for (_, id, place) in payload.iter().filter(|(kind, ..)| *kind == Payload::Table) {
                tables.insert(*id, [*summary, *place]);
            }
        }
        Self { roots, tables: tables.into_values().flatten().collect() }
    }
}

fn zero(image: &mut Image, (segment, page): PageNumber) {
    image[segment][page] = Some(vec![0; 4096].into());
}

/// Files come and go until segments were freed and used again, so that older states of nodes, and
/// nodes of files that were removed, are on flash.
fn churn(fs: &mut Fs<MemoryStore>) {
    let (mut round, freed) = (0, fs.space().free);
    while round < 60 {
        for number in 0..12 {
            let name = format!("churn{}", (round * 7 + number * 5) % 90);
            match fs.lookup(ROOT, name.as_bytes()) {
                Ok(_) => fs.unlink(ROOT, name.as_bytes()).unwrap(),
                Err(_) => {
                    let file = fs.make(ROOT, name.as_bytes(), FILE).unwrap();
                    fs.write(file, 0, &vec![round as u8; 4096 * (1 + number % 5)]).unwrap();
                }
            }
        }
        fs.sync().unwrap();
        if round % 7 == 0 {
            fs.checkpoint().unwrap();
        }
        round += 1;
    }
    for number in 0..90 {
        let _ = fs.unlink(ROOT, format!("churn{number}").as_bytes());
    }
    // The numbers of some are used again.
    for number in 100..120 {
        fs.make(ROOT, format!("churn{number}").as_bytes(), FILE).unwrap();
    }
    assert!(fs.space().free < freed + 100);
}

/// Returns how often a mount was refused.
fn damage_each(image: &Image, places: &[PageNumber]) -> usize {
    let mut fs = mount(image, Access::ReadOnly, Damage::Refuse).unwrap();
    let whole = Survey::of(&mut fs);
    assert_eq!(whole.failed, 0);
    let mut refused = 0;
    for &place in places {
        let mut image = image.clone();
        zero(&mut image, place);
        match mount(&image, Access::ReadOnly, Damage::Refuse) {
            Some(mut fs) => assert_eq!(Survey::of(&mut fs).readable, whole.readable, "{place:?}"),
            None => refused += 1,
        }
        let survey = repair(&image, &whole).expect("a repair needs no checkpoint");
        assert_eq!((survey.failed, &survey.readable), (0, &whole.readable), "{place:?}");
        let mut fs = mount(&image, Access::ReadWrite, Damage::Accept).unwrap();
        fs.repair().unwrap();
        assert_eq!(Survey::of(&mut fs).readable, whole.readable, "{place:?}, repaired");
        assert!(fs.lookup(ROOT, b"lost+found").is_err(), "{place:?}: removed files came back");
    }
    refused
}

fn filled() -> Fs<MemoryStore> {
    let mut fs = formatted(24, 64, Config::NORMAL);
    fill(&mut fs);
    churn(&mut fs);
    fs
}

#[test]
fn each_block_of_the_checkpoint_of_an_unmount_is_damaged_and_repaired() {
    let mut fs = filled();
    fs.unmount().unwrap();
    let image = fs.store().image();
    let LastCheckpoint { roots, tables } = LastCheckpoint::of(&image);
    assert!(roots.len() >= 2 && tables.len() >= 2, "{roots:?} {tables:?}");
    assert!(damage_each(&image, &roots) > 0);
    damage_each(&image, &tables);
}

#[test]
fn each_block_of_a_checkpoint_before_a_crash_is_damaged_and_repaired() {
    let mut fs = filled();
    fs.checkpoint().unwrap();
    let folder = fs.lookup(ROOT, b"folder").and_then(|dir| fs.lookup(dir, b"many")).unwrap();
    for number in 0..20 {
        fs.unlink(folder, many(number).as_bytes()).unwrap();
        if number % 5 == 0 {
            fs.sync().unwrap();
        }
    }
    fs.sync().unwrap();
    let image = fs.store().image();
    let LastCheckpoint { roots, tables } = LastCheckpoint::of(&image);
    assert!(damage_each(&image, &roots) > 0);
    damage_each(&image, &tables);
}

fn kind_of(seed: u64) -> Kind {
    if seed % 4 == 3 { Kind::Drive } else { Kind::Flash }
}

/// A run with losses of power in it, at whose end everything is durable.
fn random_run(seed: u64, rng: &mut Rng) -> World<MemoryStore> {
    let kind = kind_of(seed);
    let store = MemoryStore::new(40, 32, kind);
    let mut before = store.image();
    let mut world = World::new(Fs::format(store, 7, config(seed), TIME).unwrap());
    let made = world.fs.store().ops();
    for _ in 0..1 + rng.below(4) {
        for _ in 0..30 + rng.below(80) {
            world.step(rng);
        }
        if rng.chance(0.6) {
            let ops = world.fs.store().take_ops();
            let at = (rng.below(ops.len() as u64 + 1) as usize).max(made);
            let image = Replay::new(before, &ops, kind).cut(at.min(ops.len()), rng);
            before = image.clone();
            let store = MemoryStore::of(image, kind, 1);
            world = World::new(crate::model::mount(store, config(seed)).unwrap());
        }
    }
    if rng.chance(0.5) {
        world.fs.unmount().unwrap();
    } else {
        world.fs.sync().unwrap();
    }
    world
}

#[test]
fn random_file_systems_are_found_without_their_checkpoint() {
    let (mut refused, mut count) = (0, 0);
    for seed in seeds(0..300) {
        let mut rng = Rng::stream(seed, "rebuild");
        let mut world = random_run(seed, &mut rng);
        let image = world.fs.store().image();
        let LastCheckpoint { roots, tables } = LastCheckpoint::of(&image);
        let mut any = |places: &[PageNumber]| places[rng.below(places.len() as u64) as usize];
        for places in [vec![roots[0]], vec![any(&roots)], vec![any(&tables)], roots.clone()] {
            let mut image = image.clone();
            places.iter().for_each(|place| zero(&mut image, *place));
            count += 1;
            let store = MemoryStore::of(image.clone(), kind_of(seed), 1);
            let (access, damage) = (Access::ReadOnly, Damage::Refuse);
            match Fs::mount(store, config(seed), TIME, access, damage) {
                Ok(mut fs) => assert_eq!(difference(&read_state(&mut fs), &world.state), None),
                Err(_) => refused += 1,
            }
            let store = MemoryStore::of(image, kind_of(seed), 1);
            let (access, damage) = (Access::ReadWrite, Damage::Accept);
            let mut fs = Fs::mount(store, config(seed), TIME, access, damage).unwrap();
            fs.repair().unwrap();
            assert_eq!(fs.check().unwrap().problems, [], "seed {seed}");
            let found = difference(&read_state(&mut fs), &world.state);
            assert_eq!(found, None, "seed {seed}, {places:?}");
            let again = MemoryStore::of(fs.store().image(), kind_of(seed), 1);
            let mut fs = crate::model::mount(again, config(seed)).unwrap();
            assert_eq!(fs.repair().unwrap(), []);
            assert_eq!(difference(&read_state(&mut fs), &world.state), None, "seed {seed}, again");
        }
    }
    assert!(!all_seeds() || refused > count / 4, "{refused} of {count}");
}

/// Power is lost, and a checkpoint is damaged before the next mount: a repair finds what the mount
/// would have found, and so does another one if power is lost in the first.
#[test]
fn random_repairs_after_losses_of_power_find_what_a_mount_would() {
    for seed in seeds(0..150) {
        let mut rng = Rng::stream(seed, "crash");
        let kind = kind_of(seed);
        let store = MemoryStore::new(40, 32, kind);
        let before = store.image();
        let mut world = World::new(Fs::format(store, 7, config(seed), TIME).unwrap());
        let made = world.fs.store().ops();
        for _ in 0..50 + rng.below(150) {
            world.step(&mut rng);
        }
        let ops = world.fs.store().take_ops();
        let at = (rng.below(ops.len() as u64 + 1) as usize).max(made);
        let mut image = Replay::new(before, &ops, kind).cut(at, &mut rng);
        let open = |image: &Image, access, damage| {
            let store = MemoryStore::of(image.clone(), kind, 1);
            Fs::mount(store, config(seed), TIME, access, damage).unwrap()
        };
        let mut fs = open(&image, Access::ReadOnly, Damage::Refuse);
        let expected = read_state(&mut fs);
        let all = chunks(&image);
        let roots = all.iter().rev().filter(|chunk| chunk.0.flags & CHECKPOINT != 0);
        roots.take(2).for_each(|chunk| zero(&mut image, chunk.1));
        let mut fs = open(&image, Access::ReadWrite, Damage::Accept);
        let mounted = fs.store().take_ops();
        fs.repair().unwrap();
        assert_eq!(fs.check().unwrap().problems, [], "seed {seed}");
        let found = read_state(&mut fs);
        assert_eq!(difference(&found, &expected), None, "seed {seed}");
        let cut = rng.below(mounted.len() as u64 + 1) as usize;
        let image = Replay::new(image, &mounted, kind).cut(cut, &mut rng);
        let mut fs = open(&image, Access::ReadWrite, Damage::Accept);
        fs.repair().unwrap();
        assert_eq!(difference(&read_state(&mut fs), &expected), None, "seed {seed}, cut at {cut}");
    }
}

/// The whole segment of the checkpoint is lost. What it held may be there in an older state; files
/// that did not change for a long time are as they were.
#[test]
fn random_losses_of_the_segment_of_the_checkpoint_leave_the_rest() {
    let (mut count, mut refused, mut parts) = (0, 0, 0);
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "segment");
        let mut fs = filled();
        for number in 0..rng.below(60) {
            let file = fs.make(ROOT, format!("{number}").as_bytes(), FILE).unwrap();
            fs.write(file, 0, &[1; 5000]).unwrap();
        }
        fs.unmount().unwrap();
        let mut image = fs.store().image();
        let whole = Survey::of(&mut mount(&image, Access::ReadOnly, Damage::Refuse).unwrap());
        let (segment, _) = LastCheckpoint::of(&image).roots[0];
        image[segment].iter_mut().flatten().for_each(|page| *page = vec![0; 4096].into());
        refused += usize::from(mount(&image, Access::ReadOnly, Damage::Refuse).is_none());
        let mut fs = mount(&image, Access::ReadWrite, Damage::Accept).unwrap();
        fs.repair().unwrap();
        assert_eq!(fs.repair().unwrap(), []);
        let survey = Survey::of(&mut fs);
        for (part, bytes) in &whole.readable {
            let is_old = ["/large", "/sparse", "/small"].contains(&part.0.as_str());
            if let Some(found) = survey.readable.get(part).filter(|_| is_old) {
                assert!(found == bytes, "{part:?}");
                parts += 1;
            }
        }
        count += 1;
    }
    let counts = format!("{count}, {refused} refused, {parts} parts");
    assert!(!all_seeds() || refused > 20 && parts > 100 * count, "{counts}");
}

#[test]
fn the_end_of_the_mount_before_is_known() {
    let mut fs = formatted(24, 64, Config::NORMAL);
    let was_unmounted = |fs: &mut Fs<MemoryStore>| {
        let image = fs.store().image();
        mount(&image, Access::ReadOnly, Damage::Refuse).unwrap().was_unmounted()
    };
    assert!(!was_unmounted(&mut fs));
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.checkpoint().unwrap();
    fs.write(file, 0, b"in memory").unwrap();
    assert!(!was_unmounted(&mut fs));
    fs.unmount().unwrap();
    assert!(was_unmounted(&mut fs));
    let mut fs = mount(&fs.store().image(), Access::ReadWrite, Damage::Refuse).unwrap();
    fs.unmount().unwrap();
    assert_eq!(fs.store().writes(), 0);
    fs.write(file, 0, b"durable").unwrap();
    fs.fsync(&[file]).unwrap();
    assert!(!was_unmounted(&mut fs));
    fs.unmount().unwrap();
    assert!(was_unmounted(&mut fs));
}

/// A pointer with a right checksum leads to a segment that is free: it is found and repaired, and
/// mounts before and after that are not refused.
#[test]
fn a_pointer_into_a_free_segment_is_damage_of_its_file_only() {
    let mut fs = formatted(40, 64, Config::NORMAL);
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.write(file, 0, &[1; 3 * 4096]).unwrap();
    fs.fsync(&[file]).unwrap();
    let mut image = fs.store().image();
    let (mut summary, (segment, page), payload) = chunks(&image).pop().unwrap();
    let at = payload.iter().position(|block| (block.0, block.1) == (Payload::Node, file)).unwrap();
    let place = payload[at].2;
    let mut node = image[place.0][place.1].as_ref().unwrap().to_vec();
    // The first pointer of an inode to a block of its file.
    node[256 + 17 * 16..][..4].copy_from_slice(&(30 * 64 + 5_u32).to_le_bytes());
    summary.entries[at].sum = prism_fs::format::checksum(&node);
    image[place.0][place.1] = Some(node.into());
    let mut block = vec![0; 4096];
    summary.encode(&mut block);
    image[segment][page] = Some(block.into());
    let mut fs = mount(&image, Access::ReadWrite, Damage::Refuse).unwrap();
    assert!(fs.read(file, 0, 4096).is_err());
    assert_ne!(fs.check().unwrap().problems, []);
    fs.unmount().unwrap();
    let mut fs = mount(&fs.store().image(), Access::ReadWrite, Damage::Refuse).unwrap();
    assert_ne!(fs.repair().unwrap(), []);
    assert_eq!(fs.repair().unwrap(), []);
    fs.unmount().unwrap();
    let mut fs = mount(&fs.store().image(), Access::ReadOnly, Damage::Refuse).unwrap();
    assert_eq!(
        (fs.check().unwrap().problems, fs.read(file, 4096, 9000).unwrap()),
        (vec![], vec![1; 8192])
    );
}
