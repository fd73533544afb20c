//! Opening a file: locks it, finds its superblock and chooses the engine. `recover` does the rest.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use prism_flash::DeviceGeometry;
use rustix::fs::OFlags;

use crate::block_device;
use crate::device::FlashFile;
use crate::engine::{Direct, Engine, is_unreadable};
use crate::error::FlashFileError;
use crate::format::{Superblock, SuperblockError, VERSION};
use crate::layout::{ALIGN, Layout, Region, SECOND_SUPERBLOCK, SECTOR};
use crate::lock::{self, Lock, Sharing};
use crate::simulated::SimulatedFile;
use crate::state::Core;

/// How pages are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// By io_uring and direct I/O where the system has both and pages are multiples of
    /// 4 KiB, else portably.
    Best,
    /// By io_uring and direct I/O, or not at all.
    Uring,
    /// By plain reads and writes through the page cache.
    Portable,
}

/// How the device is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing; only reading without permission to write the file.
    Write,
    /// Only reading. Others may read at the same time.
    Read,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How pages are read and written.
    pub engine: EngineChoice,
    /// Limit of writes in flight of each of the four writers for blocking calls. Each takes a page
    /// of memory. Queues have a depth of their own.
    pub depth: u32,
    /// How the device is accessed.
    pub access: Access,
    /// Whether creation writes zeros to the whole file. The file then takes its space at once, and
    /// syncs are twice as fast: only for places written before, a sync of the disk changes no
    /// metadata of the file system. Opening ignores it.
    pub preallocate: bool,
}

impl Settings {
    /// The fastest engine, 64 operations in flight, for reading and writing; a sparse file.
    pub const USUAL: Self =
        Self { engine: EngineChoice::Best, depth: 64, access: Access::Write, preallocate: false };
    /// The defaults, for reading only.
    pub const READ_ONLY: Self = Self { access: Access::Read, ..Self::USUAL };
}

/// Limit of operations in flight: more make no disk faster.
const DEPTH_MAX: u32 = 1024;

impl FlashFile {
    /// Opens a file for reading and writing, or for reading only without permission to write it.
    /// Recovers from a power failure, and converts a file of an older version, which older programs
    /// then refuse.
    ///
    /// # Errors
    /// [`FlashFileError::InUse`] if another process has it open (or this one), and the errors of
    /// reading the file.
    pub fn open(path: &Path) -> Result<Self, FlashFileError> {
        Self::open_with(path, Settings::USUAL)
    }

    /// As [`FlashFile::open`], for a file that a process may have had open which was killed just
    /// now: the kernel may need a moment to end its reads and writes, which this waits for.
    ///
    /// # Errors
    /// As [`FlashFile::open`]; that the file is in use after two seconds.
    pub fn open_soon(path: impl AsRef<Path>) -> Result<Self, FlashFileError> {
        Self::open_soon_with(path.as_ref(), Settings::USUAL)
    }

    /// As [`FlashFile::open_soon`], with these settings.
    ///
    /// # Errors
    /// As [`FlashFile::open_soon`].
    pub fn open_soon_with(path: &Path, settings: Settings) -> Result<Self, FlashFileError> {
        lock::soon(|| Self::open_with(path, settings))
    }

    /// As [`FlashFile::open`], with these settings.
    ///
    /// # Errors
    /// As [`FlashFile::open`].
    pub fn open_with(path: &Path, settings: Settings) -> Result<Self, FlashFileError> {
        let name = path.display().to_string();
        if is_of_no_use(path) {
            return Err(FlashFileError::NotAFlashFile { file: name });
        }
        let open = |write| block_device::options(path, write).open(path);
        let (file, refusal) = match settings.access {
            Access::Read => (open(false), Some("it was opened for reading only".to_owned())),
            Access::Write => match open(true) {
                Err(error) if is_denied(&error) => {
                    let why = "the file may not be written; change its mode and open it again";
                    (open(false), Some(why.to_owned()))
                }
                opened => (opened, None),
            },
        };
        let file = file.map_err(|source| not_opened(path, source))?;
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            // A folder can be opened for reading only.
            return Err(not_opened(path, io::ErrorKind::IsADirectory.into()));
        }
        let sharing = if refusal.is_some() { Sharing::Readers } else { Sharing::Exclusive };
        let lock = take_lock(&name, &file, sharing)?;
        let engine = Engine::Portable(file);
        let superblock = find_superblock(&name, &engine)?.superblock;
        let layout = checked_layout(&name, superblock.geometry)?;
        let Engine::Portable(file) = engine else { unreachable!("as made") };
        let engine = engine_for(path, &name, file, &layout, settings, refusal.is_none())?;
        Self::load(name, engine, Some(lock), refusal)
    }

    /// As [`FlashFile::open`], from a simulated file.
    ///
    /// # Errors
    /// [`FlashFileError`].
    pub fn open_simulated(file: &SimulatedFile) -> Result<Self, FlashFileError> {
        Self::load(SIMULATED.to_owned(), Engine::Simulated(Mutex::new(file.open())), None, None)
    }

    /// Reads the superblock, the block records and the journal, and repairs or converts the file.
    pub(crate) fn load(
        name: String,
        engine: Engine,
        lock: Option<Lock>,
        refusal: Option<String>,
    ) -> Result<Self, FlashFileError> {
        if refusal.is_none() {
            settle(&engine).map_err(|e| broken(&name, "syncing it", e))?;
        }
        let SuperblockFound { superblock, mut damage, differ } = find_superblock(&name, &engine)?;
        let geometry = superblock.geometry;
        let layout = checked_layout(&name, geometry)?;
        let found = engine.len().map_err(|e| broken(&name, "asking for its length", e))?;
        let wanted = superblock.file_len(&layout);
        if found < wanted {
            return Err(FlashFileError::Truncated { file: name, found, wanted });
        }
        let mut core = Core::new(name, layout, superblock, engine, refusal);
        if core.refusal.is_none() {
            core.forget_cached_tables()?;
        }
        let stale = core.load_tables(&mut damage)?;
        core.publish();
        if core.refusal.is_none() {
            core.repair(&stale, differ)?;
        }
        core.damage = damage;
        Ok(Self::new(core, lock))
    }
}

pub(crate) const SIMULATED: &str = "simulated file";

pub(crate) fn checked_layout(
    name: &str,
    geometry: DeviceGeometry,
) -> Result<Layout, FlashFileError> {
    let file = || name.to_owned();
    geometry.check().map_err(|error| FlashFileError::Geometry { file: file(), error })?;
    Ok(Layout::new(geometry))
}

pub(crate) fn broken(name: &str, operation: &'static str, source: io::Error) -> FlashFileError {
    FlashFileError::Io { file: name.to_owned(), operation, source }
}

pub(crate) fn not_opened(path: &Path, source: io::Error) -> FlashFileError {
    let file = path.display().to_string();
    if source.kind() != io::ErrorKind::ResourceBusy {
        return FlashFileError::Open { file, source };
    }
    // The kernel's answer for a block device that it uses itself, or that another process has open
    // as its own: such a process has locked it, too.
    let locked =
        File::open(path).and_then(|found| Ok((lock::lock(&found, Sharing::Readers)?, found)));
    match locked {
        Ok((None, found)) => FlashFileError::InUse { file, pid: lock::holder(&found) },
        _ => FlashFileError::Mounted { file },
    }
}

/// Whether this is a pipe, a socket or a character device. To open a pipe would wait for its other
/// end.
fn is_of_no_use(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_char_device()
    })
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Makes the writes of a process that died durable, and drops the superblocks from the page cache:
/// if a sync of that process failed, the cache has them as clean, and the disk has older ones.
fn settle(engine: &Engine) -> io::Result<()> {
    engine.sync()?;
    engine.forget_cached(Region { start: 0, len: SECOND_SUPERBLOCK + ALIGN })
}

pub(crate) fn take_lock(name: &str, file: &File, sharing: Sharing) -> Result<Lock, FlashFileError> {
    match lock::lock(file, sharing) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(FlashFileError::InUse { file: name.to_owned(), pid: lock::holder(file) }),
        Err(error) => Err(broken(name, "locking it", error)),
    }
}

/// A page of the file with these bytes first, then zeros. Superblocks, records and heads are
/// written in whole pages: for a part of one the kernel would read the rest, which the disk may not
/// be able to.
pub(crate) fn whole_page(bytes: &[u8]) -> [u8; ALIGN as usize] {
    let mut page = [0; ALIGN as usize];
    page[..bytes.len()].copy_from_slice(bytes);
    page
}

pub(crate) fn write_superblocks(engine: &Engine, superblock: Superblock) -> io::Result<()> {
    let page = whole_page(&superblock.encode());
    engine.write_at(0, &page)?;
    engine.write_at(SECOND_SUPERBLOCK, &page)
}

/// A superblock.
pub(crate) struct SuperblockFound {
    superblock: Superblock,
    /// Which copy is damaged.
    damage: Vec<String>,
    /// Whether the copies differ: one is damaged, or power failed during a conversion.
    differ: bool,
}

/// Finds the superblock; of two whole ones, that of the higher version.
fn find_superblock(name: &str, engine: &Engine) -> Result<SuperblockFound, FlashFileError> {
    let file = || name.to_owned();
    let found = engine.len().map_err(|e| broken(name, "asking for its length", e))?;
    let failed = Cell::new(None);
    let read = |at: u64| {
        let mut sector = [0; SECTOR];
        match engine.read_at(at, &mut sector) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Err(SuperblockError::NoMagic))
            }
            Err(error) if is_unreadable(&error) => {
                failed.set(Some(error));
                Ok(Err(SuperblockError::Damaged))
            }
            Err(error) => Err(broken(name, "reading the superblock", error)),
            Ok(()) => Ok(Superblock::decode(&sector)),
        }
    };
    let copies = [read(0)?, read(SECOND_SUPERBLOCK)?];
    let damaged = |superblock, copy: u32| {
        let damage = format!("copy {copy} of the superblock is damaged; the other is whole");
        SuperblockFound { superblock, damage: vec![damage], differ: true }
    };
    match copies {
        [Err(SuperblockError::Newer(version)), _] | [_, Err(SuperblockError::Newer(version))] => {
            Err(FlashFileError::Newer { file: file(), version, known: VERSION })
        }
        [Ok(one), Ok(two)] => {
            let superblock = if two.version > one.version { two } else { one };
            Ok(SuperblockFound { superblock, damage: Vec::new(), differ: one != two })
        }
        [Ok(one), Err(_)] if found > SECOND_SUPERBLOCK => Ok(damaged(one, 2)),
        [Err(_), Ok(two)] => Ok(damaged(two, 1)),
        [Ok(one), Err(_)] => {
            let wanted = one.file_len(&Layout::new(one.geometry));
            Err(FlashFileError::Truncated { file: file(), found, wanted })
        }
        [Err(SuperblockError::NoMagic), Err(SuperblockError::NoMagic)] => {
            Err(FlashFileError::NotAFlashFile { file: file() })
        }
        _ => Err(match failed.take() {
            Some(error) => broken(name, "reading the superblock", error),
            None => {
                let what = "the superblock is".to_owned();
                FlashFileError::Damaged { file: file(), what, at: 0 }
            }
        }),
    }
}

/// The requested engine, or the best available one.
pub(crate) fn engine_for(
    path: &Path,
    name: &str,
    file: File,
    layout: &Layout,
    settings: Settings,
    write: bool,
) -> Result<Engine, FlashFileError> {
    if settings.engine == EngineChoice::Portable {
        return Ok(Engine::Portable(file));
    }
    let uring = || {
        if !layout.fits_direct_io() {
            let what = format!("direct I/O needs pages that are multiples of {ALIGN} bytes");
            return Err(io::Error::other(what));
        }
        let flags = OFlags::DIRECT.bits() as i32;
        let direct = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path)?;
        let (ours, theirs) = (file.metadata()?, direct.metadata()?);
        if (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()) {
            return Err(io::Error::other("another file has taken its name"));
        }
        let depth = settings.depth.clamp(1, DEPTH_MAX) as usize;
        let page_size = layout.geometry.page_size as usize;
        Direct::new(file.try_clone()?, direct, page_size, depth)
    };
    match uring() {
        Ok(direct) => Ok(Engine::Uring(Box::new(direct))),
        Err(_) if settings.engine == EngineChoice::Best => Ok(Engine::Portable(file)),
        Err(error) => {
            let what =
                format!("no io_uring with direct I/O here: {error}; use the portable engine");
            Err(FlashFileError::Engine { file: name.to_owned(), what })
        }
    }
}
