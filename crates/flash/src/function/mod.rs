//! The function level: the library allocates, erases and levels; the application maps and
//! cleans.
//!
//! Source: Prism-SSD (Shen et al., ICDCS'19), section IV.C. The application asks for blocks or
//! pages of a channel, writes and reads them by address, and trims what it no longer needs;
//! erases happen in the background. It learns how much is free with each allocation, so it
//! knows when to clean. Where the paper is silent or this differs:
//!
//! * *Blocks and pages.* A block is handed out whole, written in order, trimmed whole. Of
//!   pages, the library keeps an open block on each channel and hands out the next; they are
//!   written in the order in which they were handed out, and the block is erased when all of
//!   them were trimmed. A page that is trimmed unwritten is filled when a later one is written.
//!   Either kind of block can be trimmed page by page, or as a whole.
//! * *Wear levelling stays below the addresses.* In the paper the library swaps the data of two
//!   blocks and the application then changes its map; if power goes in between, the map is
//!   wrong about both. Here the monitor's table of blocks changes with the data, crash-safe, and
//!   every address names what it named before; the pairs are reported for information.
//! * *The reserve* is that of the share's allocation until [`Function::set_ops`] changes it,
//!   and it is not kept: who wants another sets it each time.
//! * *Commands can be queued*, and then reads go before writes, and writes before erases; see
//!   [`PASSED_MAX`] for the limit of that. A command of many pages is begun page by page, so
//!   that a read gets in between. Calls that wait take the same way.
//! * *Open blocks.* Where the device limits blocks that are partly written, pages are handed
//!   out of at most as many blocks. Whole blocks are the application's to count: the write that
//!   begins one too many is refused with [`FlashError::TooManyOpen`].
//!
//! On a device with timing, an operation is given to its LUN when that is free, and not
//! before, so that what comes later and is more urgent can still go first; completions come in
//! time order and move the share's clock. Without timing the order is the same.
//!
//! Nothing of this level is kept on flash. A share that was used before has the blocks that hold
//! something allocated, as [`Function::allocated`] lists them, and the application trims what
//! it does not know. Of a block from which pages were handed out, all pages are allocated then.
//! Below a volatile cache an erase that was not followed by [`Function::sync`] can come undone,
//! and its block is then among them.
//!
//! ```
//! use prism_base::Bytes;
//! use prism_flash::function::{Channel, Function, Unit};
//! use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
//!
//! let geometry = DeviceGeometry {
//!     channels: 2,
//!     luns_per_channel: 1,
//!     blocks_per_lun: 16,
//!     pages_per_block: 4,
//!     page_size: 4096,
//!     oob_size: 0,
//!     max_open_blocks: None,
//! };
//! let memory = MemoryDevice::new(geometry, Cache::None)?;
//! let device = Device::format(Box::new(memory), Options::default())?;
//! let capacity = Bytes(2 * device.lun_capacity().0);
//! let function = Function::open(device.allocate("cache", Allocation::new(capacity, 0))?)?;
//!
//! // Algorithm IV.2: ten blocks; below a threshold the application cleans, here by giving up
//! // the oldest block of the channel, as a cache may.
//! let mut mapped = Vec::new();
//! for slab in 0..10u8 {
//!     let new = function.address_mapper(Channel::Any, Unit::Block)?;
//!     function.write(new.at, &[slab; 4 * 4096])?;
//!     mapped.push(new.at);
//!     if new.free_left < 3 {
//!         let oldest = mapped.iter().position(|at| at.channel == new.at.channel).unwrap();
//!         function.trim(mapped.remove(oldest), Unit::Block)?;
//!     }
//! }
//! let mut page = [0; 4096];
//! function.read(mapped.last().unwrap().with_page(3), &mut page)?;
//! assert_eq!(page, [9; 4096]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allocate;
mod blocks;
mod level;
mod queue;
mod state;

use std::sync::{Mutex, MutexGuard};

use crate::error::{FlashError, Result};
use crate::monitor::{Share, ShareGeometry};
use crate::raw::{Address, Completion};
use blocks::Use;
use queue::Class;
use state::State;

pub use queue::PASSED_MAX;

/// Commands that can be queued and not taken back: enough for each LUN of a large drive, and
/// few enough that choosing among them is quick.
pub const QUEUE_MAX: usize = 4096;

/// Which channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// This one, as the share counts.
    Number(u32),
    /// The one whose LUNs have the least to do, in time; on a device without timing, and
    /// among equals, the one with the most free, then the first.
    Any,
}

/// What is handed out or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A block.
    Block,
    /// A page.
    Page,
}

/// What was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Where it is.
    pub at: Address,
    /// How many more there are in the channel without a wait, in the unit asked for: erased,
    /// and not of the reserve. 0 says that this was the last one.
    pub free_left: u32,
    /// Blocks of the channel that wait for their erase.
    pub erasing: u32,
}

/// What levelling has done, and how worn the blocks of the share are.
#[derive(Clone, Debug, PartialEq)]
pub struct WearLevel {
    /// Blocks whose data was put on a fresh block, each with the one whose data was put on a
    /// worn block.
    pub pairs: Vec<(Address, Address)>,
    /// The highest erase count.
    pub max: u32,
    /// The lowest.
    pub min: u32,
    /// Their mean.
    pub mean: f64,
    /// Their variance.
    pub variance: f64,
}

/// A command to be queued; it comes back if the queue is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads pages.
    Read {
        /// The first.
        at: Address,
        /// Where to; its length says how many.
        data: Vec<u8>,
    },
    /// Writes pages.
    Write {
        /// The first.
        at: Address,
        /// What.
        data: Vec<u8>,
    },
    /// Gives back a block or a page.
    Trim {
        /// Which.
        at: Address,
        /// Which of both.
        unit: Unit,
    },
}

/// A share at the function level. Threads may use it at once; a call that waits moves the
/// share's clock for all of them.
#[derive(Debug)]
pub struct Function(Mutex<State>);

impl Function {
    /// Takes `share` as it is: blocks that hold something are allocated.
    ///
    /// # Errors
    /// [`FlashError::WrongLevel`] if a higher level keeps its data in it.
    pub fn open(share: Share) -> Result<Self> {
        share.claim(None)?;
        let mut state = State::open(share)?;
        state.erase_at_once()?;
        Ok(Self(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics while he holds the function level")
    }

    /// The share, to let time pass or to read its counts. What is added to it is used when it
    /// is opened again.
    #[must_use]
    pub fn share(&self) -> Share {
        self.lock().share.clone()
    }

    /// Gives the share back, with what it holds. Commands that wait are not done, and a block
    /// that waits for its erase still holds what it held: [`Function::drain`] comes before.
    #[must_use]
    pub fn into_share(self) -> Share {
        self.share()
    }

    /// The shape of the share.
    #[must_use]
    pub fn geometry(&self) -> ShareGeometry {
        self.lock().geometry.clone()
    }

    /// Hands out an erased block or the next page of an open one, on the least worn block
    /// there is. If the channel has only blocks that wait for their erase, waits for one.
    ///
    /// [`Channel::Any`] goes by work and free blocks, not by what is valid: an application that
    /// cleans every channel up to the same number of free blocks has to spread its data itself.
    ///
    /// # Errors
    /// [`FlashError::NoSpace`] if the channel has no block left, or only those of the reserve
    /// are; [`FlashError::TooManyOpen`] if pages would be handed out of too many blocks;
    /// [`FlashError::OutOfRange`].
    pub fn address_mapper(&self, channel: Channel, unit: Unit) -> Result<Allocated> {
        self.lock().allocate(channel, unit)
    }

    /// Writes whole pages of one block, from `at` on: the next of the block.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`], [`FlashError::Unaligned`], [`FlashError::OutOfRange`] for
    /// more than the block; [`FlashError::OutOfOrder`], [`FlashError::NotErased`],
    /// [`FlashError::TooManyOpen`], after which no page was written.
    pub fn write(&self, at: Address, data: &[u8]) -> Result<()> {
        let mut state = self.lock();
        let mut buffer = state.take_buffer(data.len());
        buffer.copy_from_slice(data);
        let (result, buffer) = state.run(Class::Write, at, buffer)?;
        state.put_buffer(buffer);
        result
    }

    /// Reads whole pages of one block, from `at` on.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`], [`FlashError::Unaligned`], [`FlashError::OutOfRange`] for
    /// more than the block, [`FlashError::Unwritten`], [`FlashError::Torn`]. `data` is
    /// unchanged then.
    pub fn read(&self, at: Address, data: &mut [u8]) -> Result<()> {
        let mut state = self.lock();
        let buffer = state.take_buffer(data.len());
        let (result, buffer) = state.run(Class::Read, at, buffer)?;
        if result.is_ok() {
            data.copy_from_slice(&buffer);
        }
        state.put_buffer(buffer);
        result
    }

    /// Gives a block or a page back. The block is erased in the background: when nothing else
    /// waits for its LUN, or when an allocation needs it.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`] for what was given back before, or never handed out.
    pub fn trim(&self, at: Address, unit: Unit) -> Result<()> {
        let mut state = self.lock();
        let now = state.settle()?;
        state.trim(at, unit, now)?;
        state.erase_at_once()
    }

    /// Waits until no block waits for its erase.
    ///
    /// # Errors
    /// Why the first erase failed in the background since it was asked last: the block is
    /// neither free nor allocated from then on.
    pub fn drain(&self) -> Result<()> {
        self.lock().drain()
    }

    /// Blocks that wait for their erase or are being erased.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn erasing(&self) -> Result<u32> {
        let mut state = self.lock();
        state.settle()?;
        Ok((0..state.geometry.channels.len()).map(|channel| state.erasing_in(channel)).sum())
    }

    /// Erased blocks of a channel, those of the reserve included.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`], [`FlashError::Released`].
    pub fn free(&self, channel: u32) -> Result<u32> {
        let mut state = self.lock();
        state.settle()?;
        let count = state.geometry.channels.len() as u64;
        if u64::from(channel) >= count {
            return Err(FlashError::OutOfRange { what: "channel", value: channel.into(), count });
        }
        Ok(state.erased_in(channel as usize))
    }

    /// The blocks that are handed out, each with the page that is to be written next, LUN by
    /// LUN.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn allocated(&self) -> Result<Vec<(Address, u32)>> {
        let state = self.lock();
        let blocks = 0..state.blocks.count();
        let allocated = blocks.filter(|&block| state.blocks.state(block) == Use::Allocated);
        let with_pointer = |block| Ok((state.address(block, 0), state.share.write_pointer(block)?));
        allocated.map(with_pointer).collect()
    }

    /// Keeps blocks free: `percent` of the capacity that is left, so that `percent / (100 +
    /// percent)` of the share, rounded up, is not handed out. Returns how many blocks that is.
    ///
    /// # Errors
    /// [`FlashError::OverProvisioning`] if too many are handed out; nothing has changed then.
    pub fn set_ops(&self, percent: u32) -> Result<u32> {
        let mut state = self.lock();
        let (blocks, percent) = (u64::from(state.blocks.count()), u64::from(percent));
        let blocks = (blocks * percent).div_ceil(100 + percent) as u32;
        let must_free = state.blocks.mapped().saturating_sub(state.blocks.mappable(blocks));
        if must_free > 0 {
            return Err(FlashError::OverProvisioning { blocks, must_free });
        }
        state.blocks.reserve = blocks;
        Ok(blocks)
    }

    /// Levels wear: what stands on the most worn block of a LUN goes to a fresh one, and what
    /// rests on the least worn goes to the worn one, where their erase counts differ by more
    /// than `min_gap`; for at most `max_pairs` pairs, the widest gaps first. Addresses keep
    /// naming the same data. Commands that wait are done first, and so are erases.
    ///
    /// Each pair costs two erases and the copies of what stands there.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails, or an erase did before.
    pub fn wear_level(&self, max_pairs: u32, min_gap: u32) -> Result<WearLevel> {
        self.lock().wear_level(max_pairs, min_gap)
    }

    /// Makes everything durable that was written and is complete.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn sync(&self) -> Result<()> {
        self.lock().share.sync()
    }

    /// Queues a read into `data`, as long as the pages from `at` on. How it went is told by
    /// its completion.
    ///
    /// # Errors
    /// The command itself, if [`QUEUE_MAX`] are queued: take a completion first.
    pub fn submit_read(&self, at: Address, data: Vec<u8>, tag: u64) -> Result<(), Command> {
        self.submit(Command::Read { at, data }, tag)
    }

    /// Queues a write of whole pages from `at` on.
    ///
    /// # Errors
    /// As [`Function::submit_read`].
    pub fn submit_write(&self, at: Address, data: Vec<u8>, tag: u64) -> Result<(), Command> {
        self.submit(Command::Write { at, data }, tag)
    }

    /// Queues a trim: it is complete at once, and the erase follows when what was queued for
    /// the block before is done.
    ///
    /// # Errors
    /// As [`Function::submit_read`].
    pub fn submit_trim(&self, at: Address, unit: Unit, tag: u64) -> Result<(), Command> {
        self.submit(Command::Trim { at, unit }, tag)
    }

    fn submit(&self, command: Command, tag: u64) -> Result<(), Command> {
        let mut state = self.lock();
        if state.commands() >= QUEUE_MAX {
            return Err(command);
        }
        state.submit(command, tag);
        Ok(())
    }

    /// Queued commands whose completion was not taken.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lock().commands()
    }

    /// Waits for the next queued command that is done; `None` if none is left.
    pub fn complete(&self) -> Option<Completion> {
        self.lock().complete()
    }
}
