//! Removes the leftovers of killed runs: the names of folders, loop devices, mounts and cgroups
//! contain the process that made them, so the next run can find them.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::cgroup::{self, MemoryCgroups};
use crate::disk::unmount_now;
use crate::ioctls;

/// The beginning of every name.
const PREFIX: &str = "prism-stack-";

/// The process that made something: its number, which may be reused, and its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    process: u32,
    /// In clock ticks since boot.
    began: u64,
}

impl Owner {
    fn this() -> Self {
        let process = std::process::id();
        Self { process, began: began(process).unwrap_or(0) }
    }

    fn of_name(name: &str) -> Option<Self> {
        let (process, began) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self { process: process.parse().ok()?, began: began.parse().ok()? })
    }

    /// The owner in `path`, from its name or that of a parent folder.
    fn of_path(path: &Path) -> Option<Self> {
        path.components().find_map(|part| match part {
            Component::Normal(name) => Self::of_name(name.to_str()?),
            _ => None,
        })
    }

    fn is_dead(self) -> bool {
        began(self.process) != Some(self.began)
    }
}

/// The name for the folder and the cgroup of this process.
pub(super) fn own_name() -> String {
    let owner = Owner::this();
    format!("{PREFIX}{}-{}", owner.process, owner.began)
}

/// The start time of the process, if it exists.
fn began(process: u32) -> Option<u64> {
    began_in(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// The field `starttime` of `/proc/PID/stat`: the 22nd. The second field is a name in parentheses
/// with arbitrary characters.
fn began_in(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// The numbers of removed leftovers of killed runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Mounted file systems.
    pub mounts: u32,
    /// Loop devices.
    pub loops: u32,
    /// Folders with images.
    pub folders: u32,
    /// Memory cgroups.
    pub cgroups: u32,
}

impl Leftovers {
    /// Whether nothing was removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Removes the leftovers of killed runs: all mounts and loop devices, folders in `work_dir`, and
/// cgroups. What cannot be removed is left to the next run.
#[must_use]
pub fn remove_leftovers(work_dir: &Path, cgroups: Option<&MemoryCgroups>) -> Leftovers {
    let is_left = |path: &Path| Owner::of_path(path).is_some_and(Owner::is_dead);
    let count = |done: Vec<bool>| done.into_iter().filter(|&done| done).count() as u32;
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mount_points(&mountinfo).into_iter().rev().filter(|path| is_left(path));
    let mounts = count(mounts.map(|path| unmount_now(&path).is_ok()).collect());
    let devices = loop_devices().into_iter().filter(|(_, file)| is_left(file));
    let loops = count(devices.map(|(device, _)| detached(&device)).collect());
    let entries = fs::read_dir(work_dir).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| is_named_left(path));
    let folders = count(folders.map(|path| remove_folder(&path)).collect());
    let all = cgroups.map(MemoryCgroups::folders).unwrap_or_default();
    let all = all.into_iter().filter(|path| is_named_left(path));
    let cgroups = count(all.map(|path| cgroup::remove(&path)).collect());
    Leftovers { mounts, loops, folders, cgroups }
}

fn is_named_left(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(Owner::of_name).is_some_and(Owner::is_dead)
}

/// Removes the folder of a run with its files and empty subfolders. It does not descend into
/// subfolders, where a file system may still be mounted.
pub(super) fn remove_folder(folder: &Path) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // If this fails, removing the folder fails too.
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    }
    fs::remove_dir(folder).is_ok()
}

/// The fifth field of each line, in which white space is written as octal numbers.
fn mount_points(mountinfo: &str) -> Vec<PathBuf> {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    points.map(|point| PathBuf::from(unescaped(point))).collect()
}

fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_owned(), |text, (code, letter)| text.replace(code, letter))
}

/// The loop devices that have a file, with that file.
fn loop_devices() -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let name = entry.file_name();
        // A device without a file has no such entry.
        let Ok(file) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        found.push((Path::new("/dev").join(name), PathBuf::from(file.trim_end())));
    }
    found
}

fn detached(device: &Path) -> bool {
    fs::File::open(device).and_then(|file| ioctls::detach(&file)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_the_process() {
        let this = Owner::this();
        assert!(this.began > 0 && !this.is_dead());
        assert_eq!(Owner::of_name(&own_name()), Some(this));
        assert!(Owner { began: this.began + 1, ..this }.is_dead());
        assert!(Owner { process: u32::MAX, began: 1 }.is_dead());
        let path = PathBuf::from(format!("/var/tmp/{}/mnt", own_name()));
        assert_eq!(Owner::of_path(&path), Some(this));
        for other in ["prism-stack-", "prism-stack-1", "prism-stack-x-1", "a-prism-stack-1-1"] {
            assert_eq!(Owner::of_name(other), None, "{other}");
        }
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let stat = format!("12 (a) b) S {}", "3 ".repeat(17) + "77");
        assert_eq!(began_in(&stat), None, "too few fields before");
        let stat = format!("12 (a) b) S {}", "3 ".repeat(18) + "77 9");
        assert_eq!(began_in(&stat), Some(77));
        let mounts = mount_points("1 2 7:0 / /var/tmp/a\\040b rw - ext4 /dev/loop0 rw\nshort\n");
        assert_eq!(mounts, [PathBuf::from("/var/tmp/a b")]);
    }

    /// Folders of killed runs are removed; those of running ones and other folders stay.
    #[test]
    fn only_leftovers_of_killed_runs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.join("mnt")).unwrap();
            fs::write(path.join("image"), "x").unwrap();
            path
        };
        let (dead, own, other) = (make("prism-stack-1-0"), make(&own_name()), make("other"));
        let removed = remove_leftovers(folder.path(), None);
        assert_eq!(removed.folders, 1);
        assert!(!dead.exists() && own.exists() && other.exists());
        fs::create_dir_all(own.join("mnt/inside")).unwrap();
        assert!(!remove_folder(&own), "it does not descend");
        assert!(own.join("mnt/inside").exists());
    }
}
