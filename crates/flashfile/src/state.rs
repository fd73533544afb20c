//! The state of the device that programs, erases and syncs change, under one lock that is not held
//! while the disk works, except by checkpoints and after a sync of very many pages.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use prism_base::hash::{FastMap, FastSet};
use prism_flash::MediumError;

use crate::commit::Journal;
use crate::engine::Engine;
use crate::error::medium_failure;
use crate::format::{Record, Superblock};
use crate::headers::HeaderCache;
use crate::layout::Layout;

/// The records of blocks for calls without the lock.
#[derive(Debug)]
pub(crate) struct RecordTable(Box<[AtomicU64]>);

impl RecordTable {
    pub(crate) fn new(records: &[Record]) -> Self {
        Self(records.iter().map(|&record| AtomicU64::new(pack(record))).collect())
    }

    #[inline]
    pub(crate) fn get(&self, block: u32) -> Record {
        let bits = self.0[block as usize].load(Ordering::Acquire);
        Record {
            erases: (bits >> 32) as u32,
            programmed: (bits >> 16) as u16,
            finished: bits & 1 != 0,
            factory_bad: bits & 2 != 0,
        }
    }

    fn set(&self, block: u32, record: Record) {
        self.0[block as usize].store(pack(record), Ordering::Release);
    }
}

fn pack(record: Record) -> u64 {
    let flags = u64::from(record.finished) | u64::from(record.factory_bad) << 1;
    u64::from(record.erases) << 32 | u64::from(record.programmed) << 16 | flags
}

/// Programs of a block in progress.
#[derive(Debug, Default)]
struct InProgress {
    /// The page that the next program is for.
    next: u32,
    /// Pages that were written before earlier ones were: the headers by page.
    written: BTreeMap<u32, Vec<u8>>,
}

/// Where a program goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begun {
    /// Pages may be written, with this epoch in their headers.
    Write { epoch: u32 },
    /// The erase of the block is not durable: sync first. If a power failure undid the erase, the
    /// old data would be overwritten.
    SyncFirst,
}

/// The state of the device.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) name: String,
    pub(crate) layout: Layout,
    pub(crate) superblock: Superblock,
    pub(crate) engine: Arc<Engine>,
    pub(crate) records: Vec<Record>,
    /// The same, for calls without the lock.
    pub(crate) table: Arc<RecordTable>,
    pub(crate) journal: Journal,
    /// Blocks that are partly written.
    pub(crate) open: u32,
    /// Blocks erased since the last entry was encoded, and those in the entry that is being
    /// written.
    pub(crate) erased: FastSet<u32>,
    pub(crate) erasing: FastSet<u32>,
    in_progress: FastMap<u32, InProgress>,
    /// Why the device is read-only.
    pub(crate) refusal: Option<String>,
    /// Whether that is because a write failed.
    pub(crate) failed: bool,
    pub(crate) headers: Arc<Mutex<HeaderCache>>,
    /// Damage found when the file was opened, and repaired from the second copy.
    pub(crate) damage: Vec<String>,
}

impl Core {
    pub(crate) fn new(
        name: String,
        layout: Layout,
        superblock: Superblock,
        engine: Engine,
        refusal: Option<String>,
    ) -> Self {
        let records = vec![Record::default(); layout.geometry.blocks() as usize];
        Self {
            table: Arc::new(RecordTable::new(&records)),
            records,
            headers: Arc::new(Mutex::new(HeaderCache::new(engine.headers_kept()))),
            journal: Journal::new(layout.log().len.min(engine.log_max())),
            open: 0,
            erased: FastSet::default(),
            erasing: FastSet::default(),
            in_progress: FastMap::default(),
            damage: Vec::new(),
            name,
            layout,
            superblock,
            engine: Arc::new(engine),
            refusal,
            failed: false,
        }
    }

    /// Publishes records that were loaded.
    pub(crate) fn publish(&mut self) {
        self.table = Arc::new(RecordTable::new(&self.records));
        let open = (0..self.layout.geometry.blocks()).filter(|&block| self.is_open(block));
        self.open = open.count() as u32;
    }

    pub(crate) fn headers(&self) -> MutexGuard<'_, HeaderCache> {
        self.headers.lock().expect("no thread panics while it holds the page headers")
    }

    /// The random number of the file.
    pub(crate) fn identity(&self) -> u64 {
        self.superblock.identity
    }

    pub(crate) fn record(&self, block: u32) -> Record {
        self.records[block as usize]
    }

    pub(crate) fn is_open(&self, block: u32) -> bool {
        is_open(self.record(block), &self.layout)
    }

    /// Changes a record; durable with the next sync.
    pub(crate) fn change(&mut self, block: u32, change: impl FnOnce(&mut Record)) {
        let was_open = self.is_open(block);
        let before = self.record(block);
        self.journal.note_change(block, before);
        change(&mut self.records[block as usize]);
        self.table.set(block, self.record(block));
        self.open = self.open + u32::from(self.is_open(block)) - u32::from(was_open);
    }

    pub(crate) fn check_writable(&self) -> Result<(), MediumError> {
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

    /// Whether no program is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.is_empty()
    }

    /// Ends a program that failed.
    pub(crate) fn fail_program(&mut self, block: u32, error: &io::Error) -> MediumError {
        self.in_progress.remove(&block);
        self.refuse("writing", error)
    }

    /// The headers of the pages of a program from `page` on that is complete, but is not counted
    /// because pages before it are in flight.
    pub(crate) fn written_early(&self, block: u32, page: u32) -> Option<&[u8]> {
        let programs = self.in_progress.get(&block)?;
        programs.written.get(&page).map(Vec::as_slice)
    }

    /// Begins a program of `pages` pages.
    pub(crate) fn begin_program(
        &mut self,
        block: u32,
        page: u32,
        pages: u32,
    ) -> Result<Begun, MediumError> {
        self.check_writable()?;
        let record = self.record(block);
        let programmed = u32::from(record.programmed);
        let expected = self.in_progress.get(&block).map_or(programmed, |programs| programs.next);
        if record.finished || expected + pages > self.layout.geometry.pages_per_block {
            return Err(MediumError::Full { block });
        }
        if page != expected {
            return Err(MediumError::OutOfOrder { block, page, expected });
        }
        if let Some(max) = self.layout.geometry.max_open_blocks.filter(|_| page == 0) {
            let begun = self.in_progress.keys().filter(|&&block| !self.is_open(block)).count();
            if self.open + begun as u32 >= max {
                return Err(MediumError::TooManyOpen { max });
            }
        }
        if !self.erase_is_durable(block) {
            return Ok(Begun::SyncFirst);
        }
        self.in_progress.entry(block).or_default().next = page + pages;
        Ok(Begun::Write { epoch: record.erases })
    }

    pub(crate) fn erase_is_durable(&self, block: u32) -> bool {
        !self.erased.contains(&block) && !self.erasing.contains(&block)
    }

    /// Ends a program: its pages are written, or are in the memory of a writer. `headers` are those
    /// of its pages, one after the other.
    pub(crate) fn end_program(
        &mut self,
        block: u32,
        page: u32,
        epoch: u32,
        headers: Vec<u8>,
    ) -> Result<(), MediumError> {
        if self.record(block).erases != epoch {
            // The block was erased meanwhile.
            return Ok(());
        }
        let programs = self.in_progress.entry(block).or_default();
        programs.written.insert(page, headers);
        let mut programmed = u32::from(self.records[block as usize].programmed);
        while let Some(headers) = self
            .in_progress
            .get_mut(&block)
            .and_then(|programs| programs.written.remove(&programmed))
        {
            programmed = self.count_pages(block, programmed, &headers)?;
        }
        if self.in_progress.get(&block).is_some_and(|programs| programs.next <= programmed) {
            self.in_progress.remove(&block);
        }
        Ok(())
    }

    /// Counts pages that were written, from `first` on; returns the page after them.
    fn count_pages(&mut self, block: u32, first: u32, headers: &[u8]) -> Result<u32, MediumError> {
        let mut page = first;
        for header in headers.chunks_exact(self.layout.header as usize) {
            let at = self.layout.header_at(block, page);
            let written = self.headers().write(&self.engine, at, header);
            written.map_err(|error| self.refuse("writing", &error))?;
            let number = self.layout.page_number(block, page) as u32;
            self.journal.note_program(&self.layout, number, header);
            page += 1;
        }
        self.change(block, |record| record.programmed = page as u16);
        Ok(page)
    }

    pub(crate) fn erase(&mut self, block: u32) -> Result<(), MediumError> {
        self.check_writable()?;
        let programs = self.in_progress.remove(&block);
        let was_used = self.record(block).programmed > 0 || programs.is_some();
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

    pub(crate) fn finish(&mut self, block: u32) -> Result<(), MediumError> {
        self.check_writable()?;
        if !self.record(block).finished {
            self.change(block, |record| record.finished = true);
        }
        Ok(())
    }
}

/// Whether a block with this record is partly written.
pub(crate) fn is_open(record: Record, layout: &Layout) -> bool {
    let programmed = u32::from(record.programmed);
    programmed > 0 && programmed < layout.geometry.pages_per_block && !record.finished
}
