//! Which units a request touches, as dense numbers.
//!
//! Traces touch a small part of a large address space. Chunks of some hundred units are
//! numbered in the order in which they are first written, so that every column over units,
//! or over blocks of which a chunk has whole ones, is a plain vector. Memory: 24 bytes a
//! touched chunk here, and what the columns take.

use super::index::Index;

/// Touched units kept: 2^31, 8 TiB of 4 KiB, so that dense numbers fit 32 bits and the
/// columns a large machine's memory. What is touched after that is not followed.
const UNITS_MAX: u64 = 1 << 31;

/// A run of units that follow each other, within one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Dense number of the first one.
    pub dense: u32,
    /// Its logical number.
    pub unit: u64,
    /// How many.
    pub len: u32,
}

/// The numbering.
#[derive(Debug)]
pub struct Units {
    /// Units of a chunk.
    chunk: u64,
    chunks: Index,
    numbers: Vec<u64>,
    /// The chunk found last and its number: requests mostly stay where they are.
    last: Option<(u64, u32)>,
    overflowed: bool,
}

impl Units {
    /// No unit has a number yet; `chunk` units get theirs together.
    ///
    /// # Panics
    /// If `chunk` is 0 or makes no sense as a number of 32 bits.
    #[must_use]
    pub fn new(chunk: u64) -> Self {
        assert!(chunk > 0 && chunk < UNITS_MAX, "a chunk has units");
        Self { chunk, chunks: Index::default(), numbers: vec![], last: None, overflowed: false }
    }

    /// Units of a chunk.
    #[must_use]
    pub fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Whether the limit was never met.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.overflowed
    }

    /// Calls `each` with the runs of `first..end`, numbering what is new.
    pub fn touch(&mut self, first: u64, end: u64, mut each: impl FnMut(Run)) {
        let mut at = first;
        while at < end {
            let chunk = at / self.chunk;
            let stop = end.min((chunk + 1) * self.chunk);
            let Some(number) = self.number(chunk) else {
                self.overflowed = true;
                return;
            };
            each(self.run(chunk, number, at, stop));
            at = stop;
        }
    }

    fn number(&mut self, chunk: u64) -> Option<u32> {
        if let Some((last, number)) = self.last
            && last == chunk
        {
            return Some(number);
        }
        let next = self.numbers.len();
        let number = match self.chunks.get(chunk) {
            Some(number) => number,
            None if (next as u64 + 1) * self.chunk > UNITS_MAX => return None,
            None => {
                self.chunks.insert(chunk, next as u32);
                self.numbers.push(chunk);
                next as u32
            }
        };
        self.last = Some((chunk, number));
        Some(number)
    }

    /// Calls `each` with the runs of `first..end` that have numbers; in no order that a
    /// caller may rely on.
    pub fn known(&self, first: u64, end: u64, mut each: impl FnMut(Run)) {
        if first >= end {
            return;
        }
        let (low, high) = (first / self.chunk, (end - 1) / self.chunk);
        let mut visit = |chunk: u64, number: u32| {
            let from = first.max(chunk * self.chunk);
            let to = end.min((chunk + 1) * self.chunk);
            each(self.run(chunk, number, from, to));
        };
        // A trim of a whole drive has more chunks than were ever touched.
        if high - low >= self.numbers.len() as u64 {
            for (number, &chunk) in self.numbers.iter().enumerate() {
                if (low..=high).contains(&chunk) {
                    visit(chunk, number as u32);
                }
            }
        } else {
            for chunk in low..=high {
                if let Some(number) = self.chunks.get(chunk) {
                    visit(chunk, number);
                }
            }
        }
    }

    fn run(&self, chunk: u64, number: u32, from: u64, to: u64) -> Run {
        let dense = number * self.chunk as u32 + (from - chunk * self.chunk) as u32;
        Run { dense, unit: from, len: (to - from) as u32 }
    }

    /// The dense number of `unit`, if it has one; looked up apart from what is being done.
    #[must_use]
    pub fn find(&self, unit: u64) -> Option<u32> {
        let number = self.chunks.get(unit / self.chunk)?;
        Some(number * self.chunk as u32 + (unit % self.chunk) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_get_numbers_as_they_come() {
        let mut units = Units::new(512);
        let mut runs = Vec::new();
        units.touch(1000, 1030, |run| runs.push((run.dense, run.unit, run.len)));
        assert_eq!(runs, [(1000 - 512, 1000, 24), (512, 1024, 6)]);
        runs.clear();
        units.touch(5, 6, |run| runs.push((run.dense, run.unit, run.len)));
        assert_eq!(runs, [(1024 + 5, 5, 1)]);
        let found = |first, end| {
            let mut runs = Vec::new();
            units.known(first, end, |run| runs.push((run.dense, run.unit, run.len)));
            runs
        };
        assert_eq!(found(0, u64::MAX), [(0, 512, 512), (512, 1024, 512), (1024, 0, 512)]);
        assert_eq!(found(1020, 1026), [(508, 1020, 4), (512, 1024, 2)]);
        assert_eq!(found(2000, 4000), []);
        assert_eq!(found(7, 7), []);
        assert_eq!(
            (units.find(1029), units.find(5), units.find(4000)),
            (Some(517), Some(1029), None)
        );
    }
}
