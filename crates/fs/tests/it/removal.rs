//! Large files are removed in parts: their space is there at once, and no block of them is left
//! after a loss of power between two parts.

use prism_base::Rng;
use prism_fs::{Access, Config, Damage, Fs, FsError, ROOT, Rename};

use crate::memory::{Kind, MemoryStore, Replay};
use crate::model::{FILE, TIME, formatted, mount};
use crate::space::fill;

const CONFIG: Config = Config { removal_leaves: 4, ..Config::NORMAL };

/// A file with a block below each of 40 leaves, two of which are in another half of the map.
fn make(fs: &mut Fs<MemoryStore>, name: &[u8]) -> u32 {
    let file = fs.make(ROOT, name, FILE).unwrap();
    for leaf in (0..38).chain([3000, 5000]) {
        fs.write(file, (300 + leaf * 252) * 4096, b"some bytes").unwrap();
    }
    file
}

#[test]
fn a_large_file_is_removed_in_parts() {
    let mut fs = formatted(40, 64, CONFIG);
    fs.checkpoint().unwrap();
    let before = fs.space();
    // By its last name, by a rename over it, and by the end of its use.
    for how in 0..3 {
        let file = make(&mut fs, b"large");
        fs.checkpoint().unwrap();
        let full = fs.space();
        match how {
            0 => fs.unlink(ROOT, b"large").unwrap(),
            1 => {
                fs.make(ROOT, b"other", FILE).unwrap();
                fs.rename((ROOT, b"other"), (ROOT, b"large"), Rename::Replace).unwrap();
                fs.unlink(ROOT, b"large").unwrap();
            }
            _ => {
                fs.hold(file);
                fs.unlink(ROOT, b"large").unwrap();
                assert!(!fs.remove_part().unwrap(), "it is in use");
                assert_eq!(fs.read(file, 300 * 4096, 4).unwrap(), b"some");
                fs.release(file, 1).unwrap();
            }
        }
        assert_eq!(fs.lookup(ROOT, b"large"), Err(FsError::NotFound));
        // The leaves of a map with holes are counted until they are gone.
        assert!(fs.space().free >= full.free + 40, "its space is there at once");
        let mut parts = 1;
        while fs.remove_part().unwrap() {
            parts += 1;
            let space = fs.space();
            assert!(space.free >= full.free + 40 && space.free <= before.free, "{space:?}");
            if parts % 3 == 0 {
                fs.checkpoint().unwrap();
                assert_eq!(fs.check().unwrap().problems, [], "after {parts} parts");
            }
        }
        assert_eq!(parts, 9, "four leaves at a time, the first ones by the call itself");
        fs.checkpoint().unwrap();
        assert_eq!(fs.space(), before);
        assert_eq!(fs.check().unwrap().problems, []);
    }
}

/// Only calls that need space remove the parts here.
#[test]
fn the_space_of_what_is_not_yet_removed_can_be_used() {
    let mut fs = formatted(40, 64, Config { removal_leaves: 1, ..CONFIG });
    for round in 0..6 {
        let file = fs.make(ROOT, b"file", FILE).unwrap();
        let blocks = fill(&mut fs, file);
        assert!(blocks > fs.space().blocks * 9 / 10, "round {round}: {blocks}");
        if round % 2 == 0 {
            fs.sync().unwrap();
        }
        fs.unlink(ROOT, b"file").unwrap();
    }
    fs.unmount().unwrap();
    assert_eq!(fs.check().unwrap().problems, []);
    assert_eq!(fs.space().nodes, 1);
}

#[test]
fn random_a_cut_between_the_parts_of_a_removal() {
    for seed in prism_testkit::seeds(0..4) {
        let mut rng = Rng::stream(seed, "removal");
        let kind = if seed % 2 == 0 { Kind::Flash } else { Kind::Drive };
        let store = MemoryStore::new(40, 64, kind);
        let mut fs = Fs::format(store.clone(), 7, CONFIG, TIME).unwrap();
        make(&mut fs, b"large");
        fs.unmount().unwrap();
        let image = store.image();
        let store = MemoryStore::of(image.clone(), kind, 1);
        let mut fs = mount(store.clone(), CONFIG).unwrap();
        fs.unlink(ROOT, b"large").unwrap();
        fs.sync().unwrap();
        let gone = store.ops();
        while fs.remove_part().unwrap() {
            match rng.below(3) {
                0 => fs.checkpoint().unwrap(),
                _ => fs.sync().unwrap(),
            }
        }
        fs.unmount().unwrap();
        let ops = store.take_ops();
        let mut replay = Replay::new(image, &ops, kind);
        let mut between = 0;
        for at in 0..=ops.len() {
            let mut images = replay.cuts_in_write(at, &mut rng);
            images.push(replay.cut(at, &mut rng));
            for image in images {
                let again = MemoryStore::of(image.clone(), kind, 1);
                let access = Access::ReadOnly;
                let mut fs = Fs::mount(again, CONFIG, TIME, access, Damage::Refuse).unwrap();
                assert_eq!(fs.check().unwrap().problems, [], "cut at {at}, for reading");
                between += u64::from(fs.lookup(ROOT, b"large").is_err() && fs.space().nodes > 1);
                let mut fs = mount(MemoryStore::of(image, kind, 1), CONFIG).unwrap();
                assert_eq!(fs.check().unwrap().problems, [], "cut at {at}");
                match fs.lookup(ROOT, b"large") {
                    Ok(file) => {
                        assert!(at < gone, "cut at {at}: the removal was synced after {gone}");
                        assert_eq!(fs.get_attr(file).unwrap().blocks, 40);
                    }
                    Err(_) => assert_eq!(fs.space().nodes, 1, "cut at {at}"),
                }
            }
        }
        assert!(between > 20, "{between} cuts between parts");
    }
}
