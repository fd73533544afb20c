//! File systems of Prism and the files of the host: other files of Prism, and a disk that is full.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use prism_testkit::skipped;
use rustix::io::Errno;
use tempfile::TempDir;

use crate::common::server::Server;
use crate::common::{folder, good, path, refused_in_a_line};

#[test]
fn files_of_graphs_and_caches_are_refused_and_not_changed() {
    let folder = folder();
    let [edges, graph, cache, place] =
        ["edges", "graph", "cache", "place"].map(|name| path(&folder, name));
    fs::write(&edges, "1 2\n2 3\n").unwrap();
    good(&["graph", "ingest", &edges, "-o", &graph]);
    let small = ["--device", &cache, "--size", "64MiB", "-I", "256k", "--memory", "16MiB"];
    Server::start(&small).kill();
    fs::create_dir(&place).unwrap();
    // A device without tables of the library, as that of `prism cache serve --engine ideal`.
    let geometry = prism_flash::DeviceGeometry {
        channels: 1,
        luns_per_channel: 1,
        blocks_per_lun: 16,
        pages_per_block: 16,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    };
    let empty = path(&folder, "empty");
    drop(prism_flashfile::FlashFile::create(Path::new(&empty), geometry).unwrap());
    for file in [&graph, &cache, &empty] {
        let before = fs::read(file).unwrap();
        for command in [&["fsck"][..], &["fsck", "--repair"], &["fs", "info"]] {
            let remedy = "the device has no file system; make one in another file with prism mkfs";
            refused_in_a_line(&[command, &[file]].concat(), &[file, remedy]);
        }
        refused_in_a_line(&["mount", file, &place], &[file, "no file system", "prism mkfs"]);
        refused_in_a_line(&["mkfs", file, "--size", "64MiB"], &[file, "the file exists"]);
        assert!(fs::read(file).unwrap() == before, "{file} was changed");
    }
}

/// A small disk in memory, and the mount of a file system on it; both end with the test.
struct FullDisk {
    folder: TempDir,
    mount: Option<Child>,
}

impl FullDisk {
    /// `None` and a note without root and FUSE.
    fn new(size: &str) -> Option<Self> {
        let disk = Self { folder: folder(), mount: None };
        for name in ["disk", "place"] {
            fs::create_dir(disk.folder.path().join(name)).unwrap();
        }
        let size = format!("size={size}");
        let is_mounted = rustix::process::geteuid().is_root()
            && Path::new("/dev/fuse").exists()
            && run("mount", &["-t", "tmpfs", "-o", &size, "prism", &path(&disk.folder, "disk")]);
        if !is_mounted {
            skipped("a full disk below a file system needs root, tmpfs and /dev/fuse", "");
        }
        is_mounted.then_some(disk)
    }

    fn file(&self) -> String {
        path(&self.folder, "disk/file")
    }

    fn inside(&self, name: &str) -> PathBuf {
        self.folder.path().join("place").join(name)
    }

    fn mount(&mut self) {
        let place = path(&self.folder, "place");
        let before = rustix::fs::stat(&place).unwrap().st_dev;
        let child = Command::new(env!("CARGO_BIN_EXE_prism"))
            .args(["mount", "--foreground", &self.file(), &place])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let child = self.mount.insert(child);
        while rustix::fs::stat(&place).unwrap().st_dev == before {
            assert!(child.try_wait().unwrap().is_none(), "the mount has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the mount, and returns its exit code and what it said.
    fn unmount(&mut self) -> (Option<i32>, String) {
        assert!(run("umount", &[&path(&self.folder, "place")]));
        let mut child = self.mount.take().expect("it was mounted");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (child.wait().unwrap().code(), said)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        // Errors are ignored, so that they do not hide why a test failed.
        for name in ["place", "disk"] {
            let _ = run("umount", &["-l", &path(&self.folder, name)]);
        }
        if let Some(mut child) = self.mount.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn run(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program).args(args).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Writes a file and syncs it.
fn write(file: &Path, byte: u8) -> std::io::Result<()> {
    let mut file = File::create(file)?;
    file.write_all(&vec![byte; 1 << 20])?;
    file.sync_all()
}

#[test]
fn what_was_synced_survives_a_disk_that_becomes_full() {
    let Some(mut disk) = FullDisk::new("32M") else { return };
    let file = disk.file();
    good(&["mkfs", &file, "--size", "64MiB"]);
    disk.mount();
    let mut count = 0_u8;
    let error = loop {
        match write(&disk.inside(&format!("file {count}")), count + 1) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    assert!(matches!(errno, Some(Errno::IO | Errno::NOSPC)), "{error}");
    assert!(count > 10, "{count} files fit");
    let error = write(&disk.inside("later"), 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "{error}");
    for number in 0..count {
        let found = fs::read(disk.inside(&format!("file {number}"))).unwrap();
        assert!(found == vec![number + 1; 1 << 20], "file {number}, before the unmount");
    }
    let mut stats = vec![0; 4096];
    let len = rustix::fs::getxattr(disk.inside("."), "user.prism.stats", &mut stats).unwrap();
    let stats = String::from_utf8_lossy(&stats[..len]).into_owned();
    let (code, said) = disk.unmount();
    assert_eq!(code, Some(1), "{said}");
    for part in ["the disk is full", "what was synced is kept", "make room"] {
        assert!(stats.contains(part), "{part}: {stats}");
        assert!(said.contains(part) && said.contains(&file), "{part}: {said}");
    }
    good(&["fsck", &file]);
    // With more space it goes on.
    assert!(run("mount", &["-o", "remount,size=128M", &path(&disk.folder, "disk")]));
    disk.mount();
    for number in 0..count {
        let found = fs::read(disk.inside(&format!("file {number}"))).unwrap();
        assert!(found == vec![number + 1; 1 << 20], "file {number}, after the next mount");
    }
    write(&disk.inside("later"), 1).unwrap();
    assert_eq!(disk.unmount(), (Some(0), String::new()));
    good(&["fsck", &file]);
}
