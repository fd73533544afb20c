//! The policy level: logical ranges, each with the mapping, the cleaning and the over-provisioning
//! that suit its data.
//!
//! Source: Prism-SSD (Shen et al., ICDCS'19), section IV.D. Each range is an FTL of the `ftl` crate
//! over blocks of the share, run by the controller of the simulated drive. Additions to the paper:
//! trims, durable flushes, over-provisioning per range, containers (named parts of a range by
//! lifetime), recovery. Where the paper has two names for one call (`Flash_Write` in the text,
//! `FTL_Write` in the table), it is `write` here.
//!
//! A completed [`Policy::flush`] survives a power failure: recovery finds data by the headers of
//! its program units, trims in a journal. Design: docs/design/flash.md.
//!
//! ```
//! use prism_base::Bytes;
//! use prism_flash::policy::{Cleaning, Lifetime, Mapping, Policy, RangeConfig};
//! use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
//!
//! # let geometry = DeviceGeometry {
//! #     channels: 2,
//! #     luns_per_channel: 2,
//! #     blocks_per_lun: 64,
//! #     pages_per_block: 16,
//! #     page_size: 4096,
//! #     oob_size: 64,
//! #     max_open_blocks: None,
//! # };
//! let memory = MemoryDevice::new(geometry, Cache::None)?;
//! let device = Device::format(memory, Options::default())?;
//! let policy = Policy::open(device.allocate("a", Allocation::new(Bytes(8 << 20), 25))?)?;
//!
//! // A log that is written in order, and a table that is written anywhere.
//! policy.configure(0, 1 << 20, RangeConfig::new(Mapping::Block, Cleaning::Fifo))?;
//! let by_page = RangeConfig { handles: 5, ..RangeConfig::new(Mapping::Page, Cleaning::Greedy) };
//! policy.configure(1 << 20, 4 << 20, by_page)?;
//! policy.write(0, b"begin")?;
//! policy.flush()?;
//! policy.trim(0, 4096)?;
//! let mut read = [1; 5];
//! policy.read(0, &mut read)?;
//! assert_eq!(read, [0; 5]);
//!
//! // Parts of a range by the lifetime of their data.
//! let rows = policy.create_container(1 << 20, "rows", 1 << 20, Lifetime::Long)?;
//! rows.write(4096, b"a row")?;
//! rows.read(4096, &mut read)?;
//! assert_eq!(&read, b"a row");
//! # Ok::<(), prism_flash::FlashError>(())
//! ```

mod block;
mod config;
mod container;
mod division;
mod flash;
mod inner;
mod program_units;
mod queue;
mod range;
mod ranges;
mod reads;
pub(crate) mod trims;

use std::sync::{Mutex, MutexGuard};

use prism_nand::Cause;

use crate::error::Result;
use crate::monitor::{Level, Share, Urgency};
use range::Range;
use reads::{Readers, join};

pub use crate::monitor::Completion;
pub use block::Block;
pub use config::{Cleaning, ContainerInfo, Lifetime, Mapping, OverProvisioning, RangeConfig};
pub use container::Container;
pub(crate) use inner::Inner;
pub use queue::Queue;

/// A range, as listed by [`Policy::ranges`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeInfo {
    /// Its first address.
    pub begin: u64,
    /// The address after its last.
    pub end: u64,
    /// How it is managed.
    pub config: RangeConfig,
    /// Bytes of its mapped units.
    pub mapped: u64,
    /// Blocks of the share that it owns.
    pub blocks: u32,
    /// Blocks that are written in parallel for data of one kind: the number of the share's LUNs,
    /// unless blocks or open blocks are too few for that; 1 on a file, whose LUNs do not work in
    /// parallel.
    pub die_groups: u32,
}

/// A share at the policy level. Threads may use it at once.
#[derive(Debug)]
pub struct Policy {
    inner: Mutex<Inner>,
    readers: Readers,
}

impl Policy {
    /// Opens `share`: with its ranges, if it was at the policy level before, else without any.
    ///
    /// # Errors
    /// [`FlashError::WrongLevel`] if another level keeps its data there,
    /// [`FlashError::InUse`] if the level is open in it already,
    /// [`FlashError::NoSpace`] if the share is too small for the level's journal.
    pub fn open(share: Share) -> Result<Self> {
        let inner = Mutex::new(Inner::open(share, Level::Policy, 0)?);
        Ok(Self { inner, readers: Readers::default() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread panics while it holds the level")
    }

    /// The share, to let time pass or to read its counts.
    #[must_use]
    pub fn share(&self) -> Share {
        self.lock().share.clone()
    }

    /// Bytes of a mapping unit, the smallest that is written without a read-modify-write.
    #[must_use]
    pub fn unit(&self) -> u32 {
        self.lock().format.unit
    }

    /// Bytes of data in a block, which a range with block-level mapping replaces without copies.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.lock().format.block_bytes()
    }

    /// Makes a range of the addresses `begin..end` (`FTL_Ioctl` of the paper), which can be read
    /// and written from then on. Replaces an empty range of the same addresses.
    ///
    /// # Errors
    /// [`FlashError::Unaligned`] for an address that is not a multiple of a unit,
    /// [`FlashError::Busy`] if it overlaps a range or holds data, [`FlashError::NoSpace`] or
    /// [`FlashError::Mapping`] if the share has too few blocks. Nothing has changed then.
    pub fn configure(&self, begin: u64, end: u64, config: RangeConfig) -> Result<()> {
        self.lock().configure(begin, end, config)
    }

    /// Removes the empty range that begins at `begin`.
    ///
    /// # Errors
    /// [`FlashError::Invalid`] if none begins there, [`FlashError::Busy`] if it holds data:
    /// trim it first.
    pub fn remove(&self, begin: u64) -> Result<()> {
        self.lock().remove(begin)
    }

    /// The ranges, by address.
    #[must_use]
    pub fn ranges(&self) -> Vec<RangeInfo> {
        let inner = self.lock();
        let info = |range: &Range| RangeInfo {
            begin: range.record.begin,
            end: range.record.end,
            config: range.record.config,
            mapped: range.mapped_bytes(),
            blocks: range.blocks().len() as u32,
            die_groups: range.record.die_groups,
        };
        inner.ranges.iter().map(info).collect()
    }

    /// Reads; bytes that were never written are zero. On a device without timing the lock of the
    /// level is not held while the device works, and what follows each other on flash is read
    /// together.
    ///
    /// # Errors
    /// [`FlashError::NoRange`], [`FlashError::PastEnd`] if not all bytes are in one range.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        self.read_all(&[address], &mut [into])
    }

    /// Checks that these bytes are in one range, before a caller allocates memory for them.
    ///
    /// # Errors
    /// [`FlashError::NoRange`], [`FlashError::PastEnd`].
    pub fn check(&self, address: u64, bytes: u64) -> Result<()> {
        self.lock().range_of(address, bytes).map(drop)
    }

    /// Reads several parts at once, each an address and the memory for its bytes. On a device
    /// without timing they are in flight together.
    ///
    /// # Errors
    /// As [`Policy::read`]; the content of all memory is unspecified then.
    pub fn read_vectored(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let addresses: Vec<u64> = parts.iter().map(|(address, _)| *address).collect();
        let mut into: Vec<&mut [u8]> = parts.iter_mut().map(|(_, into)| &mut **into).collect();
        self.read_all(&addresses, &mut into)
    }

    fn read_all(&self, addresses: &[u64], into: &mut [&mut [u8]]) -> Result<()> {
        loop {
            let mut inner = self.lock();
            let share = inner.share.clone();
            let mut pieces = Vec::new();
            for (buffer, (&address, into)) in addresses.iter().zip(into.iter_mut()).enumerate() {
                let (range, offset) = inner.range_of(address, into.len() as u64)?;
                if share.is_timed() {
                    range.read(offset, into, Cause::Host, Urgency::Normal)?;
                } else {
                    range.plan_read(offset, (buffer, &mut **into), &mut pieces)?;
                }
            }
            let runs = join(&share, pieces)?;
            drop(inner);
            if self.readers.read(&share, runs, into)? {
                return Ok(());
            }
        }
    }

    /// A queue of commands with at most `depth` in flight.
    #[must_use]
    pub fn queue(&self, depth: usize) -> Queue<&Self> {
        Queue::new(self, depth)
    }

    /// Writes. The data is durable after the next [`Policy::flush`]; a part of a unit costs a
    /// read-modify-write.
    ///
    /// # Errors
    /// [`FlashError::NoRange`], [`FlashError::PastEnd`] if not all bytes are in one range;
    /// [`FlashError`] if the device fails, after which the share has to be opened again.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        self.write_with_handle(address, data, 0)
    }

    /// As [`Policy::write`], as data of a placement handle; of the last handle if there are fewer.
    ///
    /// # Errors
    /// As [`Policy::write`].
    pub fn write_with_handle(&self, address: u64, data: &[u8], handle: u32) -> Result<()> {
        let mut inner = self.lock();
        let (range, offset) = inner.range_of(address, data.len() as u64)?;
        range.write(offset, data, handle, Urgency::Normal)
    }

    /// Writes several slices, one after the other from `address` on, as one write: no other write
    /// comes between them, and a unit of parts of several slices costs one write.
    ///
    /// # Errors
    /// As [`Policy::write`].
    pub fn write_vectored(&self, address: u64, parts: &[&[u8]]) -> Result<()> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let mut inner = self.lock();
        let (range, offset) = inner.range_of(address, bytes)?;
        range.write_vectored(offset, parts, 0, Urgency::Normal)
    }

    /// Trims these addresses: they read as zeros from now on.
    ///
    /// # Errors
    /// [`FlashError::Unaligned`], [`FlashError::NoRange`], [`FlashError::PastEnd`].
    pub fn trim(&self, address: u64, bytes: u64) -> Result<()> {
        self.lock().trim(address, bytes)
    }

    /// Makes everything written and trimmed so far durable. Unless ranges have trims, the lock of
    /// the level is not held during the sync.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails; data of earlier flushes stays durable.
    pub fn flush(&self) -> Result<()> {
        let mut inner = self.lock();
        if inner.share.is_timed() || inner.has_trims() {
            return inner.flush();
        }
        // Reads go on during the sync.
        inner.program_all()?;
        let share = inner.share.clone();
        drop(inner);
        share.sync()
    }

    /// Cleans in idle time, up to `program_units` program units of copies in each range. Returns
    /// whether there was anything to do.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn idle(&self, program_units: u32) -> Result<bool> {
        let mut any = false;
        for range in &mut self.lock().ranges {
            any |= range.idle(program_units)?;
        }
        Ok(any)
    }

    /// Checks the invariants of the level (for tests).
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn assert_consistent(&self) {
        self.lock().ranges.iter().for_each(Range::assert_consistent);
    }
}
