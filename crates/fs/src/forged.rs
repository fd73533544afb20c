//! Tests with devices that no program of ours wrote: their checksums are right, and what they say
//! is impossible. Nothing may panic; the check finds it, and a repair removes it.

use crate::check::Report;
use crate::config::Config;
use crate::error::FsError;
use crate::fs::{Access, Fs, ROOT, XATTR};
use crate::names::NewFile;
use crate::node::{Pointer, RESERVED, S_IFDIR, S_IFREG, SPLIT, Time, XATTRS};
use crate::recover::Damage;
use crate::table::NodeEntry;
use crate::xattr::SetXattr;
use memory::{Kind, MemoryStore};

#[path = "../tests/it/memory.rs"]
#[expect(dead_code, reason = "the integration tests use more of it")]
mod memory;

const TIME: Time = Time { secs: 1_700_000_000, nanos: 0 };
const BLOCKS: u32 = 24 * 64;
/// Addresses that the device does not have.
const OUTSIDE: [u32; 3] = [BLOCKS, BLOCKS + 77, u32::MAX - 2];

/// The inodes of [`prepare`].
struct Files {
    /// It has blocks in its inode and in a leaf.
    large: u32,
    small: u32,
    folder: u32,
}

fn prepare() -> (Fs<MemoryStore>, Files) {
    let store = MemoryStore::new(24, 64, Kind::Flash);
    let mut fs = Fs::format(store, 7, Config::NORMAL, TIME).unwrap();
    let new = |mode| NewFile { mode: mode | 0o755, uid: 3, gid: 4, rdev: 0, umask: 0 };
    let large = fs.make(ROOT, b"large", new(S_IFREG)).unwrap();
    fs.write(large, 0, &vec![7; 240 * 4096]).unwrap();
    let small = fs.make(ROOT, b"small", new(S_IFREG)).unwrap();
    fs.write(small, 0, b"small").unwrap();
    fs.set_xattr(small, b"user.long", &[1; 5000], SetXattr::Any).unwrap();
    let folder = fs.make(ROOT, b"folder", new(S_IFDIR)).unwrap();
    for number in 0..60 {
        fs.make(folder, format!("{number:0200}").as_bytes(), new(S_IFREG)).unwrap();
    }
    fs.checkpoint().unwrap();
    (fs, Files { large, small, folder })
}

/// `None` if what follows the checkpoint is refused.
fn mount(store: &MemoryStore, access: Access) -> Option<Fs<MemoryStore>> {
    let store = MemoryStore::of(store.image(), Kind::Flash, 1);
    let config = Config { cache_bytes: 64 * 4096, ..Config::NORMAL };
    match Fs::mount(store, config, TIME, access, Damage::Accept) {
        Ok(fs) => Some(fs),
        Err(FsError::Inconsistent(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Reads what there is, whatever it may be.
fn read_all(fs: &mut Fs<MemoryStore>, files: &Files) {
    for ino in [files.large, files.small] {
        let _ = fs.get_attr(ino);
        let _ = fs.read(ino, 0, 1 << 20);
        let _ = fs.read(ino, 1 << 50, 4096);
        let _ = fs.list_xattr(ino);
        for at in [0, 4096, 1 << 45] {
            let _ = fs.seek(ino, at, crate::data::Seek::Data);
            let _ = fs.seek(ino, at, crate::data::Seek::Hole);
        }
    }
    for dir in [ROOT, files.folder] {
        let mut from = Some(0);
        while let Some(hash) = from {
            from = fs.list(dir, hash).map_or(None, |(_, next)| next);
        }
    }
}

/// Reads and removes what a device has, and repairs it.
fn exercise(store: &MemoryStore, files: &Files) -> Option<Report> {
    let mut fs = mount(store, Access::ReadOnly)?;
    let report = fs.check().unwrap();
    read_all(&mut fs, files);
    let mut fs = mount(store, Access::ReadWrite)?;
    read_all(&mut fs, files);
    for name in ["large", "small"] {
        let _ = fs.unlink(ROOT, name.as_bytes());
    }
    for number in 0..60 {
        let _ = fs.unlink(files.folder, format!("{number:0200}").as_bytes());
    }
    let _ = fs.rmdir(ROOT, b"folder");
    let _ = fs.unmount();
    let mut fs = mount(store, Access::ReadWrite)?;
    fs.repair().unwrap();
    assert_eq!(fs.check().unwrap().problems, [], "before the repair: {report:?}");
    fs.unmount().unwrap();
    Some(report)
}

/// Forges a device, whose change is in a checkpoint or in a transaction after one, and returns
/// what the check finds.
fn forge(change: impl Fn(&mut Fs<MemoryStore>, &Files)) -> Vec<String> {
    let mut reports = [true, false].map(|in_checkpoint| {
        let (mut fs, files) = prepare();
        change(&mut fs, &files);
        if in_checkpoint {
            fs.checkpoint().unwrap();
        } else {
            fs.commit(&[]).unwrap();
            fs.log.sync().unwrap();
        }
        exercise(fs.store(), &files)
    });
    let problems = reports[0].take().expect("only checkpoints are read").problems;
    problems.into_iter().map(|problem| problem.what).collect()
}

fn assert_found(problems: &[String], what: &str) {
    assert!(problems.iter().any(|problem| problem.contains(what)), "{what}: {problems:?}");
}

fn point(fs: &mut Fs<MemoryStore>, id: u32, at: usize, addr: u32) {
    let pointer = &mut fs.node_mut(id).unwrap().pointers_mut()[at];
    *pointer = Pointer { addr, ..*pointer };
}

#[test]
fn addresses_outside_of_the_device() {
    for addr in OUTSIDE {
        let what = format!("block {addr} is outside of the device");
        let found = |change: &dyn Fn(&mut Fs<MemoryStore>, &Files)| {
            assert_found(&forge(change), &what);
        };
        found(&|fs, files| point(fs, files.large, XATTRS, addr));
        found(&|fs, files| point(fs, files.small, 0, addr));
        found(&|fs, files| point(fs, files.folder, XATTRS + 3, addr));
        found(&|fs, files| {
            let leaf = fs.attr(files.large).unwrap().root;
            point(fs, leaf, 0, addr);
            point(fs, leaf, 1, addr.saturating_add(1));
        });
    }
}

#[test]
fn nodes_outside_of_the_device() {
    for addr in OUTSIDE.into_iter().chain([SPLIT, RESERVED]) {
        for of in [|files: &Files| files.large, |files: &Files| files.folder, |_: &Files| ROOT] {
            let problems = forge(|fs, files| {
                fs.table.set(of(files), NodeEntry { addr, sum: 1 });
                fs.nodes.remove(of(files));
                fs.table.new = 0;
            });
            assert_found(&problems, &format!("block {addr} is outside of the device"));
        }
    }
}

#[test]
fn blocks_that_are_used_twice() {
    let problems = forge(|fs, files| {
        let addr = fs.node(files.large).unwrap().pointers()[XATTRS].addr;
        for at in 1..20 {
            point(fs, files.large, XATTRS + at, addr);
        }
    });
    assert_found(&problems, "is used twice");
    let problems = forge(|fs, files| {
        let addr = fs.table.get(files.folder).addr;
        point(fs, files.large, XATTRS + 1, addr);
    });
    assert_found(&problems, "is used twice");
}

#[test]
fn attributes_that_are_impossible() {
    let problems = forge(|fs, files| fs.attr_mut(files.large).unwrap().size = (1 << 44) + 1);
    assert_found(&problems, "node 2 has an impossible size");
    for height in [0, 5, 33, u32::MAX] {
        let problems = forge(|fs, files| fs.attr_mut(files.large).unwrap().height = height);
        assert_found(&problems, "node 2 has an impossible tree");
    }
    for count in [0, u64::MAX] {
        forge(|fs, files| fs.attr_mut(files.large).unwrap().blocks = count);
        forge(|fs, files| fs.attr_mut(files.folder).unwrap().size = count);
        forge(|fs, files| fs.attr_mut(files.folder).unwrap().nlink = count as u32);
        forge(|fs, files| fs.attr_mut(files.small).unwrap().nlink = count as u32);
        forge(|fs, files| fs.attr_mut(files.small).unwrap().xattr_bytes = count as u32);
    }
    forge(|fs, files| point(fs, files.small, XATTRS + 1, SPLIT));
    forge(|fs, files| point(fs, files.folder, 0, SPLIT));
    forge(|fs, files| point(fs, files.small, XATTRS + 1, RESERVED));
}

#[test]
fn two_entries_with_one_name() {
    let problems = forge(|fs, files| {
        let pointer = |fs: &mut Fs<MemoryStore>, at| fs.pointer((files.folder, at)).unwrap();
        let index = (0..).find(|&at| pointer(fs, at).is_block()).unwrap();
        let block = fs.block_mut((files.folder, index), true).unwrap();
        let mut entries = crate::folder::decode(block).unwrap();
        entries[1] = crate::folder::DirEntry { ino: entries[1].ino, ..entries[0].clone() };
        crate::folder::encode(&entries, block);
    });
    assert_found(&problems, "or its hash is there twice");
}

/// Buckets of a folder may be far after the number of its entries.
#[test]
fn a_removed_folder_leaves_no_buckets_in_memory() {
    let (mut fs, files) = prepare();
    let mut from = Some(0);
    while let Some(hash) = from {
        from = fs.list(files.folder, hash).unwrap().1;
    }
    let buckets = fs.blocks_from(files.folder, 1).unwrap();
    assert!(buckets.iter().all(|&at| fs.blocks.get((files.folder, at)).is_some()), "{buckets:?}");
    fs.remove_pointers(files.folder, 0, XATTR).unwrap();
    let left = buckets.iter().filter(|&&at| fs.blocks.get((files.folder, at)).is_some());
    assert_eq!(left.count(), 0);
}
