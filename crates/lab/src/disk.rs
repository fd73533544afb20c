//! A disk in a file: a sparse image behind a loop device, with a file system on it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use prism_base::Bytes;
use prism_host::interrupt::Undo;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::error::StackError;
use crate::ioctls;
use crate::kinds::{App, FileSystem};

/// Another process may attach the free device first, so this many are tried.
const ATTACH_TRIES: u32 = 100;

/// A loop device, which is detached when this is dropped.
pub(super) struct LoopDevice {
    path: PathBuf,
    _undo: Undo,
    /// Dropped after the device, as the order of the fields requires.
    _image: Undo,
}

impl LoopDevice {
    /// Makes the sparse file `image` of `size` and attaches it.
    pub fn attach(image: &Path, size: Bytes) -> Result<Self, StackError> {
        let mut made = None;
        let undo = Undo::of(|| -> io::Result<_> {
            let how = File::options().read(true).write(true).create_new(true).open(image)?;
            made = Some(how);
            let image = image.to_path_buf();
            Ok(move || drop(fs::remove_file(image)))
        });
        let image_undo = undo.map_err(StackError::at(image, "make the image"))?;
        let file = made.expect("it was made");
        file.set_len(size.0).map_err(StackError::at(image, "make the image"))?;
        let control = Path::new("/dev/loop-control");
        let opened = File::options().read(true).write(true).open(control);
        let opened = opened.map_err(StackError::at(control, "open the loop devices"))?;
        let mut tries = 0;
        loop {
            tries += 1;
            let number = ioctls::free_loop(&opened)
                .map_err(StackError::at(control, "find a free loop device"))?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            match Undo::of(|| attached(&path, &file)) {
                Ok(undo) => return Ok(Self { path, _undo: undo, _image: image_undo }),
                Err(error) if tries < ATTACH_TRIES && is_taken(&error) => {}
                Err(error) => return Err(StackError::at(path, "attach the image")(error)),
            }
        }
    }

    /// Sets the read-ahead of the device; what is returned restores it.
    ///
    /// # Errors
    /// [`StackError::System`] naming the file.
    pub fn set_read_ahead(&self, bytes: Bytes) -> Result<Undo, StackError> {
        let name = self.path.file_name().unwrap_or_default();
        let file = Path::new("/sys/block").join(name).join("queue/read_ahead_kb");
        let set = Undo::of(|| -> io::Result<_> {
            let before = fs::read_to_string(&file)?;
            fs::write(&file, (bytes.0 >> 10).to_string())?;
            let file = file.clone();
            Ok(move || drop(fs::write(file, before)))
        });
        set.map_err(StackError::at(&file, "set the read-ahead"))
    }

    /// The path of the device.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ResourceBusy
}

/// Attaches `file` to the device at `path`. Returns how to undo that; it keeps the device open, so
/// that no other process can get the device before.
fn attached(path: &Path, file: &File) -> io::Result<impl FnOnce() + Send + use<>> {
    let device = File::options().read(true).write(true).open(path)?;
    ioctls::attach(&device, file)?;
    Ok(move || {
        // This fails if the device is detached already; if it is in use, the kernel detaches it at
        // the last close.
        let _ = ioctls::detach(&device);
    })
}

/// The program that makes a file system, its package, and its arguments before the device.
fn maker(fs: FileSystem) -> (&'static str, &'static str, &'static [&'static str]) {
    match fs {
        // Tables are written at once, not in the background by the kernel, where they would count
        // as work of the application. Below 512 MiB the default block size would be 1 KiB, which
        // is not usual on flash drives.
        FileSystem::Ext4 => (
            "mkfs.ext4",
            "e2fsprogs",
            &["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        ),
        FileSystem::Xfs => ("mkfs.xfs", "xfsprogs", &["-q", "-f"]),
        FileSystem::Btrfs | FileSystem::BtrfsNodatacow => {
            ("mkfs.btrfs", "btrfs-progs", &["-q", "-f"])
        }
        FileSystem::F2fs => ("mkfs.f2fs", "f2fs-tools", &["-q", "-f"]),
    }
}

/// The smallest device in bytes: the limit of the program, and for Btrfs, which allows very small
/// devices, a size that leaves space for data next to the copies of metadata.
fn size_min(fs: FileSystem) -> u64 {
    match fs {
        FileSystem::Ext4 => 16 << 20,
        FileSystem::Xfs => 300 << 20,
        FileSystem::Btrfs | FileSystem::BtrfsNodatacow => 256 << 20,
        FileSystem::F2fs => 64 << 20,
    }
}

/// Checks that `fs` can be made with `size` and mounted here.
///
/// # Errors
/// [`StackError`] saying what is missing.
pub(super) fn check(fs: FileSystem, size: Bytes) -> Result<(), StackError> {
    let least = size_min(fs);
    if size.0 < least {
        return Err(StackError::TooSmall { fs, least });
    }
    program(fs)?;
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let (name, _) = fs.mount();
    let is_known = known.lines().any(|line| line.trim() == name);
    let module = Path::new("/sys/module").join(name);
    // Mounting loads a missing module.
    if is_known || module.exists() || has_module(name) {
        return Ok(());
    }
    Err(StackError::NoFileSystem { fs })
}

/// Whether the module `name` is installed for the running kernel.
fn has_module(name: &str) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let list = Path::new("/lib/modules").join(release.trim()).join("modules.dep");
    let list = fs::read_to_string(list).unwrap_or_default();
    list.contains(&format!("/{name}.ko"))
}

/// Folders of system programs that `PATH` may lack.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

fn program(fs: FileSystem) -> Result<PathBuf, StackError> {
    let (program, package, _) = maker(fs);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| file.is_file()).ok_or(StackError::NoProgram { program, package })
}

/// The kernel reserves metadata for each random write in multiples of a node, and with Btrfs's
/// default of 16 KiB a small device that is nearly full writes a few hundred blocks a second. The
/// default was 4 KiB when overwrites were compared (Linux 2.6.37).
const BTRFS_NODES: [&str; 2] = ["-n", "4096"];

/// Makes a file system for `app` on `device`.
pub(super) fn format(fs: FileSystem, app: App, device: &Path) -> Result<(), StackError> {
    let (name, _, arguments) = maker(fs);
    let mut command = Command::new(program(fs)?);
    if app.overwrites().is_some() && fs.mount().0 == "btrfs" {
        command.args(BTRFS_NODES);
    }
    command.args(arguments).arg(device);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    super::child::run(command, name)
}

/// A mounted file system, which is unmounted when this is dropped.
pub(super) struct Mounted {
    folder: PathBuf,
    _undo: Undo,
}

impl Mounted {
    /// Mounts the file system on `device` at `folder`.
    pub fn at(fs: FileSystem, device: &LoopDevice, folder: &Path) -> Result<Self, StackError> {
        let undo = Undo::of(|| -> io::Result<_> {
            let (name, options) = fs.mount();
            mount(device.path(), folder, name, MountFlags::NOATIME, options)?;
            let folder: Arc<Path> = folder.into();
            Ok(move || drop(unmount_now(&folder)))
        });
        let undo = undo.map_err(StackError::at(folder, "mount the file system"))?;
        Ok(Self { folder: folder.to_path_buf(), _undo: undo })
    }

    /// Writes all dirty data of the page cache to the device.
    pub fn sync(&self) -> Result<(), StackError> {
        let synced = self.opened().and_then(|file| Ok(rustix::fs::syncfs(&file)?));
        synced.map_err(StackError::at(&self.folder, "sync the file system"))
    }

    /// Discards all free space.
    pub fn trim(&self) -> Result<(), StackError> {
        let trimmed = self.opened().and_then(|file| ioctls::trim(&file));
        trimmed.map_err(StackError::at(&self.folder, "trim the file system"))
    }

    /// Unmounts the file system, which also drops its page cache.
    pub fn unmount(self) -> Result<(), StackError> {
        let done = unmount_now(&self.folder);
        done.map_err(StackError::at(&self.folder, "unmount the file system"))
    }

    fn opened(&self) -> io::Result<File> {
        File::open(&self.folder)
    }
}

/// Unmounts the file system at `folder`. If it stays in use, it is detached from the tree at once,
/// and unmounted when it is not in use any more.
pub(super) fn unmount_now(folder: &Path) -> io::Result<()> {
    let mut last = Ok(());
    let done = super::retry(|| {
        last = unmount(folder, UnmountFlags::NOFOLLOW).map_err(io::Error::from);
        last.as_ref().err().is_none_or(|error| !is_taken(error))
    });
    if done { last } else { Ok(unmount(folder, UnmountFlags::DETACH)?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_too_small_are_refused() {
        let check = |fs, size| check(fs, Bytes(size)).unwrap_err().to_string();
        let small = check(FileSystem::Xfs, 100 << 20);
        assert!(small.contains("xfs needs at least 314572800 bytes"), "{small}");
        assert!(check(FileSystem::Ext4, 1).contains("--size: ext4"));
    }

    #[test]
    fn what_is_not_mounted_cannot_be_unmounted() {
        let folder = tempfile::tempdir().unwrap();
        unmount_now(folder.path()).unwrap_err();
    }
}
