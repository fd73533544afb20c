//! A flash device in memory: as fast as a copy, with all rules of flash and all failures that an
//! application has to survive.
//!
//! It has its own state of blocks instead of the simulated drive's array, because losing a volatile
//! cache rolls blocks back. Each block has a lock of its own, so threads read at once. Memory: the
//! pages that hold data, and 88 bytes per block.

mod handle;
mod power;
mod queue;

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use prism_base::{Bytes, Rng, zeroed_bytes};

use crate::medium::{DeviceGeometry, GeometryError, Medium, MediumError, MediumQueue, PageState};

pub use handle::SharedMemory;
use power::Undo;
use queue::ShuffledQueue;

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

    #[inline]
    fn page(&self, page: u32) -> PageState {
        if self.unstable {
            PageState::Torn
        } else if page >= self.programmed {
            PageState::Erased
        } else if !self.torn.is_empty() && self.torn.contains(&page) {
            PageState::Torn
        } else {
            PageState::Written
        }
    }
}

/// What programs and erases change besides their block. Locked after a block, never before.
#[derive(Debug, Default)]
struct Common {
    /// Buffers of erased blocks, for reuse.
    pool: Vec<Box<[u8]>>,
    /// In order; kept only with a volatile cache.
    unsynced: Vec<(u32, Undo)>,
    failures: Option<(f64, Rng)>,
    /// The order in which operations of queues complete, if not at once.
    order: Option<Rng>,
}

/// A flash device in memory.
#[derive(Debug)]
pub struct MemoryDevice {
    geometry: DeviceGeometry,
    cache: Cache,
    blocks: Box<[RwLock<Block>]>,
    common: Mutex<Common>,
    /// Blocks that are partly written.
    open: AtomicU32,
    operations: AtomicU64,
    /// The operation during which power fails.
    cut_at: AtomicU64,
    powered: AtomicBool,
}

const UNPOISONED: &str = "no thread panics while it holds a part of the device";

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
            blocks: (0..geometry.blocks()).map(|_| RwLock::default()).collect(),
            common: Mutex::default(),
            open: AtomicU32::new(0),
            operations: AtomicU64::new(0),
            cut_at: AtomicU64::new(u64::MAX),
            powered: AtomicBool::new(true),
        })
    }

    #[inline]
    fn block(&self, block: u32) -> RwLockReadGuard<'_, Block> {
        self.blocks[block as usize].read().expect(UNPOISONED)
    }

    fn block_mut(&self, block: u32) -> RwLockWriteGuard<'_, Block> {
        self.blocks[block as usize].write().expect(UNPOISONED)
    }

    fn common(&self) -> MutexGuard<'_, Common> {
        self.common.lock().expect(UNPOISONED)
    }

    /// Marks `block` as bad by the manufacturer.
    pub fn mark_factory_bad(&self, block: u32) {
        self.block_mut(block).factory_bad = true;
    }

    /// Every program and erase of `block` fails from now on.
    pub fn wear_out(&self, block: u32) {
        self.block_mut(block).worn_out = true;
    }

    /// From now on a block wears out with probability `rate` at each program and erase.
    pub fn fail_at_random(&self, rate: f64, seed: u64) {
        self.common().failures = Some((rate, Rng::stream(seed, "flash.failures")));
    }

    /// From now on operations of new queues are in flight for a while, and complete in an order
    /// that comes from `seed`.
    pub fn complete_in_any_order(&self, seed: u64) {
        self.common().order = Some(Rng::stream(seed, "flash.order"));
    }

    /// Programs, erases, finishes and syncs so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }

    /// How often each block was erased.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.geometry.blocks()).map(|block| self.block(block).erases)
    }

    /// Counts an operation; returns whether power fails during it.
    fn operation(&self) -> Result<bool, MediumError> {
        if !self.powered.load(Ordering::SeqCst) {
            return Err(MediumError::PowerLost);
        }
        let number = self.operations.fetch_add(1, Ordering::SeqCst) + 1;
        let cut = number > self.cut_at.load(Ordering::SeqCst);
        if cut {
            self.powered.store(false, Ordering::SeqCst);
        }
        Ok(cut)
    }

    fn wears_out(&self, block: &mut Block) -> bool {
        if let Some((rate, rng)) = &mut self.common().failures {
            block.worn_out |= rng.chance(*rate);
        }
        block.worn_out
    }

    /// Notes how an operation on a block can be undone.
    fn note_undo(&self, block: u32, undo: Undo) {
        if self.cache == Cache::Volatile {
            self.common().unsynced.push((block, undo));
        }
    }

    fn slot_bytes(&self) -> usize {
        (self.geometry.page_size + self.geometry.oob_size) as usize
    }

    fn check_program(&self, state: &Block, block: u32, page: u32) -> Result<(), MediumError> {
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
            Some(max) if page == 0 && self.open.load(Ordering::SeqCst) >= max => {
                Err(MediumError::TooManyOpen { max })
            }
            _ => Ok(()),
        }
    }

    fn program_page(
        &self,
        state: &mut Block,
        block: u32,
        page: u32,
        data: &[u8],
        oob: &[u8],
    ) -> Result<(), MediumError> {
        self.check_program(state, block, page)?;
        let torn = self.operation()?;
        if self.wears_out(state) {
            return Err(MediumError::ProgramFailed { block, page });
        }
        let slot = self.slot_bytes();
        let page_size = self.geometry.page_size as usize;
        let cells = match &mut state.cells {
            Some(cells) => cells,
            none => none.insert(self.cells(slot * self.geometry.pages_per_block as usize)?),
        };
        let first = page as usize * slot;
        cells[first..first + page_size].copy_from_slice(data);
        let (used, rest) = cells[first + page_size..first + slot].split_at_mut(oob.len());
        used.copy_from_slice(oob);
        rest.fill(0xFF);
        self.change(state, |state| {
            state.programmed += 1;
            if torn {
                state.torn.push(page);
            }
        });
        self.note_undo(block, Undo::Program);
        if torn { Err(MediumError::PowerLost) } else { Ok(()) }
    }

    /// Memory for the pages of a block.
    fn cells(&self, bytes: usize) -> Result<Box<[u8]>, MediumError> {
        let pooled = self.common().pool.pop();
        pooled.or_else(|| zeroed_bytes(bytes)).ok_or_else(|| {
            let bytes = Bytes(bytes as u64);
            let what = format!(
                "there is no memory for a block of {bytes}; raise the limit of memory and open the \
                 level again, or use a smaller device or one in a file"
            );
            MediumError::DiskFull { what }
        })
    }

    /// Changes a block, and with it the number of those that are partly written.
    fn change<T>(&self, state: &mut Block, change: impl FnOnce(&mut Block) -> T) -> T {
        let pages = self.geometry.pages_per_block;
        let was_open = state.is_open(pages);
        let done = change(state);
        match (was_open, state.is_open(pages)) {
            (false, true) => drop(self.open.fetch_add(1, Ordering::SeqCst)),
            (true, false) => drop(self.open.fetch_sub(1, Ordering::SeqCst)),
            _ => {}
        }
        done
    }
}

impl Medium for MemoryDevice {
    fn geometry(&self) -> &DeviceGeometry {
        &self.geometry
    }

    fn write_pointer(&self, block: u32) -> u32 {
        self.block(block).programmed
    }

    fn is_open(&self, block: u32) -> bool {
        self.block(block).is_open(self.geometry.pages_per_block)
    }

    fn is_factory_bad(&self, block: u32) -> bool {
        self.block(block).factory_bad
    }

    fn has_volatile_cache(&self) -> bool {
        self.cache == Cache::Volatile
    }

    fn queue(self: Arc<Self>, _depth: usize) -> Option<Box<dyn MediumQueue>> {
        let rng = self.common().order.as_mut().map(|order| Rng::stream(order.next_u64(), "queue"));
        rng.map(|rng| Box::new(ShuffledQueue::new(self, rng)) as _)
    }

    #[inline]
    fn read(
        &self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        if !self.powered.load(Ordering::Relaxed) {
            return Err(MediumError::PowerLost);
        }
        let state = self.block(block);
        let page_size = self.geometry.page_size as usize;
        let offset = offset as usize;
        let (mut page, mut offset) = (page + (offset / page_size) as u32, offset % page_size);
        let mut rest = data;
        let mut oob = Some(oob).filter(|oob| !oob.is_empty());
        loop {
            let written = state.page(page);
            if written != PageState::Written {
                return Ok(written);
            }
            let cells = state.cells.as_ref().expect("a programmed block has cells");
            let first = page as usize * self.slot_bytes();
            let (part, next) = rest.split_at_mut(rest.len().min(page_size - offset));
            part.copy_from_slice(&cells[first + offset..first + offset + part.len()]);
            if let Some(oob) = oob.take() {
                let from = first + page_size;
                oob.copy_from_slice(&cells[from..from + oob.len()]);
            }
            if next.is_empty() {
                return Ok(PageState::Written);
            }
            (page, offset, rest) = (page + 1, 0, next);
        }
    }

    fn program(&self, block: u32, page: u32, data: &[u8], oob: &[u8]) -> Result<(), MediumError> {
        let page_size = self.geometry.page_size as usize;
        let whole = !data.is_empty() && data.len().is_multiple_of(page_size);
        assert!(whole, "a program takes pages of {page_size} bytes");
        let mut state = self.block_mut(block);
        if data.len() > page_size {
            // All pages have to fit.
            self.check_program(&state, block, page)?;
            if data.len() / page_size > (self.geometry.pages_per_block - page) as usize {
                return Err(MediumError::Full { block });
            }
        }
        for (index, data) in data.chunks(page_size).enumerate() {
            let oob = if index == 0 { oob } else { &[] };
            self.program_page(&mut state, block, page + index as u32, data, oob)?;
        }
        Ok(())
    }

    fn erase(&self, block: u32) -> Result<(), MediumError> {
        let mut state = self.block_mut(block);
        let torn = self.operation()?;
        if self.wears_out(&mut state) {
            return Err(MediumError::EraseFailed { block });
        }
        if self.cache == Cache::Volatile {
            self.note_undo(block, Undo::Erase(Box::new(state.clone())));
        }
        let cells = self.change(&mut state, |state| {
            state.erases += 1;
            state.programmed = 0;
            state.finished = false;
            state.unstable = torn;
            state.torn.clear();
            state.cells.take()
        });
        self.common().pool.extend(cells);
        if torn { Err(MediumError::PowerLost) } else { Ok(()) }
    }

    fn finish(&self, block: u32) -> Result<(), MediumError> {
        let mut state = self.block_mut(block);
        if self.operation()? {
            return Err(MediumError::PowerLost);
        }
        if !state.finished {
            self.change(&mut state, |state| state.finished = true);
            self.note_undo(block, Undo::Finish);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), MediumError> {
        if self.operation()? {
            return Err(MediumError::PowerLost);
        }
        self.common().unsynced.clear();
        Ok(())
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
