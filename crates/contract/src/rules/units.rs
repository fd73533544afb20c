//! Dense numbers for the units that a trace touches.
//!
//! A trace touches a small part of a large address space. Chunks of several hundred units
//! are numbered in the order of their first write. The state of units, and of blocks that
//! lie within a chunk, can then be stored in plain vectors. Memory: 24 bytes for each touched
//! chunk, and the vectors of the caller.

use super::index::Index;

/// The most units that get a number: 2^31, or 8 TiB in units of 4 KiB. Dense numbers then fit
/// into 32 bits, and the state of all units into the memory of a large machine. Units that
/// are touched after this limit is reached are ignored.
const UNITS_MAX: u64 = 1 << 31;

/// Consecutive units within one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Dense number of the first unit.
    pub dense: u32,
    /// Logical number (LPN) of the first unit.
    pub unit: u64,
    /// Number of units.
    pub len: u32,
}

/// The numbering of touched units.
#[derive(Debug)]
pub struct Units {
    /// Units of a chunk.
    chunk: u64,
    /// From chunk to its dense number.
    chunks: Index,
    /// From dense number to chunk.
    numbers: Vec<u64>,
    /// The chunk that was looked up last, and its number. The next request is often in the
    /// same chunk.
    last: Option<(u64, u32)>,
    /// Whether a unit was ignored because of [`UNITS_MAX`].
    overflowed: bool,
}

impl Units {
    /// An empty numbering with chunks of `chunk` units.
    ///
    /// # Panics
    /// If `chunk` is 0 or at least 2^31.
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

    /// Whether all touched units have numbers: the limit on units was never reached.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.overflowed
    }

    /// Calls `each` with the runs of the units `first..end`, in order. New chunks get
    /// numbers.
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

    /// Calls `each` with the runs of the units `first..end` that have numbers, in an
    /// unspecified order.
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
        // The range may have more chunks than were ever touched, such as in a trim of a whole
        // drive. Then it is faster to go through the touched chunks.
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

    /// The dense number of `unit`, if it has one. Does not change the chunk that is
    /// remembered for the next request.
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
    fn chunks_are_numbered_in_order_of_first_touch() {
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
