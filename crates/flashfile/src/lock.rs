//! A lock on the file, for one process at a time, and its holder.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use crate::error::FlashFileError;
use crate::open::take_lock;

/// Who else may use the file at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// No other process.
    Exclusive,
    /// Others that open it for reading only.
    Readers,
}

/// A lock that is held, until it is dropped or the process dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// That of the file of a loop device, which others may open by its own name.
    _backing: Option<Box<Self>>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Unlocked explicitly: a child process that is being started has copies of all descriptors
        // for a moment.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Locks `file`; `None` if it is locked already.
pub(crate) fn lock(file: &File, sharing: Sharing) -> io::Result<Option<Lock>> {
    let operation = match sharing {
        Sharing::Exclusive => FlockOperation::NonBlockingLockExclusive,
        Sharing::Readers => FlockOperation::NonBlockingLockShared,
    };
    let kept = file.try_clone()?;
    match flock(file, operation) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut locked = Lock { file: kept, _backing: None };
    if let Some(backing) = backing_file(file) {
        let Some(backing) = lock(&backing, sharing)? else { return Ok(None) };
        locked._backing = Some(Box::new(backing));
    }
    Ok(Some(locked))
}

/// The file of a loop device. `None` for other files, and for one that has no name here.
fn backing_file(file: &File) -> Option<File> {
    let meta = file.metadata().ok()?;
    if !meta.file_type().is_block_device() {
        return None;
    }
    let (major, minor) = (major(meta.rdev()), minor(meta.rdev()));
    let name = format!("/sys/dev/block/{major}:{minor}/loop/backing_file");
    let path = std::fs::read(name).ok()?;
    let path = path.strip_suffix(b"\n").unwrap_or(&path);
    File::open(Path::new(OsStr::from_bytes(path))).ok()
}

/// Locks the file that belongs to a device, for this process alone. `path` is its name in errors. A
/// process that was killed just now may hold the lock for another moment, which this waits for.
///
/// # Errors
/// [`FlashFileError::InUse`], or that of the system.
pub fn lock_soon(path: &Path, file: &File) -> Result<Lock, FlashFileError> {
    let name = path.display().to_string();
    soon(|| take_lock(&name, file, Sharing::Exclusive))
}

/// Tries until a file is not in use: the kernel may need a moment to end the reads and writes of a
/// process that was killed just now. After two seconds the error is returned.
pub(crate) fn soon<T>(
    mut attempt: impl FnMut() -> Result<T, FlashFileError>,
) -> Result<T, FlashFileError> {
    const TRIES: u32 = 100;
    for _ in 1..TRIES {
        match attempt() {
            Err(FlashFileError::InUse { .. } | FlashFileError::Mounted { .. }) => {
                thread::sleep(Duration::from_millis(20));
            }
            ended => return ended,
        }
    }
    attempt()
}

/// The process that holds a lock on `file`, where the system lists it.
pub(crate) fn holder(file: &File) -> Option<u32> {
    let meta = file.metadata().ok()?;
    let (device, inode) = (meta.dev(), meta.ino());
    let place = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    holder_in(&std::fs::read_to_string("/proc/locks").ok()?, &place)
}

/// Lines are `1: FLOCK ADVISORY WRITE 4242 fe:00:1234 0 EOF`. A process of another PID namespace
/// has number 0 or less.
fn holder_in(locks: &str, place: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place);
        let pid = words.get(4)?.parse().ok()?;
        (is_it && pid > 0).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// As a child process has it after a fork.
    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        let held = lock(&file, Sharing::Exclusive).unwrap().unwrap();
        let other = File::open(&path).unwrap();
        assert!(lock(&other, Sharing::Readers).unwrap().is_none());
        drop((held, file));
        assert!(lock(&other, Sharing::Readers).unwrap().is_some());
        drop(copy);
    }

    /// A loop device and its file are one device. Needs root and losetup(8).
    #[test]
    fn a_loop_device_is_locked_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let found = Command::new("losetup").args(["--find", "--show"]).arg(&path).output();
        let Some(name) = found.ok().filter(|found| found.status.success()) else {
            return prism_testkit::skipped("locks of loop devices need root and losetup", "mount");
        };
        let name = String::from_utf8(name.stdout).unwrap();
        let device = File::open(name.trim()).unwrap();
        let is_locked = |file: &File| lock(file, Sharing::Exclusive).unwrap().is_none();
        let held = lock(&file, Sharing::Exclusive).unwrap().unwrap();
        let with_file = is_locked(&device);
        drop(held);
        let held = lock(&device, Sharing::Exclusive).unwrap();
        let with_device = is_locked(&file);
        let was_free = held.is_some();
        drop((held, device));
        assert!(Command::new("losetup").args(["-d", name.trim()]).status().unwrap().success());
        assert!(with_file && was_free && with_device && !is_locked(&file));
    }

    /// As the kernel frees the lock of a process that was killed.
    #[test]
    fn a_lock_that_is_freed_soon_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let [first, second] = [File::create(&path).unwrap(), File::open(&path).unwrap()];
        let mut held = Some(lock_soon(&path, &first).unwrap());
        let mut tries = 0;
        let locked = soon(|| {
            tries += 1;
            if tries == 3 {
                held = None;
            }
            take_lock("file", &second, Sharing::Exclusive)
        });
        assert_eq!((locked.is_ok(), tries), (true, 3));
        assert!(matches!(lock_soon(&path, &first), Err(FlashFileError::InUse { .. })));
        let failed = || Err::<(), _>(FlashFileError::NotAFlashFile { file: "file".to_owned() });
        assert!(matches!(soon(failed), Err(FlashFileError::NotAFlashFile { .. })));
    }

    #[test]
    fn the_holder_is_found_in_proc_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:12 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 0 fe:00:13 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 9 fe:00:12 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 10 fe:00:12 0 EOF\n";
        for (place, pid) in [("fe:00:12", Some(9)), ("fe:00:13", None), ("fe:00:1", None)] {
            assert_eq!(holder_in(locks, place), pid, "{place}");
        }
    }
}
