//! Devices of file systems: making and opening them. The file system uses the function level of
//! the flash library, which allocates, erases and levels the wear of blocks.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use prism_base::Bytes;
use prism_flash::function::Function;
use prism_flash::{Allocation, DeviceGeometry, FlashError, Options};
use prism_flashfile::{FlashFile, FlashFileError, Settings};
use prism_fs::{Access, Config, Damage, Fs, FsError, Time};
use prism_segments::{FunctionStore, Store};

/// The segments of a device of any kind.
pub type AnyStore = Box<dyn Store + Send>;

/// A file system on a device.
pub struct Device {
    /// The file system.
    pub fs: Fs<AnyStore>,
    /// The device of the flash library, which knows the wear of its blocks; `None` in memory.
    pub flash: Option<prism_flash::Device>,
}

/// The open file of a device that has a file system.
pub struct DeviceFile {
    file: FlashFile,
    path: PathBuf,
    access: Access,
}

/// Why a file system cannot be made, opened or mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The file cannot be used.
    #[error(transparent)]
    File(FlashFileError),
    /// The file is not one of Prism.
    #[error("{0} is not a file of Prism; make a file system with prism mkfs in another file")]
    NotOfPrism(String),
    /// The device failed.
    #[error("{file}: {source}")]
    Flash {
        /// The file.
        file: String,
        /// Why.
        source: FlashError,
    },
    /// The file system cannot be used.
    #[error("{file}: {source}")]
    Fs {
        /// The file.
        file: String,
        /// Why.
        source: FsError,
    },
    /// The file cannot be made.
    #[error("{0}")]
    Option(String),
    /// The kernel refused.
    #[error("cannot mount {file} on {folder}: {source}")]
    Kernel {
        /// The file.
        file: String,
        /// The folder.
        folder: String,
        /// Why.
        source: std::io::Error,
    },
}

impl From<FlashFileError> for MountError {
    fn from(error: FlashFileError) -> Self {
        match error {
            FlashFileError::NotAFlashFile { file } => Self::NotOfPrism(file),
            error => Self::File(error),
        }
    }
}

/// Bytes of a page.
const PAGE: u32 = 4096;
/// Channels of a new device.
const CHANNELS: u32 = 4;
/// The name of the share.
const SHARE: &str = "fs";
/// The smallest device.
pub(crate) const SIZE_MIN: Bytes = Bytes(32 << 20);
/// The largest device: blocks have numbers of 32 bits, and the device has spare ones.
const SIZE_MAX: Bytes = Bytes(15 << 40);

/// The time of day.
#[must_use]
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { secs: since.as_secs() as i64, nanos: since.subsec_nanos() }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

pub(crate) fn flash(path: &Path) -> impl Fn(FlashError) -> MountError {
    let file = name(path);
    move |source| MountError::Flash { file: file.clone(), source }
}

pub(crate) fn fs(path: &Path) -> impl Fn(FsError) -> MountError {
    let file = name(path);
    move |source| MountError::Fs { file: file.clone(), source }
}

/// Segments of a 1000th of the device: large enough to be written at the full rate of a drive,
/// small enough to be cleaned one by one.
pub(crate) fn segment_bytes(size: Bytes) -> u32 {
    (size.0 / 1024).next_power_of_two().clamp(1 << 20, 32 << 20) as u32
}

pub(crate) fn geometry(size: Bytes) -> DeviceGeometry {
    let block = u64::from(segment_bytes(size));
    DeviceGeometry {
        channels: CHANNELS,
        luns_per_channel: 1,
        // Spare blocks for those that fail, and for the device's own tables.
        blocks_per_lun: (size.0.div_ceil(block * u64::from(CHANNELS)) + 4) as u32,
        pages_per_block: (block / u64::from(PAGE)) as u32,
        page_size: PAGE,
        oob_size: 64,
        max_open_blocks: None,
    }
}

/// Makes a file with a device of `size` bytes and a file system on it.
///
/// # Errors
/// [`MountError`]; a file that exists is not overwritten.
pub fn make(path: &Path, size: Bytes) -> Result<Device, MountError> {
    if size < SIZE_MIN {
        let what = format!("--size {size} is too small: a file system needs {SIZE_MIN} or more");
        return Err(MountError::Option(what));
    }
    if size > SIZE_MAX {
        let what = format!("--size {size} is too large: a file system has at most {SIZE_MAX}");
        return Err(MountError::Option(what));
    }
    if let Ok(found) = path.symlink_metadata() {
        let why = match found.is_file() {
            true => "the file exists; remove it if you can lose what it holds, or name another one",
            false if found.is_dir() => "this is a folder; name a file that does not exist",
            false if found.is_symlink() => "this is a link; name a file that does not exist",
            false => "this is no regular file; name one that does not exist",
        };
        return Err(MountError::Option(format!("{}: {why}", name(path))));
    }
    drop(FlashFile::format(path, geometry(size), &[], Options::default())?);
    let made = make_in(path);
    if made.is_err() {
        // Half a file system is of no use.
        let _ = std::fs::remove_file(path);
    }
    made
}

fn make_in(path: &Path) -> Result<Device, MountError> {
    let file = FlashFile::open(path)?;
    let identity = file.identity();
    let device = prism_flash::Device::open(file, Options::default()).map_err(flash(path))?;
    format(device, identity, path, Config::NORMAL)
}

/// Makes a file system on a device without shares, whose name in errors is `path`.
pub(crate) fn format(
    device: prism_flash::Device,
    identity: u64,
    path: &Path,
    config: Config,
) -> Result<Device, MountError> {
    let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
    let share = device.allocate(SHARE, Allocation::new(capacity, 0)).map_err(flash(path))?;
    let function = Function::open(share).map_err(flash(path))?;
    let store: AnyStore = Box::new(FunctionStore::new(function, identity));
    let made = Fs::format(store, identity, config, now()).map_err(fs(path))?;
    Ok(Device { fs: made, flash: Some(device) })
}

/// The device of a flash file, which has a file system.
fn device(file: FlashFile, path: &Path) -> Result<prism_flash::Device, MountError> {
    let device = match prism_flash::Device::open(file, Options::default()) {
        Ok(device) if device.shares().iter().any(|share| share.name == SHARE) => device,
        Ok(_) | Err(FlashError::NotFormatted { .. }) => {
            let what = format!(
                "{}: the device has no file system; make one in another file with prism mkfs",
                name(path)
            );
            return Err(MountError::Option(what));
        }
        Err(error) => return Err(flash(path)(error)),
    };
    Ok(device)
}

/// Opens the file system of a file. For reading nothing in the file changes.
///
/// # Errors
/// [`MountError`].
pub fn open(
    path: &Path,
    config: Config,
    access: Access,
    damage: Damage,
) -> Result<Device, MountError> {
    DeviceFile::open(path, access)?.file_system(config, damage)
}

impl DeviceFile {
    /// Opens the file of a device. For reading nothing in it changes.
    ///
    /// # Errors
    /// [`MountError`].
    pub fn open(path: &Path, access: Access) -> Result<Self, MountError> {
        let settings = match access {
            Access::ReadOnly => Settings::READ_ONLY,
            Access::ReadWrite => {
                // A device of others is not even recovered after a crash. What cannot be read for
                // other reasons fails once more below.
                if let Ok(file) = FlashFile::open_with(path, Settings::READ_ONLY) {
                    device(file, path)?;
                }
                Settings::USUAL
            }
        };
        let file = FlashFile::open_soon_with(path, settings)?;
        if access == Access::ReadWrite
            && let Some(why) = file.refusal()
        {
            let what = format!("{}: {why}; it can be mounted with -o ro", name(path));
            return Err(MountError::Option(what));
        }
        Ok(Self { file, path: path.to_owned(), access })
    }

    /// What is damaged in one copy of what the file has twice, as sentences; opening for writing
    /// has repaired it.
    #[must_use]
    pub fn damage(&self) -> &[String] {
        self.file.damage()
    }

    /// Opens the file system.
    ///
    /// # Errors
    /// [`MountError`].
    pub fn file_system(self, config: Config, damage: Damage) -> Result<Device, MountError> {
        let Self { file, path, access } = self;
        let identity = file.identity();
        let device = device(file, &path)?;
        let share = device.attach(SHARE).map_err(flash(&path))?;
        let function = Function::open(share).map_err(flash(&path))?;
        let store: AnyStore = Box::new(FunctionStore::new(function, identity));
        let mounted = Fs::mount(store, config, now(), access, damage).map_err(fs(&path))?;
        Ok(Device { fs: mounted, flash: Some(device) })
    }
}

/// The file and folder of an error of the kernel.
pub(crate) fn kernel(path: &Path, folder: &Path, source: std::io::Error) -> MountError {
    MountError::Kernel { file: name(path), folder: name(folder), source }
}

/// A path that stays right when the working folder changes.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
