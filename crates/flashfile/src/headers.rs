//! A cache of page headers: reading a page costs no second system call if the page headers of its
//! neighbours were read before, and programming a page costs none for its header.
//!
//! It is a write-back cache of pages of the file: the journal makes page headers durable, so they
//! are written to their own places only by a checkpoint, or when they are evicted. A header that is
//! written early does no harm: it is used only if a record counts its page.
//!
//! Opening puts the headers of the journal into `replayed`, where they stay until they are in their
//! own places: always, in a file that is only read, and after a failure for want of space.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::Mutex;

use prism_base::Zeroed;

use crate::engine::Engine;
use crate::layout::ALIGN;

const PAGE: usize = ALIGN as usize;
/// Pages of the file that are cached: 16 MiB, the page headers of 2 GiB of pages of 4 KiB.
pub(crate) const KEPT: usize = 4096;
const UNPOISONED: &str = "no thread panics while it holds the page headers";
/// The page number of an empty entry.
const NONE: u64 = u64::MAX;

/// A cache of the pages of the file that hold page headers. Its memory is allocated as it is used.
#[derive(Debug)]
pub(crate) struct HeaderCache {
    places: usize,
    pages: Option<Pages>,
    /// Headers by offset in the file, which has older ones there.
    replayed: BTreeMap<u64, Vec<u8>>,
    /// Number of changes of headers.
    changes: u64,
}

/// The state of a cache entry.
#[derive(Clone, Copy, Debug)]
struct CacheEntry {
    /// Number of the page.
    number: u64,
    /// The range of its dirty bytes; empty if both are equal.
    from: u16,
    to: u16,
}

#[derive(Debug)]
struct Pages {
    kept: Vec<CacheEntry>,
    bytes: Zeroed<u8>,
    /// Numbers of dirty pages, so that a sync does not search all entries.
    dirty: BTreeSet<u64>,
}

impl CacheEntry {
    const EMPTY: Self = Self { number: NONE, from: 0, to: 0 };

    fn is_dirty(self) -> bool {
        self.from < self.to
    }

    fn add_dirty(&mut self, from: usize, to: usize) {
        let (from, to) = (from as u16, to as u16);
        let (from, to) =
            if self.is_dirty() { (self.from.min(from), self.to.max(to)) } else { (from, to) };
        (self.from, self.to) = (from, to);
    }
}

impl Pages {
    fn new(places: usize) -> Self {
        let (kept, bytes) = (vec![CacheEntry::EMPTY; places], Zeroed::new(places * PAGE));
        Self { kept, bytes, dirty: BTreeSet::new() }
    }

    /// The entry of a page. Each aligned group of as many pages as there are entries maps to all
    /// entries, neighbours to neighbours, from a start that is a hash of the group's number: blocks
    /// that are programmed alternately are often a power of two apart.
    fn place(&self, number: u64) -> usize {
        /// 2^64 divided by the golden ratio.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let places = self.kept.len() as u64;
        let shift = (number / places).wrapping_mul(MIX) >> 32;
        ((number + shift) % places) as usize
    }

    fn bytes_of(&mut self, place: usize) -> &mut [u8] {
        &mut self.bytes[place * PAGE..][..PAGE]
    }

    /// Reads a page into its entry, which must not be dirty.
    fn fetch(&mut self, engine: &Engine, place: usize, number: u64) -> io::Result<()> {
        // If the read fails, the entry stays empty.
        self.kept[place] = CacheEntry::EMPTY;
        engine.read_at(number * ALIGN, self.bytes_of(place))?;
        self.kept[place].number = number;
        Ok(())
    }

    /// Writes the dirty bytes of entries with neighbouring pages. If that fails they stay dirty.
    fn write(&mut self, engine: &Engine, places: Range<usize>) -> io::Result<()> {
        let (first, last) = (self.kept[places.start], self.kept[places.end - 1]);
        let from = places.start * PAGE + usize::from(first.from);
        let to = (places.end - 1) * PAGE + usize::from(last.to);
        engine.write_at(first.number * ALIGN + u64::from(first.from), &self.bytes[from..to])?;
        for kept in &mut self.kept[places] {
            (kept.from, kept.to) = (0, 0);
            self.dirty.remove(&kept.number);
        }
        Ok(())
    }

    /// Entries of dirty pages, in the order of the file; each range can be written by one call.
    fn dirty_runs(&self) -> Vec<Range<usize>> {
        let dirty: Vec<usize> = self.dirty.iter().map(|&number| self.place(number)).collect();
        let joined = |&one: &usize, &next: &usize| {
            let (a, b) = (self.kept[one], self.kept[next]);
            next == one + 1 && b.number == a.number + 1 && usize::from(a.to) == PAGE && b.from == 0
        };
        dirty.chunk_by(joined).map(|run| run[0]..run[0] + run.len()).collect()
    }
}

impl HeaderCache {
    /// A cache of `places` pages of the file.
    pub(crate) fn new(places: usize) -> Self {
        assert!(places > 0, "a header that is written needs an entry");
        Self { places, pages: None, replayed: BTreeMap::new(), changes: 0 }
    }

    fn pages(&mut self) -> &mut Pages {
        self.pages.get_or_insert_with(|| Pages::new(self.places))
    }

    /// Takes a header from the journal.
    pub(crate) fn replay(&mut self, at: u64, header: Vec<u8>) {
        self.replayed.insert(at, header);
    }

    /// Writes the headers from the journal as any others.
    pub(crate) fn write_replayed(&mut self, engine: &Engine) -> io::Result<()> {
        let replayed = std::mem::take(&mut self.replayed);
        let written = replayed.iter().try_for_each(|(&at, header)| self.write(engine, at, header));
        // After an error they are still read from memory.
        self.replayed = replayed;
        written
    }

    /// Forgets the headers from the journal, which are in their own places now.
    pub(crate) fn forget_replayed(&mut self) {
        self.replayed.clear();
    }

    /// Copies the page header at `at` if it is cached.
    fn find(&mut self, at: u64, header: &mut [u8]) -> bool {
        if let Some(replayed) = self.replayed.get(&at) {
            header.copy_from_slice(replayed);
            return true;
        }
        let Some((number, part)) = within_page(at, header.len()) else { return false };
        let pages = self.pages();
        let place = pages.place(number);
        let found = pages.kept[place].number == number;
        if found {
            header.copy_from_slice(&pages.bytes_of(place)[part]);
        }
        found
    }

    /// Caches a page of the file, unless another that is dirty has its place: a read does not evict
    /// dirty pages, so that it cannot fail because of a write.
    fn keep(&mut self, number: u64, page: &[u8; PAGE]) {
        let pages = self.pages();
        let place = pages.place(number);
        if !pages.kept[place].is_dirty() {
            pages.kept[place] = CacheEntry { number, ..CacheEntry::EMPTY };
            pages.bytes_of(place).copy_from_slice(page);
        }
    }

    /// Begins to read the page header at `at` unless it is cached.
    pub(crate) fn read_ahead(cache: &Mutex<Self>, engine: &Engine, at: u64, len: usize) {
        let Some((number, _)) = within_page(at, len) else { return };
        let is_kept = {
            let mut cache = cache.lock().expect(UNPOISONED);
            let pages = cache.pages();
            pages.kept[pages.place(number)].number == number
        };
        if !is_kept {
            engine.read_table_ahead(number * ALIGN, ALIGN);
        }
    }

    /// Reads the page header at `at`. The lock is not held while it is read from the file.
    pub(crate) fn read(
        cache: &Mutex<Self>,
        engine: &Engine,
        at: u64,
        header: &mut [u8],
    ) -> io::Result<()> {
        let lock = || cache.lock().expect(UNPOISONED);
        let changes = {
            let mut cache = lock();
            if cache.find(at, header) {
                return Ok(());
            }
            cache.changes
        };
        // A page that is not cached is up to date in the file.
        let Some((number, part)) = within_page(at, header.len()) else {
            return engine.read_at(at, header);
        };
        let mut page = [0; PAGE];
        engine.read_at(number * ALIGN, &mut page)?;
        header.copy_from_slice(&page[part]);
        let mut cache = lock();
        if cache.changes == changes {
            cache.keep(number, &page);
        }
        Ok(())
    }

    /// Writes a page header; it is in the file after [`HeaderCache::write_back`].
    ///
    /// # Errors
    /// Also the error of writing pages evicted for it, which stay cached then.
    pub(crate) fn write(&mut self, engine: &Engine, at: u64, header: &[u8]) -> io::Result<()> {
        self.changes += 1;
        let Some((number, part)) = within_page(at, header.len()) else {
            // It spans two or more pages, and complete page headers are between its parts, so it is
            // written directly.
            return engine.write_at(at, header);
        };
        let pages = self.pages();
        let place = pages.place(number);
        if pages.kept[place].number != number {
            if pages.kept[place].is_dirty() {
                pages.write(engine, place..place + 1)?;
            }
            pages.fetch(engine, place, number)?;
        }
        pages.bytes_of(place)[part.clone()].copy_from_slice(header);
        if !pages.kept[place].is_dirty() {
            pages.dirty.insert(number);
        }
        pages.kept[place].add_dirty(part.start, part.end);
        Ok(())
    }

    /// Writes all dirty page headers. Those that could not be written stay dirty.
    pub(crate) fn write_back(&mut self, engine: &Engine) -> io::Result<()> {
        let Some(pages) = &mut self.pages else { return Ok(()) };
        pages.dirty_runs().into_iter().try_for_each(|run| pages.write(engine, run))
    }

    /// Drops clean entries.
    pub(crate) fn forget(&mut self) {
        for kept in self.pages.iter_mut().flat_map(|pages| &mut pages.kept) {
            if !kept.is_dirty() {
                *kept = CacheEntry::EMPTY;
            }
        }
    }
}

/// The page of the file with a page header, and the offset in it; `None` if it spans several pages.
fn within_page(at: u64, len: usize) -> Option<(u64, Range<usize>)> {
    let within = (at % ALIGN) as usize;
    (within + len <= PAGE).then_some((at / ALIGN, within..within + len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::SimulatedFile;

    #[test]
    fn neighbours_and_powers_of_two_do_not_collide() {
        let pages = Pages::new(KEPT);
        for first in [0, 7 * KEPT as u64] {
            let places = |number: u64| pages.place(first + number);
            let all: BTreeSet<usize> = (0..KEPT as u64).map(places).collect();
            assert_eq!(all.len(), KEPT);
            let next = |number: &u64| places(number + 1) == (places(*number) + 1) % KEPT;
            assert!((0..KEPT as u64 - 1).all(|number| next(&number)));
        }
        for stride in 12..30 {
            let places: BTreeSet<usize> = (0..16).map(|lun| pages.place(lun << stride)).collect();
            assert!(places.len() >= 14, "2^{stride} pages apart: {places:?}");
        }
    }

    /// Page headers of 1024 bytes by number, and the writes that they take.
    #[test]
    fn neighbouring_dirty_pages_are_written_at_once() {
        for (headers, writes) in [
            (&[0, 1, 2, 3, 4, 5, 6, 7][..], 1),
            (&[7, 2, 4, 3, 5, 6], 1),
            (&[1, 2, 4], 2),
            (&[3, 5], 2),
            (&[12, 3], 2),
        ] {
            let file = SimulatedFile::new();
            let engine = Engine::Simulated(std::sync::Mutex::new(file.open()));
            engine.set_len(1 << 16).unwrap();
            let mut cache = HeaderCache::new(16);
            for &number in headers {
                cache.write(&engine, number * 1024, &[7; 1024]).unwrap();
            }
            assert_eq!(file.operations(), 0, "{headers:?}");
            for _ in 0..2 {
                cache.write_back(&engine).unwrap();
                assert_eq!(file.operations(), writes, "{headers:?}");
            }
            for (number, bytes) in (0..).zip(file.bytes().chunks(1024)) {
                let expected = 7 * u8::from(headers.contains(&number));
                assert!(bytes == [expected; 1024], "{headers:?}: header {number}");
            }
        }
    }
}
