//! The written 4 KiB units of each device, as a sparse bitmap.
//!
//! Memory: nothing for unwritten addresses; one bit per unit, 4 KiB for each chunk of 128 MiB
//! with writes, and some 50 bytes for a chunk that is completely written. Scattered writes over
//! a terabyte take 32 MiB.

use std::collections::BTreeMap;

use crate::symbols::Symbol;

/// Bytes of a unit.
pub const UNIT: u64 = 4096;

/// Units in a chunk.
const CHUNK_UNITS: u64 = 1 << 15;
const WORDS: usize = (CHUNK_UNITS / 64) as usize;

/// The most chunks that are kept: 16 TiB of written chunks, at most 512 MiB of memory. A larger
/// written set is counted up to here and marked as a lower bound.
const CHUNKS_MAX: usize = 1 << 17;

#[derive(Debug)]
enum Chunk {
    Full,
    Part { bits: Box<[u64; WORDS]>, set: u64 },
}

/// The set of written units.
#[derive(Debug, Default)]
pub(super) struct Touched {
    chunks: BTreeMap<(Symbol, u64), Chunk>,
    units: u64,
    overflowed: bool,
}

impl Touched {
    /// Adds every unit that has some of the `len` bytes from `offset`; `len` is not zero.
    pub fn add(&mut self, device: Symbol, offset: u64, len: u64) {
        let last = (offset + (len - 1)) / UNIT;
        let mut unit = offset / UNIT;
        while unit <= last {
            let chunk = unit / CHUNK_UNITS;
            let end = last.min(chunk * CHUNK_UNITS + (CHUNK_UNITS - 1));
            if !self.add_within(device, chunk, unit % CHUNK_UNITS, end % CHUNK_UNITS) {
                self.overflowed = true;
                return;
            }
            unit = end + 1;
        }
    }

    /// The number of written units.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Whether the limit was never reached.
    pub fn is_exact(&self) -> bool {
        !self.overflowed
    }

    fn add_within(&mut self, device: Symbol, number: u64, first: u64, last: u64) -> bool {
        let is_full = self.chunks.len() >= CHUNKS_MAX;
        let key = (device, number);
        if is_full && !self.chunks.contains_key(&key) {
            return false;
        }
        let chunk = self
            .chunks
            .entry(key)
            .or_insert_with(|| Chunk::Part { bits: Box::new([0; WORDS]), set: 0 });
        if let Chunk::Part { bits, set } = chunk {
            let new = set_range(bits, first, last);
            *set += new;
            self.units += new;
            if *set == CHUNK_UNITS {
                *chunk = Chunk::Full;
            }
        }
        true
    }
}

/// Sets the bits `first..=last`; returns how many were not set before.
fn set_range(bits: &mut [u64; WORDS], first: u64, last: u64) -> u64 {
    let mut new = 0;
    for word in first / 64..=last / 64 {
        let low = if word == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
        let high = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
        let slot = &mut bits[word as usize];
        new += u64::from((low & high & !*slot).count_ones());
        *slot |= low & high;
    }
    new
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prism_testkit::seed;

    use super::*;
    use prism_base::Rng;

    #[test]
    fn random_records_agree_with_a_plain_set() {
        let mut rng = Rng::stream(seed(11), "touched");
        let mut touched = Touched::default();
        let mut plain = BTreeSet::new();
        for number in 0..2_000 {
            let device = Symbol(rng.below(2) as u32);
            let offset = rng.below(300 << 20);
            let len = match number {
                // More than a chunk, wherever it begins.
                1000 => 2 * CHUNK_UNITS * UNIT,
                _ if rng.chance(0.01) => 1 + rng.below(200 << 20),
                _ => 1 + rng.below(70_000),
            };
            touched.add(device, offset, len);
            plain.extend((offset / UNIT..=(offset + len - 1) / UNIT).map(|unit| (device, unit)));
            assert_eq!(touched.units(), plain.len() as u64);
        }
        assert!(touched.is_exact());
        assert!(touched.chunks.values().any(|chunk| matches!(chunk, Chunk::Full)));
    }

    #[test]
    fn a_set_beyond_the_limit_is_a_lower_bound() {
        let mut touched = Touched::default();
        touched.add(Symbol::NONE, 0, 1 << 62);
        assert!(!touched.is_exact());
        assert_eq!(touched.units(), CHUNKS_MAX as u64 * CHUNK_UNITS);
    }
}
