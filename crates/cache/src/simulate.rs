//! Simulations: requests against a cache without payload.

use prism_base::{Bytes, Nanos};

use crate::cache::{
    BUFFERS_MIN, Cache, Config, Counts, Eviction, OpenError, SEGMENTS_MIN, check_shape, state_bytes,
};
use crate::items::Refusal;
use crate::workload::{Op, Request};
use prism_segments::{FlashCounts, Level, SimStore, Store};

/// An engine that can be simulated, by its name: the level at which it uses flash, and what its
/// cleaning does. Those of the server have its names.
pub const ENGINES: [(&str, Level, Eviction); 5] = [
    ("raw", Level::Blocks, Eviction::INTEGRATED),
    ("function", Level::Blocks, Eviction::INTEGRATED),
    ("policy", Level::Policy, Eviction::REINSERTED),
    ("original", Level::Original, Eviction::REINSERTED),
    ("stock", Level::Original, Eviction::Drop),
];

/// A cache to be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// The level at which it uses flash.
    pub level: Level,
    /// What its cleaning does.
    pub eviction: Eviction,
    /// Bytes of flash, over-provisioning included.
    pub flash: Bytes,
    /// The share of the flash that is spare at the levels with static over-provisioning, in
    /// percent.
    pub spare: u32,
    /// Bytes of a slab, which is a block.
    pub slab: u32,
    /// Channels.
    pub channels: u32,
    /// Bytes of buffers in memory; the index comes on top.
    pub memory: Bytes,
    /// Bytes of flash that may be programmed a second; `None` for no limit.
    pub max_writes: Option<Bytes>,
}

impl Design {
    /// The least flash for which the other figures can be simulated.
    #[must_use]
    pub fn smallest(&self) -> Bytes {
        let step = u64::from(self.slab) * u64::from(self.channels);
        let fits = |steps: &u64| {
            let bytes = Bytes(steps * step);
            SimStore::new(self.level, bytes, self.spare, self.slab, self.channels)
                .is_some_and(|store| store.shape().segments >= SEGMENTS_MIN)
        };
        let steps = (1..).find(fits).expect("a large device has spare blocks");
        Bytes(steps * step)
    }
}

/// The result of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationCounts {
    /// Requests, by kind: gets, sets, deletes.
    pub requests: [u64; 3],
    /// Gets that found the item in memory, and on flash.
    pub hits: [u64; 2],
    /// Requests whose item is longer than a slab.
    pub too_large: u64,
    /// What the cache did.
    pub cache: Counts,
    /// What was done to flash.
    pub flash: FlashCounts,
    /// Bytes programmed, and of them those copied below the cache.
    pub programmed: [u64; 2],
    /// Blocks of flash.
    pub blocks: u64,
    /// Items at the end.
    pub items: u64,
}

impl SimulationCounts {
    /// The share of gets that found their item; `None` without gets.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        self.of_gets(self.hits.iter().sum())
    }

    /// The share of gets that found their item in memory, or on flash; `None` without gets.
    #[must_use]
    pub fn hit_ratios(&self) -> [Option<f64>; 2] {
        self.hits.map(|hits| self.of_gets(hits))
    }

    fn of_gets(&self, hits: u64) -> Option<f64> {
        (self.requests[0] > 0).then(|| hits as f64 / self.requests[0] as f64)
    }

    /// Bytes programmed for a byte of items in what was programmed; `None` if nothing was.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.cache.written_bytes;
        (written > 0).then(|| self.programmed.iter().sum::<u64>() as f64 / written as f64)
    }

    /// Erases of a block, on average.
    #[must_use]
    pub fn wear(&self) -> f64 {
        self.flash.erases as f64 / self.blocks.max(1) as f64
    }
}

/// A running simulation.
#[derive(Debug)]
pub struct Simulation {
    cache: Cache<SimStore>,
    outcome: SimulationCounts,
    now: u32,
}

/// The time at which simulations begin, so that no expiry is before 1970.
const BEGIN: u32 = 1 << 30;

impl Simulation {
    /// A simulation of this cache with an index for `items` items.
    ///
    /// # Errors
    /// [`OpenError`] if the flash is too small ([`Design::smallest`]), or something too large.
    pub fn new(design: &Design, items: u64) -> Result<Self, OpenError> {
        let Design { level, eviction, flash, spare, slab, channels, memory, max_writes } = *design;
        let store = SimStore::new(level, flash, spare, slab, channels);
        let store = store.ok_or_else(|| OpenError::Shape {
            what: format!("{flash} of flash cannot be divided into slabs of {slab} bytes"),
        })?;
        let shape = store.shape();
        let buffers = (memory.0 / u64::from(slab)).clamp(BUFFERS_MIN, 60_000) as u16;
        // Before memory is taken that no machine has.
        check_shape(&shape, buffers.into())?;
        let state = vec![0; state_bytes(&shape) as usize];
        let memory = vec![0; usize::from(buffers) * slab as usize];
        let index_bytes = items * 20;
        let config =
            Config { index_bytes, eviction, buffers, chunk: slab, seed: 1, payload: false };
        let cache = Cache::open(store, Box::new(state), Box::new(memory), config, BEGIN)?;
        let cache = match max_writes {
            Some(rate) => cache.with_write_limit(rate),
            None => cache,
        };
        let outcome =
            SimulationCounts { blocks: flash.0 / u64::from(slab), ..SimulationCounts::default() };
        Ok(Self { cache, outcome, now: BEGIN })
    }

    /// Executes a request.
    pub fn request(&mut self, request: &Request) {
        self.now = BEGIN.saturating_add(request.time);
        self.cache.settle_writes(Nanos(u64::from(request.time) * 1_000_000_000));
        match request.op {
            Op::Get => {
                self.outcome.requests[0] += 1;
                match self.cache.touch(request.key, self.now) {
                    Some(in_memory) => self.outcome.hits[usize::from(!in_memory)] += 1,
                    None => self.insert(request),
                }
            }
            Op::Set => {
                self.outcome.requests[1] += 1;
                self.insert(request);
            }
            Op::Delete => {
                self.outcome.requests[2] += 1;
                self.cache.remove_bare(request.key);
            }
        }
    }

    fn insert(&mut self, request: &Request) {
        let Request { key, key_len, value_len, ttl, .. } = *request;
        let expires = if ttl == 0 { 0 } else { self.now.saturating_add(ttl) };
        let len = (key_len as usize, value_len as usize);
        loop {
            match self.cache.insert_bare(key, len, expires, self.now) {
                Ok(()) => return,
                Err(Refusal::TooLarge | Refusal::Failed) => {
                    self.cache.remove_bare(key);
                    self.outcome.too_large += 1;
                    return;
                }
                Err(Refusal::Busy) => self.cache.progress(Nanos::ZERO),
            }
        }
    }

    /// The result up to now.
    #[must_use]
    pub fn outcome(&self) -> SimulationCounts {
        let flash = self.cache.store().counts();
        let page = u64::from(self.cache.store().shape().page_bytes);
        SimulationCounts {
            cache: self.cache.counts(),
            flash,
            programmed: [flash.programs * page, flash.copies * page],
            items: self.cache.items(),
            ..self.outcome
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Etc, EtcConfig, Popularity};

    const ETC: EtcConfig = EtcConfig {
        keys: 500_000,
        requests: 2_000_000,
        sets: 0.1,
        popularity: Popularity::Zipf(0.9),
        short_values: false,
        seed: 3,
    };

    fn design(level: Level, eviction: Eviction) -> Design {
        Design {
            level,
            eviction,
            flash: Bytes(64 << 20),
            spare: 20,
            slab: 512 << 10,
            channels: 4,
            memory: Bytes(4 << 20),
            max_writes: None,
        }
    }

    fn run(level: Level, eviction: Eviction, max_writes: Option<Bytes>) -> SimulationCounts {
        let design = Design { max_writes, ..design(level, eviction) };
        let mut simulation = Simulation::new(&design, 400_000).unwrap();
        Etc::new(ETC).for_each(|request| simulation.request(&request));
        simulation.outcome()
    }

    /// Sets are dropped, no more is programmed than allowed, and what is kept is found.
    #[test]
    fn writes_are_limited() {
        let integrated = Eviction::Integrated { most: 20 };
        let all = run(Level::Blocks, integrated, None);
        let limit = Bytes(1 << 20);
        let limited = run(Level::Blocks, integrated, Some(limit));
        let [programmed, unlimited] =
            [limited, all].map(|counts| counts.programmed.iter().sum::<u64>());
        // 2 million requests of 52,700 a second, and the bucket of four seconds.
        let most = (38 + 4 + 2) * limit.0;
        assert!((most / 2..most).contains(&programmed), "{programmed} of {most}");
        assert!(unlimited > 2 * most, "{unlimited} without a limit");
        assert_eq!((all.cache.not_admitted, limited.requests[0]), (0, all.requests[0]));
        assert!(limited.cache.not_admitted > limited.cache.inserts);
        let [kept, best] = [limited, all].map(|counts| counts.hit_ratio().unwrap());
        assert!(kept > best / 3.0, "{kept}");
    }

    /// If all items are current, copying all of them gains no space; cleaning drops some.
    #[test]
    fn cleaning_ends_where_everything_is_current() {
        let design = Design {
            flash: Bytes(4 << 20),
            slab: 32 << 10,
            memory: Bytes(16 << 20),
            ..design(Level::Original, Eviction::Reinsert { most: 100 })
        };
        let mut simulation = Simulation::new(&design, 60_000).unwrap();
        let config = EtcConfig { keys: 100_000, requests: 200_000, ..ETC };
        Etc::new(config).for_each(|request| simulation.request(&request));
        assert!(simulation.outcome().cache.slabs_cleaned > 0);
    }

    /// What the paper claims for its levels: more hits and fewer erases without static
    /// over-provisioning, and no copies below the cache but on a conventional drive. There are none
    /// here: slabs are freed in the order in which they were filled, so the drive's victims are
    /// empty.
    #[test]
    fn levels_differ_as_published() {
        let integrated = Eviction::Integrated { most: 20 };
        let reinsert = Eviction::Reinsert { most: 100 };
        let blocks = run(Level::Blocks, integrated, None);
        let policy = run(Level::Policy, reinsert, None);
        let original = run(Level::Original, reinsert, None);
        assert_eq!((blocks.flash.copies, policy.flash.copies), (0, 0));
        assert_eq!(original.flash.copies, 0);
        assert_eq!(policy.hits, original.hits);
        // Cleaning leaves the cache nearly full.
        let bytes = blocks.cache.insert_bytes / blocks.cache.inserts * blocks.items;
        assert!(bytes > 40 << 20, "{bytes} bytes of items in 64 MiB");
        let ratios = (blocks.hit_ratio(), policy.hit_ratio());
        assert!(ratios.0 > ratios.1, "{ratios:?}");
        let erases = (blocks.flash.erases, policy.flash.erases, original.flash.erases);
        assert!(erases.0 < erases.1 && erases.0 < erases.2, "{erases:?}");
    }
}
