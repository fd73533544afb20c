//! What opening does with the tables: reads the records, replays the journal, repairs damaged
//! copies and converts files of older versions.
//!
//! The last entry of the journal may have been in flight when the process or the host stopped. It
//! counts if it is whole and all pages that it names are; otherwise it is dropped, as no sync has
//! returned for it. The checkpoint at the end of opening moves the journal past its number, so
//! that it does not come back when its pages, or another entry in its place, are written.

use std::io;
use std::ops::Range;

use prism_base::counted;
use rustix::io::Errno;

use crate::error::{FlashFileError, is_full};
use crate::format::{self, Superblock, VERSION};
use crate::journal::{self, BrokenCopy, Entry, Log, LostEntry};
use crate::layout::{Layout, Region, SECTOR};
use crate::open::{broken, whole_page, write_superblocks};
use crate::state::Core;

/// Tables that have to be written again.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    /// Sectors of records of which the copies differ.
    sectors: Vec<u32>,
    /// Whether the heads of the journal differ.
    heads: bool,
    /// Copies of entries of the journal: where they belong, and their bytes.
    entries: Vec<(u64, Vec<u8>)>,
    /// Pages of the log behind its entries that the disk cannot read, as offsets in the file.
    unreadable: Vec<u64>,
}

/// The blocks of which a copy of the records is damaged, in ranges.
#[derive(Default)]
struct DamagedRecords([Vec<Range<usize>>; 2]);

impl DamagedRecords {
    fn add(&mut self, copy: usize, blocks: Range<usize>) {
        match self.0[copy].last_mut() {
            Some(last) if last.end == blocks.start => last.end = blocks.end,
            _ => self.0[copy].push(blocks),
        }
    }

    fn sentences(self) -> impl Iterator<Item = String> {
        let of_copy = |(copy, ranges): (usize, Vec<Range<usize>>)| {
            ranges.into_iter().map(move |blocks| {
                let (first, last) = (blocks.start, blocks.end - 1);
                let what = format!("the records of blocks {first} to {last}");
                format!("{what}: copy {copy} is damaged; the other is whole")
            })
        };
        (1..).zip(self.0).flat_map(of_copy)
    }
}

impl Core {
    /// Drops the tables from the page cache, so that those of the disk are read.
    pub(crate) fn forget_cached_tables(&self) -> Result<(), FlashFileError> {
        let [one, two] = self.layout.records;
        let journal = self.superblock.has_journal().then_some(self.layout.journal);
        let mut tables = [Some(one), Some(two), journal].into_iter().flatten();
        let dropped = tables.try_for_each(|table| self.engine.forget_cached(table));
        dropped.map_err(|e| broken(&self.name, "reading its tables", e))
    }

    /// Reads the records and the journal: the state of the last sync.
    pub(crate) fn load_tables(
        &mut self,
        damage: &mut Vec<String>,
    ) -> Result<Stale, FlashFileError> {
        let (newest, sectors) = self.load_records(damage)?;
        (self.journal.last, self.journal.next) = (newest, newest + 1);
        let mut stale = Stale { sectors, ..Stale::default() };
        if self.superblock.has_journal() {
            let (base, differ) = self.load_heads(damage)?;
            stale.heads = differ;
            self.replay(base, newest, &mut stale, damage)?;
        }
        Ok(stale)
    }

    /// Reads the records, of both copies the newer. Returns the number of the last entry that one
    /// of them has, and the sectors of which the copies differ.
    fn load_records(
        &mut self,
        damage: &mut Vec<String>,
    ) -> Result<(u64, Vec<u32>), FlashFileError> {
        let len = self.layout.record_sectors as usize * SECTOR;
        let mut copies = [vec![0; len], vec![0; len]];
        let reading = |error| broken(&self.name, "reading the block records", error);
        let mut can_read = true;
        for (copy, bytes) in copies.iter_mut().enumerate() {
            let read = self.engine.read_copies(self.layout.records[copy].start, bytes);
            can_read &= read.map_err(reading)?.is_empty();
        }
        let pages = self.layout.geometry.pages_per_block;
        let (mut latest, mut differ, mut damaged) = (0, Vec::new(), DamagedRecords::default());
        for sector in 0..self.layout.record_sectors {
            let first = (sector * Layout::RECORDS) as usize;
            let last = (first + Layout::RECORDS as usize).min(self.records.len());
            let range = sector as usize * SECTOR..(sector as usize + 1) * SECTOR;
            let [one, two] = [0, 1].map(|copy| {
                let bytes = &copies[copy][range.clone()];
                format::decode_records(self.identity(), sector, pages, bytes, last - first)
            });
            for (copy, read) in [&one, &two].into_iter().enumerate() {
                if read.is_none() {
                    damaged.add(copy, first..last);
                }
            }
            if one.as_ref() != two.as_ref() {
                differ.push(sector);
            }
            // Copies of the same entry are equal; of two different ones, the later is valid.
            let newest = [one, two].into_iter().flatten().max_by_key(|(sequence, _)| *sequence);
            let Some((sequence, records)) = newest else {
                if !can_read {
                    return Err(reading(Errno::IO.into()));
                }
                let file = self.name.clone();
                let what = format!("the records of blocks {first} to {} are", last - 1);
                let at = self.layout.record_sector_at(0, sector);
                return Err(FlashFileError::Damaged { file, what, at });
            };
            latest = latest.max(sequence);
            self.records[first..last].copy_from_slice(&records);
        }
        damage.extend(damaged.sentences());
        Ok((latest, differ))
    }

    /// Reads the number of the first entry of the journal, and whether the two copies differ. If
    /// power failed while they were written, the higher one is valid, and the lower one as well:
    /// the entries between them are in their own places.
    fn load_heads(&self, damage: &mut Vec<String>) -> Result<(u64, bool), FlashFileError> {
        let mut copies = [[0; SECTOR]; 2];
        let reading = |error| broken(&self.name, "reading the journal", error);
        let mut can_read = true;
        for (copy, bytes) in (0..).zip(&mut copies) {
            let read = self.engine.read_copies(self.layout.head_at(copy), bytes);
            can_read &= read.map_err(reading)?.is_empty();
        }
        let copies = copies.map(|bytes| journal::decode_head(self.identity(), &bytes));
        for (copy, head) in (1..).zip(copies) {
            if head.is_none() {
                damage.push(format!(
                    "copy {copy} of the head of the journal is damaged; the other is whole"
                ));
            }
        }
        let damaged = || match can_read {
            true => FlashFileError::Damaged {
                file: self.name.clone(),
                what: "the head of the journal is".to_owned(),
                at: self.layout.head_at(0),
            },
            false => reading(Errno::IO.into()),
        };
        let base = copies.into_iter().flatten().max().ok_or_else(damaged)?;
        Ok((base, copies[0] != copies[1]))
    }

    /// Reads the log, whose first entry has the number `base`. Returns also where the pages behind
    /// its entries begin that the disk cannot read.
    fn read_log(&self, base: u64) -> Result<(Log, Vec<u64>), FlashFileError> {
        let region = self.layout.log();
        let mut log = vec![0; region.len as usize];
        let reading = |error| broken(&self.name, "reading the journal", error);
        let unreadable = self.engine.read_copies(region.start, &mut log).map_err(reading)?;
        let copies = self.superblock.entry_copies();
        let found = journal::scan(&self.layout, self.identity(), copies, base, &log);
        let found = found.map_err(|lost| self.lost(&lost))?;
        let end = region.start + found.used as u64;
        let unreadable: Vec<u64> = unreadable.into_iter().filter(|&at| at >= end).collect();
        if unreadable.len() >= copies && (found.is_torn || unreadable[0] == end) {
            // They may be in all copies of an entry whose sync has returned.
            return Err(reading(Errno::IO.into()));
        }
        Ok((found, unreadable))
    }

    fn lost(&self, LostEntry { number, at }: &LostEntry) -> FlashFileError {
        let at = self.layout.log().start + *at as u64;
        FlashFileError::Journal { file: self.name.clone(), entry: *number, at }
    }

    /// Applies the entries of the journal from number `base` on. The records in their own places
    /// are as of entries up to `newest`, all of which were durable.
    fn replay(
        &mut self,
        base: u64,
        newest: u64,
        stale: &mut Stale,
        damage: &mut Vec<String>,
    ) -> Result<(), FlashFileError> {
        let (Log { mut entries, used, broken, is_torn }, unreadable) = self.read_log(base)?;
        // The next number is skipped, as if an entry had been dropped, if one is torn, or may be
        // where the disk cannot read.
        let skips = is_torn || !unreadable.is_empty();
        self.journal.used = used as u64 + u64::from(skips) * journal::UNIT as u64;
        self.journal.next = base + entries.len() as u64 + u64::from(skips);
        // If records have its number, or another entry was begun, its sync has returned: a page
        // that is damaged now was whole then.
        let is_last_whole = match entries.last() {
            Some(last) if last.number > newest && !is_torn => self.pages_are_whole(last)?,
            _ => true,
        };
        if !is_last_whole {
            entries.pop();
        }
        let last = (base + entries.len() as u64).saturating_sub(1);
        self.journal.last = last;
        if newest > last {
            return Err(self.lost(&LostEntry { number: last + 1, at: used }));
        }
        // The sync of the last entry has returned if another one was begun. If not, one of its
        // copies may be torn.
        let is_last_synced = is_torn || !is_last_whole || newest == last;
        for BrokenCopy { number, copy, at, bytes } in broken {
            if number < last || number == last && is_last_synced {
                damage.push(format!(
                    "entry {number} of the journal: copy {copy} is damaged; the other is whole"
                ));
            }
            if number <= last {
                stale.entries.push((self.layout.log().start + at as u64, bytes));
            }
        }
        if !unreadable.is_empty() {
            let pages = counted(unreadable.len() as u64, "page");
            damage.push(format!("{pages} of the unused journal cannot be read"));
        }
        stale.unreadable = unreadable;
        self.apply(entries);
        Ok(())
    }

    /// Whether the pages that an entry names are what was programmed.
    fn pages_are_whole(&self, entry: &Entry) -> Result<bool, FlashFileError> {
        let whole = entry.headers.iter().try_fold(true, |whole, (number, header)| {
            Ok(whole && self.page_is_whole(*number, header)?)
        });
        whole.map_err(|e: io::Error| broken(&self.name, "reading the pages of the last sync", e))
    }

    fn page_is_whole(&self, number: u32, header: &[u8]) -> io::Result<bool> {
        let mut bytes = vec![0; self.layout.geometry.page_size as usize];
        let (block, page) = self.layout.place_of(number);
        let at = self.layout.page_at(block, page);
        self.engine.forget_cached(Region { start: at, len: bytes.len() as u64 })?;
        self.engine.read_pages(at, 0, &mut bytes)?;
        let hash = self.superblock.chunk_hash();
        Ok(format::data_is_whole(&self.layout, hash, header, 0, &bytes))
    }

    fn apply(&mut self, entries: Vec<Entry>) {
        for (block, record) in entries.iter().flat_map(|entry| &entry.records) {
            self.records[*block as usize] = *record;
            self.journal.sectors.insert(Layout::record_sector(*block));
        }
        for (number, header) in entries.into_iter().flat_map(|entry| entry.headers) {
            let (block, page) = self.layout.place_of(number);
            // A block may have been erased and written again since then, and a large sync has
            // written its headers to their own places.
            if self.record(block).erases == format::header_epoch(&header) {
                self.headers().replay(self.layout.header_at(block, page), header);
            }
        }
    }

    /// Brings the file up to date: a checkpoint if the journal had entries, equal copies of each
    /// table, and the newest version.
    pub(crate) fn repair(
        &mut self,
        stale: &Stale,
        superblocks: bool,
    ) -> Result<(), FlashFileError> {
        self.journal.sectors.extend(&stale.sectors);
        if !self.superblock.has_journal() {
            return self.convert().map_err(|e| broken(&self.name, "converting it", e));
        }
        let repaired = self.repair_tables(stale, superblocks);
        match repaired {
            Err(error) if is_full(&error) => {
                // The journal has all that was synced, so it can be read.
                let _ = self.refuse("repairing its tables", &error);
                self.failed = false;
                Ok(())
            }
            repaired => repaired.map_err(|e| broken(&self.name, "repairing it", e)),
        }
    }

    fn repair_tables(&mut self, stale: &Stale, superblocks: bool) -> io::Result<()> {
        if superblocks {
            write_superblocks(&self.engine, self.superblock)?;
            self.engine.sync()?;
        }
        if !stale.entries.is_empty() {
            // If power fails during the checkpoint, they are still needed, and one may be damaged.
            stale.entries.iter().try_for_each(|(at, bytes)| self.engine.write_at(*at, bytes))?;
            self.engine.sync()?;
        }
        if self.journal.used > 0 || stale.heads || !stale.sectors.is_empty() {
            self.headers().write_replayed(&self.engine)?;
            self.checkpoint()?;
            self.headers().forget_replayed();
        }
        if !stale.unreadable.is_empty() {
            // No entry is there any more. What is written can be read again, or fails now.
            let zeros = whole_page(&[]);
            stale.unreadable.iter().try_for_each(|&at| self.engine.write_at(at, &zeros))?;
            self.engine.sync()?;
        }
        // A file of version 3: its journal is empty now, so the next entry is the first that is
        // there twice.
        if self.superblock.version < VERSION { self.write_version() } else { Ok(()) }
    }

    /// Writes the superblocks of the newest version.
    fn write_version(&mut self) -> io::Result<()> {
        let superblock = Superblock { version: VERSION, ..self.superblock };
        write_superblocks(&self.engine, superblock)?;
        self.engine.sync()?;
        self.superblock = superblock;
        Ok(())
    }

    /// Converts a file of version 1 or 2: it gets a journal. Until the superblocks are written, it
    /// stays a file of its version.
    fn convert(&mut self) -> io::Result<()> {
        let old_len = self.superblock.file_len(&self.layout);
        let journal = self.make_journal();
        if journal.is_err() {
            // On a full disk, the space is of more use to others.
            let _ = self.engine.set_len(old_len);
            journal?;
        }
        self.write_version()
    }

    fn make_journal(&mut self) -> io::Result<()> {
        self.write_records(&self.journal.sectors)?;
        self.journal.sectors.clear();
        self.engine.set_len(self.layout.len())?;
        self.engine.write_zeros(self.layout.journal)?;
        self.write_heads()?;
        self.engine.sync()
    }
}
