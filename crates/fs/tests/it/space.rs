//! A full device: cleaning, the end of space, and space that comes back.

use prism_base::Rng;
use prism_fs::{Allocate, Config, Fs, FsError, NewFile, ROOT, Rename, S_IFDIR};
use prism_segments::Store;
use prism_testkit::seeds;

use crate::memory::{Kind, MemoryStore};
use crate::model::{FILE, TIME, assert_sound, formatted, remounted};
use crate::random::config;

/// Fills a file until there is no space, and returns its blocks.
pub fn fill(fs: &mut Fs<MemoryStore>, ino: u32) -> u64 {
    let mut blocks = 0;
    while fs.write(ino, blocks * 4096, &[7; 4096]).is_ok() {
        blocks += 1;
    }
    assert_eq!(fs.write(ino, blocks * 4096, &[7; 4096]), Err(FsError::NoSpace));
    blocks
}

#[test]
fn a_full_file_system_takes_deletes_and_gives_the_space_back() {
    let mut fs = formatted(64, 32, Config::NORMAL);
    let mut first = None;
    for round in 0..6 {
        let keep = fs.make(ROOT, b"keep", FILE).unwrap();
        fs.write(keep, 0, b"kept").unwrap();
        let file = fs.make(ROOT, b"file", FILE).unwrap();
        let blocks = fill(&mut fs, file);
        let most = fs.space().blocks;
        assert!(blocks > most * 9 / 10, "{blocks} of {most}");
        assert_eq!(*first.get_or_insert(blocks), blocks, "round {round}: no space leaks");
        assert!(matches!(fs.make(ROOT, b"more", FILE), Err(FsError::NoSpace)));
        // Overwriting needs no space.
        for at in (0..blocks).rev() {
            fs.write(file, at * 4096, &[8; 4096]).unwrap();
        }
        fs.sync().unwrap();
        fs.unlink(ROOT, b"file").unwrap();
        fs.unlink(ROOT, b"keep").unwrap();
        assert_sound(&mut fs);
    }
}

/// What has no space to be zeroed stays as it is, and what has its space can be zeroed.
#[test]
fn zeroing_on_a_full_device_is_done_or_changes_nothing() {
    for how in [Allocate::Zero, Allocate::ZeroKeepSize] {
        let mut fs = formatted(64, 32, Config::NORMAL);
        let file = fs.make(ROOT, b"file", FILE).unwrap();
        fs.write(file, 0, &[5; 40_000]).unwrap();
        let large = fs.make(ROOT, b"large", FILE).unwrap();
        let mut blocks = 0;
        while fs.space().free > 700 {
            fs.write(large, blocks * 4096, &[7; 4096]).unwrap();
            blocks += 1;
        }
        let state = |fs: &mut Fs<MemoryStore>| (fs.space().free, fs.get_attr(file).unwrap().blocks);
        let before = state(&mut fs);
        assert_eq!(fs.allocate(file, 100, 4 << 20, how), Err(FsError::NoSpace));
        assert_eq!(state(&mut fs), before, "nothing is reserved");
        assert!(fs.read(file, 0, 50_000).unwrap() == [5; 40_000]);
        let more = fs.make(ROOT, b"more", FILE).unwrap();
        fill(&mut fs, more);
        assert_eq!(fs.allocate(file, 100, 39_000, how), Ok(()));
        let zeroed = [vec![5; 100], vec![0; 39_000], vec![5; 900]].concat();
        assert!(fs.read(file, 0, 50_000).unwrap() == zeroed);
        fs.write(file, 0, &[6; 40_000]).unwrap();
        assert_sound(&mut fs);
    }
}

/// A full device takes renames: of files over others, to new names, in other folders.
#[test]
fn random_renames_on_a_full_device() {
    for seed in seeds(0..6) {
        let mut rng = Rng::stream(seed, "renames");
        let mut fs = formatted(64, 32, config(seed));
        let folder = NewFile { mode: S_IFDIR | 0o755, ..FILE };
        let dirs = [ROOT, fs.make(ROOT, b"folder", folder).unwrap()];
        let mut files: Vec<(u32, Vec<u8>)> = Vec::new();
        for number in 0..200 {
            let name = format!("file {number}").into_bytes();
            fs.make(dirs[number % 2], &name, FILE).unwrap();
            files.push((dirs[number % 2], name));
        }
        let large = fs.make(ROOT, b"large", FILE).unwrap();
        let mut blocks = 0;
        while fs.space().free > 60 {
            fs.write(large, blocks * 4096, &[7; 4096]).unwrap();
            blocks += 1;
        }
        let mut names = 0;
        while fs.make(ROOT, format!("empty {names}").as_bytes(), FILE).is_ok() {
            names += 1;
        }
        assert!(names > 0, "seed {seed}");
        while fs.write(large, blocks * 4096, &[7; 4096]).is_ok() {
            blocks += 1;
        }
        for number in 0..1000 {
            let at = rng.below(files.len() as u64) as usize;
            let dir = dirs[rng.below(2) as usize];
            let (from, name) = files[at].clone();
            let (to, new) = match rng.below(3) {
                0 => files[rng.below(files.len() as u64) as usize].clone(),
                1 => (dir, format!("a new name {number}").into_bytes()),
                _ => (dir, vec![b'a' + (number % 26) as u8; 200]),
            };
            let exists = files.iter().position(|file| *file == (to, new.clone()));
            let how = if exists.is_some() && rng.chance(0.5) {
                Rename::Exchange
            } else {
                Rename::Replace
            };
            let renamed = fs.rename((from, &name), (to, &new), how);
            assert_eq!(renamed, Ok(()), "seed {seed}: rename {number}");
            if how == Rename::Replace {
                files[at] = (to, new);
                if let Some(other) = exists.filter(|&other| other != at) {
                    files.swap_remove(other);
                }
            }
            if rng.chance(0.02) {
                fs.fsync(&[ROOT]).unwrap();
                fs.write(large, rng.below(blocks) * 4096, &[9; 4096]).unwrap();
            }
            if files.len() < 20 {
                break;
            }
        }
        fs.unmount().unwrap();
        let mut fs = remounted(fs.store(), config(seed));
        assert_eq!(fs.check().unwrap().problems, []);
        for (dir, name) in files {
            assert!(fs.lookup(dir, &name).is_ok(), "seed {seed}");
        }
    }
}

/// A write that only a part of has space says how much was written, if the caller wants to know.
#[test]
fn a_write_may_take_what_fits() {
    let mut fs = formatted(64, 32, Config::NORMAL);
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let large = vec![7; 64 << 20];
    let written = fs.write_what_fits(file, 100, &large).unwrap();
    assert!(written > 1 << 20 && written < large.len(), "{written}");
    assert_eq!(fs.get_attr(file).unwrap().size, 100 + written as u64);
    assert_eq!(fs.write_what_fits(file, 100 + written as u64, &large), Err(FsError::NoSpace));
    assert_eq!(fs.get_attr(file).unwrap().size, 100 + written as u64);
    assert!(fs.read(file, 100, 64 << 20).unwrap() == large[..written]);
    assert_eq!(fs.write_what_fits(file, 0, b"over"), Ok(4));
}

/// Overwrites at random in a file that fills most of the device.
fn churn(seed: u64, percent: u64, writes: u64) -> (u64, u64) {
    let mut rng = Rng::stream(seed, "churn");
    let mut fs = formatted(160, 32, config(seed));
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let blocks = fs.space().free * percent / 100;
    let mut content = vec![0_u8; blocks as usize];
    for (at, value) in (0..).zip(&mut content) {
        *value = 1;
        fs.write(file, at * 4096, &[1; 4096]).unwrap();
    }
    let before = fs.counts().total();
    for number in 0..writes {
        // Four fifths of the writes go to a fifth of the blocks.
        let range = if rng.chance(0.8) { blocks / 5 } else { blocks };
        let at = rng.below(range);
        content[at as usize] = number as u8 | 1;
        fs.write(file, at * 4096, &[number as u8 | 1; 4096]).unwrap();
        if number % 500 == 499 {
            fs.fsync(&[file]).unwrap();
        }
    }
    let written = fs.counts().total() - before;
    fs.unmount().unwrap();
    let mut fs = remounted(fs.store(), config(seed));
    assert_eq!(fs.check().unwrap().problems, []);
    for (at, value) in (0..).zip(&content) {
        assert_eq!(fs.read(file, at * 4096, 1).unwrap(), [*value], "block {at}");
    }
    (written, writes)
}

#[test]
fn random_overwrites_at_95_percent_go_on() {
    for seed in seeds(0..8) {
        let (written, wanted) = churn(seed, 95, 12_000);
        // Segments of 32 blocks, a tenth of them spare: cleaning is dear, but does not stall.
        assert!(written < 24 * wanted, "{written} blocks for {wanted}");
    }
}

/// Each of these calls cleaned the whole device, again and again, before it was refused.
#[test]
fn refused_calls_do_not_wear_out_the_flash() {
    let mut fs = formatted(28, 16, config(0));
    let mut count = 0;
    while fs.make(ROOT, format!("{count}").as_bytes(), FILE).is_ok() {
        count += 1;
        fs.sync().unwrap();
    }
    let before = fs.counts().total();
    for _ in 0..100 {
        assert_eq!(fs.make(ROOT, b"more", FILE), Err(FsError::NoSpace));
    }
    let written = fs.counts().total() - before;
    assert!(written < 100, "{written} blocks for nothing");
}

/// A group that fills a segment fits it, also where chunks are padded to pages of four blocks: the
/// rest took another segment.
#[test]
fn groups_fill_segments_of_large_pages() {
    let store = MemoryStore::of(vec![vec![None; 512]; 40], Kind::Flash, 4);
    let mut fs = Fs::format(store, 7, config(2), TIME).unwrap();
    let free = fs.store().available();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let blocks = 10 * 512;
    for at in 0..blocks {
        fs.write(file, at * 4096, &[3; 4096]).unwrap();
    }
    fs.checkpoint().unwrap();
    let used = free - fs.store().available();
    assert!(used <= 13, "{used} segments for ten");
}

/// Space for a file that fills most of the device can be reserved at once, and more than there is
/// is refused.
#[test]
fn most_of_the_device_can_be_reserved() {
    let mut fs = formatted(128, 64, Config::NORMAL);
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let bytes = fs.space().free * 9 / 10 * 4096;
    fs.allocate(file, 0, bytes, Allocate::Extend).unwrap();
    assert_eq!(fs.get_attr(file).unwrap().size, bytes);
    let other = fs.make(ROOT, b"other", FILE).unwrap();
    assert_eq!(fs.allocate(other, 0, bytes, Allocate::Extend), Err(FsError::NoSpace));
    assert_sound(&mut fs);
}
