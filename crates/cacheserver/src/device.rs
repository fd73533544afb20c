//! The device of a cache: found or made, and the engine that it was made for.

use std::path::Path;
use std::sync::Arc;

use prism_base::Bytes;
use prism_cache::cache::state_bytes;
use prism_flash::function::Function;
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::raw::Raw;
use prism_flash::{
    Allocation, Device, DeviceGeometry, FlashError, Medium, MemoryDevice, Options, Share,
    SharedMemory,
};
use prism_flashfile::{FlashFile, FlashFileError, block_device_len, erase_command, file_len};
use prism_segments::{FunctionStore, IdealStore, PolicyStore, RawStore, Shape, Store};

use crate::open::{Engine, OpenOptions, ServerError};
use crate::space::{Growth, Shortage, shortage};
use crate::statefile::StateFile;

/// Bytes of a page.
const PAGE: u32 = 4096;
/// Channels of a new device.
const CHANNELS: u32 = 4;
/// Blocks of a LUN that are spare for those that fail, and for the device's own tables.
const SPARE: u64 = 4;
/// Slabs of the smallest device.
const SLABS_MIN: u64 = 24;
/// The largest device: with its spare blocks, of up to 64 MiB, a cache has less than 1 TiB of
/// slabs, which is what its index can address.
const SIZE_MAX: Bytes = Bytes(1022 << 30);
/// The beginning of the names of shares; the engine's name follows.
const SHARE: &str = "cache-";

/// The size of a new device in a file or in memory if none is given.
const USUAL_SIZE: Bytes = Bytes(1 << 30);
/// The engine of a new device if none is named.
const USUAL: Engine = Engine::Function;

/// The store of a cache.
pub(crate) struct CacheDevice {
    pub(crate) engine: Engine,
    pub(crate) store: Box<dyn Store>,
    /// The device of the library, which `ideal` does without.
    pub(crate) device: Option<Device>,
    /// The geometry of a file.
    pub(crate) geometry: Option<DeviceGeometry>,
    /// What the operator has to know, if there is anything.
    pub(crate) note: Option<String>,
}

/// A file that was opened.
struct DeviceFile {
    /// The device of the library, if the file has its tables.
    library: Option<Device>,
    /// A number that only this file has.
    identity: u64,
    geometry: DeviceGeometry,
}

/// Bytes of a block that holds two items of the longest kind.
fn block_bytes(item_max: u64) -> u64 {
    (2 * item_max).next_power_of_two().clamp(1 << 20, 64 << 20)
}

/// A device for `size` bytes, with blocks that hold two items of the longest kind.
pub(crate) fn geometry(size: Bytes, item_max: u64) -> Result<DeviceGeometry, ServerError> {
    let block = block_bytes(item_max);
    if size > SIZE_MAX {
        let what = format!(
            "--size {size} is too large: a cache has at most {SIZE_MAX} of flash; give it that, or \
             several servers a part each"
        );
        return Err(ServerError::Option { what });
    }
    let blocks = size.0.div_ceil(block);
    if blocks < SLABS_MIN {
        let what = format!(
            "--size {size} is too small: items of up to {} need slabs of {}, and a cache at least \
             {SLABS_MIN} of them; give it {} or limit items by -I",
            Bytes(item_max),
            Bytes(block),
            Bytes(block * SLABS_MIN)
        );
        return Err(ServerError::Option { what });
    }
    Ok(DeviceGeometry {
        channels: CHANNELS,
        luns_per_channel: 1,
        blocks_per_lun: (blocks.div_ceil(CHANNELS.into()) + SPARE) as u32,
        pages_per_block: (block / u64::from(PAGE)) as u32,
        page_size: PAGE,
        oob_size: 64,
        max_open_blocks: None,
    })
}

/// The size with which a device of this geometry was made, rounded to whole blocks of all LUNs.
fn size_of(geometry: &DeviceGeometry) -> Bytes {
    let blocks = u64::from(geometry.blocks_per_lun).saturating_sub(SPARE);
    Bytes(u64::from(geometry.luns()) * blocks * geometry.block_bytes())
}

/// A file of something else is not overwritten; the server makes its own.
fn explain(error: ServerError) -> ServerError {
    match error {
        ServerError::File(FlashFileError::NotAFlashFile { file }) => ServerError::Option {
            what: format!(
                "{file}: this is not the device of a cache; name another file, or remove this \
                 one if you can lose what it holds: the server makes a new one"
            ),
        },
        error => error,
    }
}

impl OpenOptions {
    /// Finds the device and its engine, or makes it.
    pub(crate) fn find(&self) -> Result<CacheDevice, ServerError> {
        let Some(path) = &self.device else {
            let memory = MemoryDevice::new(
                geometry(self.new_size(), self.item_max)?,
                prism_flash::Cache::None,
            );
            let memory = memory.map_err(|error| self.flash(error.into()))?;
            if self.engine == Some(Engine::Ideal) {
                let store = IdealStore::new(SharedMemory::from(memory).into(), 0);
                return Ok(CacheDevice {
                    engine: Engine::Ideal,
                    store: Box::new(store),
                    device: None,
                    geometry: None,
                    note: None,
                });
            }
            let device = Device::format(memory, Options::default());
            return self.on(device.map_err(|error| self.flash(error))?, 0, None);
        };
        let block_device = block_device_len(path).map_err(|source| ServerError::Io {
            what: format!("{}: cannot find out how long it is", self.name()),
            source,
        })?;
        if block_device.is_some() && self.state.is_none() {
            let what = format!(
                "{}: this is a block device; name a file for the state of the cache by --state, on \
                 a disk that is there after a restart",
                self.name()
            );
            return Err(ServerError::Option { what });
        }
        if !path.exists() {
            return self.make(path, geometry(self.new_size(), self.item_max)?);
        }
        let file = match (self.file(path), block_device) {
            (Err(ServerError::File(FlashFileError::NotAFlashFile { .. })), Some(bytes)) => {
                let geometry = self.geometry_of(Bytes(bytes))?;
                let note = self.note_of_rest(&geometry, Bytes(bytes));
                return Ok(CacheDevice { note, ..self.make(path, geometry)? });
            }
            (file, _) => file.map_err(explain)?,
        };
        self.agree_on_size(&file.geometry)?;
        if file.library.is_none() {
            // A file whose making was interrupted has no tables either.
            if self.engine.is_none() && !self.state_path().is_some_and(|path| path.exists()) {
                let what = format!(
                    "{}: the file holds no cache; {}, and the server makes a new one, or use it \
                     with --engine ideal",
                    self.name(),
                    self.removal(path)
                );
                return Err(ServerError::Option { what });
            }
            self.agree(Engine::Ideal)?;
        }
        self.of_file(path, file)
    }

    /// Bytes of a new device.
    fn new_size(&self) -> Bytes {
        self.size.unwrap_or(USUAL_SIZE)
    }

    /// The geometry of a new device on a block device of `bytes` bytes.
    fn geometry_of(&self, bytes: Bytes) -> Result<DeviceGeometry, ServerError> {
        let block = block_bytes(self.item_max);
        let mut size = self.size.unwrap_or(Bytes(bytes.0 / block * block).min(SIZE_MAX));
        loop {
            let geometry = geometry(size, self.item_max)?;
            let needed = file_len(geometry);
            if needed <= bytes {
                return Ok(geometry);
            }
            if self.size.is_some() {
                let what = format!(
                    "--size {size}: that needs {needed}, and {} has {bytes}; leave --size away to \
                     use all of it",
                    self.name()
                );
                return Err(ServerError::Option { what });
            }
            // Tables and spare blocks come on top.
            let less = (needed.0 - bytes.0).div_ceil(block) * block;
            size = Bytes(size.0.saturating_sub(less));
        }
    }

    /// The part of a block device that its cache cannot use.
    fn note_of_rest(&self, geometry: &DeviceGeometry, bytes: Bytes) -> Option<String> {
        let used = file_len(*geometry);
        let is_cut = self.size.is_none() && size_of(geometry) == SIZE_MAX;
        is_cut.then(|| {
            format!(
                "{}: the cache takes {used} of the {bytes} of this block device: it has at most \
                 {SIZE_MAX} of flash",
                self.name()
            )
        })
    }

    /// How to make a device one on which the server makes a new cache.
    fn removal(&self, path: &Path) -> String {
        match block_device_len(path) {
            Ok(Some(_)) => format!("erase its beginning ({})", erase_command(&self.name())),
            _ => "remove the file".to_owned(),
        }
    }

    /// Makes a device.
    fn make(&self, path: &Path, geometry: DeviceGeometry) -> Result<CacheDevice, ServerError> {
        if let Some(state) = self.state_path() {
            StateFile::of(&state)?.without_device(&self.name())?;
        }
        self.refuse_shortage(path, &geometry)?;
        match self.engine {
            Some(Engine::Ideal) => drop(FlashFile::create(path, geometry)?),
            _ => drop(FlashFile::format(path, geometry, &[], Options::default())?),
        }
        self.of_file(path, self.file(path)?)
    }

    /// Refuses another size than that of the device.
    fn agree_on_size(&self, geometry: &DeviceGeometry) -> Result<(), ServerError> {
        let row = u64::from(geometry.luns()) * geometry.block_bytes();
        let Some(size) = self.size else { return Ok(()) };
        if size.0.div_ceil(row) * row == size_of(geometry).0 {
            return Ok(());
        }
        let what = format!(
            "--size {size}: {} was made with {}, and keeps its size; leave --size away, or make a \
             new device",
            self.name(),
            size_of(geometry)
        );
        Err(ServerError::Option { what })
    }

    /// Opens a file.
    fn file(&self, path: &Path) -> Result<DeviceFile, ServerError> {
        let file = FlashFile::open_soon(path)?;
        let (identity, geometry) = (file.identity(), *file.geometry());
        let library = match Device::open(file, Options::default()) {
            Ok(device) => Some(device),
            Err(FlashError::NotFormatted { .. }) => None,
            Err(error) => return Err(self.flash(error)),
        };
        Ok(DeviceFile { library, identity, geometry })
    }

    /// The store in a file, by its engine.
    fn of_file(&self, path: &Path, file: DeviceFile) -> Result<CacheDevice, ServerError> {
        let DeviceFile { library, identity, geometry } = file;
        match library {
            Some(device) => self.on(device, identity, Some(geometry)),
            None => self.bare(path),
        }
    }

    /// The files of a cache with a device of this geometry, when they are full.
    pub(crate) fn growth(&self, path: &Path, geometry: &DeviceGeometry) -> Vec<Growth> {
        let shape = Shape {
            segments: geometry.blocks(),
            segment_bytes: geometry.block_bytes() as u32,
            page_bytes: geometry.page_size,
            channels: geometry.channels,
            dynamic_reserve: true,
        };
        let buffers = u64::from(self.buffers(&shape)) * geometry.block_bytes();
        let state = self.state_path();
        let state = state.map(|path| Growth { path, bytes: state_bytes(&shape) + buffers });
        // A block device has its size.
        let has_size = block_device_len(path).is_ok_and(|len| len.is_some());
        let device = Growth { path: path.to_owned(), bytes: file_len(*geometry).0 };
        Some(device).filter(|_| !has_size).into_iter().chain(state).collect()
    }

    /// Refuses to make a device for which there is no space.
    fn refuse_shortage(&self, path: &Path, geometry: &DeviceGeometry) -> Result<(), ServerError> {
        let found = shortage(&self.growth(path, geometry)).map_err(|source| ServerError::Io {
            what: format!("{}: cannot find out how much space is free", self.name()),
            source,
        })?;
        let Some(Shortage { file, wanted, free }) = found else { return Ok(()) };
        let what = format!(
            "--size {}: {file} and what belongs to it take up to {wanted}, and its file system has \
             {free} free; make room, or give a smaller --size or --memory",
            size_of(geometry)
        );
        Err(ServerError::Option { what })
    }

    /// The device without the library.
    fn bare(&self, path: &Path) -> Result<CacheDevice, ServerError> {
        let file = FlashFile::open_soon(path)?;
        let (identity, geometry) = (file.identity(), *file.geometry());
        let store = Box::new(IdealStore::new(Arc::new(file), identity));
        let geometry = Some(geometry);
        Ok(CacheDevice { engine: Engine::Ideal, store, device: None, geometry, note: None })
    }

    /// A device of the library.
    fn on(
        &self,
        device: Device,
        identity: u64,
        geometry: Option<DeviceGeometry>,
    ) -> Result<CacheDevice, ServerError> {
        let (engine, share) = self.share(&device)?;
        let store = store(engine, share, identity).map_err(|error| self.flash(error))?;
        Ok(CacheDevice { engine, store, device: Some(device), geometry, note: None })
    }

    /// Refuses another engine than that of the device.
    fn agree(&self, engine: Engine) -> Result<(), ServerError> {
        if self.engine.is_none_or(|wanted| wanted == engine) {
            return Ok(());
        }
        let what = format!(
            "{}: the cache was made with --engine {}; leave --engine away, or {} to begin an empty \
             cache",
            self.name(),
            engine.name(),
            self.device.as_deref().map_or(String::new(), |path| self.removal(path))
        );
        Err(ServerError::Option { what })
    }

    /// The share of the cache, and the engine for which it was made.
    fn share(&self, device: &Device) -> Result<(Engine, Share), ServerError> {
        let name = |engine: Engine| format!("{SHARE}{}", engine.name());
        let Some(first) = device.shares().into_iter().next() else {
            let engine = self.engine.unwrap_or(USUAL);
            let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
            let share = device.allocate(&name(engine), Allocation::new(capacity, 0));
            return Ok((engine, share.map_err(|error| self.flash(error))?));
        };
        let Some(engine) = Engine::ALL.into_iter().find(|engine| name(*engine) == first.name)
        else {
            let what = format!(
                "{}: the device has a share {:?} of another program; give the cache a file of its \
                 own",
                self.name(),
                first.name
            );
            return Err(ServerError::Option { what });
        };
        self.agree(engine)?;
        Ok((engine, device.attach(&first.name).map_err(|error| self.flash(error))?))
    }
}

fn store(engine: Engine, share: Share, identity: u64) -> Result<Box<dyn Store>, FlashError> {
    let mapping = match engine {
        Engine::Raw => return Ok(Box::new(RawStore::new(Raw::open(share)?, identity))),
        Engine::Function => {
            return Ok(Box::new(FunctionStore::new(Function::open(share)?, identity)));
        }
        Engine::Policy => Mapping::Block,
        Engine::Original => Mapping::Page,
        Engine::Ideal => unreachable!("it has no share"),
    };
    let blocks = share.geometry()?.blocks();
    let policy = Policy::open(share)?;
    let ranges = policy.ranges();
    let bytes = match ranges.first() {
        Some(range) => range.end - range.begin,
        None => {
            // Four fifths of what is left next to the level's own blocks.
            let bytes = u64::from((blocks - 12) * 4 / 5) * policy.block_bytes();
            let over_provisioning = OverProvisioning::Percent(22);
            let config =
                RangeConfig { over_provisioning, ..RangeConfig::new(mapping, Cleaning::Greedy) };
            policy.configure(0, bytes, config)?;
            bytes
        }
    };
    Ok(Box::new(PolicyStore::new(policy, 0, bytes, identity)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::tests::options as usual;

    /// An index addresses less than 1 TiB.
    #[test]
    fn a_device_has_a_largest_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device");
        let options = |size: Option<u64>, item_max: u64| OpenOptions {
            size: size.map(Bytes),
            engine: None,
            item_max,
            ..usual(&path, USUAL)
        };
        for item_max in [1 << 10, 1 << 20, 32 << 20] {
            // Not more is made of a larger block device.
            for terabytes in [1, 2, 9, 1000] {
                let bytes = Bytes(terabytes << 40);
                let all = options(None, item_max);
                let geometry = all.geometry_of(bytes).unwrap();
                let slabs = u64::from(geometry.blocks()) * geometry.block_bytes();
                assert!((990 << 30..1 << 40).contains(&slabs), "{slabs}");
                let note = all.note_of_rest(&geometry, bytes);
                assert_eq!(note.is_some(), terabytes > 1, "{note:?}");
            }
            let less = options(None, item_max);
            let geometry = less.geometry_of(Bytes(900 << 30)).unwrap();
            assert_eq!(less.note_of_rest(&geometry, Bytes(900 << 30)), None);
            for size in [SIZE_MAX.0 + 1, 1 << 40, 9 << 40, u64::MAX] {
                let error = options(Some(size), item_max).open().map(drop).expect_err("too large");
                let error = error.to_string();
                assert!(error.contains("is too large") && error.contains("1022 GiB"), "{error}");
                assert!(!path.exists() && !crate::state_path(&path).exists());
            }
        }
    }

    #[test]
    fn a_shortage_names_the_size_of_the_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device");
        let (memory, index) = (Bytes(1 << 50), Some(Bytes(1 << 20)));
        let options = OpenOptions { memory, index, item_max: 32 << 20, ..usual(&path, USUAL) };
        // Its buffers have 256 GiB.
        let geometry = geometry(SIZE_MAX, 32 << 20).unwrap();
        let error = options.refuse_shortage(&path, &geometry).expect_err("no such disk");
        assert!(error.to_string().starts_with("--size 1022 GiB: "), "{error}");
    }
}
