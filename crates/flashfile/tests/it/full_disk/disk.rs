//! File systems of a few megabytes, and how much of them is free.

use prism_testkit::skipped;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use prism_flashfile::{EngineChoice, FlashFile, FlashFileError, Settings};
use rustix::fs::{FallocateFlags, fallocate};
use tempfile::TempDir;

use super::pages::GEOMETRY;

/// Bytes of a disk, the minimum of xfs. The image is sparse.
const DISK_BYTES: u64 = 320 << 20;
/// Bytes left free when a disk is filled.
const STEP: u64 = 64 << 10;

/// A file system that is mounted, and gone when this is dropped.
pub struct Disk {
    pub kind: &'static str,
    folder: TempDir,
    device: Option<String>,
}

impl Disk {
    /// The error says why there is none.
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

    /// Fills the disk except for about `left` bytes.
    pub fn leave(&self, left: u64) {
        let options = File::options().create(true).read(true).write(true).truncate(false).clone();
        let ballast = options.open(self.folder().join("ballast")).expect("a file");
        let mut len = ballast.metadata().expect("it is open").len();
        // Not all of the free space reported by a file system is usable.
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

    /// Frees the space that the ballast takes.
    pub fn make_room(&self) {
        // Some file systems free the space of a removed file later, so it is truncated.
        let ballast = File::options().write(true).open(self.folder().join("ballast"));
        ballast.and_then(|file| file.set_len(0)).expect("it was there");
        self.sync();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A failing test must not leave the mount behind and must not hide its failure: its open
        // files may be closed later than this.
        let _ = run("umount", &["-l", self.folder().to_str().unwrap_or_default()]);
        if let Some(device) = &self.device {
            let _ = run("losetup", &["-d", device]);
        }
    }
}

/// Calls `test` with every file system and engine of this machine, and reports the missing ones.
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
            // Its space must be free before the disk is filled: an io_uring that ends may close the
            // removed file later.
            File::options().write(true).truncate(true).open(&probe).expect("it was made");
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

/// The output of a program; on failure, the error says why.
fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
