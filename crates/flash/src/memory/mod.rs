//! A flash device in memory: as fast as a copy, with all rules of flash and all failures that an
//! application has to survive.
//!
//! It has its own state of blocks instead of the simulated drive's array, because losing a volatile
//! cache rolls blocks back. Memory: the pages that hold data, and 32 bytes per block.

mod handle;

use std::any::Any;

use prism_base::{FastMap, Rng};

use crate::medium::{DeviceGeometry, GeometryError, Medium, MediumError, PageState};

pub use handle::SharedMemory;

/// Whether operations are durable at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Operations are durable at once, as on flash.
    None,
    /// Operations are durable after the next sync, as in a file below a page cache: a power failure
    /// undoes, of the operations since, all but some first ones of each block.
    Volatile,
}

#[derive(Clone, Debug, Default)]
struct Block {
    programmed: u32,
    finished: bool,
    /// An erase was interrupted.
    unstable: bool,
    factory_bad: bool,
    worn_out: bool,
    erases: u32,
    cells: Option<Box<[u8]>>,
    torn: Vec<u32>,
}

impl Block {
    fn is_open(&self, pages: u32) -> bool {
        self.programmed > 0 && self.programmed < pages && !self.finished
    }
}

/// How to undo an operation on a block since the last sync.
#[derive(Debug)]
enum Undo {
    Program,
    Finish,
    /// The block as it was before.
    Erase(Block),
}

/// A flash device in memory.
#[derive(Debug)]
pub struct MemoryDevice {
    geometry: DeviceGeometry,
    cache: Cache,
    blocks: Vec<Block>,
    /// Buffers of erased blocks, for reuse.
    pool: Vec<Box<[u8]>>,
    open: u32,
    /// In order; kept only with a volatile cache.
    unsynced: Vec<(u32, Undo)>,
    operations: u64,
    /// The operation during which power fails.
    cut_at: u64,
    powered: bool,
    failures: Option<(f64, Rng)>,
}

impl MemoryDevice {
    /// An erased device.
    ///
    /// # Errors
    /// [`GeometryError`] names the field that is out of range.
    pub fn new(geometry: DeviceGeometry, cache: Cache) -> Result<Self, GeometryError> {
        geometry.check()?;
        Ok(Self {
            geometry,
            cache,
            blocks: vec![Block::default(); geometry.blocks() as usize],
            pool: Vec::new(),
            open: 0,
            unsynced: Vec::new(),
            operations: 0,
            cut_at: u64::MAX,
            powered: true,
            failures: None,
        })
    }

    /// Marks `block` as bad by the manufacturer.
    pub fn mark_factory_bad(&mut self, block: u32) {
        self.blocks[block as usize].factory_bad = true;
    }

    /// Every program and erase of `block` fails from now on.
    pub fn wear_out(&mut self, block: u32) {
        self.blocks[block as usize].worn_out = true;
    }

    /// From now on a block wears out with probability `rate` at each program and erase.
    pub fn fail_at_random(&mut self, rate: f64, seed: u64) {
        self.failures = Some((rate, Rng::stream(seed, "flash.failures")));
    }

    /// Programs, erases, finishes and syncs so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// How often each block was erased.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.erases)
    }

    /// Power fails during the operation after the next `operations`.
    pub fn cut_power_after(&mut self, operations: u64) {
        self.cut_at = self.operations + operations;
    }

    /// Whether power has failed.
    #[must_use]
    pub fn lost_power(&self) -> bool {
        !self.powered
    }

    /// Cuts power, unless it has failed already, and restores it. With a volatile cache each block
    /// keeps the first few of its operations since the last sync, as many as `rng` chooses, and the
    /// next one may be torn. This is *not* the end of a process, which loses nothing here.
    pub fn restart(&mut self, rng: &mut Rng) {
        let undo = std::mem::take(&mut self.unsynced);
        let mut of_block: FastMap<u32, Vec<Undo>> = FastMap::default();
        let mut order = Vec::new();
        for (block, undo) in undo {
            let list = of_block.entry(block).or_default();
            if list.is_empty() {
                order.push(block);
            }
            list.push(undo);
        }
        for block in order {
            let list = of_block.remove(&block).expect("listed once");
            let kept = rng.below(list.len() as u64 + 1) as usize;
            let torn = rng.chance(0.5);
            self.roll_back(block, list, kept, torn);
        }
        let pages = self.geometry.pages_per_block;
        self.open = self.blocks.iter().filter(|block| block.is_open(pages)).count() as u32;
        self.powered = true;
        self.cut_at = u64::MAX;
    }

    fn roll_back(&mut self, block: u32, list: Vec<Undo>, kept: usize, torn: bool) {
        let state = &mut self.blocks[block as usize];
        let count = list.len();
        for (place, undo) in list.into_iter().enumerate().rev() {
            if place < kept {
                break;
            }
            let (erase, program) = (matches!(undo, Undo::Erase(_)), matches!(undo, Undo::Program));
            match undo {
                Undo::Program => {
                    state.programmed -= 1;
                    state.torn.retain(|&page| page != state.programmed);
                }
                Undo::Finish => state.finished = false,
                Undo::Erase(before) => {
                    let worn_out = state.worn_out;
                    *state = before;
                    state.worn_out = worn_out;
                }
            }
            if place == kept && torn && place < count {
                if erase {
                    state.unstable = true;
                } else if program {
                    state.torn.push(state.programmed);
                    state.programmed += 1;
                }
            }
        }
    }

    /// Counts an operation; returns whether power fails during it.
    fn operation(&mut self) -> Result<bool, MediumError> {
        if !self.powered {
            return Err(MediumError::PowerLost);
        }
        self.operations += 1;
        if self.operations > self.cut_at {
            self.powered = false;
        }
        Ok(!self.powered)
    }

    fn wears_out(&mut self, block: u32) -> bool {
        if let Some((rate, rng)) = &mut self.failures {
            self.blocks[block as usize].worn_out |= rng.chance(*rate);
        }
        self.blocks[block as usize].worn_out
    }

    fn slot_bytes(&self) -> usize {
        (self.geometry.page_size + self.geometry.oob_size) as usize
    }

    fn check_program(&self, block: u32, page: u32) -> Result<(), MediumError> {
        let state = &self.blocks[block as usize];
        let pages = self.geometry.pages_per_block;
        if state.unstable {
            return Err(MediumError::Unstable { block });
        }
        if state.programmed == pages || state.finished {
            return Err(MediumError::Full { block });
        }
        if page != state.programmed {
            return Err(MediumError::OutOfOrder { block, page, expected: state.programmed });
        }
        match self.geometry.max_open_blocks {
            Some(max) if page == 0 && self.open >= max && pages > 1 => {
                Err(MediumError::TooManyOpen { max })
            }
            _ => Ok(()),
        }
    }
}

impl Medium for MemoryDevice {
    fn geometry(&self) -> &DeviceGeometry {
        &self.geometry
    }

    fn write_pointer(&self, block: u32) -> u32 {
        self.blocks[block as usize].programmed
    }

    fn is_open(&self, block: u32) -> bool {
        self.blocks[block as usize].is_open(self.geometry.pages_per_block)
    }

    fn is_factory_bad(&self, block: u32) -> bool {
        self.blocks[block as usize].factory_bad
    }

    fn has_volatile_cache(&self) -> bool {
        self.cache == Cache::Volatile
    }

    #[inline]
    fn read(
        &mut self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        if !self.powered {
            return Err(MediumError::PowerLost);
        }
        let state = &self.blocks[block as usize];
        if state.unstable {
            return Ok(PageState::Torn);
        }
        if page >= state.programmed {
            return Ok(PageState::Erased);
        }
        if !state.torn.is_empty() && state.torn.contains(&page) {
            return Ok(PageState::Torn);
        }
        let cells = state.cells.as_ref().expect("a programmed block has cells");
        let first = page as usize * self.slot_bytes();
        let from = first + offset as usize;
        data.copy_from_slice(&cells[from..from + data.len()]);
        if !oob.is_empty() {
            let from = first + self.geometry.page_size as usize;
            oob.copy_from_slice(&cells[from..from + oob.len()]);
        }
        Ok(PageState::Written)
    }

    fn program(
        &mut self,
        block: u32,
        page: u32,
        data: &[u8],
        oob: &[u8],
    ) -> Result<(), MediumError> {
        self.check_program(block, page)?;
        let torn = self.operation()?;
        if self.wears_out(block) {
            return Err(MediumError::ProgramFailed { block, page });
        }
        let slot = self.slot_bytes();
        let page_size = self.geometry.page_size as usize;
        assert!(data.len() == page_size, "a program takes a page of {page_size} bytes");
        let pages = self.geometry.pages_per_block;
        let state = &mut self.blocks[block as usize];
        let cells = state.cells.get_or_insert_with(|| {
            let fresh = || vec![0; slot * pages as usize].into();
            self.pool.pop().unwrap_or_else(fresh)
        });
        let first = page as usize * slot;
        cells[first..first + page_size].copy_from_slice(data);
        let (used, rest) = cells[first + page_size..first + slot].split_at_mut(oob.len());
        used.copy_from_slice(oob);
        rest.fill(0xFF);
        let was_open = state.is_open(pages);
        state.programmed += 1;
        if torn {
            state.torn.push(page);
        }
        self.open = self.open + u32::from(state.is_open(pages)) - u32::from(was_open);
        if self.cache == Cache::Volatile {
            self.unsynced.push((block, Undo::Program));
        }
        if torn { Err(MediumError::PowerLost) } else { Ok(()) }
    }

    fn erase(&mut self, block: u32) -> Result<(), MediumError> {
        let torn = self.operation()?;
        if self.wears_out(block) {
            return Err(MediumError::EraseFailed { block });
        }
        let volatile = self.cache == Cache::Volatile;
        let pages = self.geometry.pages_per_block;
        let state = &mut self.blocks[block as usize];
        self.open -= u32::from(state.is_open(pages));
        let before = volatile.then(|| Undo::Erase(state.clone()));
        state.erases += 1;
        state.programmed = 0;
        state.finished = false;
        state.unstable = torn;
        state.torn.clear();
        self.pool.extend(state.cells.take());
        self.unsynced.extend(before.map(|before| (block, before)));
        if torn { Err(MediumError::PowerLost) } else { Ok(()) }
    }

    fn finish(&mut self, block: u32) -> Result<(), MediumError> {
        if self.operation()? {
            return Err(MediumError::PowerLost);
        }
        let pages = self.geometry.pages_per_block;
        let state = &mut self.blocks[block as usize];
        if !state.finished {
            self.open -= u32::from(state.is_open(pages));
            state.finished = true;
            if self.cache == Cache::Volatile {
                self.unsynced.push((block, Undo::Finish));
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), MediumError> {
        if self.operation()? {
            return Err(MediumError::PowerLost);
        }
        self.unsynced.clear();
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
