//! A map from numbers of places to 32-bit values, for numbers that mostly are small.
//!
//! Addresses begin at zero, so the numbers of their parts are dense enough for a plain
//! vector; a hash map takes what lies beyond it.

use prism_base::FastMap;

/// Numbers below this are looked up in a vector: 16 MiB of it, for 8 TiB in parts of 2 MiB.
const DIRECT: u64 = 1 << 22;
/// No value.
const NONE: u32 = u32::MAX;

/// The map. Values are below 2^32 - 1.
#[derive(Debug, Default)]
pub struct Index {
    direct: Vec<u32>,
    beyond: FastMap<u64, u32>,
    len: usize,
}

impl Index {
    /// Numbers that have a value.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The value of `number`.
    #[must_use]
    #[inline]
    pub fn get(&self, number: u64) -> Option<u32> {
        if number < DIRECT {
            return self.direct.get(number as usize).copied().filter(|&value| value != NONE);
        }
        self.beyond.get(&number).copied()
    }

    /// Gives `number` the value; the one it had before.
    #[inline]
    pub fn insert(&mut self, number: u64, value: u32) -> Option<u32> {
        debug_assert!(value != NONE, "this value stands for none");
        let before = if number < DIRECT {
            if self.direct.len() <= number as usize {
                self.direct.resize(number as usize + 1, NONE);
            }
            let slot = &mut self.direct[number as usize];
            Some(std::mem::replace(slot, value)).filter(|&before| before != NONE)
        } else {
            self.beyond.insert(number, value)
        };
        self.len += usize::from(before.is_none());
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_numbers_are_alike() {
        let mut index = Index::default();
        for (count, number) in [0, 7, DIRECT - 1, DIRECT, u64::MAX].into_iter().enumerate() {
            assert_eq!((index.get(number), index.len()), (None, count));
            assert_eq!(index.insert(number, 5), None);
            assert_eq!(index.insert(number, 6), Some(5));
            assert_eq!((index.get(number), index.len()), (Some(6), count + 1));
        }
        assert_eq!(index.get(8), None);
    }
}
