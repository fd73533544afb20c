//! File systems of a few megabytes, and how much of them is free.

use prism_testkit::skipped;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use prism_flashfile::{EngineChoice, FlashFile, FlashFileError, Settings};
use rustix::fs::{FallocateFlags, fallocate};
use tempfile::TempDir;

use super::pages::GEOMETRY;

/// Bytes of a disk: xfs makes none smaller. What is not written takes no room.
const DISK_BYTES: u64 = 320 << 20;
/// The last bytes that are not taken to fill one up.
const STEP: u64 = 64 << 10;

/// A file system that is mounted, and gone when this is dropped.
pub struct Disk {
    pub kind: &'static str,
    folder: TempDir,
    device: Option<String>,
}

impl Disk {
    /// Why there is none, as the error.
    fn mount(kind: &'static str) -> Result<Self, String> {
        if run("id", &["-u"])? != "0" {
            return Err("a small disk needs root to be mounted".into());
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut disk = Self { kind, folder, device: None };
        let (image, mounted) = (disk.folder.path().join("image"), disk.folder());
        fs::create_dir(&mounted).expect("a folder");
        let size = format!("size={DISK_BYTES}");
        let place = mounted.to_str().expect("UTF-8");
        if kind == "tmpfs" {
            run("mount", &["-t", "tmpfs", "-o", &size, "prism", place])?;
            return Ok(disk);
        }
        File::create(&image).and_then(|file| file.set_len(DISK_BYTES)).expect("a sparse file");
        let image = image.to_str().expect("UTF-8");
        let device = run("losetup", &["-f", "--show", image])?;
        let device = disk.device.insert(device);
        run(&format!("mkfs.{kind}"), &["-q", device])?;
        run("mount", &["-t", kind, device, place])?;
        Ok(disk)
    }

    /// Where files go.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Fills the disk up but for about `left` bytes.
    pub fn leave(&self, left: u64) {
        let options = File::options().create(true).read(true).write(true).truncate(false).clone();
        let ballast = options.open(self.folder().join("ballast")).expect("a file");
        let mut len = ballast.metadata().expect("it is open").len();
        // What a file system says is free is not always for everybody.
        for step in [64 << 20, 8 << 20, 1 << 20, STEP] {
            while fallocate(&ballast, FallocateFlags::empty(), len, step).is_ok() {
                len += step;
            }
        }
        ballast.set_len(len - left).expect("it gets shorter");
        self.sync();
    }

    fn sync(&self) {
        run("sync", &["-f", self.folder().to_str().expect("UTF-8")]).expect("it is mounted");
    }

    /// All that others have written goes.
    pub fn make_room(&self) {
        // Of a file that is removed some file systems free the room later.
        let ballast = File::options().write(true).open(self.folder().join("ballast"));
        ballast.and_then(|file| file.set_len(0)).expect("it was there");
        self.sync();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A test that fails must not leave them behind, and must not hide why it failed: what
        // it had open may end later than this.
        let _ = run("umount", &["-l", self.folder().to_str().unwrap_or_default()]);
        if let Some(device) = &self.device {
            let _ = run("losetup", &["-d", device]);
        }
    }
}

/// Calls `test` with every file system and engine that this machine has, and says aloud which
/// it has not.
pub fn on_each(test: impl Fn(&Disk, Settings)) {
    for kind in ["tmpfs", "ext4", "xfs", "btrfs"] {
        for engine in [EngineChoice::Portable, EngineChoice::Uring] {
            let disk = match Disk::mount(kind) {
                Ok(disk) => disk,
                Err(why) => {
                    skipped(&format!("a full {kind}: {why}"), package(kind));
                    break;
                }
            };
            let settings = Settings { engine, ..Settings::USUAL };
            let probe = disk.folder().join("probe");
            match FlashFile::create_with(&probe, GEOMETRY, settings) {
                Ok(probed) => drop(probed),
                Err(FlashFileError::Engine { what, .. }) => {
                    skipped(&format!("a full {kind}: {what}"), "");
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            fs::remove_file(probe).expect("it was made");
            test(&disk, settings);
        }
    }
}

/// The Debian package that makes such a file system, unless it is there.
fn package(kind: &str) -> &'static str {
    if run("sh", &["-c", &format!("command -v mkfs.{kind}")]).is_ok() {
        return "";
    }
    match kind {
        "ext4" => "e2fsprogs",
        "xfs" => "xfsprogs",
        "btrfs" => "btrfs-progs",
        _ => "",
    }
}

/// What the program printed; why it failed, as the error.
fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
