//! Single mechanisms, each by hand.

use prism_fs::{
    Access, Allocate, Config, Damage, Fs, FsError, NewFile, ROOT, Rename, S_IFDIR, S_IFREG, Seek,
    SetAttr, SetXattr,
};

use prism_fs::format::checksum;

use crate::memory::{Kind, MemoryStore};
use crate::model::{FILE, TIME, assert_sound, formatted, mount, new, remounted};

const DIR: NewFile = NewFile { mode: S_IFDIR | 0o755, ..FILE };

fn again(store: &MemoryStore) -> Fs<MemoryStore> {
    remounted(store, Config::NORMAL)
}

#[test]
fn a_device_without_a_file_system_says_so() {
    let store = MemoryStore::new(64, 64, Kind::Flash);
    let result = mount(store, Config::NORMAL).map(|_| ());
    assert_eq!(result, Err(FsError::NotFormatted));
    let small = Fs::format(MemoryStore::new(4, 64, Kind::Flash), 7, Config::NORMAL, TIME);
    let error = small.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("needs 20 segments, the device has 4"), "{error}");
}

#[test]
fn a_synced_file_is_there_without_an_unmount() {
    let (mut fs, store) = new();
    let synced = fs.make(ROOT, b"synced", FILE).unwrap();
    fs.write(synced, 5000, b"data").unwrap();
    fs.fsync(&[synced]).unwrap();
    let other = fs.make(ROOT, b"other", FILE).unwrap();
    fs.write(other, 0, b"lost").unwrap();
    drop(fs);
    let mut fs = again(&store);
    let found = fs.lookup(ROOT, b"synced").unwrap();
    assert_eq!(fs.read(found, 4998, 100), Ok(b"\0\0data".to_vec()));
    assert_eq!(fs.lookup(ROOT, b"other"), Err(FsError::NotFound));
    assert_eq!(fs.check().unwrap().problems, []);
}

/// The node table grows by blocks before nodes are in them; a checkpoint may come in between.
#[test]
fn a_checkpoint_with_many_nodes_can_be_mounted_whenever_it_was_made() {
    let mut fs = formatted(128, 256, Config::NORMAL);
    let store = fs.store().clone();
    for number in 0..6000 {
        fs.make(ROOT, format!("{number}").as_bytes(), FILE).unwrap();
        let looks = (400..600).contains(&number) && number % 10 == 0;
        if looks || number > 4000 && number % 100 == 0 {
            fs.checkpoint().unwrap();
            let mut fs = again(&store);
            assert!(fs.lookup(ROOT, format!("{number}").as_bytes()).is_ok());
            assert_eq!(fs.check().unwrap().problems, []);
        }
    }
}

#[test]
fn a_rename_over_a_file_never_shows_an_empty_one() {
    let (mut fs, store) = new();
    let old = fs.make(ROOT, b"name", FILE).unwrap();
    fs.write(old, 0, b"old").unwrap();
    fs.fsync(&[old]).unwrap();
    let new = fs.make(ROOT, b"temporary", FILE).unwrap();
    fs.write(new, 0, b"new").unwrap();
    fs.rename((ROOT, b"temporary"), (ROOT, b"name"), Rename::Replace).unwrap();
    // Only metadata are asked for.
    fs.fsync(&[]).unwrap();
    drop(fs);
    let mut fs = again(&store);
    let found = fs.lookup(ROOT, b"name").unwrap();
    assert_eq!(fs.read(found, 0, 100), Ok(b"new".to_vec()));
}

#[test]
fn a_sync_that_fails_without_the_lock_is_the_last_one() {
    let (mut fs, store) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.write(file, 0, b"before").unwrap();
    fs.fsync(&[file]).unwrap();
    fs.write(file, 0, b"lost").unwrap();
    let (first, second) = (fs.begin_fsync(&[file]).unwrap(), fs.begin_fsync(&[file]).unwrap());
    let first = first.wait();
    store.fail_syncs();
    let second = second.wait();
    assert!(fs.end_fsync(second).is_err());
    assert!(fs.end_fsync(first).is_err(), "what was appended is not trusted after a failure");
    assert!(fs.fsync(&[file]).is_err() && fs.unmount().is_err());
}

#[test]
fn other_calls_go_on_while_a_sync_is_waited_for() {
    let (mut fs, store) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.write(file, 0, b"data").unwrap();
    let fsync = fs.begin_fsync(&[file]).unwrap();
    let other = fs.make(ROOT, b"other", FILE).unwrap();
    fs.write(other, 0, b"more").unwrap();
    fs.tick().unwrap();
    fs.fsync(&[other]).unwrap();
    fs.checkpoint().unwrap();
    fs.end_fsync(fsync.wait()).unwrap();
    fs.unmount().unwrap();
    let mut fs = again(&store);
    for (name, content) in [(&b"file"[..], b"data"), (b"other", b"more")] {
        let found = fs.lookup(ROOT, name).unwrap();
        assert_eq!(fs.read(found, 0, 9).unwrap(), content);
    }
}

#[test]
fn a_small_fsync_writes_few_blocks() {
    let (mut fs, _) = new();
    let file = fs.make(ROOT, b"log", FILE).unwrap();
    fs.fsync(&[file]).unwrap();
    let before = fs.counts().total();
    for line in 0..10 {
        fs.write(file, line * 100, &[b'x'; 100]).unwrap();
        fs.fsync(&[file]).unwrap();
    }
    // A summary, the block and the inode.
    assert_eq!(fs.counts().total() - before, 30);
}

#[test]
fn a_file_without_names_stays_while_it_is_open() {
    let (mut fs, store) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.write(file, 0, b"data").unwrap();
    fs.hold(file);
    fs.unlink(ROOT, b"file").unwrap();
    assert_eq!(fs.read(file, 0, 9), Ok(b"data".to_vec()));
    fs.sync().unwrap();
    // A crash removes it.
    let mut found = again(&store);
    assert_eq!(
        (found.get_attr(file), found.check().unwrap().problems),
        (Err(FsError::NotFound), vec![])
    );
    fs.release(file, 1).unwrap();
    assert_eq!(fs.read(file, 0, 9), Err(FsError::NotFound));
}

#[test]
fn holes_and_reserved_space() {
    let (mut fs, _) = new();
    let file = fs.make(ROOT, b"sparse", FILE).unwrap();
    fs.write(file, (1 << 44) - 1, b"x").unwrap();
    let attr = fs.get_attr(file).unwrap();
    assert_eq!((attr.size, attr.blocks), (1 << 44, 1));
    assert_eq!(fs.seek(file, 0, Seek::Data), Ok((1 << 44) - 4096));
    assert_eq!(fs.seek(file, (1 << 44) - 1, Seek::Hole), Ok(1 << 44));
    assert_eq!(fs.write(file, 1 << 44, b"x"), Err(FsError::TooBig));
    let free = fs.space().free;
    fs.allocate(file, 0, 40 * 4096, Allocate::KeepSize).unwrap();
    assert_eq!(free - fs.space().free, 40);
    fs.allocate(file, 100, 10 * 4096, Allocate::Punch).unwrap();
    assert_eq!(free - fs.space().free, 31);
    fs.set_attr(file, SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
    let attr = fs.get_attr(file).unwrap();
    assert_eq!((attr.size, attr.blocks), (0, 0));
    let most = fs.space().blocks * 4096;
    assert_eq!(fs.allocate(file, 0, most, Allocate::Extend), Err(FsError::NoSpace));
}

#[test]
fn a_large_folder_finds_its_names() {
    let mut fs = formatted(256, 256, Config::NORMAL);
    let dir = fs.make(ROOT, b"dir", DIR).unwrap();
    let target = fs.make(ROOT, b"file", FILE).unwrap();
    let name = |number: u32| format!("a name of usual length {number}").into_bytes();
    for number in 0..30_000 {
        fs.link(target, dir, &name(number)).unwrap();
    }
    let mut seen = 0;
    let mut from = Some(0);
    while let Some(hash) = from {
        let (entries, next) = fs.list(dir, hash).unwrap();
        assert!(entries.is_sorted_by(|a, b| a.hash < b.hash));
        seen += entries.len();
        from = next;
    }
    assert_eq!((seen, fs.get_attr(target).unwrap().nlink), (30_000, 30_001));
    assert_eq!(fs.lookup(dir, &name(29_999)), Ok(target));
    assert_eq!(fs.lookup(dir, &name(30_000)), Err(FsError::NotFound));
    for number in 0..30_000 {
        fs.unlink(dir, &name(number)).unwrap();
    }
    assert_eq!(fs.get_attr(dir).unwrap().blocks, 0, "buckets are merged");
    fs.rmdir(ROOT, b"dir").unwrap();
    assert_sound(&mut fs);
}

#[test]
fn every_flipped_byte_is_found_or_does_not_matter() {
    let (mut fs, store) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let data: Vec<u8> = (0..300 * 4096_u32).map(|at| (at / 7) as u8).collect();
    fs.write(file, 0, &data).unwrap();
    fs.unmount().unwrap();
    let image = store.image();
    let (mut damaged, mut harmless) = (0, 0);
    for segment in 0..image.len() {
        for page in 0..image[segment].len() {
            let copy = MemoryStore::of(image.clone(), Kind::Flash, 1);
            if !copy.damage(segment, page, page * 61 % 4096) {
                continue;
            }
            let access = Access::ReadOnly;
            let mounted = Fs::mount(copy, Config::NORMAL, TIME, access, Damage::Refuse);
            let read = mounted.and_then(|mut fs| {
                let found = fs.lookup(ROOT, b"file")?;
                fs.read(found, 0, data.len())
            });
            match read {
                Ok(read) => {
                    assert!(read == data, "segment {segment} page {page}: wrong data");
                    harmless += 1;
                }
                Err(_) => damaged += 1,
            }
        }
    }
    assert!(damaged >= 300 && harmless > 0, "{damaged} {harmless}");
}

#[test]
fn nothing_is_written_to_a_file_system_that_is_mounted_for_reading() {
    let (mut fs, store) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.fsync(&[file]).unwrap();
    let copy = MemoryStore::of(store.image(), Kind::Flash, 1);
    let mut fs =
        Fs::mount(copy.clone(), Config::NORMAL, TIME, Access::ReadOnly, Damage::Refuse).unwrap();
    assert_eq!(fs.lookup(ROOT, b"file"), Ok(file));
    assert_eq!(fs.write(file, 0, b"x"), Err(FsError::ReadOnly));
    fs.sync().unwrap();
    fs.unmount().unwrap();
    assert_eq!(copy.ops(), 0);
}

#[test]
fn privileges_of_a_program_go_when_it_is_changed() {
    const CAPABILITY: &[u8] = b"security.capability";
    let (mut fs, _) = new();
    let mut check = |kind: u32, mode: u32, bits: bool, then: u32| {
        let new = NewFile { mode: kind | mode, ..FILE };
        let file = fs.make(ROOT, b"x", new).unwrap();
        fs.set_xattr(file, CAPABILITY, b"all", SetXattr::Any).unwrap();
        fs.set_xattr(file, b"user.kept", b"1", SetXattr::Any).unwrap();
        fs.drop_privileges(file, bits).unwrap();
        assert_eq!(fs.get_attr(file).unwrap().mode, kind | then, "{mode:o}");
        assert_eq!(fs.list_xattr(file).unwrap(), [b"user.kept"]);
        match kind {
            S_IFDIR => fs.rmdir(ROOT, b"x").unwrap(),
            _ => fs.unlink(ROOT, b"x").unwrap(),
        }
    };
    check(S_IFREG, 0o6755, true, 0o755);
    check(S_IFREG, 0o6755, false, 0o6755);
    // Without a right to execute for the group, the bit means something else.
    check(S_IFREG, 0o2745, true, 0o2745);
    check(S_IFREG, 0o644, true, 0o644);
    // That of a folder is no privilege.
    check(S_IFDIR, 0o2775, true, 0o2775);
}

#[test]
fn a_search_for_data_passes_over_holes_of_any_size() {
    let (mut fs, _) = new();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    // In the inode, in the first leaf, after a leaf that is missing, and at the largest offset.
    let blocks = [3, 230, 230 + 5 * 252, (1 << 32) - 1].map(|block: u64| block * 4096);
    for sync in [false, true] {
        for (at, byte) in blocks.into_iter().zip(1..) {
            fs.write(file, at, &[byte]).unwrap();
        }
        if sync {
            fs.checkpoint().unwrap();
        }
        let mut from = 0;
        for at in blocks {
            assert_eq!(fs.seek(file, from, Seek::Data), Ok(at), "from {from}, {sync}");
            assert_eq!(fs.seek(file, at, Seek::Hole), Ok((at + 4096).min(blocks[3] + 1)));
            from = at + 4096;
        }
        assert_eq!(fs.seek(file, blocks[1] + 4096 * 9, Seek::Data), Ok(blocks[2]));
    }
}

#[test]
fn a_newer_version_is_refused_with_its_number() {
    let (fs, store) = new();
    drop(fs);
    let mut image = store.image();
    for page in image.iter_mut().flatten().flatten().filter(|page| page[..4] == *b"PFSL") {
        let mut bytes = page.to_vec();
        bytes[40] = 2;
        let sum = checksum(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        *page = bytes.into();
    }
    for access in [Access::ReadOnly, Access::ReadWrite] {
        let store = MemoryStore::of(image.clone(), Kind::Flash, 1);
        let mounted = Fs::mount(store, Config::NORMAL, TIME, access, Damage::Accept);
        let error = mounted.err().unwrap();
        assert_eq!(error, FsError::Version { found: 2, known: 1 });
        assert!(error.to_string().contains("use a newer program"), "{error}");
    }
}
