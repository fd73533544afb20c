//! `prism mkfs`, `mount`, `fsck` and `fs info`.

use std::path::Path;
use std::process::Command;

use prism_fs::NewFile;
use prism_testkit::skipped;

use crate::common::{folder, good, json, path, prism, signal};

fn may_mount() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists()
}

#[test]
fn a_file_system_is_made_mounted_checked_and_described() {
    let folder = folder();
    let [file, place] = &["file", "place"].map(|name| path(&folder, name));
    good(&["mkfs", file, "--size", "256MiB"]);
    // What is there is not overwritten.
    refused(&["mkfs", file, "--size", "256MiB"], 2, &["the file exists"]);

    std::fs::create_dir(place).unwrap();
    if may_mount() {
        for round in 0..2_u8 {
            good(&["mount", file, place]);
            let content = folder.path().join("place/content");
            if round == 1 {
                assert_eq!(std::fs::read(&content).unwrap(), vec![7; 3 << 20]);
            }
            std::fs::write(&content, vec![7; 3 << 20]).unwrap();
            // A mounted file system is not checked.
            refused(&["fsck", file], 2, &[]);
            assert!(Command::new("umount").arg(place).status().unwrap().success());
        }
    } else {
        skipped("prism mount needs root and /dev/fuse", "");
    }
    good(&["fsck", file]);
    let found = json(&["fs", "info", file, "--json", "-"]);
    assert!(found.is_object(), "{found}");
}

#[test]
fn what_is_no_file_system_is_refused() {
    let folder = folder();
    let text = &path(&folder, "text");
    std::fs::write(text, "no file system").unwrap();
    for arguments in [
        &["fsck", text][..],
        &["fs", "info", text],
        &["mount", text, "/tmp"],
        &["fsck", "/nowhere/file"],
        &["mkfs", "/nowhere/file", "--size", "1GiB"],
        &["mkfs", text, "--size", "1KiB"],
        &["mount", "memory", "/tmp"],
        &["mount", text, "/tmp", "--size", "1GiB"],
        &["mount", "memory", "/tmp", "--size", "1MiB"],
    ] {
        let run = prism(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("prism: "), "{arguments:?}: {}", run.stderr);
    }
    let unknown = ["mount", "memory", "/tmp", "--size", "1GiB", "--preset", "none"];
    refused(&unknown, 2, &["dc-tlc"]);
    refused(&["fsck", text], 2, &["make a file system with prism mkfs"]);
}

/// The command fails with this exit code, and its line names all of `parts`.
fn refused(arguments: &[&str], code: i32, parts: &[&str]) {
    let run = prism(arguments);
    assert_eq!(run.code, code, "{arguments:?}: {}{}", run.stdout, run.stderr);
    for part in parts {
        assert!(run.stderr.contains(part), "{arguments:?}: {part:?} not in {}", run.stderr);
    }
}

#[test]
fn files_that_hold_no_whole_file_system_are_named_with_a_remedy() {
    let folder = folder();
    let name = |name: &str| path(&folder, name);
    let (whole, place) = (name("whole"), name("place"));
    std::fs::create_dir(&place).unwrap();
    good(&["mkfs", &whole, "--size", "64MiB"]);
    good(&["device", "create", &name("device"), "--capacity", "1GiB"]);
    for (file, bytes) in [("shorter", 60 << 20), ("begin", 100_000), ("few", 100), ("none", 0)] {
        std::fs::copy(&whole, name(file)).unwrap();
        std::fs::File::options().write(true).open(name(file)).unwrap().set_len(bytes).unwrap();
    }
    std::fs::write(name("text"), "a graph, a picture or a cache").unwrap();
    for (file, remedy) in [
        ("shorter", "restore it from a copy"),
        ("begin", "restore it from a copy"),
        ("few", "make a file system with prism mkfs in another file"),
        ("none", "make a file system with prism mkfs in another file"),
        ("text", "make a file system with prism mkfs in another file"),
        ("device", "make one in another file with prism mkfs"),
        ("place", "name a file"),
    ] {
        let path = name(file);
        for command in [&["fsck"][..], &["fsck", "--repair"], &["fs", "info"]] {
            refused(&[command, &[&path]].concat(), 2, &[file, remedy]);
        }
        refused(&["mount", &path, &place], 2, &[file, remedy]);
    }
    for file in ["whole", "text"] {
        refused(&["mkfs", &name(file), "--size", "64MiB"], 2, &[file, "exists", "remove it"]);
    }
    refused(&["mkfs", &place, "--size", "64MiB"], 2, &["place", "this is a folder; name a file"]);
    let sized = "leave out --size, which is for `prism mount memory DIR`";
    refused(
        &["mount", &whole, &place, "--size", "1GiB"],
        2,
        &["whole: the file has a size", sized],
    );
    refused(&["mount", "memory", &place], 2, &["needs --size, such as --size 1GiB"]);
    refused(&["mkfs", &name("new"), "--size", "900TiB"], 2, &["--size 900 TiB", "at most 15 TiB"]);
    refused(&["mkfs", &name("new"), "--size", "1MiB"], 2, &["--size 1 MiB", "32 MiB or more"]);
    for size in ["100", "100M", "1.5"] {
        refused(&["mkfs", &name("new"), "--size", size], 2, &["--size", size, "unit", "MiB, GiB"]);
    }
    refused(&["mkfs", &name("none/new"), "--size", "64MiB"], 2, &["new"]);
    assert!(!Path::new(&name("new")).exists(), "nothing is left behind");
    for (options, part) in [("k=77", "from 1 to 16"), ("cache_mb=", "from 1"), ("x", "nonempty")] {
        refused(&["mount", &whole, &place, "-o", options], 2, &[options, part]);
    }
}

/// Pipes, sockets, devices and links are no places for a file system, and are not waited for.
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let folder = folder();
    let name = |name: &str| path(&folder, name);
    let [pipe, socket, link, place] = ["pipe", "socket", "link", "place"].map(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    std::fs::create_dir(&place).unwrap();
    for file in [&pipe, &socket, "/dev/null"] {
        let remedy = "make a file system with prism mkfs in another file";
        for command in [&["fsck"][..], &["fsck", "--repair"], &["fs", "info"]] {
            refused(&[command, &[file]].concat(), 2, &[file, remedy]);
        }
        refused(&["mount", file, &place], 2, &[file, remedy]);
        refused(&["mount", file, &place, "-o", "ro"], 2, &[file, remedy]);
        let why = "this is no regular file; name one that does not exist";
        refused(&["mkfs", file, "--size", "64MiB"], 2, &[file, why]);
    }
    refused(&["mkfs", &link, "--size", "64MiB"], 2, &[&link, "this is a link"]);
    assert!(!Path::new(&name("nowhere")).exists(), "nothing is made behind the link");
}

#[test]
fn a_mount_is_refused_on_what_is_no_empty_folder() {
    if !may_mount() {
        return skipped("prism mount needs root and /dev/fuse", "");
    }
    let folder = folder();
    let name = |name: &str| path(&folder, name);
    let (disk, place) = (name("disk"), name("place"));
    good(&["mkfs", &disk, "--size", "64MiB"]);
    std::fs::create_dir(&place).unwrap();
    std::fs::write(name("place/hidden"), "hidden").unwrap();
    refused(&["mount", &disk, &name("missing")], 2, &["missing", "make it with mkdir"]);
    refused(&["mount", &disk, &disk], 2, &["disk", "name a folder"]);
    refused(&["mount", &disk, &place], 2, &["place", "not empty", "-o nonempty"]);
    good(&["mount", &disk, &place, "-o", "nonempty"]);
    assert!(!Path::new(&name("place/hidden")).exists(), "it is hidden");
    for command in [&["fsck"][..], &["fsck", "--repair"], &["fs", "info"]] {
        refused(&[command, &[&disk]].concat(), 2, &["disk", "in use by process"]);
    }
    refused(&["mount", &disk, &place, "-o", "nonempty"], 2, &["disk", "in use by process"]);
    assert!(Command::new("umount").arg(&place).status().unwrap().success());
    assert_eq!(std::fs::read(name("place/hidden")).unwrap(), b"hidden");
}

/// An empty file of root's.
const NEW: NewFile = NewFile { mode: 0o100_644, uid: 0, gid: 0, rdev: 0, umask: 0 };

/// A file system with an empty file.
fn new_file(disk: &Path) -> (prism_fs::Fs<prism_fsmount::AnyStore>, u32) {
    let mut fs = prism_fsmount::make(disk, prism_base::Bytes(64 << 20)).unwrap().fs;
    let file = fs.make(prism_fs::ROOT, b"file", NEW).unwrap();
    (fs, file)
}

/// The first 10,000 bytes of the file called `file`.
fn content(disk: &Path) -> Vec<u8> {
    let (access, damage) = (prism_fs::Access::ReadOnly, prism_fs::Damage::Refuse);
    let device = prism_fsmount::open(disk, prism_fs::Config::NORMAL, access, damage);
    let mut fs = device.unwrap().fs;
    let file = fs.lookup(prism_fs::ROOT, b"file").unwrap();
    fs.read(file, 0, 10_000).unwrap()
}

/// A block of a file is damaged: the check says so with exit code 1, also after a repair.
#[test]
fn damage_is_found_with_exit_code_1() {
    let folder = folder();
    let disk = folder.path().join("disk");
    let path = disk.to_str().unwrap();
    let (mut fs, file) = new_file(&disk);
    fs.write(file, 0, &[0xab; 4096]).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    good(&["fsck", path]);
    let mut bytes = std::fs::read(&disk).unwrap();
    let at = bytes.windows(4096).position(|window| window == [0xab; 4096]).unwrap();
    bytes[at + 5] ^= 1;
    std::fs::write(&disk, bytes).unwrap();
    for arguments in [&["fsck", path][..], &["fsck", path, "--repair"], &["fsck", path]] {
        let run = prism(arguments);
        assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("file 2: data at block"), "{}", run.stdout);
        assert!(run.stderr.contains(": 1 problem"), "{}", run.stderr);
    }
}

/// A node that was written after the last checkpoint is damaged: nothing goes on without a repair,
/// which says what is missing.
#[test]
fn damage_after_the_checkpoint_is_refused_and_repaired() {
    let folder = folder();
    let disk = folder.path().join("disk");
    let path = disk.to_str().unwrap();
    let mut fs = prism_fsmount::make(&disk, prism_base::Bytes(64 << 20)).unwrap().fs;
    for name in ["lost", "kept", "newest"] {
        let file = fs.make(prism_fs::ROOT, name.as_bytes(), NEW).unwrap();
        fs.write(file, 0, name.as_bytes()).unwrap();
        fs.sync().unwrap();
    }
    drop(fs);
    let mut bytes = std::fs::read(&disk).unwrap();
    let inode = [&b"INOD"[..], &2_u32.to_le_bytes(), &2_u32.to_le_bytes()].concat();
    let at = (0..bytes.len()).step_by(4096).find(|&at| bytes[at..].starts_with(&inode)).unwrap();
    bytes[at + 100] ^= 1;
    std::fs::write(&disk, &bytes).unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let damage = "node 2 changed after the checkpoint: node at block";
    refused(&["fsck", path], 1, &["disk", damage, "prism fsck --repair"]);
    refused(&["fs", "info", path], 2, &["disk", damage, "run prism fsck"]);
    assert!(std::fs::read(&disk).unwrap() == bytes, "nothing was changed");
    refused(&["mount", path, place.to_str().unwrap()], 2, &["disk", damage, "run prism fsck"]);
    let said = good(&["fsck", path, "--repair"]);
    for what in [damage, "folder 1: \"lost\" leads to no file"] {
        assert!(said.contains(&format!("repaired: {what}")), "{what}: {said}");
    }
    let [ended, read] = ["ended by an unmount", "read 3 files and 3 blocks of their content"];
    let whole = format!("{path}: {ended}\n{path}: {read}\n");
    assert_eq!(good(&["fsck", path, "--repair"]), whole);
}

/// A byte of each copy of each entry in the journal of the device's file is damaged alone, after a
/// kill.
#[test]
fn a_damaged_entry_of_the_journal_of_the_device_stops_nothing() {
    let folder = folder();
    let disk = folder.path().join("disk");
    let path = disk.to_str().unwrap();
    let (mut fs, file) = new_file(&disk);
    for byte in 1..4 {
        fs.write(file, 0, &[byte; 10_000]).unwrap();
        fs.sync().unwrap();
    }
    // What a process leaves behind that is killed now.
    let bytes = std::fs::read(&disk).unwrap();
    drop(fs);
    let is_entry = |at: &usize| &bytes[at + 8..at + 16] == b"PRISMENT";
    let copies: Vec<usize> = (0..bytes.len()).step_by(4096).filter(is_entry).collect();
    assert!(copies.len() > 4);
    for (index, at) in copies.iter().enumerate() {
        let mut damaged = bytes.clone();
        damaged[at + 100] ^= 1;
        std::fs::write(&disk, &damaged).unwrap();
        let text = format!("copy {} is damaged; the other is whole", 1 + index % 2);
        // A loss of power can have torn a copy of the last entry.
        let is_reported = index + 2 < copies.len();
        if is_reported {
            refused(&["device", "check", path], 1, &["disk", "nothing is lost", "repairs it"]);
            assert!(prism(&["fs", "info", path]).stdout.contains(&text));
        }
        for (arguments, begin) in [
            (&["fsck", path][..], format!("{path}: entry")),
            (&["fsck", path, "--repair"], format!("repaired: {path}: entry")),
        ] {
            let said = good(arguments);
            let found = said.lines().any(|l| l.starts_with(&begin) && l.ends_with(&text));
            assert_eq!(found, is_reported, "{said}");
        }
        // It is repaired.
        good(&["device", "check", path]);
        assert!(!prism(&["fsck", path]).stdout.contains(&text));
        assert_eq!(content(&disk), [3; 10_000]);
    }
}

/// Each page in which the device has its own tables is damaged alone.
#[test]
fn a_damaged_page_of_the_tables_of_the_device_stops_nothing() {
    let folder = folder();
    let disk = folder.path().join("disk");
    let path = disk.to_str().unwrap();
    let (mut fs, file) = new_file(&disk);
    fs.write(file, 0, &[7; 10_000]).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let bytes = std::fs::read(&disk).unwrap();
    let pages = (0..bytes.len()).step_by(4096).filter(|&at| bytes[at..].starts_with(b"PrismJ01"));
    let mut found = 0;
    for at in pages.clone() {
        let mut damaged = bytes.clone();
        damaged[at + 100] ^= 1;
        std::fs::write(&disk, &damaged).unwrap();
        // Others are in blocks that were erased.
        found += u32::from(prism(&["device", "check", path]).stdout.contains("1 damaged"));
        good(&["fsck", path]);
        good(&["fs", "info", path]);
    }
    assert!(found >= 2 && found % 2 == 0, "{found} pages of the tables");
    let mut damaged = bytes.clone();
    pages.for_each(|at| damaged[at + 100] ^= 1);
    std::fs::write(&disk, &damaged).unwrap();
    let text = "which has tables of the device, is damaged, and there is no whole copy";
    refused(&["fsck", path, "--repair"], 2, &["disk", text, "restore the device from a copy"]);
}

/// The only checkpoint is damaged: a repair finds all files by the log.
#[test]
fn a_damaged_checkpoint_is_refused_and_repaired() {
    let folder = folder();
    let disk = folder.path().join("disk");
    let path = disk.to_str().unwrap();
    let (mut fs, file) = new_file(&disk);
    fs.write(file, 0, &[7; 10_000]).unwrap();
    fs.checkpoint().unwrap();
    fs.write(file, 0, &[8; 4096]).unwrap();
    fs.sync().unwrap();
    drop(fs);
    let mut bytes = std::fs::read(&disk).unwrap();
    let is_checkpoint = |block: &[u8]| block.starts_with(b"PFSL") && block[38] & 2 != 0;
    let found: Vec<usize> =
        (0..bytes.len() / 4096).filter(|at| is_checkpoint(&bytes[at * 4096..][..4096])).collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at * 4096..][..4096].fill(0);
    }
    std::fs::write(&disk, &bytes).unwrap();
    let damage = "no checkpoint can be read; prism fsck --repair";
    refused(&["fsck", path], 1, &["disk", damage]);
    refused(&["fs", "info", path], 2, &["disk", damage]);
    assert!(std::fs::read(&disk).unwrap() == bytes, "nothing was changed");
    let said = good(&["fsck", path, "--repair"]);
    assert!(said.contains("repaired: no checkpoint can be read\n"), "{said}");
    assert!(said.contains("was not unmounted"), "{said}");
    let [ended, read] = ["ended by an unmount", "read 2 files and 4 blocks of their content"];
    assert_eq!(prism(&["fsck", path]).stdout, format!("{path}: {ended}\n{path}: {read}\n"));
    assert_eq!(content(&disk), [vec![8; 4096], vec![7; 5904]].concat());
}

#[test]
fn a_file_system_in_memory_ends_with_its_mount() {
    if !may_mount() {
        return skipped("prism mount needs root and /dev/fuse", "");
    }
    let folder = folder();
    let place = folder.path().to_str().unwrap();
    for extra in [&[][..], &["--preset", "dc-tlc"]] {
        good(&[&["mount", "memory", place, "--size", "64MiB"][..], extra].concat());
        let file = folder.path().join("file");
        assert!(!file.exists(), "it is empty");
        std::fs::write(&file, vec![7; 3 << 20]).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), vec![7; 3 << 20]);
        assert!(Command::new("umount").arg(place).status().unwrap().success());
    }
}

/// Parts of the benchmark run; an interrupt in the middle of one leaves no mount and no file.
#[test]
fn the_benchmark_measures_and_cleans_up() {
    if !may_mount() {
        return skipped("prism bench fs needs root and /dev/fuse", "");
    }
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let short = ["--size", "1MiB", "--time", "50ms", "--runs", "1", "--used", "1MiB"];
    let bench = |only: &str| {
        prism(&[&["bench", "fs", path, "--only", only, "--json", "-"], &short[..]].concat())
    };
    let found = bench("random reads").json();
    let row = &found["rows"][0];
    for rate in ["memory_passed_through", "in_memory", "folder_passed_through", "in_file"] {
        assert!(row[rate].as_f64().unwrap() > 10.0, "{rate}: {row}");
    }
    bench("varmail").good();
    let found = bench("opening").json();
    assert!(found["opened"]["crashed_seconds"].as_f64().unwrap() > 0.0, "{found}");
    bench("nonsense").refused(&["varmail; opening"]);
    let missing = crate::common::path(&folder, "missing");
    refused(&["bench", "fs", &missing, "--only", "varmail"], 2, &["missing"]);
    assert!(!Path::new(&missing).exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut child = Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["bench", "fs", path, "--only", "fileserver", "--time", "60s"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let home = Path::new("/dev/shm").join(format!("prism-bench-fs-{}", child.id()));
    while !home.join("source/d00049").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the benchmark ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!home.exists(), "{}", home.display());
}
