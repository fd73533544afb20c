//! The interface of a flash device, which only the monitor uses: blocks of pages; the pages of a
//! block are programmed in order, and a block is erased as a whole.
//!
//! A medium is memory, a file, or a real zoned device (a block is then a zone). It may have a
//! volatile cache: operations since the last [`Medium::sync`] can then be lost in a power failure,
//! on each block from some operation on, and an erase can be undone.

use std::any::Any;
use std::sync::Arc;

use prism_base::Bytes;

use crate::buffer::Buffer;

mod queue;

pub(crate) use queue::ImmediateQueue;
pub use queue::{MediumQueue, Op, Reply, Request, execute};

/// The geometry of a device. Channels and LUNs work in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceGeometry {
    /// Channels (buses).
    pub channels: u32,
    /// LUNs (dies) on each channel, the smallest units that execute commands independently.
    pub luns_per_channel: u32,
    /// Blocks of a LUN.
    pub blocks_per_lun: u32,
    /// Pages of a block; a page is the unit of a program.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Out-of-band bytes of each page; 0 on zoned devices.
    pub oob_size: u32,
    /// Blocks that may be partly written at once, as zoned devices limit them; `None` for any
    /// number.
    pub max_open_blocks: Option<u32>,
}

impl DeviceGeometry {
    /// LUNs of the device.
    #[must_use]
    pub fn luns(&self) -> u32 {
        self.channels * self.luns_per_channel
    }

    /// Blocks of the device.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.luns() * self.blocks_per_lun
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.pages_per_block) * u64::from(self.page_size)
    }

    /// Bytes of the device, out-of-band bytes not counted.
    #[must_use]
    pub fn raw(&self) -> Bytes {
        Bytes(u64::from(self.blocks()) * self.block_bytes())
    }

    /// Checks that each number is within its range.
    ///
    /// # Errors
    /// The first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), GeometryError> {
        let wrong = |field, value: u32, min: u64, max: u64| {
            let value = u64::from(value);
            let ok = (min..=max).contains(&value);
            if ok { Ok(()) } else { Err(GeometryError { field, value, min, max }) }
        };
        wrong("channels", self.channels, 1, 1 << 10)?;
        wrong("luns_per_channel", self.luns_per_channel, 1, 1 << 10)?;
        wrong("blocks_per_lun", self.blocks_per_lun, 4, 1 << 20)?;
        wrong("pages_per_block", self.pages_per_block, 2, u64::from(u16::MAX))?;
        wrong("page_size", self.page_size, 512, 1 << 24)?;
        wrong("oob_size", self.oob_size, 0, 1 << 16)?;
        wrong("max_open_blocks", self.max_open_blocks.unwrap_or(u32::MAX), 4, u64::from(u32::MAX))?;
        let blocks = u64::from(self.luns()) * u64::from(self.blocks_per_lun);
        let (value, max) = (blocks * u64::from(self.pages_per_block), u64::from(u32::MAX));
        let (field, min) = ("pages of the device", 1);
        if value > max { Err(GeometryError { field, value, min, max }) } else { Ok(()) }
    }
}

/// A field of a geometry that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}; it must be between {min} and {max}")]
pub struct GeometryError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// The smallest allowed.
    pub min: u64,
    /// The largest allowed.
    pub max: u64,
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// What was programmed.
    Written,
    /// Nothing since the last erase.
    Erased,
    /// Nothing that can be read: a program or an erase was interrupted.
    Torn,
}

/// Why an operation of a medium failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediumError {
    /// Pages of a block are programmed in order.
    #[error("page {page} of block {block} was programmed out of order; page {expected} is next")]
    OutOfOrder {
        /// The block.
        block: u32,
        /// The page to be programmed.
        page: u32,
        /// The page that is next.
        expected: u32,
    },
    /// The block takes no more pages before it is erased.
    #[error("block {block} is full or finished; erase it first")]
    Full {
        /// The block.
        block: u32,
    },
    /// An erase was interrupted.
    #[error("block {block} was not erased completely; erase it again")]
    Unstable {
        /// The block.
        block: u32,
    },
    /// More blocks would be partly written than the device allows.
    #[error("{max} blocks are partly written, which is the most; fill or finish one first")]
    TooManyOpen {
        /// The most.
        max: u32,
    },
    /// The cells did not take the data; the block is worn out.
    #[error("the program of page {page} of block {block} failed")]
    ProgramFailed {
        /// The block.
        block: u32,
        /// The page.
        page: u32,
    },
    /// The cells could not be erased; the block is worn out.
    #[error("the erase of block {block} failed")]
    EraseFailed {
        /// The block.
        block: u32,
    },
    /// The device has no power; its content is recovered when it is opened again.
    #[error("the device has lost power; open it again")]
    PowerLost,
    /// The content of the page is not what was programmed.
    #[error("page {page} of block {block} is damaged; restore it from a copy, or erase the block")]
    Damaged {
        /// The block.
        block: u32,
        /// The page.
        page: u32,
    },
    /// The storage below the device (a file, a disk) failed.
    #[error("the device failed: {what}")]
    Io {
        /// What failed, and what helps.
        what: String,
    },
    /// The disk below the device is full, and the device is read-only from then on; or there is no
    /// memory for a block of a device in memory.
    #[error("the device failed: {what}")]
    DiskFull {
        /// Which file or memory, and what helps.
        what: String,
    },
    /// The device takes no programs and no erases. What was synced can be read.
    #[error("the device is read-only: {why}")]
    ReadOnly {
        /// Why, and what helps.
        why: String,
    },
}

/// A flash device, which threads share. Blocks are numbered LUN by LUN; LUN `l` is on channel
/// `l % channels`.
///
/// Calls wait for the device and hold no lock while they do, so that calls of several threads are
/// in progress at once. The caller keeps the order of programs of one block; a page can be read
/// as soon as its program has returned.
pub trait Medium: Send + Sync {
    /// Its shape.
    fn geometry(&self) -> &DeviceGeometry;

    /// Pages of `block` programmed since its last erase, torn ones included.
    fn write_pointer(&self, block: u32) -> u32;

    /// Whether `block` is partly written: programmed, not full, not finished.
    fn is_open(&self, block: u32) -> bool;

    /// Whether the manufacturer marked `block` as bad.
    fn is_factory_bad(&self, block: u32) -> bool;

    /// Whether operations are durable only after [`Medium::sync`].
    fn has_volatile_cache(&self) -> bool;

    /// Whether a power failure leaves all blocks as at the same sync: an erase then cannot become
    /// durable before the programs before it.
    fn syncs_as_a_whole(&self) -> bool {
        false
    }

    /// Whether a program of the erased `block` would not have to wait for a sync first, which some
    /// media need so that a power failure cannot undo the erase of data that is overwritten.
    fn erase_is_durable(&self, _block: u32) -> bool {
        true
    }

    /// Whether LUNs work at the same time. If not, the policy level fills one block after the
    /// other, so that data that was written together is read together.
    fn luns_work_in_parallel(&self) -> bool {
        true
    }

    /// How often `block` was erased, on a medium that keeps count; `None` on others.
    fn erase_count(&self, _block: u32) -> Option<u32> {
        None
    }

    /// A buffer of `len` bytes that this medium reads into and programs from without a copy.
    fn buffer(&self, len: usize) -> Buffer {
        vec![0; len].into()
    }

    /// A queue that keeps about `depth` operations in flight; `None` from a medium whose calls do
    /// not wait for anything.
    fn queue(self: Arc<Self>, _depth: usize) -> Option<Box<dyn MediumQueue>> {
        None
    }

    /// Reads `data.len()` bytes from `offset` of a page on, which may continue on the next pages of
    /// the block, and the first `oob.len()` out-of-band bytes of the page. Returns the state of the
    /// first page that is not [`PageState::Written`], if there is one; the content of the buffers
    /// is unspecified then.
    ///
    /// # Errors
    /// [`MediumError::PowerLost`], [`MediumError::Damaged`], [`MediumError::Io`].
    fn read(
        &self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError>;

    /// Programs pages from `page` on with `data`, which has the size of a page or of several, and
    /// the first of them with `oob`, which has at most the size of the out-of-band area.
    ///
    /// # Errors
    /// All but [`MediumError::EraseFailed`]. More pages than fit are [`MediumError::Full`], and
    /// none of them is programmed. After [`MediumError::ProgramFailed`] the earlier pages
    /// of the block can still be read.
    fn program(&self, block: u32, page: u32, data: &[u8], oob: &[u8]) -> Result<(), MediumError>;

    /// Erases a block.
    ///
    /// # Errors
    /// [`MediumError::EraseFailed`], [`MediumError::PowerLost`], [`MediumError::ReadOnly`],
    /// [`MediumError::Io`], [`MediumError::DiskFull`].
    fn erase(&self, block: u32) -> Result<(), MediumError>;

    /// Closes `block`: it takes no more pages until it is erased, and no longer counts as partly
    /// written.
    ///
    /// # Errors
    /// [`MediumError::PowerLost`], [`MediumError::ReadOnly`].
    fn finish(&self, block: u32) -> Result<(), MediumError>;

    /// Makes all operations durable that were complete when it was called.
    ///
    /// # Errors
    /// [`MediumError::PowerLost`]; [`MediumError::Io`] or [`MediumError::DiskFull`] if an operation
    /// since the last sync did not reach the device. The device is then read-only, and every sync
    /// fails, until it is opened again.
    fn sync(&self) -> Result<(), MediumError>;

    /// The medium itself, for a caller that knows its type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
