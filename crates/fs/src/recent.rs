//! A bounded cache: two generations, of which the older one is dropped when the younger one is half
//! of the whole.

use std::hash::Hash;

use prism_base::FastMap;

/// Values that were used recently.
#[derive(Debug)]
pub struct Recent<K, V> {
    young: FastMap<K, V>,
    old: FastMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq + Copy, V> Recent<K, V> {
    /// A cache of at most `max` values.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { young: FastMap::default(), old: FastMap::default(), half: (max / 2).max(1) }
    }

    /// How many values it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// The value of a key.
    pub fn get(&mut self, key: K) -> Option<&V> {
        if let Some(value) = self.old.remove(&key) {
            self.insert(key, value);
        }
        self.young.get(&key)
    }

    /// Adds a value.
    pub fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Drops the values whose keys do not satisfy `keep`.
    pub fn retain(&mut self, keep: impl Fn(K) -> bool) {
        self.young.retain(|&key, _| keep(key));
        self.old.retain(|&key, _| keep(key));
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.young.remove(&key).or_else(|| self.old.remove(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_whole_is_bounded() {
        let mut recent = Recent::new(8);
        for key in 0..100_u32 {
            recent.insert(key, key);
            assert_eq!(recent.get(0), Some(&0));
            assert!(recent.young.len() + recent.old.len() <= 8);
        }
        assert_eq!(recent.get(99), Some(&99));
        assert_eq!(recent.get(50), None);
        assert_eq!(recent.remove(99), Some(99));
        assert_eq!(recent.get(99), None);
    }
}
