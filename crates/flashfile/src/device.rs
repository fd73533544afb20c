//! The device: a medium on a file.
//!
//! The block records define what is durable. `commit` makes their changes durable with one entry of
//! a journal, so after a power failure the whole device is as at the last sync or at the one that
//! was in flight, and never in between. An erase changes the record alone. Pages of a block whose
//! erase is not durable are not overwritten: the program that would do so syncs first.
//!
//! Memory: 8 bytes per block, the buffers of pages in flight, at most 16 MiB of page headers, and
//! those of the next entry once more.

use std::any::Any;
use std::io;

use prism_base::hash::FastSet;
use prism_flash::{DeviceGeometry, Medium, MediumError, PageState};

use crate::commit::Journal;
use crate::engine::Engine;
use crate::error::medium_failure;
use crate::format::{self, Record, Superblock};
use crate::headers::HeaderCache;
use crate::layout::Layout;
use crate::lock::Lock;

/// A flash device in a file. It is a [`Medium`]: [`prism_flash::Device::format`] and
/// [`prism_flash::Device::open`] take it.
///
/// Dropping it syncs, empties the journal and ignores errors; [`FlashFile::close`] returns them.
#[derive(Debug)]
pub struct FlashFile {
    pub(crate) name: String,
    pub(crate) layout: Layout,
    pub(crate) superblock: Superblock,
    pub(crate) engine: Engine,
    /// Released after the engine has completed the operations in flight.
    pub(crate) _lock: Option<Lock>,
    pub(crate) records: Vec<Record>,
    pub(crate) journal: Journal,
    /// Blocks that are partly written.
    pub(crate) open: u32,
    /// Blocks erased since the last sync.
    pub(crate) erased: FastSet<u32>,
    /// Why the device is read-only.
    pub(crate) refusal: Option<String>,
    /// Whether that is because a write failed.
    pub(crate) failed: bool,
    pub(crate) header: Vec<u8>,
    pub(crate) headers: HeaderCache,
    /// Damage found when the file was opened, and repaired from the second copy.
    pub(crate) damage: Vec<String>,
}

impl FlashFile {
    /// The name of the file, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A random number, chosen when the file was made.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.superblock.identity
    }

    /// The version of its format: [`crate::VERSION`], to which an older file is converted when it
    /// is opened for writing.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.superblock.version
    }

    /// Why the device is read-only, if so.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Damage found when the file was opened, and repaired from its second copy.
    #[must_use]
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// The way in which pages are read and written.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        match self.engine {
            Engine::Uring(_) => "io_uring",
            Engine::Portable(_) => "portable",
            Engine::Simulated(_) => "simulated",
        }
    }

    /// Marks `block` as bad by the manufacturer; durable with the next sync. To be called before
    /// the device is formatted.
    pub fn mark_factory_bad(&mut self, block: u32) {
        self.change(block, |record| record.factory_bad = true);
    }

    /// Syncs, writes what the journal holds to its own place, and closes.
    ///
    /// # Errors
    /// [`MediumError`] if an operation since the last sync is not durable, or the journal could not
    /// be emptied; what was synced is kept, and opening tries again.
    pub fn close(mut self) -> Result<(), MediumError> {
        self.finish_session()
    }

    fn finish_session(&mut self) -> Result<(), MediumError> {
        self.sync()?;
        if self.refusal.is_some() {
            return Ok(());
        }
        self.empty_journal().map_err(|error| self.refuse("emptying the journal", &error))
    }

    pub(crate) fn record(&self, block: u32) -> Record {
        self.records[block as usize]
    }

    /// Changes a record; durable with the next sync.
    fn change(&mut self, block: u32, change: impl FnOnce(&mut Record)) {
        let was_open = self.is_open(block);
        let before = self.record(block);
        self.journal.note_change(block, before);
        change(&mut self.records[block as usize]);
        self.open = self.open + u32::from(self.is_open(block)) - u32::from(was_open);
    }

    fn check_writable(&self) -> Result<(), MediumError> {
        match &self.refusal {
            Some(why) => Err(MediumError::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Makes the device read-only: the failed write may be lost, and later writes could hide that.
    pub(crate) fn refuse(&mut self, operation: &str, error: &io::Error) -> MediumError {
        let failure = medium_failure(&self.name, operation, error);
        if let MediumError::Io { what } | MediumError::DiskFull { what } = &failure {
            self.refusal.get_or_insert_with(|| format!("an earlier write failed: {what}"));
            self.failed = true;
        }
        failure
    }

    fn check_program(&self, block: u32, page: u32) -> Result<(), MediumError> {
        self.check_writable()?;
        let record = self.record(block);
        let pages = self.layout.geometry.pages_per_block;
        let expected = u32::from(record.programmed);
        if expected == pages || record.finished {
            return Err(MediumError::Full { block });
        }
        if page != expected {
            return Err(MediumError::OutOfOrder { block, page, expected });
        }
        match self.layout.geometry.max_open_blocks {
            Some(max) if page == 0 && self.open >= max => Err(MediumError::TooManyOpen { max }),
            _ => Ok(()),
        }
    }

    /// Reads the page header of a page into `self.header`; returns whether it is that page's.
    pub(crate) fn read_header(&mut self, block: u32, page: u32) -> io::Result<bool> {
        let at = self.layout.header_at(block, page);
        self.headers.read(&self.engine, at, &mut self.header)?;
        let (number, epoch) = (self.layout.page_number(block, page), self.record(block).erases);
        Ok(format::header_is_whole(self.identity(), number, epoch, &self.header))
    }

    /// Reads whole chunks of a page whose header is `self.header`; `None` if they are
    /// damaged. Also the offset within them of byte `offset` of the page.
    pub(crate) fn read_chunks(
        &mut self,
        block: u32,
        page: u32,
        offset: u32,
        len: u32,
    ) -> io::Result<Option<(&[u8], usize)>> {
        let (first, from, len) = self.chunks(offset, len);
        let page_at = self.layout.page_at(block, page);
        let bytes = self.engine.read_page(page_at, from, len)?;
        let hash = self.superblock.chunk_hash();
        let whole = format::data_is_whole(&self.layout, hash, &self.header, first, bytes);
        Ok(whole.then_some((bytes, (u64::from(offset) - from) as usize)))
    }

    /// The first chunk, where it begins in the page, and the bytes of all chunks that have
    /// some of `len` bytes from `offset` on.
    fn chunks(&self, offset: u32, len: u32) -> (usize, u64, usize) {
        let (chunk, page) = (self.layout.chunk, self.layout.geometry.page_size);
        let first = offset / chunk;
        let end = (offset + len).div_ceil(chunk).saturating_mul(chunk).min(page);
        (first as usize, u64::from(first * chunk), (end - first * chunk) as usize)
    }

    fn write_page(&mut self, block: u32, page: u32, data: &[u8], oob: &[u8]) -> io::Result<()> {
        self.engine.write_page(self.layout.page_at(block, page), data)?;
        let (number, epoch) = (self.layout.page_number(block, page), self.record(block).erases);
        let (layout, hash) = (&self.layout, self.superblock.chunk_hash());
        format::encode_header(layout, hash, number, epoch, data, oob, &mut self.header);
        let at = self.layout.header_at(block, page);
        self.headers.write(&mut self.engine, at, &self.header)?;
        self.journal.note_program(&self.layout, number as u32, &self.header);
        Ok(())
    }
}

impl Medium for FlashFile {
    fn geometry(&self) -> &DeviceGeometry {
        &self.layout.geometry
    }

    fn write_pointer(&self, block: u32) -> u32 {
        self.record(block).programmed.into()
    }

    fn is_open(&self, block: u32) -> bool {
        let record = self.record(block);
        let programmed = u32::from(record.programmed);
        programmed > 0 && programmed < self.layout.geometry.pages_per_block && !record.finished
    }

    fn is_factory_bad(&self, block: u32) -> bool {
        self.record(block).factory_bad
    }

    fn has_volatile_cache(&self) -> bool {
        true
    }

    /// A sync is one entry of the journal.
    fn syncs_as_a_whole(&self) -> bool {
        true
    }

    fn erase_is_durable(&self, block: u32) -> bool {
        !self.erased.contains(&block)
    }

    fn erase_count(&self, block: u32) -> Option<u32> {
        Some(self.record(block).erases)
    }

    fn prefetch(&mut self, block: u32, page: u32, offset: u32, len: u32) -> bool {
        if page >= self.write_pointer(block) || len == 0 {
            return false;
        }
        let (_, from, len) = self.chunks(offset, len);
        self.engine.prefetch(self.layout.page_at(block, page), from, len)
    }

    fn arrivals(&mut self, known: usize) -> usize {
        self.engine.arrivals(known)
    }

    fn has_arrived(&self, block: u32, page: u32) -> bool {
        self.engine.has_arrived(self.layout.page_at(block, page))
    }

    /// For sequential reads, the page cache reads ahead in larger pieces than prefetches.
    fn gains_from_prefetch(&self) -> bool {
        matches!(self.engine, Engine::Uring(_))
    }

    fn read(
        &mut self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        let end = u64::from(offset) + data.len() as u64;
        assert!(end <= self.layout.geometry.page_size.into(), "a read ends within its page");
        if page >= self.write_pointer(block) {
            return Ok(PageState::Erased);
        }
        if data.is_empty() && oob.is_empty() {
            return Ok(PageState::Written);
        }
        let damaged = MediumError::Damaged { block, page };
        match self.read_header(block, page) {
            Ok(true) => {}
            Ok(false) => return Err(damaged),
            Err(error) => return Err(medium_failure(&self.name, "reading", &error)),
        }
        if !data.is_empty() {
            match self.read_chunks(block, page, offset, data.len() as u32) {
                Ok(Some((bytes, within))) => {
                    data.copy_from_slice(&bytes[within..within + data.len()]);
                }
                Ok(None) => return Err(damaged),
                Err(error) => return Err(medium_failure(&self.name, "reading", &error)),
            }
        }
        oob.copy_from_slice(&format::oob_of(&self.layout, &self.header)[..oob.len()]);
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
        let page_size = self.layout.geometry.page_size as usize;
        assert!(data.len() == page_size, "a program takes a page of {page_size} bytes");
        if self.erased.contains(&block) {
            // If a power failure undid the erase, the old data would be overwritten.
            self.sync()?;
        }
        let written = self.write_page(block, page, data, oob);
        written.map_err(|error| self.refuse("writing", &error))?;
        self.change(block, |record| record.programmed += 1);
        Ok(())
    }

    fn erase(&mut self, block: u32) -> Result<(), MediumError> {
        self.check_writable()?;
        let was_used = self.record(block).programmed > 0;
        self.change(block, |record| {
            record.erases = record.erases.saturating_add(1);
            record.programmed = 0;
            record.finished = false;
        });
        if was_used {
            self.erased.insert(block);
        }
        Ok(())
    }

    fn finish(&mut self, block: u32) -> Result<(), MediumError> {
        self.check_writable()?;
        if !self.record(block).finished {
            self.change(block, |record| record.finished = true);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), MediumError> {
        // The caller that got the failure need not be the caller of this sync.
        if self.journal.is_clean() && !self.failed {
            return Ok(());
        }
        self.check_writable()?;
        self.commit().map_err(|error| self.refuse("making it durable", &error))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Drop for FlashFile {
    fn drop(&mut self) {
        // Errors are ignored here; `close` returns them.
        let _ = self.finish_session();
    }
}
