//! The device of a cache: found or made, and the engine that it was made for.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use prism_base::Bytes;
use prism_flash::function::Function;
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::raw::Raw;
use prism_flash::{
    Allocation, Device, DeviceGeometry, FlashError, MemoryDevice, Options, Share, SharedMemory,
};
use prism_flashfile::{FlashFile, FlashFileError};
use prism_segments::{FunctionStore, IdealStore, PolicyStore, RawStore, Store};

use crate::open::{Engine, OpenOptions, ServerError};
use crate::statefile::{StateFile, state_path};

/// Bytes of a page.
const PAGE: u32 = 4096;
/// Channels of a new device.
const CHANNELS: u32 = 4;
/// Slabs of the smallest device.
const SLABS_MIN: u64 = 24;
/// The beginning of the names of shares; the engine's name follows.
const SHARE: &str = "cache-";

/// The engine of a new device if none is named.
const USUAL: Engine = Engine::Function;

/// The store of a cache.
pub(crate) struct CacheDevice {
    pub(crate) engine: Engine,
    pub(crate) store: Box<dyn Store>,
    /// The device of the library, which `ideal` does without.
    pub(crate) device: Option<Device>,
}

/// What a file has.
enum Content {
    /// A device of the library, and a number that only it has.
    Library(Device, u64),
    /// No tables of the library.
    Bare,
}

/// A device for `size` bytes, with blocks that hold two items of the longest kind.
pub(crate) fn geometry(size: Bytes, item_max: u64) -> Result<DeviceGeometry, ServerError> {
    let block = (2 * item_max).next_power_of_two().clamp(1 << 20, 64 << 20);
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
        // Spare blocks for those that fail, and for the device's own tables.
        blocks_per_lun: (blocks.div_ceil(CHANNELS.into()) + 4) as u32,
        pages_per_block: (block / u64::from(PAGE)) as u32,
        page_size: PAGE,
        oob_size: 64,
        max_open_blocks: None,
    })
}

/// Opens a file that a process may have had open which was killed just now: the kernel may need a
/// moment to end its reads and writes.
fn open_soon(path: &Path) -> Result<FlashFile, FlashFileError> {
    const TRIES: u32 = 100;
    for _ in 1..TRIES {
        match FlashFile::open(path) {
            Err(FlashFileError::InUse { .. }) => thread::sleep(Duration::from_millis(20)),
            opened => return opened,
        }
    }
    FlashFile::open(path)
}

/// A file of something else is not overwritten; the server makes its own.
fn explain(error: FlashFileError) -> ServerError {
    match error {
        FlashFileError::NotAFlashFile { file } => ServerError::Option {
            what: format!(
                "{file}: this is not the device of a cache; name another file, or remove this \
                 one if you can lose what it holds: the server makes a new one"
            ),
        },
        error => error.into(),
    }
}

impl OpenOptions {
    /// Finds the device and its engine, or makes it.
    pub(crate) fn find(&self) -> Result<CacheDevice, ServerError> {
        let Some(path) = &self.device else {
            let memory =
                MemoryDevice::new(geometry(self.size, self.item_max)?, prism_flash::Cache::None);
            let memory = memory.map_err(|error| self.flash(error.into()))?;
            if self.engine == Some(Engine::Ideal) {
                let store = IdealStore::new(SharedMemory::from(memory).into(), 0);
                return Ok(CacheDevice {
                    engine: Engine::Ideal,
                    store: Box::new(store),
                    device: None,
                });
            }
            let device = Device::format(memory, Options::default());
            return self.on(device.map_err(|error| self.flash(error))?, 0);
        };
        if !path.exists() {
            StateFile::of(path)?.without_device(&self.name())?;
            let geometry = geometry(self.size, self.item_max)?;
            match self.engine {
                Some(Engine::Ideal) => drop(FlashFile::create(path, geometry)?),
                _ => drop(FlashFile::format(path, geometry, &[], Options::default())?),
            }
            return match self.content(path)? {
                Content::Library(device, identity) => self.on(device, identity),
                Content::Bare => self.bare(path),
            };
        }
        match self.content(path)? {
            Content::Library(device, identity) => self.on(device, identity),
            // A file whose making was interrupted has no tables either.
            Content::Bare if self.engine.is_none() && !state_path(path).exists() => {
                let what = format!(
                    "{}: the file holds no cache; remove the file, and the server makes a new one, \
                     or use it with --engine ideal",
                    self.name()
                );
                Err(ServerError::Option { what })
            }
            Content::Bare => {
                self.agree(Engine::Ideal)?;
                self.bare(path)
            }
        }
    }

    /// Opens a file.
    fn content(&self, path: &Path) -> Result<Content, ServerError> {
        let file = open_soon(path).map_err(explain)?;
        let identity = file.identity();
        match Device::open(file, Options::default()) {
            Ok(device) => Ok(Content::Library(device, identity)),
            Err(FlashError::NotFormatted { .. }) => Ok(Content::Bare),
            Err(error) => Err(self.flash(error)),
        }
    }

    /// The device without the library.
    fn bare(&self, path: &Path) -> Result<CacheDevice, ServerError> {
        let file = open_soon(path).map_err(explain)?;
        let identity = file.identity();
        let store = Box::new(IdealStore::new(Arc::new(file), identity));
        Ok(CacheDevice { engine: Engine::Ideal, store, device: None })
    }

    /// A device of the library.
    fn on(&self, device: Device, identity: u64) -> Result<CacheDevice, ServerError> {
        let (engine, share) = self.share(&device)?;
        let store = store(engine, share, identity).map_err(|error| self.flash(error))?;
        Ok(CacheDevice { engine, store, device: Some(device) })
    }

    /// Refuses another engine than that of the device.
    fn agree(&self, engine: Engine) -> Result<(), ServerError> {
        if self.engine.is_none_or(|wanted| wanted == engine) {
            return Ok(());
        }
        let what = format!(
            "{}: the cache was made with --engine {}; leave --engine away, or remove the file to \
             begin an empty cache",
            self.name(),
            engine.name()
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
        let mut engines = Engine::ALL.into_iter().map(|(engine, _)| engine);
        let Some(engine) = engines.find(|engine| name(*engine) == first.name) else {
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
