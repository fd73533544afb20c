//! Syncs and checkpoints.
//!
//! A sync writes one entry of the journal together with the pages that are in flight, and then
//! needs one `fdatasync`. Page headers and block records are written to their own places by a
//! checkpoint, when the log is full and when the device is closed. Until then the journal has them.
//!
//! A checkpoint writes the records as of the last entry, never later ones: what no entry has can be
//! lost, and then all of it is. Page headers need no such care, since only those of pages that a
//! record counts are ever used.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::format::{self, Record};
use crate::journal::{self, PageHeaders};
use crate::layout::{Layout, SECTOR};
use crate::open::whole_page;
use crate::state::Core;

/// Bytes of pages that an entry may name: opening reads those of the last entry.
const VERIFIED_MAX: u64 = 64 << 20;

/// The state of the journal, and what the next entry will hold.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Number of the last entry; that of its sync, also if a checkpoint has removed it.
    pub(crate) last: u64,
    /// Number of the next entry. One is skipped when opening drops an entry.
    pub(crate) next: u64,
    /// Bytes of the log.
    log_len: u64,
    /// Bytes of the log used by entries since the last checkpoint.
    pub(crate) used: u64,
    /// Sectors of records that are out of date in their own places.
    pub(crate) sectors: BTreeSet<u32>,
    /// Blocks changed since the last entry was encoded, with their records at that time.
    changed: BTreeMap<u32, Record>,
    /// Of the entry that is being written: the blocks, with their records as of the one before.
    committing: BTreeMap<u32, Record>,
    /// The records that this entry has of blocks with programs in flight, which it counts already.
    counted_early: BTreeMap<u32, Record>,
    /// Headers of the pages programmed since the last entry was encoded.
    headers: PageHeaders,
    /// Bytes of these pages.
    programmed: u64,
    /// Whether there were too many of them for an entry.
    overflowed: bool,
    /// Both copies of the encoded entry, kept for their memory.
    bytes: Vec<u8>,
}

impl Journal {
    /// An empty journal.
    pub(crate) fn new(log_len: u64) -> Self {
        Self {
            last: 0,
            next: 1,
            log_len,
            used: 0,
            sectors: BTreeSet::new(),
            changed: BTreeMap::new(),
            committing: BTreeMap::new(),
            counted_early: BTreeMap::new(),
            headers: PageHeaders::default(),
            programmed: 0,
            overflowed: false,
            bytes: Vec::new(),
        }
    }

    /// Notes the record of a block that is about to change.
    pub(crate) fn note_change(&mut self, block: u32, before: Record) {
        self.changed.entry(block).or_insert(before);
    }

    /// Notes the header of a page that was programmed.
    pub(crate) fn note_program(&mut self, layout: &Layout, page: u32, header: &[u8]) {
        if self.overflowed || self.has_counted(layout, page, header) {
            return;
        }
        self.headers.push(page, header);
        self.programmed += u64::from(layout.geometry.page_size);
        if self.headers.len() as u64 > journal::headers_max(self.log_len)
            || self.programmed > VERIFIED_MAX
        {
            self.overflowed = true;
            self.headers.clear();
        }
    }

    /// Whether the entry that is being written has counted this page before it was written.
    fn has_counted(&self, layout: &Layout, page: u32, header: &[u8]) -> bool {
        let (block, in_block) = layout.place_of(page);
        self.counted_early.get(&block).is_some_and(|record| {
            in_block < u32::from(record.programmed) && record.erases == format::header_epoch(header)
        })
    }

    /// Whether an entry would be empty.
    pub(crate) fn is_clean(&self) -> bool {
        self.changed.is_empty()
    }

    /// The record of `block` as of the last entry, if it has changed since.
    fn before(&self, block: u32) -> Option<Record> {
        self.committing.get(&block).or_else(|| self.changed.get(&block)).copied()
    }

    /// Encodes the next entry, of the records as they are now.
    fn encode(&mut self, layout: &Layout, identity: u64, records: &[Record]) {
        let record = |block: &u32| self.counted_early.get(block).copied();
        let changed = self.changed.keys();
        let changed =
            changed.map(|block| (*block, record(block).unwrap_or(records[*block as usize])));
        let counts = |page: u32, header: &[u8]| {
            let block = layout.place_of(page).0;
            records[block as usize].erases == format::header_epoch(header)
        };
        let (number, headers) = (self.next, &self.headers);
        journal::encode(layout, identity, number, changed, headers, counts, &mut self.bytes);
    }

    /// Takes the encoded entry, to be written. What changes from now on is for the next one.
    fn take(&mut self) -> Vec<u8> {
        self.committing = std::mem::take(&mut self.changed);
        self.headers.clear();
        (self.programmed, self.overflowed) = (0, false);
        std::mem::take(&mut self.bytes)
    }

    /// Notes that the entry `bytes` is durable; `records` are those of all blocks now.
    fn committed(&mut self, bytes: Vec<u8>, records: &[Record]) {
        self.used += bytes.len() as u64;
        self.bytes = bytes;
        self.last = self.next;
        self.next += 1;
        self.sectors.extend(self.committing.keys().map(|&block| Layout::record_sector(block)));
        self.committing.clear();
        // What the entry counted early has changed the record since then.
        for (block, record) in std::mem::take(&mut self.counted_early) {
            if records[block as usize] == record {
                self.changed.remove(&block);
            } else {
                self.changed.insert(block, record);
            }
        }
    }
}

/// A program in flight.
pub(crate) struct InFlight<'a> {
    pub(crate) block: u32,
    pub(crate) page: u32,
    pub(crate) epoch: u32,
    /// The headers of its pages, one after the other.
    pub(crate) headers: &'a [u8],
}

/// An entry that is being written.
pub(crate) struct Commit {
    /// Its place in the file.
    pub(crate) at: u64,
    /// Both copies.
    pub(crate) bytes: Vec<u8>,
}

impl Core {
    /// Whether everything done so far is durable.
    pub(crate) fn is_durable(&self) -> bool {
        // The caller that got a failure need not be the caller of this sync.
        self.journal.is_clean() && !self.failed
    }

    /// Whether [`Core::begin_commit`], or the caller after it, would wait for the disk for more
    /// than the entry.
    pub(crate) fn commit_waits(&self) -> bool {
        self.commit_with_waits(0, 0)
    }

    /// The same, with more records and more bytes of page headers.
    fn commit_with_waits(&self, records: usize, headers: usize) -> bool {
        let journal = &self.journal;
        let len =
            journal::len_max(journal.changed.len() + records, journal.headers.len() + headers);
        journal.overflowed
            || journal.used + len as u64 > journal.log_len
            || self.engine.is_writing_behind()
    }

    /// Begins to make everything done so far durable, as a whole: the caller writes the entry,
    /// waits for the writes of pages that were begun before, and syncs, without the lock; then
    /// calls [`Core::end_commit`]. One commit at a time.
    pub(crate) fn begin_commit(&mut self) -> io::Result<Commit> {
        if self.journal.overflowed {
            // Their headers go home first, so that the entry needs none of them. Pages before page
            // headers: on a disk that fills up, they have priority.
            self.engine.drain()?;
            self.headers().write_back(&self.engine)?;
            self.engine.sync()?;
        }
        let identity = self.superblock.identity;
        self.journal.encode(&self.layout, identity, &self.records);
        let len = self.journal.bytes.len() as u64;
        if self.journal.used + len > self.journal.log_len {
            self.checkpoint()?;
        }
        Ok(self.take_commit())
    }

    fn take_commit(&mut self) -> Commit {
        // Only the last entry of the log may name pages that are not durable: the one before it is,
        // with its pages, since its sync has returned.
        let (used, len) = (self.journal.used, self.journal.bytes.len() as u64);
        assert!(used + len <= self.journal.log_len, "an entry fits into the rest of the log");
        let at = self.layout.log().start + used;
        self.erasing = std::mem::take(&mut self.erased);
        Commit { at, bytes: self.journal.take() }
    }

    /// As [`Core::begin_commit`], and the entry also counts programs in flight, which the caller
    /// waits for before it syncs. `None` if it would have to wait for anything else, if pages
    /// before theirs are in flight elsewhere, or if there are too many for an entry.
    pub(crate) fn begin_commit_in_flight(&mut self, programs: &mut [InFlight]) -> Option<Commit> {
        let (records, headers) = self.count_early(programs)?;
        let pages = headers.len() / (4 + self.layout.header as usize);
        let bytes = pages as u64 * u64::from(self.layout.geometry.page_size);
        if self.commit_with_waits(records.len(), headers.len())
            || (self.journal.headers.len() + headers.len()) as u64
                > journal::headers_max(self.journal.log_len)
            || self.journal.programmed + bytes > VERIFIED_MAX
        {
            return None;
        }
        records.keys().for_each(|&block| self.journal.note_change(block, self.record(block)));
        self.journal.counted_early = records;
        self.journal.headers.append(headers);
        let identity = self.superblock.identity;
        self.journal.encode(&self.layout, identity, &self.records);
        Some(self.take_commit())
    }

    /// The records of blocks when these programs are complete, and the headers of the pages that
    /// they count more than now. `None` if other programs have to be complete first.
    fn count_early(
        &self,
        programs: &mut [InFlight],
    ) -> Option<(BTreeMap<u32, Record>, PageHeaders)> {
        programs.sort_unstable_by_key(|program| (program.block, program.page));
        let (mut records, mut headers) = (BTreeMap::new(), PageHeaders::default());
        for of_block in programs.chunk_by(|a, b| a.block == b.block) {
            let block = of_block[0].block;
            let mut record = self.record(block);
            let mut count = |record: &mut Record, of_pages: &[u8]| {
                for header in of_pages.chunks_exact(self.layout.header as usize) {
                    let page = self.layout.page_number(block, record.programmed.into());
                    headers.push(page as u32, header);
                    record.programmed += 1;
                }
            };
            let mut coming = of_block.iter().peekable();
            loop {
                let next = u32::from(record.programmed);
                if let Some(program) = coming.next_if(|program| program.page == next) {
                    if program.epoch != record.erases {
                        return None;
                    }
                    count(&mut record, program.headers);
                } else if let Some(written) = self.written_early(block, next) {
                    count(&mut record, written);
                } else {
                    break;
                }
            }
            if coming.next().is_some() {
                return None;
            }
            records.insert(block, record);
        }
        Some((records, headers))
    }

    /// Notes that the entry is durable.
    pub(crate) fn end_commit(&mut self, commit: Commit) {
        self.journal.committed(commit.bytes, &self.records);
        self.erasing.clear();
    }

    /// Writes page headers and records, as of the last entry, to their own places, and empties the
    /// journal.
    pub(crate) fn checkpoint(&mut self) -> io::Result<()> {
        self.headers().write_back(&self.engine)?;
        self.write_records(&self.journal.sectors)?;
        self.engine.sync()?;
        // Until now the entries were needed. An interrupted checkpoint is repeated from them.
        self.write_heads()?;
        self.engine.sync()?;
        self.journal.used = 0;
        self.journal.sectors.clear();
        Ok(())
    }

    /// A checkpoint, unless the journal is empty.
    pub(crate) fn empty_journal(&mut self) -> io::Result<()> {
        if self.journal.used == 0 && self.journal.sectors.is_empty() {
            return Ok(());
        }
        self.checkpoint()
    }

    /// Writes both copies of the journal's head: the next entry is its first one.
    pub(crate) fn write_heads(&mut self) -> io::Result<()> {
        let head = journal::encode_head(self.superblock.identity, self.journal.next);
        let head = whole_page(&head);
        (0..2).try_for_each(|copy| self.engine.write_at(self.layout.head_at(copy), &head))
    }

    /// Writes both copies of the records in these sectors and in the others of their pages of the
    /// file, as of the last entry.
    pub(crate) fn write_records(&self, sectors: &BTreeSet<u32>) -> io::Result<()> {
        let pages: BTreeSet<u32> = sectors.iter().map(|sector| sector / Layout::SECTORS).collect();
        for page in pages {
            let first = page * Layout::SECTORS;
            let last = (first + Layout::SECTORS).min(self.layout.record_sectors);
            let bytes: Vec<u8> =
                (first..last).flat_map(|sector| self.encode_records(sector)).collect();
            for copy in 0..2 {
                let at = self.layout.record_sector_at(copy, first);
                self.engine.write_at(at, &whole_page(&bytes))?;
            }
        }
        Ok(())
    }

    /// The records of a sector, as of the last entry.
    fn encode_records(&self, sector: u32) -> [u8; SECTOR] {
        let first = sector * Layout::RECORDS;
        let last = (first + Layout::RECORDS).min(self.records.len() as u32);
        let durable =
            |block: u32| self.journal.before(block).unwrap_or(self.records[block as usize]);
        let records: Vec<Record> = (first..last).map(durable).collect();
        format::encode_records(self.superblock.identity, self.journal.last, sector, &records)
    }
}
