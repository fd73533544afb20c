//! Opening the cache that a server serves: its device, its engine and its memory.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prism_base::Bytes;
use prism_cache::cache::{BUFFERS_MIN, Durability, Eviction, OpenError, state_bytes};
use prism_cache::items::Items;
use prism_cache::{Cache, Config, Memory};
use prism_flash::{Device, DeviceGeometry, FlashError};
use prism_flashfile::FlashFileError;
use prism_segments::{Shape, Store};

use rustix::event::{EventfdFlags, eventfd};

use crate::device;
use crate::names;
use crate::server::failed;
use crate::space::{self, Shortage};
use crate::statefile::{StateFile, state_path};

/// The cache of a server.
pub type Backend = Cache<Box<dyn Store>>;

/// A cache that was opened, and what is known of its device.
pub struct Opened {
    /// The cache.
    pub cache: Backend,
    /// Its engine.
    pub engine: Engine,
    /// The device, which knows how worn its blocks are; `None` if the cache uses it without the
    /// library.
    pub device: Option<Device>,
    /// An eventfd that is written to when a sync of the state is complete, if commands wait for
    /// that.
    pub synced: Option<Arc<OwnedFd>>,
    /// What the operator has to know of the start, a sentence each.
    pub notes: Vec<String>,
}

prism_base::named_enum! {
    /// The level of the flash library that the cache uses.
    pub enum Engine {
        /// Blocks are allocated, erased and cleaned by the cache.
        Raw = "raw",
        /// The library allocates and erases blocks, the cache cleans.
        Function = "function",
        /// The library maps and cleans, at the level of blocks.
        Policy = "policy",
        /// As a conventional drive: page-level mapping, 25 % over-provisioning.
        Original = "original",
        /// The device itself, without the library: no spare blocks, no wear levelling.
        Ideal = "ideal",
    }
}

/// What is served.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The file of the device, or a block device; `None` for memory.
    pub device: Option<PathBuf>,
    /// The file of the state and of the buffers; `None` for one next to that of the device. A block
    /// device needs one.
    pub state: Option<PathBuf>,
    /// Bytes of a new device; `None` for 1 GiB, or all of a block device. An existing device is
    /// refused with another size.
    pub size: Option<Bytes>,
    /// The engine; `None` for that of an existing device, and `function` for a new one. An existing
    /// device is refused with another engine.
    pub engine: Option<Engine>,
    /// Bytes of memory for the index and for buffers.
    pub memory: Bytes,
    /// Those of them that are for the index; half if `None`.
    pub index: Option<Bytes>,
    /// The longest sum of key and value.
    pub item_max: u64,
    /// What acknowledged changes survive.
    pub durability: Durability,
    /// What may be programmed; `None` for no limit.
    pub writes: Option<WriteLimit>,
    /// The seed of the hashes of keys in a new cache, which decides which keys have the same hash
    /// (the item of one of them is dropped); `None` for one that differs from cache to cache.
    pub hash_seed: Option<u64>,
}

/// A limit of what a cache programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteLimit {
    /// Bytes a second.
    Rate(Bytes),
    /// So many that the mean block lasts for this time from now on, if it endures so many erases.
    Life {
        /// The time.
        time: Duration,
        /// Erases.
        endurance: u32,
    },
}

impl WriteLimit {
    /// Bytes a second for slabs of `bytes` bytes in all, whose blocks were erased `erased` times.
    #[must_use]
    fn rate(self, bytes: u64, erased: f64) -> Bytes {
        match self {
            Self::Rate(rate) => rate,
            Self::Life { time, endurance } => {
                let left = (f64::from(endurance) - erased).max(0.0);
                Bytes((left * bytes as f64 / time.as_secs_f64().max(1.0)) as u64)
            }
        }
    }
}

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The device cannot be opened.
    #[error(transparent)]
    File(#[from] FlashFileError),
    /// The device failed.
    #[error("{device}: {source}")]
    Flash {
        /// Its name.
        device: String,
        /// Why.
        source: FlashError,
    },
    /// The cache cannot be opened.
    #[error("{device}: {source}")]
    Cache {
        /// The name of its device.
        device: String,
        /// Why.
        source: OpenError,
    },
    /// A file, a socket or an address cannot be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// An option does not fit the others.
    #[error("{what}")]
    Option {
        /// What does not fit, and what helps.
        what: String,
    },
}

/// Seconds since 1970.
#[must_use]
pub fn unix_now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Bytes that are written at once: long enough for a file to be written at its full rate.
const CHUNK: u32 = 256 << 10;

impl OpenOptions {
    pub(crate) fn name(&self) -> String {
        self.device.as_ref().map_or("memory".to_owned(), |path| path.display().to_string())
    }

    pub(crate) fn flash(&self, source: FlashError) -> ServerError {
        ServerError::Flash { device: self.name(), source }
    }

    /// The file of the state and of the buffers, if the device is not in memory.
    pub(crate) fn state_path(&self) -> Option<PathBuf> {
        let device = self.device.as_ref()?;
        Some(self.state.clone().unwrap_or_else(|| state_path(device)))
    }

    /// Slabs for which there are buffers.
    pub(crate) fn buffers(&self, shape: &Shape) -> u16 {
        let index = self.index.map_or(self.memory.0 / 2, |index| index.0);
        let buffers = self.memory.0.saturating_sub(index) / u64::from(shape.segment_bytes);
        buffers.clamp(BUFFERS_MIN, 4096) as u16
    }

    /// The memory of the state and of the buffers: as many as an earlier process had, if it had
    /// more.
    fn memory(
        &self,
        shape: &Shape,
        file: Option<&StateFile>,
        wake: Option<&Arc<OwnedFd>>,
    ) -> Result<[Box<dyn Memory>; 2], ServerError> {
        let slab = u64::from(shape.segment_bytes);
        let wanted = u64::from(self.buffers(shape));
        let state = state_bytes(shape).next_multiple_of(4096);
        let Some(file) = file else {
            let zeros = |bytes: u64| Box::new(vec![0; bytes as usize]);
            return Ok([zeros(state), zeros(wanted * slab)]);
        };
        let buffers = wanted.max(file.len().saturating_sub(state) / slab);
        let made = file.make()?;
        let map = |offset, bytes| file.map(&made, offset, bytes, wake.cloned());
        Ok([Box::new(map(0, state)?), Box::new(map(state, buffers * slab)?)])
    }

    /// What to say if the disk is too small for what the files of a device may still grow to.
    fn shortage(&self, path: &Path, geometry: &DeviceGeometry) -> Option<String> {
        // If the system does not say how much is free, the device reports a full disk later.
        let Shortage { file, wanted, free } =
            space::shortage(&self.growth(path, geometry)).ok().flatten()?;
        Some(format!(
            "{file} and what belongs to it may still grow by {wanted}, and its file system has \
             {free} free: when that is full, the cache takes no more items. Make room"
        ))
    }

    /// Refuses names that can be no files, and one file for both purposes.
    fn check_names(&self) -> Result<(), ServerError> {
        let Some(device) = &self.device else { return Ok(()) };
        names::check("--device", device)?;
        let Some(state) = &self.state else { return Ok(()) };
        names::check("--state", state)?;
        if names::are_same(device, state) {
            let what = format!(
                "--state {}: this is the file of --device; give the state a file of its own",
                state.display()
            );
            return Err(ServerError::Option { what });
        }
        Ok(())
    }

    /// Opens the cache.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn open(&self) -> Result<Opened, ServerError> {
        self.check_names()?;
        let device::CacheDevice { engine, store, device, geometry, note } = self.find()?;
        // Before the state takes its space; an existing cache is served all the same.
        let shortage = self.device.as_deref().zip(geometry);
        let shortage = shortage.and_then(|(path, of)| self.shortage(path, &of));
        let file = self.state_path().as_deref().map(StateFile::of).transpose()?;
        if let Some(file) = &file {
            file.examine(&store)?;
        }
        let identity = store.identity();
        let shape = store.shape();
        let synced = match self.durability {
            Durability::Crash => None,
            Durability::PowerLoss => {
                let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
                Some(Arc::new(eventfd(0, flags).map_err(failed("eventfd"))?))
            }
        };
        let [state, memory] = self.memory(&shape, file.as_ref(), synced.as_ref())?;
        let buffers = self.buffers(&shape);
        let in_buffers = u64::from(buffers) * u64::from(shape.segment_bytes);
        let config = Config {
            index_bytes: self
                .index
                .map_or(self.memory.0.saturating_sub(in_buffers), |index| index.0)
                .max(1 << 20),
            buffers,
            eviction: engine.eviction(),
            seed: self.hash_seed.unwrap_or_else(|| {
                identity ^ u64::from(std::process::id()) << 32 ^ u64::from(unix_now())
            }),
            chunk: CHUNK,
            payload: true,
        };
        let opened = Cache::open(store, state, memory, config, unix_now());
        let cache = opened.map_err(|source| ServerError::Cache { device: self.name(), source })?;
        if (cache.longest() as u64) < self.item_max {
            let what = format!(
                "{}: its slabs hold items of up to {}, -I asks for {}; give a smaller limit, or \
                 make a new file",
                self.name(),
                Bytes(cache.longest() as u64),
                Bytes(self.item_max)
            );
            return Err(ServerError::Option { what });
        }
        let cache = cache.with_durability(self.durability);
        let cache = match self.writes {
            Some(limit) => {
                let erases = device.as_ref().map_or(Vec::new(), Device::erase_counts);
                let erased = erases.iter().map(|&erases| f64::from(erases)).sum::<f64>();
                let bytes = u64::from(shape.segments) * u64::from(shape.segment_bytes);
                cache.with_write_limit(limit.rate(bytes, erased / erases.len().max(1) as f64))
            }
            None => cache,
        };
        let losses = file.iter().filter_map(|file| file.losses(&cache));
        let damage = file.iter().filter_map(|file| file.damage(&self.name(), &cache));
        let notes = losses.chain(damage).chain(note).chain(shortage).collect();
        Ok(Opened { cache, engine, device, synced, notes })
    }
}

impl Engine {
    /// What its cleaning does with items.
    #[must_use]
    pub fn eviction(self) -> Eviction {
        match self {
            Self::Raw | Self::Function | Self::Ideal => Eviction::INTEGRATED,
            Self::Policy | Self::Original => Eviction::REINSERTED,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use prism_base::Nanos;
    use prism_cache::items::{Lookup, Meta, NewItem};

    use super::*;

    /// A cache of 64 MiB in a file.
    pub(crate) fn options(path: &Path, engine: Engine) -> OpenOptions {
        let device = Some(path.to_owned());
        OpenOptions {
            device,
            state: None,
            size: Some(Bytes(64 << 20)),
            engine: Some(engine),
            memory: Bytes(16 << 20),
            index: None,
            item_max: 1 << 18,
            durability: Durability::Crash,
            writes: None,
            // With another seed in each run, two keys would have the same hash in one of some
            // thousand runs, and one of their items would be missing.
            hash_seed: Some(1),
        }
    }

    #[test]
    fn a_lifetime_is_a_rate() {
        let year = Duration::from_secs(86_400 * 365);
        let life = WriteLimit::Life { time: 5 * year, endurance: 3000 };
        // 1 TiB, erased 3,000 times in five years.
        assert_eq!(life.rate(1 << 40, 0.0).0 >> 20, 19);
        assert_eq!(life.rate(1 << 40, 1500.0).0 >> 20, 9);
        assert_eq!(life.rate(1 << 40, 4000.0), Bytes(0));
        assert_eq!(WriteLimit::Rate(Bytes(7)).rate(1, 9.0), Bytes(7));
    }

    fn get(cache: &mut Backend, key: &[u8]) -> Option<Vec<u8>> {
        match cache.lookup(key, 1, unix_now()) {
            Lookup::Miss => return None,
            Lookup::Found(item) => return Some(item.value.to_vec()),
            Lookup::Reading(_) => {}
        }
        let mut found = None;
        while !cache.finished(unix_now(), &mut |_, item| found = item.map(|i| i.value.to_vec())) {
            cache.wait(None);
        }
        found
    }

    /// Every engine keeps its items in a file, closed or not, and refuses that of another.
    #[test]
    fn a_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        for engine in Engine::ALL {
            let path = folder.path().join(engine.name());
            for round in 0..3_u32 {
                let mut cache = options(&path, engine).open().unwrap().cache;
                assert_eq!(cache.len(), u64::from(round) * 1000, "{engine:?}");
                for key in 0..round * 1000 {
                    let found = get(&mut cache, &key.to_le_bytes());
                    assert_eq!(found, Some(vec![key as u8; 5000]), "{engine:?}, round {round}");
                }
                (round * 1000..(round + 1) * 1000).for_each(|key| set(&mut cache, key));
                if round == 0 {
                    cache.close().unwrap();
                }
            }
            // It need not be named again, and another one is refused.
            let any = OpenOptions { engine: None, ..options(&path, engine) };
            let Opened { mut cache, engine: found, .. } = any.open().unwrap();
            assert_eq!(found, engine);
            // Slabs that the killed process had in memory were written, and do not count.
            assert!(cache.store().counts().programs > 0, "{engine:?}");
            assert_eq!(cache.write_amplification(), None, "{engine:?}");
            (0..1000).for_each(|key| set(&mut cache, key));
            while !cache.is_idle() {
                cache.wait(None);
            }
            let amplification = cache.write_amplification().expect("slabs are full");
            assert!((0.9..1.3).contains(&amplification), "{engine:?}: {amplification}");
            drop(cache);
            let other = if engine == Engine::Raw { Engine::Policy } else { Engine::Raw };
            let error =
                options(&path, other).open().map(drop).expect_err("another engine").to_string();
            assert!(error.contains(&format!("--engine {}; leave", engine.name())), "{error}");
        }
    }

    #[test]
    fn a_new_device_has_the_usual_engine() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let any = OpenOptions { engine: None, ..options(&path, Engine::Raw) };
        assert_eq!(any.open().unwrap().engine, Engine::Function);
        // Of a file without anything it is not known what it was to be.
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(state_path(&path)).unwrap();
        let geometry = crate::device::geometry(Bytes(64 << 20), 1 << 18).unwrap();
        drop(prism_flashfile::FlashFile::create(&path, geometry).unwrap());
        let error = any.open().map(drop).expect_err("no engine").to_string();
        assert!(error.contains("remove the file"), "{error}");
    }

    fn set(cache: &mut Backend, key: u32) {
        let version = cache.next_version();
        let value: [&[u8]; 2] = [&[key as u8; 5000], b""];
        let (flags, meta) = (0, Meta::default());
        let item = NewItem { key: &key.to_le_bytes(), value, flags, version, meta };
        while cache.insert(item, unix_now()).is_err() {
            assert!(cache.wait(None));
        }
        cache.progress(Nanos(0));
    }

    /// Numbers of slabs are not used again when the state is lost: at the policy level flash still
    /// has the slabs that had them, which would be taken for those in buffers.
    #[test]
    fn what_is_set_after_a_loss_of_the_state_stays() {
        let folder = tempfile::tempdir().unwrap();
        for engine in Engine::ALL {
            // The slab in a buffer goes on in the block of the first slab, or of one before.
            for slabs in [1, 2, 30] {
                let path = folder.path().join(format!("{}-{slabs}", engine.name()));
                let mut cache = options(&path, engine).open().unwrap().cache;
                (0..slabs * 250).for_each(|key| set(&mut cache, key));
                cache.close().unwrap();
                drop(cache);
                std::fs::remove_file(state_path(&path)).unwrap();
                let Opened { mut cache, notes, .. } = options(&path, engine).open().unwrap();
                assert!(notes[0].contains(".cache is missing"), "{engine:?}: {notes:?}");
                set(&mut cache, 7);
                drop(cache);
                let Opened { mut cache, notes, .. } = options(&path, engine).open().unwrap();
                assert_eq!(notes, <[&str; 0]>::default(), "{engine:?}, {slabs} slabs");
                assert!(get(&mut cache, &7_u32.to_le_bytes()).is_some(), "{engine:?}");
            }
        }
    }

    /// Slabs that are missing or damaged on flash are counted, and the operator reads that.
    #[test]
    fn damaged_slabs_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        for engine in Engine::ALL {
            let path = folder.path().join(engine.name());
            let mut cache = options(&path, engine).open().unwrap().cache;
            (0..2000).for_each(|key| set(&mut cache, key));
            cache.close().unwrap();
            let kept = cache.len();
            drop(cache);
            let mut bytes = std::fs::read(&path).unwrap();
            // From the value of a key on, to behind the end of its slab.
            let value = [0x5a; 5000];
            let at = bytes.windows(5000).position(|found| found == value).expect("the value");
            bytes[at..at + (2 << 20)].fill(0);
            std::fs::write(&path, bytes).unwrap();
            let Opened { mut cache, notes, .. } = options(&path, engine).open().unwrap();
            let counts = cache.counts();
            assert!(counts.damaged_slabs > 0, "{engine:?}: {counts:?}");
            assert!(cache.len() < kept, "{engine:?}: {} of {kept}", cache.len());
            let note = notes.first().expect("a note");
            let part = format!("{} slabs of which", counts.damaged_slabs);
            assert!(note.contains(&part) && note.contains("missing or damaged"), "{note}");
            // It is reported once.
            cache.close().unwrap();
            drop(cache);
            let Opened { notes, .. } = options(&path, engine).open().unwrap();
            assert_eq!(notes, <[&str; 0]>::default(), "{engine:?}");
        }
    }

    /// What is missing of the state is lost, and the operator reads that; nothing else is
    /// overwritten.
    #[test]
    fn a_damaged_state_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        for engine in Engine::ALL {
            let path = folder.path().join(engine.name());
            let state = state_path(&path);
            let fill = || {
                let opened = options(&path, engine).open().unwrap();
                let mut cache = opened.cache;
                (0..1000).for_each(|key| set(&mut cache, key));
                cache.close().unwrap();
            };
            let check = |kept: std::ops::RangeInclusive<u64>, parts: &[&str]| {
                let Opened { cache, notes, .. } = options(&path, engine).open().unwrap();
                assert!(kept.contains(&cache.len()), "{engine:?}: {} {notes:?}", cache.len());
                assert_eq!(notes.len(), usize::from(!parts.is_empty()), "{engine:?}: {notes:?}");
                for part in parts {
                    assert!(notes[0].contains(part), "{engine:?}: {part} is not in {notes:?}");
                }
            };
            fill();
            check(1000..=1000, &[]);
            // The loss is reported once.
            std::fs::remove_file(&state).unwrap();
            check(0..=0, &[".cache is missing", "1000 items", "empty"]);
            check(0..=0, &[]);
            fill();
            let change = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut bytes = std::fs::read(&state).unwrap();
                change(&mut bytes);
                std::fs::write(&state, bytes).unwrap();
            };
            change(&|bytes| (bytes[20], bytes[532]) = (99, 99));
            check(0..=0, &["is damaged", "1000 items", "empty"]);
            fill();
            // One copy of the header is enough.
            change(&|bytes| bytes[20] = 99);
            check(1000..=1000, &[]);
            // The bits of one slab, in sectors that begin with its number; the highest bit of that
            // is set if the slab is free.
            change(&|bytes| {
                let mut slabs =
                    bytes[4096..].chunks_exact_mut((1_usize << 16).div_ceil(4032) * 512);
                let used = |slab: &&mut [u8]| slab[0] != 0 && slab[7] == 0;
                slabs.find(used).expect("a slab").fill(0);
            });
            check(1..=999, &["has no record of", "dropped"]);
            change(&|bytes| bytes.truncate(4096));
            check(0..=0, &["has no record of", "dropped"]);
            let refused = |part: &str| {
                let before = std::fs::read(&state).unwrap();
                let error = options(&path, engine).open().map(drop).unwrap_err().to_string();
                assert!(error.contains(part), "{engine:?}: {part} is not in {error}");
                assert_eq!(before, std::fs::read(&state).unwrap(), "{engine:?}");
            };
            change(&|bytes| (bytes[7], bytes[519]) = (b'2', b'2'));
            refused("has version 2");
            std::fs::write(&state, b"a letter").unwrap();
            refused("this is not the state of a cache");
            let other = folder.path().join("other");
            options(&other, engine).open().unwrap();
            std::fs::copy(state_path(&other), &state).unwrap();
            refused("another device");
            // A device that is gone is not made anew.
            std::fs::remove_file(&path).unwrap();
            refused("there is no");
            assert!(!path.exists());
            std::fs::remove_file(&other).unwrap();
            std::fs::remove_file(state_path(&other)).unwrap();
        }
    }
}
