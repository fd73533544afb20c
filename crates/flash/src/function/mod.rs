//! The function level: the library allocates and erases blocks and levels wear; the application
//! does the mapping and the cleaning.
//!
//! Source: Prism-SSD (Shen et al., ICDCS'19), section IV.C. The application asks for blocks or
//! pages of a channel, writes and reads them by address, and trims what it no longer needs; erases
//! happen in the background. Each allocation returns the free space, so it knows when to clean.
//! Additions to and differences from the paper:
//!
//! * *Blocks and pages.* A block is allocated as a whole and written in order. For pages, the
//!   library has an open block on each channel and allocates its next page; pages are written in
//!   the order of their allocation, and the block is erased when all of them are trimmed. A page
//!   that was trimmed before it was written is padded when a later one is written. Either kind of
//!   block can be trimmed page by page or as a whole.
//! * *Wear levelling stays below the addresses.* In the paper the library swaps the data of two
//!   blocks and the application then changes its map; after a power failure in between, the map is
//!   wrong about both. Here the monitor's table of blocks is updated with the data, atomically, and
//!   addresses do not change; the pairs are reported for information.
//! * *The reserve* is that of the share's allocation until [`Function::set_ops`] changes it, which
//!   is not stored: call it each time the share is opened.
//! * *Commands can be queued*, and then reads go before writes, and writes before erases; see
//!   [`PASSED_MAX`] for the limit of that. A command of many pages is issued page by page, so that
//!   reads can go in between. Blocking calls use the same queue.
//! * *Open blocks.* If the device limits partly written blocks, pages are allocated from at most
//!   that number of blocks. Blocks allocated as a whole are up to the application: the write that
//!   opens one too many fails with [`FlashError::TooManyOpen`].
//!
//! On a device with timing, an operation is issued to its LUN only when the LUN is free, so that a
//! later and more urgent one can still go first; completions are in time order and advance the
//! share's clock. Without timing the order is the same.
//!
//! This level stores no metadata. When a share is opened again, blocks with data are allocated, as
//! [`Function::allocated`] lists them, with all of their pages, and the application trims those
//! that it does not know. With a volatile cache, an erase that was not followed by
//! [`Function::sync`] can be undone; its block is then among them.
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
//! // Algorithm IV.2: ten blocks; below a threshold the application cleans, here by dropping
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

/// Limit of commands in the queue, completed ones included: enough for each LUN of a large drive,
/// and few enough that scheduling is quick.
pub const QUEUE_MAX: usize = 4096;

/// The channel to allocate on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// This channel of the share.
    Number(u32),
    /// The channel whose LUNs have the least work queued, in time; on a device without timing, and
    /// among equals, the one with the most free blocks, then the first.
    Any,
}

/// The unit of an allocation or a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A block.
    Block,
    /// A page.
    Page,
}

/// The result of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Its address.
    pub at: Address,
    /// How many more of the same unit the channel has without a wait: erased, and not
    /// over-provisioning. 0 if this was the last one.
    pub free_left: u32,
    /// Blocks of the channel that wait for their erase.
    pub erasing: u32,
}

/// The result of levelling, and the wear of the blocks of the share.
#[derive(Clone, Debug, PartialEq)]
pub struct WearLevel {
    /// Pairs of blocks: the data of the first moved to a less worn block, that of the second to a
    /// worn one.
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

/// A command to be queued; it is returned if the queue is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads pages.
    Read {
        /// The first.
        at: Address,
        /// The buffer; its length gives the number of pages.
        data: Vec<u8>,
    },
    /// Writes pages.
    Write {
        /// The first.
        at: Address,
        /// The data.
        data: Vec<u8>,
    },
    /// Gives back a block or a page.
    Trim {
        /// Its address.
        at: Address,
        /// Block or page.
        unit: Unit,
    },
}

/// A share at the function level. Threads may use it at once; a blocking call advances the share's
/// clock for all of them.
#[derive(Debug)]
pub struct Function(Mutex<State>);

impl Function {
    /// Opens `share`: blocks that hold data are allocated.
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
        self.0.lock().expect("no thread panics while it holds the function level")
    }

    /// The share, to let time pass or to read its counts. LUNs that are added to it are used when
    /// it is opened again.
    #[must_use]
    pub fn share(&self) -> Share {
        self.lock().share.clone()
    }

    /// Returns the share with its data. Queued commands are dropped, and a block that is queued for
    /// its erase keeps its data: call [`Function::drain`] before.
    #[must_use]
    pub fn into_share(self) -> Share {
        self.share()
    }

    /// The geometry of the share.
    #[must_use]
    pub fn geometry(&self) -> ShareGeometry {
        self.lock().geometry.clone()
    }

    /// Allocates the least worn erased block, or the next page of an open block. If all free blocks
    /// of the channel are still to be erased, waits for an erase.
    ///
    /// [`Channel::Any`] considers queued work and free blocks, not valid data: an application that
    /// cleans every channel up to the same number of free blocks has to spread its data itself.
    ///
    /// # Errors
    /// [`FlashError::NoSpace`] if the channel has no block left, or only over-provisioning;
    /// [`FlashError::TooManyOpen`] if pages would be allocated from too many blocks;
    /// [`FlashError::OutOfRange`].
    pub fn address_mapper(&self, channel: Channel, unit: Unit) -> Result<Allocated> {
        self.lock().allocate(channel, unit)
    }

    /// Writes whole pages of one block, from `at` on, which has to be its next page.
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

    /// Trims a block or a page. The block is erased in the background: when its LUN has nothing
    /// else to do, or when an allocation needs it.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`] for one that was trimmed before or never allocated.
    pub fn trim(&self, at: Address, unit: Unit) -> Result<()> {
        let mut state = self.lock();
        let now = state.settle()?;
        state.trim(at, unit, now)?;
        state.erase_at_once()
    }

    /// Waits until all trimmed blocks are erased.
    ///
    /// # Errors
    /// The error of the first background erase that failed since the last call; the block is lost,
    /// neither free nor allocated.
    pub fn drain(&self) -> Result<()> {
        self.lock().drain()
    }

    /// Trimmed blocks that are not erased yet.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn erasing(&self) -> Result<u32> {
        let mut state = self.lock();
        state.settle()?;
        Ok((0..state.geometry.channels.len()).map(|channel| state.erasing_in(channel)).sum())
    }

    /// Erased blocks of a channel, including over-provisioning.
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

    /// The allocated blocks, each with its next page to write, LUN by LUN.
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

    /// Sets the over-provisioning to `percent` of the remaining capacity: `percent / (100 +
    /// percent)` of the share, rounded up, is not allocated. Returns the number of these blocks.
    ///
    /// # Errors
    /// [`FlashError::OverProvisioning`] if too many blocks are allocated; nothing has changed then.
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

    /// Levels wear: the data of the most worn block of a LUN moves to a fresh one, and cold data of
    /// the least worn block to the worn one, if their erase counts differ by more than `min_gap`;
    /// for at most `max_pairs` pairs, the widest gaps first. Addresses do not change. Queued
    /// commands and erases are executed first.
    ///
    /// Each pair costs two erases and copies of both blocks' data.
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

    /// Queues a read of pages from `at` on into `data`, which has their size. The completion
    /// reports the result.
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

    /// Queues a trim: it completes at once, and the erase follows after the commands queued for the
    /// block before.
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
