//! Making a file: completely, or no file is left.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Mutex;

use prism_flash::{Device, DeviceGeometry, FlashError, MediumError, Options};

use crate::block_device;
use crate::device::FlashFile;
use crate::engine::Engine;
use crate::error::FlashFileError;
use crate::format::{self, HashKind, Record, Superblock, VERSION};
use crate::journal;
use crate::layout::{Layout, Region, SECTOR};
use crate::lock::Sharing;
use crate::open::{
    SIMULATED, Settings, broken, checked_layout, engine_for, not_opened, take_lock,
    write_superblocks,
};
use crate::simulated::SimulatedFile;

impl FlashFile {
    /// Makes a file with an erased device of `geometry` and opens it. The file is sparse, except
    /// for its tables: it grows on disk as pages are programmed. A block device that is there is
    /// taken if it is long enough and begins with zeros.
    ///
    /// # Errors
    /// [`FlashFileError::Exists`], [`FlashFileError::Geometry`]; [`FlashFileError`] if it cannot be
    /// made; no file is left then.
    pub fn create(path: &Path, geometry: DeviceGeometry) -> Result<Self, FlashFileError> {
        Self::create_with(path, geometry, Settings::USUAL)
    }

    /// As [`FlashFile::create`], with these settings.
    ///
    /// # Errors
    /// As [`FlashFile::create`].
    pub fn create_with(
        path: &Path,
        geometry: DeviceGeometry,
        settings: Settings,
    ) -> Result<Self, FlashFileError> {
        let name = path.display().to_string();
        let layout = checked_layout(&name, geometry)?;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => FlashFileError::Exists { file: name.clone() },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => not_made(&name, source),
            _ => not_opened(path, source),
        };
        let is_block_device = block_device::is_one(path);
        let file = block_device::options(path, true).create_new(!is_block_device).open(path);
        let file = file.map_err(failed)?;
        let lock = take_lock(&name, &file, Sharing::Exclusive);
        let suits = |lock| match is_block_device {
            true => check_block_device(&name, &file, &layout).map(|()| lock),
            false => Ok(lock),
        };
        let lock = match lock.and_then(suits) {
            // A block device is as it was.
            Err(error) if is_block_device => return Err(error),
            lock => lock,
        };
        let made = lock.and_then(|lock| {
            let identity = random_identity()
                .map_err(|source| broken(&name, "reading /dev/urandom", source))?;
            let engine = Engine::Portable(file);
            let zeros = match is_block_device {
                _ if settings.preallocate => Zeros::Everywhere,
                true => Zeros::InTables,
                false => Zeros::InJournal,
            };
            let filled = fill(&engine, &layout, identity, zeros);
            let filled = filled.and_then(|()| keep_name(path));
            filled.map_err(|source| not_made(&name, source))?;
            let Engine::Portable(file) = engine else { unreachable!("as made") };
            let engine = engine_for(path, &name, file, &layout, settings, true)?;
            Self::load(name.clone(), engine, Some(lock), None)
        });
        if made.is_err() {
            remove_incomplete(path);
        }
        made
    }

    /// Makes a file with a formatted device, ready for shares. Blocks in `factory_bad` are never
    /// used, like those that the manufacturer of a real device has marked.
    ///
    /// # Errors
    /// As [`FlashFile::create`]; [`FlashFileError::FactoryBad`] for a block that the device does
    /// not have, [`FlashFileError::Format`] if there are too few blocks for the device's own
    /// tables. No file is left after an error.
    pub fn format(
        path: &Path,
        geometry: DeviceGeometry,
        factory_bad: &[u32],
        options: Options,
    ) -> Result<Device, FlashFileError> {
        Self::format_with(path, geometry, factory_bad, options, Settings::USUAL)
    }

    /// As [`FlashFile::format`], with these settings.
    ///
    /// # Errors
    /// As [`FlashFile::format`].
    pub fn format_with(
        path: &Path,
        geometry: DeviceGeometry,
        factory_bad: &[u32],
        options: Options,
        settings: Settings,
    ) -> Result<Device, FlashFileError> {
        let file = || path.display().to_string();
        let blocks = checked_layout(&file(), geometry)?.geometry.blocks();
        if let Some(&block) = factory_bad.iter().find(|&&block| block >= blocks) {
            return Err(FlashFileError::FactoryBad { file: file(), block, blocks });
        }
        let medium = Self::create_with(path, geometry, settings)?;
        factory_bad.iter().for_each(|&block| medium.mark_factory_bad(block));
        let formatted = Device::format(medium, options);
        formatted.map_err(|error| {
            remove_incomplete(path);
            match error {
                FlashError::Medium(MediumError::DiskFull { .. }) => {
                    not_made(&file(), io::ErrorKind::StorageFull.into())
                }
                error => FlashFileError::Format { file: file(), error },
            }
        })
    }

    /// As [`FlashFile::create`], in a simulated file.
    ///
    /// # Errors
    /// [`FlashFileError::Geometry`].
    pub fn create_simulated(
        file: &SimulatedFile,
        geometry: DeviceGeometry,
    ) -> Result<Self, FlashFileError> {
        let name = SIMULATED.to_owned();
        let layout = checked_layout(&name, geometry)?;
        let engine = Engine::Simulated(Mutex::new(file.open()));
        fill(&engine, &layout, 1, Zeros::InJournal).map_err(|source| not_made(&name, source))?;
        Self::load(name, engine, None, None)
    }
}

fn not_made(name: &str, source: io::Error) -> FlashFileError {
    FlashFileError::Make { file: name.to_owned(), source }
}

/// Makes the name of a new file durable: it is stored in its folder, not in the file.
fn keep_name(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn random_identity() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// An incomplete file is of no use. A block device is as empty as it was, superblocks included.
fn remove_incomplete(path: &Path) {
    // An error is not reported: why the device was not made is more useful.
    let _ = match block_device::is_one(path) {
        true => block_device::blank(path),
        false => std::fs::remove_file(path),
    };
}

/// Whether a device fits on a block device that holds nothing else.
fn check_block_device(name: &str, file: &File, layout: &Layout) -> Result<(), FlashFileError> {
    let failed = |error| broken(name, "reading it", error);
    let (found, wanted) = (block_device::len(file).map_err(failed)?, layout.len());
    if found < wanted {
        return Err(FlashFileError::TooShort { file: name.to_owned(), found, wanted });
    }
    if !block_device::is_blank(file).map_err(failed)? {
        return Err(FlashFileError::NotBlank { file: name.to_owned() });
    }
    Ok(())
}

/// Where a new device gets zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zeros {
    /// In the journal only, as every sync overwrites some of it; the rest is zero already.
    InJournal,
    /// In the tables too. Data is not read before it is written.
    InTables,
    /// Everywhere.
    Everywhere,
}

/// Writes an empty device: the superblocks last, so that an incomplete file is not a flash file.
fn fill(engine: &Engine, layout: &Layout, identity: u64, zeros: Zeros) -> io::Result<()> {
    engine.set_len(layout.len())?;
    let blocks = layout.geometry.blocks() as usize;
    let mut bytes = Vec::with_capacity(layout.record_sectors as usize * SECTOR);
    for sector in 0..layout.record_sectors {
        let left = blocks - (sector * Layout::RECORDS) as usize;
        let records = vec![Record::default(); left.min(Layout::RECORDS as usize)];
        bytes.extend(format::encode_records(identity, 0, sector, &records));
    }
    if zeros == Zeros::InTables {
        engine.write_zeros(Region { start: 0, len: layout.data.start })?;
    }
    let start = match zeros {
        Zeros::InJournal => layout.journal.start,
        Zeros::InTables => layout.data.end(),
        Zeros::Everywhere => 0,
    };
    engine.write_zeros(Region { start, len: layout.len() - start })?;
    for copy in layout.records {
        engine.write_at(copy.start, &bytes)?;
    }
    for copy in 0..2 {
        engine.write_at(layout.head_at(copy), &journal::encode_head(identity, 1))?;
    }
    engine.sync()?;
    let superblock =
        Superblock { version: VERSION, hash: HashKind::Xxh3, identity, geometry: layout.geometry };
    write_superblocks(engine, superblock)?;
    engine.sync()
}
