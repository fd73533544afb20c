//! A file system for one test, on a loop device over a file in a temporary folder. It is removed at
//! the end of the test, also after a failure.

use prism_testkit::skipped;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

/// Bytes of the disk, enough for xfs.
const DISK_BYTES: u64 = 400 << 20;

/// Lets one test at a time capture or mount, because tests compare the state of the kernel before
/// and after, and all tests share this process.
static TURN: Mutex<()> = Mutex::new(());

/// Held by the test that captures or mounts.
pub struct Turn {
    /// Locked: the tests of another working copy may run on this machine at the same time.
    _file: File,
    _here: MutexGuard<'static, ()>,
}

/// Waits until no other test captures or mounts. `python/tests/conftest.py` locks the same file.
pub fn turn() -> Turn {
    let here = TURN.lock().unwrap_or_else(|broken| broken.into_inner());
    let name = format!("prism-tests-{}.lock", rustix::process::getuid().as_raw());
    let file = File::create(std::env::temp_dir().join(name)).expect("a file to lock");
    flock(&file, FlockOperation::LockExclusive).expect("its file system has locks");
    Turn { _file: file, _here: here }
}

/// A mounted file system.
pub struct LoopDisk {
    device: String,
    mounted: PathBuf,
    folder: TempDir,
}

/// A block device without a file system.
pub struct LoopDevice(String);

impl LoopDevice {
    /// A loop device over this file; `None` and a note for the test of `what` without root or loop
    /// devices.
    pub fn over(image: &Path, what: &str, _: &Turn) -> Option<Self> {
        let made = run("losetup", &["-f", "--show", image.to_str().expect("UTF-8")]);
        if made.is_none() {
            skipped(&format!("{what}: no root, or no loop devices"), "");
        }
        made.map(Self)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Errors are ignored, so that they do not hide why a test failed.
        let _ = run("losetup", &["-d", &self.0]);
    }
}

impl LoopDisk {
    /// A new file system of this kind; `None` and a note if its programs or loop devices are
    /// missing.
    pub fn with(file_system: &str, _: &Turn) -> Option<Self> {
        let mkfs = format!("mkfs.{file_system}");
        if !has_program(&mkfs) {
            skipped(&format!("captures of {file_system}: no {mkfs}"), package(file_system));
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (image, mounted) = (folder.path().join("image"), folder.path().join("mounted"));
        std::fs::create_dir(&mounted).expect("a folder");
        let file = std::fs::File::create(&image).expect("a file");
        file.set_len(DISK_BYTES).expect("a sparse file");
        let made = run("losetup", &["-f", "--show", image.to_str().expect("UTF-8")]);
        let Some(device) = made else {
            skipped("captures: there are no loop devices here", "");
            return None;
        };
        let disk = Self { device, mounted, folder };
        let (device, place) = (disk.device(), disk.mounted.to_str().expect("UTF-8"));
        run(&mkfs, &["-q", device]).expect("a file system can be made");
        if run("mount", &["-t", file_system, "-o", "discard", device, place]).is_none() {
            skipped(&format!("captures: this kernel mounts no {file_system}"), "");
            return None;
        }
        Some(disk)
    }

    /// The block device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        &self.mounted
    }

    /// A path outside the file system.
    pub fn sibling(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // Errors are ignored, so that they do not hide why a test failed.
        let _ = run("umount", &[self.mounted.to_str().unwrap_or_default()]);
        let _ = run("losetup", &["-d", &self.device]);
    }
}

/// The lock for a test of `what`, which needs root and kernel tracing. `None` and a note if one is
/// missing.
pub fn can_capture(what: &str) -> Option<Turn> {
    let turn = turn();
    let is_root = run("id", &["-u"]).is_some_and(|id| id == "0");
    if !is_root {
        skipped(&format!("{what}: it needs root"), "");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("t.parquet");
    for backend in ["bpf", "ftrace"] {
        let tried = Command::new(env!("CARGO_BIN_EXE_prism"))
            .args(["capture", "--backend", backend, "-o", out.to_str().expect("UTF-8")])
            .args(["--", "true"])
            .output()
            .expect("the binary is built");
        if !tried.status.success() {
            skipped(&format!("{what}: {}", String::from_utf8_lossy(&tried.stderr)), "");
            return None;
        }
    }
    Some(turn)
}

/// The Debian package that makes such a file system.
fn package(file_system: &str) -> &'static str {
    match file_system {
        "ext4" => "e2fsprogs",
        "xfs" => "xfsprogs",
        "btrfs" => "btrfs-progs",
        other => panic!("{other} is no file system of these tests"),
    }
}

/// Whether the program `name` is installed.
pub fn has_program(name: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// What the program printed, without the line end; `None` if it failed.
fn run(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}
