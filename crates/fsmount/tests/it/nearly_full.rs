//! A device that is nearly full: writes fail by themselves, although the kernel has a cache.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use prism_base::Rng;
use prism_testkit::seeds;

use crate::mounted::{Mount, assert_whole, new};
use crate::options::Killed;

/// Writes a file of `size` bytes in pieces, until there is no space; returns the bytes that were
/// written. Nothing fails later.
fn write(path: &Path, byte: u8, size: usize, piece: usize) -> Option<usize> {
    let mut file = match File::create(path) {
        Err(error) if error.kind() == ErrorKind::StorageFull => return None,
        file => file.unwrap(),
    };
    let mut written = 0;
    while written < size {
        match file.write(&vec![byte; piece.min(size - written)]) {
            Ok(more) => written += more,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull, "{}", path.display());
                break;
            }
        }
    }
    file.sync_all().unwrap_or_else(|error| panic!("{}: {error} after the write", path.display()));
    Some(written)
}

/// Files are written until 20 of them have met the end of space. Each has what was acknowledged,
/// also after the next mount.
#[test]
fn random_files_on_a_full_device_have_what_was_acknowledged() {
    for seed in seeds(1..3) {
        let Some((_folder, file, at)) = new() else { return };
        let mut rng = Rng::stream(seed, "full");
        let mounted = Mount::new(&file, &at, "");
        let path = |number: usize| at.join(format!("file {number}"));
        let (mut files, mut failed) = (Vec::new(), 0);
        while failed < 20 {
            let size = [100, 5000, 70_000, 300_000, 3_000_000][rng.below(5) as usize];
            let piece = [512, 4096, 65_536, 2 << 20][rng.below(4) as usize];
            let byte = files.len() as u8 | 1;
            let written = write(&path(files.len()), byte, size, piece);
            failed += usize::from(written != Some(size));
            files.push(written.map(|written| vec![byte; written]));
        }
        assert!(files.len() > 40, "seed {seed}: {} files", files.len());
        let check = |when: &str| {
            for (number, content) in files.iter().enumerate() {
                let found = fs::read(path(number)).ok();
                assert!(found == *content, "seed {seed}: file {number}, {when}");
            }
        };
        check("on the full device");
        drop(mounted);
        assert_whole(&file);
        let mounted = Mount::new(&file, &at, "");
        check("after the next mount");
        // What is there can be overwritten.
        let first = files.iter().position(|file| file.as_ref().is_some_and(|file| file.len() > 9));
        let first = path(first.unwrap());
        OpenOptions::new().write(true).open(&first).unwrap().write_all(b"over").unwrap();
        assert!(fs::read(&first).unwrap().starts_with(b"over"));
        drop(mounted);
    }
}

/// Fills a file system but for 3 MiB.
fn fill(at: &Path) {
    let stat = rustix::fs::statvfs(at).unwrap();
    let most = (stat.f_bavail * stat.f_bsize) as usize;
    fs::write(at.join("filler"), vec![7; most - (3 << 20)]).unwrap();
}

/// The kernel has the times of files and does not change them when a write passes its cache by.
#[test]
fn what_is_appended_on_a_nearly_full_device_changes_the_time_of_a_file() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let path = at.join("old");
    let made = File::create(&path).unwrap();
    (&made).write_all(b"content").unwrap();
    made.set_modified(old).unwrap();
    drop(made);
    fill(&at);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), old);
    let before = fs::metadata(&path).unwrap();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b" and more").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert!(after.modified().unwrap() > old, "the time of the last write");
    assert!((after.ctime(), after.ctime_nsec()) > (before.ctime(), before.ctime_nsec()));
    assert_eq!(fs::read(&path).unwrap(), b"content and more");
    // A new file fails when it is written.
    assert!(write(&at.join("new"), 1, 8 << 20, 65_536).unwrap() < 8 << 20);
    drop(mounted);
}

/// Files that pass the cache by: O_DSYNC makes each write durable, and who reads sees it at once.
#[test]
fn writes_that_pass_the_cache_by_are_durable_with_dsync_and_seen() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    fill(&at);
    let flags = rustix::fs::OFlags::DSYNC.bits() as i32;
    let mut options = OpenOptions::new();
    let log = options.append(true).create(true).custom_flags(flags).open(at.join("log")).unwrap();
    let reader = File::open(at.join("log")).unwrap();
    let mut content = Vec::new();
    for round in 0..50_u8 {
        let line = vec![round; 700];
        (&log).write_all(&line).unwrap();
        content.extend(line);
        let mut found = vec![0; content.len()];
        reader.read_exact_at(&mut found, 0).unwrap();
        assert!(found == content, "round {round}");
    }
    assert!(Killed::of(&file).content("log") == content, "what was acknowledged");
    drop((log, reader, mounted));
}

/// A file that was opened with enough space is in the cache, where writes succeed without space.
/// They fail after the first data were lost, and again succeed when there is space.
#[test]
fn a_file_that_lost_data_cannot_be_written_until_there_is_space() {
    let Some((_folder, file, at)) = new() else { return };
    let mounted = Mount::new(&file, &at, "");
    fs::write(at.join("filler"), vec![7; 8 << 20]).unwrap();
    let paths = ["one", "two", "other"].map(|name| at.join(name));
    let open = |path: &PathBuf| File::options().read(true).write(true).create_new(true).open(path);
    let [one, two, other] = paths.each_ref().map(|path| open(path).unwrap());
    (&other).write_all(&[1; 5000]).unwrap();
    other.sync_all().unwrap();
    // Much more than the kernel collects.
    let piece = vec![1; 65_536];
    for file in [&one, &two] {
        let failed = (0..100_000).find_map(|_| { file }.write_all(&piece).err());
        assert_eq!(failed.expect("it is full").kind(), ErrorKind::StorageFull);
        assert_eq!(file.sync_all().unwrap_err().kind(), ErrorKind::StorageFull);
        for _ in 0..3 {
            // A caller that asks for attributes gets them, and changes nothing.
            assert!(fs::metadata(&paths[0]).unwrap().len() > 1 << 20);
            let entries = fs::read_dir(&at).unwrap();
            assert!(entries.map(|entry| entry.unwrap().metadata().unwrap().len()).max() > Some(0));
            assert!(file.metadata().unwrap().len() > 1 << 20);
            std::thread::sleep(Duration::from_millis(200));
            let end = file.metadata().unwrap().len();
            assert_eq!(file.read_at(&mut [0; 9], end).unwrap(), 0, "a read at the end");
            let failed = { file }.write_all(&piece).unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::StorageFull);
        }
    }
    // What has its place can be written.
    other.write_all_at(&[2; 5000], 0).unwrap();
    other.sync_all().unwrap();
    fs::remove_file(at.join("filler")).unwrap();
    // The kernel forgets the file some time after it is removed.
    let has_space = || rustix::fs::statvfs(&at).unwrap().f_bavail > 1024;
    let mut waits = (0..1000).map(|_| std::thread::sleep(Duration::from_millis(10)));
    assert!(has_space() || waits.any(|()| has_space()));
    for file in [&one, &two] {
        let from = file.metadata().unwrap().len();
        file.write_all_at(&piece, from).unwrap();
        file.sync_all().unwrap();
        let mut found = vec![0; piece.len()];
        file.read_exact_at(&mut found, from).unwrap();
        assert!(found == piece);
    }
    drop((one, two, other, mounted));
    assert_whole(&file);
}
