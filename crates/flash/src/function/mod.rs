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
//! let device = Device::format(memory, Options::default())?;
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

mod access;
mod allocate;
mod blocks;
mod level;
mod queue;
mod state;
mod table;

use std::sync::{Arc, Mutex, MutexGuard};

use prism_base::Nanos;

use crate::error::{FlashError, Result};
use crate::monitor::{Hold, Share, ShareGeometry};
use crate::raw::{Address, block_number};
use blocks::Use;
use state::State;
use table::BlockTable;

pub use crate::monitor::PASSED_MAX;
pub use queue::{Command, Queue};

/// Bytes of the word of a block's owner, the last out-of-band bytes of its first page.
const OWNER: usize = 8;

/// Out-of-band bytes of a page without the word of the block's owner.
fn oob_size(geometry: &ShareGeometry) -> usize {
    (geometry.oob_size as usize).saturating_sub(OWNER)
}

/// Checks the number of out-of-band bytes of a call.
fn check_oob(geometry: &ShareGeometry, len: usize) -> Result<()> {
    let most = oob_size(geometry);
    if len <= most {
        return Ok(());
    }
    Err(FlashError::TooLong { bytes: len as u64, most: most as u64 })
}

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

/// A block that is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedBlock {
    /// Its first page.
    pub at: Address,
    /// The page that is to be written next.
    pub written: u32,
    /// The word that [`Function::allocate_for`] was given.
    pub owner: u64,
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

/// A share at the function level. Threads may use it at once; a blocking call advances the share's
/// clock for all of them.
#[derive(Debug)]
pub struct Function {
    share: Share,
    geometry: ShareGeometry,
    /// What reads and writes need without the lock.
    table: Arc<BlockTable>,
    state: Mutex<State>,
    _hold: Hold,
}

impl Function {
    /// Opens `share`: blocks that hold data are allocated.
    ///
    /// # Errors
    /// [`FlashError::WrongLevel`] if a higher level keeps its data in it, [`FlashError::InUse`] if
    /// the level is open in it already.
    pub fn open(share: Share) -> Result<Self> {
        let hold = share.hold(None)?;
        let mut state = State::open(share.clone())?;
        state.erase_idle()?;
        let (geometry, table) = (state.geometry.clone(), Arc::clone(&state.blocks.table));
        Ok(Self { share, geometry, table, state: Mutex::new(state), _hold: hold })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the function level")
    }

    /// The share, to let time pass or to read its counts. LUNs that are added to it are used when
    /// it is opened again.
    #[must_use]
    pub fn share(&self) -> Share {
        self.share.clone()
    }

    /// Returns the share with its data. On a device with timing queued erases take effect; on
    /// others a block whose erase waits for commands keeps its data: call [`Function::drain`]
    /// before.
    #[must_use]
    pub fn into_share(self) -> Share {
        self.share()
    }

    /// The geometry of the share.
    #[must_use]
    pub fn geometry(&self) -> ShareGeometry {
        self.geometry.clone()
    }

    /// Allocates the least worn erased block, or the next page of an open block. If all free blocks
    /// of the channel are still to be erased, waits for an erase.
    ///
    /// [`Channel::Any`] considers queued work and free blocks, not valid data: an application that
    /// cleans every channel up to the same number of free blocks has to spread its data itself.
    ///
    /// # Errors
    /// [`FlashError::ChannelFull`], [`FlashError::OnlyReserve`];
    /// [`FlashError::TooManyOpen`] if pages would be allocated from too many blocks;
    /// [`FlashError::OutOfRange`].
    pub fn address_mapper(&self, channel: Channel, unit: Unit) -> Result<Allocated> {
        self.lock().allocate(channel, unit)
    }

    /// As [`Function::address_mapper`] for a whole block, with a word that
    /// [`Function::owned_blocks`] returns after the share is opened again: it is stored in the
    /// out-of-band bytes of the block's first page.
    ///
    /// # Errors
    /// As [`Function::address_mapper`]; [`FlashError::Invalid`] on a device with fewer than 8
    /// out-of-band bytes, or with timing.
    pub fn allocate_for(&self, channel: Channel, owner: u64) -> Result<Allocated> {
        if (self.geometry.oob_size as usize) < OWNER || self.share.is_timed() {
            let what = "an owner needs 8 out-of-band bytes on a device without timing: store it in \
                        the first page of the block instead";
            return Err(FlashError::Invalid { what: what.into() });
        }
        let mut state = self.lock();
        let allocated = state.allocate(channel, Unit::Block)?;
        let block = block_number(&self.geometry, allocated.at)?;
        self.table.set_owner(block, owner);
        Ok(allocated)
    }

    /// The allocated blocks, each with its next page to write and the word of its owner: 0 if it
    /// has none, or if nothing was written to the block.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn owned_blocks(&self) -> Result<Vec<OwnedBlock>> {
        let mut owned = Vec::new();
        for (at, written) in self.allocated()? {
            // One that was trimmed meanwhile is left out.
            let Ok((block, _)) = self.begin(at, 0) else { continue };
            let owner = self.owner_of(block, written);
            self.end(block);
            let owner = owner?;
            owned.push(OwnedBlock { at, written, owner });
        }
        Ok(owned)
    }

    /// Trims a block or a page. The block is erased in the background: on a device with timing when
    /// its LUN has nothing else to do, on others when no command on the block is in progress; or
    /// when an allocation needs it.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`] for one that was trimmed before or never allocated.
    pub fn trim(&self, at: Address, unit: Unit) -> Result<()> {
        let mut state = self.lock();
        state.settle()?;
        state.trim(at, unit)?;
        state.erase_idle()
    }

    /// Waits until all trimmed blocks are erased. On a device without timing, a block with commands
    /// in progress is erased when they end, and not waited for.
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
        Ok(self.free_and_erasing()?[1])
    }

    /// [`Function::free_blocks`] and [`Function::erasing`] at the same moment: between two calls
    /// another thread may end a read for which an erase waited.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn free_and_erasing(&self) -> Result<[u32; 2]> {
        let mut state = self.lock();
        state.settle()?;
        let channels = 0..state.geometry.channels.len();
        let counts = channels.map(|at| [state.erased_in(at), state.erasing_in(at)]);
        Ok(counts.fold([0, 0], |sum, count| [sum[0] + count[0], sum[1] + count[1]]))
    }

    /// On a device with timing: lets time pass until a trimmed block is erased, at most for
    /// `timeout`. Returns whether one is; false if none waits for its erase.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn wait_for_erase(&self, timeout: Option<Nanos>) -> Result<bool> {
        self.lock().reach_erase(timeout)
    }

    /// Erased blocks of all channels, including over-provisioning.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn free_blocks(&self) -> Result<u32> {
        Ok(self.free_and_erasing()?[0])
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
        self.share.sync()
    }

    /// A ticket for everything that is complete now: [`Function::sync_to`] makes it durable, with
    /// one sync for the tickets of many threads.
    #[must_use]
    pub fn ticket(&self) -> u64 {
        self.share.ticket()
    }

    /// Makes everything durable that was complete when the ticket was drawn. Returns at once if a
    /// sync since then has done so.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn sync_to(&self, ticket: u64) -> Result<()> {
        self.share.sync_to(ticket)
    }

    /// A queue with at most `depth` commands in flight.
    #[must_use]
    pub fn queue(&self, depth: usize) -> Queue<&Self> {
        Queue::new(self, depth)
    }
}
