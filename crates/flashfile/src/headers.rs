//! Page headers that are kept in memory: reading a page costs no second call into the system as
//! long as the page headers of its neighbours were read before, and programming one costs none at
//! all.
//!
//! What is written goes into the pages of the file that are kept here and waits: page headers are
//! promised by a sync only, which has them all written before the records that count their
//! pages. Before that they are written when another page needs the place.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use prism_base::Zeroed;

use crate::engine::Engine;
use crate::layout::ALIGN;

const PAGE: usize = ALIGN as usize;
/// Pages of the file that are kept: 16 MiB, the page headers of 2 GiB of pages of 4 KiB.
pub(crate) const KEPT: usize = 4096;
/// The number of no page.
const NONE: u64 = u64::MAX;

/// A cache of those pages of the file that hold page headers. Its memory comes as it is used.
#[derive(Debug)]
pub(crate) struct HeaderCache {
    places: usize,
    pages: Option<Pages>,
}

/// What is in a place.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Of the page.
    number: u64,
    /// Its bytes that the file has not yet; none if both are equal.
    from: u16,
    to: u16,
}

#[derive(Debug)]
struct Pages {
    kept: Vec<Kept>,
    bytes: Zeroed<u8>,
    /// Numbers of dirty pages: a sync of few programs does not go through all places.
    dirty: BTreeSet<u64>,
}

impl Kept {
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
        let (kept, bytes) = (vec![Kept::EMPTY; places], Zeroed::new(places * PAGE));
        Self { kept, bytes, dirty: BTreeSet::new() }
    }

    /// The place of a page. Neighbours are neighbours, and as many pages as there are places, from
    /// a multiple of their number on, have one each. Of which of those they are the first is
    /// mixed in: blocks that are programmed alternately are often a power of two apart.
    fn place(&self, number: u64) -> usize {
        /// 2^64 by the golden ratio.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let places = self.kept.len() as u64;
        let shift = (number / places).wrapping_mul(MIX) >> 32;
        ((number + shift) % places) as usize
    }

    fn bytes_of(&mut self, place: usize) -> &mut [u8] {
        &mut self.bytes[place * PAGE..][..PAGE]
    }

    /// Reads a page into its place, in which nothing is dirty.
    fn fetch(&mut self, engine: &Engine, place: usize, number: u64) -> io::Result<()> {
        // Should it fail, nothing is there.
        self.kept[place] = Kept::EMPTY;
        engine.read_at(number * ALIGN, self.bytes_of(place))?;
        self.kept[place].number = number;
        Ok(())
    }

    /// Writes what is dirty in places whose pages are neighbours. If that fails it stays dirty.
    fn write(&mut self, engine: &mut Engine, places: Range<usize>) -> io::Result<()> {
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

    /// Places of dirty pages, as the pages follow each other in the file; in one range those
    /// that one call can write.
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
    /// Keeps `places` pages of the file.
    pub(crate) fn new(places: usize) -> Self {
        assert!(places > 0, "a header that is written needs a place");
        Self { places, pages: None }
    }

    fn pages(&mut self) -> &mut Pages {
        self.pages.get_or_insert_with(|| Pages::new(self.places))
    }

    /// Reads the page header at `at`.
    pub(crate) fn read(&mut self, engine: &Engine, at: u64, header: &mut [u8]) -> io::Result<()> {
        let Some((number, part)) = within_page(at, header.len()) else {
            return engine.read_at(at, header);
        };
        let pages = self.pages();
        let place = pages.place(number);
        if pages.kept[place].number != number {
            if pages.kept[place].is_dirty() {
                // A read writes nothing, so that it does not fail for a write. What is not kept
                // is as the file has it.
                return engine.read_at(at, header);
            }
            pages.fetch(engine, place, number)?;
        }
        header.copy_from_slice(&pages.bytes_of(place)[part]);
        Ok(())
    }

    /// Writes a page header; it is in the file after [`HeaderCache::write_back`].
    ///
    /// # Errors
    /// Also why others, which made room for it, were not written. They are still kept.
    pub(crate) fn write(&mut self, engine: &mut Engine, at: u64, header: &[u8]) -> io::Result<()> {
        let Some((number, part)) = within_page(at, header.len()) else {
            // It is at the end of one page and at the beginning of the next, and whole page headers
            // of a page are between such: dirty bytes are not from its parts.
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

    /// Writes all page headers that the file has not yet. Those that could not be written stay.
    pub(crate) fn write_back(&mut self, engine: &mut Engine) -> io::Result<()> {
        let Some(pages) = &mut self.pages else { return Ok(()) };
        pages.dirty_runs().into_iter().try_for_each(|run| pages.write(engine, run))
    }

    /// Forgets what the file has too.
    pub(crate) fn forget(&mut self) {
        for kept in self.pages.iter_mut().flat_map(|pages| &mut pages.kept) {
            if !kept.is_dirty() {
                *kept = Kept::EMPTY;
            }
        }
    }
}

/// The page of the file in which a page header stands, and where; `None` if it stands in several.
fn within_page(at: u64, len: usize) -> Option<(u64, Range<usize>)> {
    let within = (at % ALIGN) as usize;
    (within + len <= PAGE).then_some((at / ALIGN, within..within + len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::SimulatedFile;

    #[test]
    fn places_are_those_of_neighbours_and_not_of_powers_of_two() {
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
    fn what_is_dirty_side_by_side_is_written_at_once() {
        for (headers, writes) in [
            (&[0, 1, 2, 3, 4, 5, 6, 7][..], 1),
            (&[7, 2, 4, 3, 5, 6], 1),
            (&[1, 2, 4], 2),
            (&[3, 5], 2),
            (&[12, 3], 2),
        ] {
            let file = SimulatedFile::new();
            let mut engine = Engine::Simulated(file.open());
            engine.set_len(1 << 16).unwrap();
            let mut cache = HeaderCache::new(16);
            for &number in headers {
                cache.write(&mut engine, number * 1024, &[7; 1024]).unwrap();
            }
            assert_eq!(file.operations(), 0, "{headers:?}");
            for _ in 0..2 {
                cache.write_back(&mut engine).unwrap();
                assert_eq!(file.operations(), writes, "{headers:?}");
            }
            for (number, bytes) in (0..).zip(file.bytes().chunks(1024)) {
                let expected = 7 * u8::from(headers.contains(&number));
                assert!(bytes == [expected; 1024], "{headers:?}: header {number}");
            }
        }
    }
}
