//! Reads and writes of the function level. On a device without timing they take no lock: they check
//! in a table of atomics that their pages are allocated, and delay the erase of their block.

use prism_base::SimTime;
use prism_nand::Cause;

use crate::error::{FlashError, Result};
use crate::function::table::Seen;
use crate::function::{Function, OWNER, check_oob, oob_size};
use crate::medium::PageState;
use crate::monitor::Pads;
use crate::raw::{Address, block_number};

impl Function {
    /// Writes whole pages of one block, from `at` on, which has to be its next page. No lock is
    /// held while the device works.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`], [`FlashError::Unaligned`], [`FlashError::OutOfRange`] for
    /// more than the block; [`FlashError::OutOfOrder`], [`FlashError::NotErased`],
    /// [`FlashError::TooManyOpen`], after which no page was written.
    pub fn write(&self, at: Address, data: &[u8]) -> Result<()> {
        self.write_with_oob(at, data, &[])
    }

    /// As [`Function::write`], with out-of-band bytes of the first page: at most
    /// [`Function::oob_size`].
    ///
    /// # Errors
    /// As [`Function::write`]; [`FlashError::TooLong`] for too many out-of-band bytes.
    pub fn write_with_oob(&self, at: Address, data: &[u8], oob: &[u8]) -> Result<()> {
        check_oob(&self.geometry, oob.len())?;
        let (block, pages) = self.begin(at, data.len())?;
        let written =
            if pages == 0 { Ok(SimTime::ZERO) } else { self.program(block, at.page, data, oob) };
        self.end(block);
        self.share.reach_if_timed(written?)
    }

    /// As [`Function::write`], from several buffers of whole pages, for consecutive pages. On a
    /// device without timing no buffer is copied before it goes to the device.
    ///
    /// # Errors
    /// As [`Function::write`], for all buffers together; if the device fails, some first buffers
    /// may be written.
    pub fn write_vectored(&self, at: Address, parts: &[&[u8]]) -> Result<()> {
        let size = self.geometry.page_size as usize;
        if let Some(odd) = parts.iter().find(|part| !part.len().is_multiple_of(size)) {
            let (what, value) = ("a buffer of", odd.len() as u64);
            return Err(FlashError::Unaligned { what, value, unit: size as u64 });
        }
        let (block, _) = self.begin(at, parts.iter().map(|part| part.len()).sum())?;
        let mut page = at.page;
        let mut parts = parts.iter().filter(|part| !part.is_empty());
        let written = parts.try_fold(SimTime::ZERO, |end, part| {
            let first = page;
            page += (part.len() / size) as u32;
            self.program(block, first, part, &[]).map(|part_end| end.max(part_end))
        });
        self.end(block);
        self.share.reach_if_timed(written?)
    }

    /// Programs pages of a block that is allocated; returns the end.
    fn program(&self, block: u32, page: u32, data: &[u8], oob: &[u8]) -> Result<SimTime> {
        self.table.note_begun(block);
        let oob = self.page_oob(block, page, oob.to_vec());
        match self.share.program_now((block, page), &self.pads(block, page), data, &oob) {
            Err(FlashError::OutOfOrder { expected, .. }) if !self.share.is_timed() => {
                self.padded((block, page), expected, data, &oob)?;
                Ok(SimTime::ZERO)
            }
            programmed => programmed,
        }
    }

    /// On a device with timing: the pages right before this one that were trimmed. They are padded
    /// when the page is programmed, if they are not written then. On other devices the device
    /// reports that first, see [`Function::padded`].
    pub(super) fn pads(&self, block: u32, page: u32) -> Pads {
        if page == 0 || !self.share.is_timed() || self.table.get(block) != Seen::PartlyTrimmed {
            return Pads::NONE;
        }
        let state = self.lock();
        let trimmed = (0..page).rev().take_while(|&before| state.blocks.was_trimmed(block, before));
        match trimmed.last() {
            Some(from) => Pads { from, first_oob: self.page_oob(block, 0, Vec::new()) },
            None => Pads::NONE,
        }
    }

    /// On a device without timing: programs the pages from `expected` on that were trimmed before
    /// they were written, and then `data` with its out-of-band bytes.
    pub(super) fn padded(
        &self,
        (block, page): (u32, u32),
        expected: u32,
        data: &[u8],
        oob: &[u8],
    ) -> Result<()> {
        // Another write may have padded the block meanwhile.
        let expected = self.share.write_pointer(block)?.max(expected);
        if expected != page && !self.lock().may_pad(block, expected, page) {
            return Err(FlashError::OutOfOrder { page, expected });
        }
        let zeros = vec![0; self.geometry.page_size as usize];
        let access = |page, cause| self.share.access(block, page, cause, SimTime::ZERO);
        for pad in expected..page {
            let oob = self.page_oob(block, pad, Vec::new());
            self.share.program(access(pad, Cause::Pad), &zeros, &oob)?;
        }
        self.share.program(access(page, Cause::Host), data, oob).map(drop)
    }

    /// Checks that pages from `at` on are allocated, and delays the erase of their block until
    /// [`Function::end`]. Returns the block and the number of pages.
    pub(super) fn begin(&self, at: Address, len: usize) -> Result<(u32, u32)> {
        let block = block_number(&self.geometry, at)?;
        self.table.begin(block);
        let checked = self.check_allocated(block, at, len);
        if checked.is_err() {
            self.end(block);
        }
        checked
    }

    fn check_allocated(&self, block: u32, at: Address, len: usize) -> Result<(u32, u32)> {
        let unit = self.geometry.page_size as usize;
        let pages = (len / unit) as u64;
        match self.table.get(block) {
            Seen::Allocated(end)
                if len.is_multiple_of(unit) && u64::from(at.page) + pages <= end.into() =>
            {
                Ok((block, pages as u32))
            }
            // An error, or pages of which some were trimmed.
            _ => self.lock().check(at, len),
        }
    }

    /// A command on a block has ended: if its erase waited for that, erases it.
    pub(super) fn end(&self, block: u32) {
        if self.table.end(block) {
            // The error is reported by `drain`.
            let _ = self.lock().erase_idle();
        }
    }

    /// Reads whole pages of one block, from `at` on. No lock is held while the device works.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`], [`FlashError::Unaligned`], [`FlashError::OutOfRange`] for
    /// more than the block, [`FlashError::Unwritten`], [`FlashError::Torn`],
    /// [`FlashError::Damaged`]. The content of `data` is unspecified then.
    pub fn read(&self, at: Address, data: &mut [u8]) -> Result<()> {
        let (block, _) = self.begin(at, data.len())?;
        let read = self.read_block(block, at.page, 0, data);
        self.end(block);
        read
    }

    /// Checks that these bytes can be read from `at` on, before a caller allocates memory for them.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`], [`FlashError::Unaligned`], [`FlashError::OutOfRange`].
    pub fn check(&self, at: Address, bytes: usize) -> Result<()> {
        self.check_allocated(block_number(&self.geometry, at)?, at, bytes).map(drop)
    }

    /// Reads a part of a block: as many bytes as `data` has, from `offset` of a page on.
    ///
    /// # Errors
    /// As [`Function::read`].
    pub fn read_at(&self, at: Address, offset: u32, data: &mut [u8]) -> Result<()> {
        let unit = self.geometry.page_size as usize;
        let pages = (offset as usize + data.len()).div_ceil(unit);
        let (block, _) = self.begin(at, pages * unit)?;
        let read = self.read_block(block, at.page, offset, data);
        self.end(block);
        read
    }

    fn read_block(&self, block: u32, page: u32, offset: u32, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let (state, end) = self.share.read_now((block, page, offset), data, &mut [])?;
        self.check_read(block, page, state)?;
        self.share.reach_if_timed(end)
    }

    /// Out-of-band bytes of a page that the application can use: those of the device without the
    /// word of the block's owner.
    #[must_use]
    pub fn oob_size(&self) -> usize {
        oob_size(&self.geometry)
    }

    /// Reads the first out-of-band bytes of a page, at most [`Function::oob_size`].
    ///
    /// # Errors
    /// As [`Function::read`]; [`FlashError::TooLong`] for too many bytes.
    pub fn read_oob(&self, at: Address, oob: &mut [u8]) -> Result<()> {
        check_oob(&self.geometry, oob.len())?;
        let (block, _) = self.begin(at, self.geometry.page_size as usize)?;
        let read = self.read_block_oob(block, at.page, oob);
        self.end(block);
        read
    }

    fn read_block_oob(&self, block: u32, page: u32, oob: &mut [u8]) -> Result<()> {
        let (state, end) = self.share.read_now((block, page, 0), &mut [], oob)?;
        self.check_read(block, page, state)?;
        self.share.reach_if_timed(end)
    }

    /// The out-of-band bytes of a page: those of the application, and on a block's first page the
    /// owner.
    pub(super) fn page_oob(&self, block: u32, page: u32, mut oob: Vec<u8>) -> Vec<u8> {
        let (size, owner) = (self.geometry.oob_size as usize, self.table.owner(block));
        if page == 0 && size >= OWNER && owner != 0 {
            oob.resize(size - OWNER, 0xFF);
            oob.extend(owner.to_le_bytes());
        }
        oob
    }

    /// The word of a block's owner, of which `written` pages are written.
    pub(super) fn owner_of(&self, block: u32, written: u32) -> Result<u64> {
        let known = self.table.owner(block);
        let mut oob = vec![0; self.geometry.oob_size as usize];
        if known != 0 || written == 0 || oob.len() < OWNER {
            return Ok(known);
        }
        let access = self.share.access(block, 0, Cause::Host, SimTime::ZERO);
        let (state, _) = self.share.read(access, 0, &mut [], &mut oob)?;
        let word = oob[oob.len() - OWNER..].try_into().expect("eight bytes");
        let word = u64::from_le_bytes(word);
        // Out-of-band bytes that were not given are all ones.
        let owner = if state == PageState::Written && word != u64::MAX { word } else { 0 };
        self.table.note_owner(block, owner);
        Ok(owner)
    }

    /// Closes a block: it takes no more pages and no longer counts as partly written.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`], [`FlashError::OutOfRange`].
    pub fn finish(&self, at: Address) -> Result<()> {
        let (block, _) = self.begin(at.with_page(0), 0)?;
        let finished = self.share.finish(block);
        self.end(block);
        finished
    }

    /// The page of the block that is to be written next.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`].
    pub fn write_pointer(&self, at: Address) -> Result<u32> {
        self.share.write_pointer(block_number(&self.geometry, at)?)
    }

    /// How often the block at this address was erased, as far as the monitor knows.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`].
    pub fn erase_count(&self, at: Address) -> Result<u32> {
        self.share.erases(block_number(&self.geometry, at)?)
    }
}
