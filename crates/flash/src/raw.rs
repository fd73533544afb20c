//! The raw level: the pages and blocks of a share, under the rules of flash.
//!
//! Source: Prism-SSD (Shen et al., ICDCS'19), section IV.B. Differences: the geometry is that of
//! the share, which need not be rectangular; pages of a block are written in order, which the paper
//! leaves open; reading a page that was never written is an error; calls can be queued and
//! vectored.
//!
//! ```
//! use prism_base::Bytes;
//! use prism_flash::raw::{Address, Raw};
//! use prism_flash::{
//!     Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options,
//! };
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
//! let raw = Raw::open(device.allocate("a", Allocation::new(Bytes(4 << 20), 0))?)?;
//!
//! let at = Address { channel: 1, lun: 0, block: 3, page: 0 };
//! raw.write_page(at, &[1; 4096])?;
//! raw.write_page(at.with_page(1), &[2; 4096])?;
//! let mut page = [0; 4096];
//! raw.read_page(at.with_page(1), &mut page)?;
//! assert_eq!(page, [2; 4096]);
//!
//! // Pages are written in order, once; then the block is erased.
//! let again = raw.write_page(at, &[3; 4096]);
//! assert_eq!(again, Err(FlashError::OutOfOrder { page: 0, expected: 2 }));
//! raw.erase_block(at)?;
//! raw.write_page(at, &[3; 4096])?;
//! # Ok::<(), FlashError>(())
//! ```

mod queue;

use prism_base::SimTime;

use crate::error::{FlashError, Result};
use crate::medium::{DeviceGeometry, PageState};
use crate::monitor::{Device, Pads, Share, ShareGeometry};

pub use crate::address::Address;
pub use crate::monitor::Completion;
pub use queue::{Command, Queue};

/// The block of the share that an address names.
#[inline]
pub(crate) fn block_number(geometry: &ShareGeometry, at: Address) -> Result<u32> {
    let refused = |what, value: u32, count: usize| FlashError::OutOfRange {
        what,
        value: value.into(),
        count: count as u64,
    };
    let channels = &geometry.channels;
    let Some(luns) = channels.get(at.channel as usize) else {
        return Err(refused("channel", at.channel, channels.len()));
    };
    let Some(&lun) = luns.get(at.lun as usize) else {
        return Err(refused("LUN", at.lun, luns.len()));
    };
    let per_lun = geometry.blocks_per_lun;
    if at.block >= per_lun {
        return Err(refused("block", at.block, per_lun as usize));
    }
    Ok(lun * per_lun + at.block)
}

/// A share at the raw level.
///
/// Calls block until the operation is complete: on a device with timing, the share's clock advances
/// to its end. A write is durable when the call returns or, on a device with a volatile cache,
/// after the next [`Raw::sync`].
#[derive(Debug)]
pub struct Raw {
    share: Share,
    geometry: ShareGeometry,
}

/// The command of a vectored call that failed, and why. Those before it are complete, those after
/// it were not started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("command {index} of the vector: {error}")]
pub struct VectorError {
    /// The index of the command.
    pub index: usize,
    /// Why.
    #[source]
    pub error: FlashError,
}

impl Raw {
    /// Opens `share` at the raw level; its content stays.
    ///
    /// # Errors
    /// [`FlashError::WrongLevel`] if a higher level keeps its data in it.
    pub fn open(share: Share) -> Result<Self> {
        share.claim(None)?;
        Ok(Self { geometry: share.geometry()?, share })
    }

    /// The share, to let time pass or to read its counts.
    #[must_use]
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Gives the share back, with what it holds.
    #[must_use]
    pub fn into_share(self) -> Share {
        self.share
    }

    /// The shape of the share.
    #[must_use]
    pub fn geometry(&self) -> &ShareGeometry {
        &self.geometry
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.share.device()
    }

    /// The shape of the whole device.
    #[must_use]
    pub fn device_geometry(&self) -> DeviceGeometry {
        self.share.device().geometry()
    }

    /// Adds LUNs to the share; see [`Share::grow`].
    ///
    /// # Errors
    /// [`FlashError::NoLuns`].
    pub fn grow(&mut self, luns: u32) -> Result<()> {
        self.share.grow(luns, 0)?;
        self.geometry = self.share.geometry()?;
        Ok(())
    }

    /// Gives back the last LUNs of the share; see [`Share::shrink`].
    ///
    /// # Errors
    /// [`FlashError::ShrinkBelowUse`].
    pub fn shrink(&mut self, luns: u32) -> Result<()> {
        self.share.shrink(luns)?;
        self.geometry = self.share.geometry()?;
        Ok(())
    }

    /// Every block of the share, LUN by LUN, those of a channel together.
    pub fn blocks(&self) -> impl Iterator<Item = Address> + '_ {
        let channels = (0u32..).zip(&self.geometry.channels);
        let luns =
            channels.flat_map(|(channel, luns)| (0..luns.len() as u32).map(move |l| (channel, l)));
        luns.flat_map(|(channel, lun)| {
            let blocks = 0..self.geometry.blocks_per_lun;
            blocks.map(move |block| Address { channel, lun, block, page: 0 })
        })
    }

    #[inline]
    fn block(&self, at: Address) -> Result<u32> {
        block_number(&self.geometry, at)
    }

    /// Reads a page, or its first bytes.
    ///
    /// # Errors
    /// [`FlashError::Unwritten`], [`FlashError::Torn`], [`FlashError::OutOfRange`] for an address
    /// outside of the share, [`FlashError::PastEnd`] for more than a page, [`FlashError::TooLong`]
    /// for more out-of-band bytes than a page has.
    pub fn read_page(&self, at: Address, data: &mut [u8]) -> Result<()> {
        self.read_page_and_oob(at, data, &mut [])
    }

    /// Checks the lengths of a read from `offset` of a page on, before a caller allocates memory
    /// for it.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`], [`FlashError::PastEnd`], [`FlashError::TooLong`].
    pub fn check(&self, at: Address, offset: u32, data: usize, oob: usize) -> Result<()> {
        self.check_length(offset, data, oob)?;
        self.block(at)?;
        let (value, count) = (at.page.into(), self.geometry.pages_per_block.into());
        let refused = FlashError::OutOfRange { what: "page", value, count };
        if at.page < self.geometry.pages_per_block { Ok(()) } else { Err(refused) }
    }

    /// Reads a part of a page, from `offset` on.
    ///
    /// # Errors
    /// As [`Raw::read_page`].
    pub fn read_at(&self, at: Address, offset: u32, data: &mut [u8]) -> Result<()> {
        let end = self.read_from(at, offset, data, &mut [])?;
        self.share.reach_if_timed(end)
    }

    /// Reads a page, or its first bytes, and as many out-of-band bytes as `oob` has.
    ///
    /// # Errors
    /// As [`Raw::read_page`].
    pub fn read_page_and_oob(&self, at: Address, data: &mut [u8], oob: &mut [u8]) -> Result<()> {
        let end = self.read_from(at, 0, data, oob)?;
        self.share.reach_if_timed(end)
    }

    fn read_from(
        &self,
        at: Address,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<SimTime> {
        self.check_length(offset, data.len(), oob.len())?;
        match self.share.read_now((self.block(at)?, at.page, offset), data, oob)? {
            (PageState::Written, end) => Ok(end),
            (PageState::Erased, _) => Err(FlashError::Unwritten { at }),
            (PageState::Torn, _) => Err(FlashError::Torn { at }),
        }
    }

    /// Checks that `data` is a page.
    fn check_page(&self, data: &[u8], oob: &[u8]) -> Result<()> {
        let page_size = self.geometry.page_size;
        if data.len() != page_size as usize {
            let (what, value) = ("a write of one page:", data.len() as u64);
            return Err(FlashError::Unaligned { what, value, unit: page_size.into() });
        }
        self.check_length(0, data.len(), oob.len())
    }

    fn check_length(&self, offset: u32, data: usize, oob: usize) -> Result<()> {
        let (end, limit) = ((data as u64).saturating_add(offset.into()), self.geometry.page_size);
        if end > limit.into() {
            return Err(FlashError::PastEnd { within: "page", end, limit: limit.into() });
        }
        let (bytes, most) = (oob as u64, self.geometry.oob_size.into());
        if bytes > most { Err(FlashError::TooLong { bytes, most }) } else { Ok(()) }
    }

    /// Writes a page: the next of its block.
    ///
    /// # Errors
    /// [`FlashError::OutOfOrder`], [`FlashError::NotErased`], [`FlashError::TooManyOpen`],
    /// [`FlashError::Unaligned`] unless `data` is one page.
    pub fn write_page(&self, at: Address, data: &[u8]) -> Result<()> {
        self.write_page_and_oob(at, data, &[])
    }

    /// Writes a page and its first out-of-band bytes, as many as `oob` has.
    ///
    /// # Errors
    /// As [`Raw::write_page`]; [`FlashError::TooLong`] for more out-of-band bytes than a page has.
    pub fn write_page_and_oob(&self, at: Address, data: &[u8], oob: &[u8]) -> Result<()> {
        let end = self.write_from(at, data, oob)?;
        self.share.reach_if_timed(end)
    }

    fn write_from(&self, at: Address, data: &[u8], oob: &[u8]) -> Result<SimTime> {
        self.check_page(data, oob)?;
        self.share.program_now((self.block(at)?, at.page), &Pads::NONE, data, oob)
    }

    /// Erases a block.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`]; [`FlashError::WornOut`] if the block fails and no spare
    /// one is left.
    pub fn erase_block(&self, at: Address) -> Result<()> {
        let end = self.share.erase_now(self.block(at)?)?;
        self.share.reach_if_timed(end)
    }

    /// Closes a block: it takes no more pages and no longer counts as partly written.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`].
    pub fn finish_block(&self, at: Address) -> Result<()> {
        self.share.finish(self.block(at)?)
    }

    /// The page of the block that is to be written next.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`].
    pub fn write_pointer(&self, at: Address) -> Result<u32> {
        self.share.write_pointer(self.block(at)?)
    }

    /// How often the block at this address was erased, as far as the monitor knows.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`].
    pub fn erase_count(&self, at: Address) -> Result<u32> {
        self.share.erases(self.block(at)?)
    }

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn sync(&self) -> Result<()> {
        self.share.sync()
    }

    /// A ticket for everything that is complete now: [`Raw::sync_to`] makes it durable, with one
    /// sync for the tickets of many threads.
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

    /// Reads pages into `data`, page after page. All reads start now; returns when the last is
    /// complete.
    ///
    /// # Errors
    /// [`VectorError`] names the command.
    pub fn read_pages(&self, pages: &[Address], data: &mut [u8]) -> Result<(), VectorError> {
        self.check_vector(pages.len(), data.len())?;
        let parts = data.chunks_mut(self.geometry.page_size as usize);
        if !self.share.is_timed() {
            return self.read_together(pages, parts);
        }
        let mut parts = parts;
        self.vectored(pages, |at| self.read_from(at, 0, parts.next().unwrap_or_default(), &mut []))
    }

    /// Reads pages with many reads in flight.
    fn read_together<'a>(
        &self,
        pages: &[Address],
        parts: impl Iterator<Item = &'a mut [u8]>,
    ) -> Result<(), VectorError> {
        /// Reads in flight.
        const DEPTH: usize = 32;
        let mut parts: Vec<_> = parts.collect();
        let mut queue = self.queue(DEPTH.min(pages.len()));
        let mut failed: Option<VectorError> = None;
        let mut coming = (0u64..).zip(pages);
        let page_size = self.geometry.page_size as usize;
        let mut spare = Vec::new();
        loop {
            while queue.len() < DEPTH {
                let Some((index, &at)) = coming.next().filter(|_| failed.is_none()) else { break };
                let data = spare.pop().unwrap_or_else(|| self.share.buffer(page_size));
                queue.submit(Command::read(at, data), index).expect("there is room");
            }
            let Some(done) = queue.complete() else { break };
            let index = done.tag as usize;
            match done.result {
                Ok(()) => parts[index].copy_from_slice(&done.data),
                Err(error) if failed.as_ref().is_none_or(|first| index < first.index) => {
                    failed = Some(VectorError { index, error });
                }
                Err(_) => {}
            }
            spare.push(done.data);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Writes pages from `data`, page after page. All writes start now; returns when the last is
    /// complete.
    ///
    /// # Errors
    /// [`VectorError`] names the command.
    pub fn write_pages(&self, pages: &[Address], data: &[u8]) -> Result<(), VectorError> {
        self.check_vector(pages.len(), data.len())?;
        let mut parts = data.chunks(self.geometry.page_size as usize);
        self.vectored(pages, |at| self.write_from(at, parts.next().unwrap_or_default(), &[]))
    }

    /// Writes the pages of one block from `at` on, from several buffers of whole pages. No buffer
    /// is copied before it goes to the device.
    ///
    /// # Errors
    /// [`VectorError`] names the buffer: those before it are written, and of its own pages, some
    /// first ones may be. [`FlashError::Unaligned`] and [`FlashError::OutOfRange`] come before
    /// anything is written.
    pub fn write_vectored(&self, at: Address, parts: &[&[u8]]) -> Result<(), VectorError> {
        let at_index = |index| move |error| VectorError { index, error };
        let block = self.block(at).map_err(at_index(0))?;
        let (size, pages) = (self.geometry.page_size as usize, self.geometry.pages_per_block);
        let mut page = u64::from(at.page);
        for (index, part) in parts.iter().enumerate() {
            if !part.len().is_multiple_of(size) {
                let (what, value) = ("a buffer of", part.len() as u64);
                let error = FlashError::Unaligned { what, value, unit: size as u64 };
                return Err(VectorError { index, error });
            }
            page += (part.len() / size) as u64;
            if page > pages.into() {
                let (what, value, count) = ("page", page - 1, pages.into());
                let error = FlashError::OutOfRange { what, value, count };
                return Err(VectorError { index, error });
            }
        }
        let (mut page, mut end) = (at.page, SimTime::ZERO);
        let with_data = parts.iter().enumerate().filter(|(_, part)| !part.is_empty());
        for (index, part) in with_data {
            let programmed = self.share.program_now((block, page), &Pads::NONE, part, &[]);
            end = end.max(programmed.map_err(at_index(index))?);
            page += (part.len() / size) as u32;
        }
        self.share.reach_if_timed(end).map_err(at_index(parts.len()))
    }

    /// Erases blocks. All erases start now; returns when the last is complete.
    ///
    /// # Errors
    /// [`VectorError`] names the command.
    pub fn erase_blocks(&self, blocks: &[Address]) -> Result<(), VectorError> {
        self.vectored(blocks, |at| self.share.erase_now(self.block(at)?))
    }

    /// Checks that `bytes` is the size of `pages` pages, before any command starts.
    fn check_vector(&self, pages: usize, bytes: usize) -> Result<(), VectorError> {
        let wanted = pages as u64 * u64::from(self.geometry.page_size);
        if bytes as u64 == wanted {
            return Ok(());
        }
        let what =
            format!("{pages} pages have {wanted} bytes, not {bytes}: give one page for each");
        Err(VectorError { index: 0, error: FlashError::Invalid { what } })
    }

    fn vectored(
        &self,
        all: &[Address],
        mut one: impl FnMut(Address) -> Result<SimTime>,
    ) -> Result<(), VectorError> {
        let at_index = |index| move |error| VectorError { index, error };
        let mut end = SimTime::ZERO;
        for (index, &at) in all.iter().enumerate() {
            end = end.max(one(at).map_err(at_index(index))?);
        }
        self.share.reach_if_timed(end).map_err(at_index(all.len()))
    }

    /// A queue with at most `depth` commands in flight.
    #[must_use]
    pub fn queue(&self, depth: usize) -> Queue<&Self> {
        Queue::new(self, depth)
    }
}
