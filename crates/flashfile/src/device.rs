//! The device: a medium on a file, for several threads.
//!
//! The block records define what is durable. `commit` makes their changes durable with one entry of
//! a journal, so after a power failure the whole device is as at the last sync or at the one that
//! was in flight, and never in between. An erase changes the record alone. Pages of a block whose
//! erase is not durable are not overwritten: the program that would do so syncs first.
//!
//! Reads take no lock but that of the cached page headers, for a copy. Programs, erases and syncs
//! take the lock of `core` before and after the disk works for them. Syncs of several threads
//! become one: those that come while one is in progress wait for the next.
//!
//! Memory: 16 bytes per block, the buffers of pages in flight, at most 16 MiB of page headers, and
//! those of the next entry once more.

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use prism_flash::{Buffer, DeviceGeometry, Medium, MediumError, MediumQueue, PageState};

use crate::buffers::Pool;
use crate::commit::Commit;
use crate::engine::Engine;
use crate::error::medium_failure;
use crate::format::{self, Record, Superblock};
use crate::group::Syncs;
use crate::headers::HeaderCache;
use crate::layout::Layout;
use crate::lock::Lock;
use crate::state::{Begun, Core, RecordTable, is_open};
use crate::uring::UringQueue;
use crate::workers::{WorkerQueue, Workers};

/// A flash device in a file. It is a [`Medium`]: [`prism_flash::Device::format`] and
/// [`prism_flash::Device::open`] take it.
///
/// Dropping it syncs, empties the journal and ignores errors; [`FlashFile::close`] returns them.
#[derive(Debug)]
pub struct FlashFile {
    pub(crate) name: String,
    pub(crate) layout: Layout,
    pub(crate) superblock: Superblock,
    pub(crate) engine: Arc<Engine>,
    pub(crate) headers: Arc<Mutex<HeaderCache>>,
    pub(crate) table: Arc<RecordTable>,
    core: Mutex<Core>,
    pub(crate) syncs: Syncs,
    /// Threads for operations that wait, made when they are first needed.
    workers: OnceLock<Workers>,
    /// Memory for callers.
    pool: Pool,
    /// Released when the device is closed.
    lock: Mutex<Option<Lock>>,
    /// Damage found when the file was opened, and repaired from the second copy.
    pub(crate) damage: Vec<String>,
}

const UNPOISONED: &str = "no thread panics while it holds the device";

impl FlashFile {
    pub(crate) fn new(core: Core, lock: Option<Lock>) -> Self {
        Self {
            name: core.name.clone(),
            layout: core.layout,
            superblock: core.superblock,
            engine: Arc::clone(&core.engine),
            headers: Arc::clone(&core.headers),
            table: Arc::clone(&core.table),
            damage: core.damage.clone(),
            core: Mutex::new(core),
            syncs: Syncs::default(),
            workers: OnceLock::new(),
            pool: Pool::default(),
            lock: Mutex::new(lock),
        }
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().expect(UNPOISONED)
    }

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
    pub fn refusal(&self) -> Option<String> {
        self.core().refusal.clone()
    }

    /// Damage found when the file was opened, as sentences: of one copy of what it has twice, which
    /// opening for writing has repaired, and in the unused part of the journal.
    #[must_use]
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// The way in which pages are read and written.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        match *self.engine {
            Engine::Uring(_) => "io_uring",
            Engine::Portable(_) => "portable",
            Engine::Simulated(_) => "simulated",
        }
    }

    /// Syncs that wrote an entry of the journal, in the life of the file: each is one sync of the
    /// disk.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.core().journal.last
    }

    /// Marks `block` as bad by the manufacturer; durable with the next sync. To be called before
    /// the device is formatted.
    pub fn mark_factory_bad(&self, block: u32) {
        self.core().change(block, |record| record.factory_bad = true);
    }

    /// Syncs, writes what the journal holds to its own place, and closes: another process may open
    /// the file then, and this one writes to it no more.
    ///
    /// # Errors
    /// [`MediumError`] if an operation since the last sync is not durable, or the journal could not
    /// be emptied; what was synced is kept, and opening tries again.
    pub fn close(&self) -> Result<(), MediumError> {
        let mut idle = false;
        let finished = self.finish_session(|core| {
            core.refusal.get_or_insert_with(|| "the device was closed; open it again".into());
            // Programs in flight still write to the file: then it is unlocked when it is dropped.
            idle = core.is_idle();
        });
        // It waits for all writes, also if one of them has failed.
        let _ = self.engine.drain();
        if idle {
            *self.lock.lock().expect(UNPOISONED) = None;
        }
        finished
    }

    /// Syncs and empties the journal, and then calls `end`, before another sync can begin.
    fn finish_session(&self, end: impl FnOnce(&mut Core)) -> Result<(), MediumError> {
        // A sync of another thread must not be writing an entry meanwhile. Those that wait for the
        // next sync take this one for it, so it is one.
        self.alone(|| {
            let committed = self.commit();
            let mut core = self.core();
            let emptied = match committed {
                Ok(()) if core.refusal.is_none() => {
                    let emptied = core.empty_journal();
                    emptied.map_err(|error| core.refuse("emptying the journal", &error))
                }
                committed => committed,
            };
            end(&mut core);
            emptied
        })
    }

    pub(crate) fn record(&self, block: u32) -> Record {
        self.table.get(block)
    }

    /// Makes everything done so far durable, as a whole. One thread at a time.
    pub(crate) fn commit(&self) -> Result<(), MediumError> {
        let commit = {
            let mut core = self.core();
            if core.is_durable() {
                return Ok(());
            }
            core.check_writable()?;
            let begun = core.begin_commit();
            begun.map_err(|error| core.refuse("making it durable", &error))?
        };
        let written = self.engine.write_entry(commit.at, &commit.bytes);
        self.make_durable(commit, written.and_then(|()| self.engine.drain()))
    }

    /// Makes an entry durable that was written, with everything before it.
    pub(crate) fn make_durable(
        &self,
        commit: Commit,
        written: io::Result<()>,
    ) -> Result<(), MediumError> {
        let durable = written.and_then(|()| self.engine.sync());
        let mut core = self.core();
        durable.map_err(|error| core.refuse("making it durable", &error))?;
        // The entry may name a page whose write has failed.
        core.check_writable()?;
        core.end_commit(commit);
        Ok(())
    }

    /// Begins to read the header of a page that is read soon.
    pub(crate) fn read_header_ahead(&self, block: u32, page: u32) {
        let at = self.layout.header_at(block, page);
        HeaderCache::read_ahead(&self.headers, &self.engine, at, self.layout.header as usize);
    }

    /// Reads the header of a page; `None` if it is not that page's in this epoch.
    pub(crate) fn header(&self, block: u32, page: u32, epoch: u32) -> io::Result<Option<Vec<u8>>> {
        let mut header = vec![0; self.layout.header as usize];
        let at = self.layout.header_at(block, page);
        HeaderCache::read(&self.headers, &self.engine, at, &mut header)?;
        let number = self.layout.page_number(block, page);
        let whole = format::header_is_whole(self.identity(), number, epoch, &header);
        Ok(whole.then_some(header))
    }

    /// The bytes of all chunks that have some of `len` bytes from `offset` of a page on, relative
    /// to the beginning of the page.
    pub(crate) fn chunks(&self, offset: u32, len: usize) -> (usize, usize) {
        let (chunk, page) = (self.layout.chunk as usize, self.layout.geometry.page_size as usize);
        let (offset, end) = (offset as usize, offset as usize + len);
        let (last, within) = ((end - 1) / page, (end - 1) % page + 1);
        let last_end = within.div_ceil(chunk).saturating_mul(chunk).min(page);
        let first = offset / page * page + offset % page / chunk * chunk;
        (first, last * page + last_end)
    }

    /// Checks whole chunks that were read from `first`, relative to the beginning of a page, on.
    /// Returns the page that is damaged, if one is. Writes the out-of-band bytes of the first page.
    pub(crate) fn check_chunks(
        &self,
        (block, page, epoch): (u32, u32, u32),
        first: usize,
        bytes: &[u8],
        oob: &mut [u8],
    ) -> io::Result<Option<u32>> {
        let size = self.layout.geometry.page_size as usize;
        let hash = self.superblock.chunk_hash();
        let (mut at, mut rest) = (first, bytes);
        loop {
            let number = page + (at / size) as u32;
            let Some(header) = self.header(block, number, epoch)? else { return Ok(Some(number)) };
            let (part, next) = rest.split_at(rest.len().min(size - at % size));
            let chunk = at % size / self.layout.chunk as usize;
            if !part.is_empty() && !format::data_is_whole(&self.layout, hash, &header, chunk, part)
            {
                return Ok(Some(number));
            }
            if number == page {
                oob.copy_from_slice(&format::oob_of(&self.layout, &header)[..oob.len()]);
            }
            (at, rest) = (at + part.len(), next);
            if rest.is_empty() {
                return Ok(None);
            }
        }
    }

    fn read_checked(
        &self,
        (block, page, epoch): (u32, u32, u32),
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> io::Result<Option<u32>> {
        let place = (block, page, epoch);
        if data.is_empty() {
            return self.check_chunks(place, 0, &[], oob);
        }
        let (first, end) = self.chunks(offset, data.len());
        let page_at = self.layout.page_at(block, page);
        if end - first == data.len() {
            self.engine.read_pages(page_at, first as u64, data)?;
            return self.check_chunks(place, first, data, oob);
        }
        let mut whole = vec![0; end - first];
        self.engine.read_pages(page_at, first as u64, &mut whole)?;
        data.copy_from_slice(&whole[offset as usize - first..][..data.len()]);
        self.check_chunks(place, first, &whole, oob)
    }

    /// The first page that is not programmed, of those that a read of `len` bytes needs.
    pub(crate) fn is_written(&self, record: Record, page: u32, offset: u32, len: usize) -> bool {
        let last = (offset as usize + len.max(1) - 1) / self.layout.geometry.page_size as usize;
        page + (last as u32) < u32::from(record.programmed)
    }

    /// The headers of pages with this data.
    pub(crate) fn headers_of(
        &self,
        (block, page, epoch): (u32, u32, u32),
        data: &[u8],
        oob: &[u8],
    ) -> Vec<u8> {
        let (layout, hash) = (&self.layout, self.superblock.chunk_hash());
        let size = layout.geometry.page_size as usize;
        let mut headers = Vec::new();
        let mut header = vec![0; layout.header as usize];
        for (index, data) in (0..).zip(data.chunks(size)) {
            let oob = if index == 0 { oob } else { &[] };
            let number = layout.page_number(block, page + index);
            format::encode_header(layout, hash, number, epoch, data, oob, &mut header);
            headers.extend_from_slice(&header);
        }
        headers
    }

    /// Panics unless a program has whole pages.
    pub(crate) fn assert_whole_pages(&self, len: usize) {
        let size = self.layout.geometry.page_size as usize;
        assert!(len > 0 && len.is_multiple_of(size), "a program takes pages of {size} bytes");
    }

    pub(crate) fn workers(&self) -> &Workers {
        self.workers.get_or_init(Workers::new)
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
        is_open(self.record(block), &self.layout)
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

    /// LUNs are parts of the same file.
    fn luns_work_in_parallel(&self) -> bool {
        false
    }

    fn erase_is_durable(&self, block: u32) -> bool {
        self.core().erase_is_durable(block)
    }

    fn erase_count(&self, block: u32) -> Option<u32> {
        Some(self.record(block).erases)
    }

    fn buffer(&self, len: usize) -> Buffer {
        match self.pool.take(len) {
            Ok(memory) => Buffer::new(Box::new(memory)),
            Err(_) => vec![0; len].into(),
        }
    }

    fn queue(self: Arc<Self>, depth: usize) -> Option<Box<dyn MediumQueue>> {
        match &*self.engine {
            Engine::Simulated(_) => None,
            Engine::Portable(_) => Some(Box::new(WorkerQueue::new(self))),
            Engine::Uring(_) => match UringQueue::new(Arc::clone(&self), depth) {
                Ok(queue) => Some(Box::new(queue)),
                // No further ring, for want of memory that may be locked or of descriptors.
                Err(_) => Some(Box::new(WorkerQueue::new(self))),
            },
        }
    }

    fn read(
        &self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        let record = self.record(block);
        if !self.is_written(record, page, offset, data.len()) {
            return Ok(PageState::Erased);
        }
        if data.is_empty() && oob.is_empty() {
            return Ok(PageState::Written);
        }
        match self.read_checked((block, page, record.erases), offset, data, oob) {
            Ok(None) => Ok(PageState::Written),
            // It was erased meanwhile.
            Ok(Some(_)) if self.record(block).erases != record.erases => Ok(PageState::Erased),
            Ok(Some(page)) => Err(MediumError::Damaged { block, page }),
            Err(error) => Err(medium_failure(&self.name, "reading", &error)),
        }
    }

    fn program(&self, block: u32, page: u32, data: &[u8], oob: &[u8]) -> Result<(), MediumError> {
        let size = self.layout.geometry.page_size as usize;
        self.assert_whole_pages(data.len());
        let pages = (data.len() / size) as u32;
        let epoch = loop {
            let begun = self.core().begin_program(block, page, pages)?;
            match begun {
                Begun::Write { epoch } => break epoch,
                Begun::SyncFirst => self.sync()?,
            }
        };
        let headers = self.headers_of((block, page, epoch), data, oob);
        for (page, data) in (page..).zip(data.chunks(size)) {
            let written = self.engine.write_page(self.layout.page_at(block, page), data);
            written.map_err(|error| self.core().fail_program(block, &error))?;
        }
        self.core().end_program(block, page, epoch, headers)
    }

    fn erase(&self, block: u32) -> Result<(), MediumError> {
        self.core().erase(block)
    }

    fn finish(&self, block: u32) -> Result<(), MediumError> {
        self.core().finish(block)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.sync_group()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl From<FlashFile> for Arc<dyn Medium> {
    fn from(device: FlashFile) -> Self {
        Arc::new(device)
    }
}

impl Drop for FlashFile {
    fn drop(&mut self) {
        // Errors are ignored here; `close` returns them.
        let _ = self.finish_session(|_| {});
    }
}
