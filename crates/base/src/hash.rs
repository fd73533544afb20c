//! A fast hash map for small integer keys, the same on every machine.
//!
//! Keys come from inside the simulation, never from an attacker, so a multiplication is enough.
//! No result depends on the iteration order of these maps.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A hash map from integers.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<MixHasher>>;

/// A hash set of integers.
pub type FastSet<K> = HashSet<K, BuildHasherDefault<MixHasher>>;

/// Multiplies by an odd constant and folds the halves.
#[derive(Clone, Copy, Debug, Default)]
pub struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let wide = u128::from(value ^ self.0 ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
}
