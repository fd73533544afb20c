//! A map from 64-bit numbers to 32-bit values, fast for small numbers.
//!
//! The keys are numbers of chunks or translation pages. Addresses begin at zero, so these
//! numbers are dense enough for a plain vector. Keys beyond its limit are in a hash map.

use prism_base::FastMap;

/// Keys below this are looked up in a vector. It takes 16 MiB, enough for 8 TiB of addresses
/// in parts of 2 MiB.
const DIRECT: u64 = 1 << 22;
/// Marks a key without a value in the vector.
const NONE: u32 = u32::MAX;

/// The map. Values are below 2^32 - 1.
#[derive(Debug, Default)]
pub struct Index {
    direct: Vec<u32>,
    beyond: FastMap<u64, u32>,
    len: usize,
}

impl Index {
    /// The number of keys with a value.
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

    /// Sets the value of `number`, and returns its previous value.
    #[inline]
    pub fn insert(&mut self, number: u64, value: u32) -> Option<u32> {
        debug_assert!(value != NONE, "this value is reserved");
        let before = if number < DIRECT {
            if self.direct.len() <= number as usize {
                self.direct.resize(number as usize + 1, NONE);
            }
            let entry = &mut self.direct[number as usize];
            Some(std::mem::replace(entry, value)).filter(|&before| before != NONE)
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
    fn small_and_large_keys_behave_alike() {
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
