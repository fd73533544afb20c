//! A device in memory whose reads are counted and fail.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use prism_flash::{Cache, DeviceGeometry, Medium, MediumError, MemoryDevice, PageState};

/// How a page is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The device finds it.
    Found,
    /// Reads have another byte at this offset.
    Byte(usize),
}

/// The device: counts reads, of however many pages.
#[derive(Debug)]
pub struct Wrapped {
    pub memory: MemoryDevice,
    pub reads: AtomicU64,
    /// Whether all reads fail.
    pub is_broken: AtomicBool,
    /// Damaged pages, until their block is erased.
    pub damaged: Mutex<BTreeMap<(u32, u32), Damage>>,
    /// Blocks that cannot be programmed or erased.
    pub failing: Mutex<BTreeSet<u32>>,
    /// Whether the device says how often a block was erased.
    pub counts_erases: bool,
}

impl Wrapped {
    pub fn new(geometry: DeviceGeometry) -> Arc<Self> {
        Arc::new(Self::with_cache(geometry, Cache::None))
    }

    pub fn with_cache(geometry: DeviceGeometry, cache: Cache) -> Self {
        Self {
            memory: MemoryDevice::new(geometry, cache).unwrap(),
            reads: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
            damaged: Mutex::default(),
            failing: Mutex::default(),
            counts_erases: true,
        }
    }

    fn fails(&self, block: u32) -> bool {
        self.failing.lock().unwrap().contains(&block)
    }
}

impl Medium for Wrapped {
    fn geometry(&self) -> &DeviceGeometry {
        self.memory.geometry()
    }

    fn write_pointer(&self, block: u32) -> u32 {
        self.memory.write_pointer(block)
    }

    fn is_open(&self, block: u32) -> bool {
        self.memory.is_open(block)
    }

    fn is_factory_bad(&self, block: u32) -> bool {
        self.memory.is_factory_bad(block)
    }

    fn has_volatile_cache(&self) -> bool {
        self.memory.has_volatile_cache()
    }

    fn erase_count(&self, block: u32) -> Option<u32> {
        self.memory.erase_counts().nth(block as usize).filter(|_| self.counts_erases)
    }

    fn read(
        &self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(MediumError::Unstable { block });
        }
        let state = self.memory.read(block, page, offset, data, oob)?;
        match self.damaged.lock().unwrap().get(&(block, page)) {
            Some(Damage::Found) => Err(MediumError::Damaged { block, page }),
            Some(&Damage::Byte(at)) if at < data.len() => {
                data[at] ^= 0x10;
                Ok(state)
            }
            _ => Ok(state),
        }
    }

    fn program(&self, block: u32, page: u32, data: &[u8], oob: &[u8]) -> Result<(), MediumError> {
        if self.fails(block) {
            return Err(MediumError::ProgramFailed { block, page });
        }
        self.memory.program(block, page, data, oob)
    }

    fn erase(&self, block: u32) -> Result<(), MediumError> {
        if self.fails(block) {
            return Err(MediumError::EraseFailed { block });
        }
        self.memory.erase(block)?;
        self.damaged.lock().unwrap().retain(|page, _| page.0 != block);
        Ok(())
    }

    fn finish(&self, block: u32) -> Result<(), MediumError> {
        self.memory.finish(block)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.memory.sync()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
