//! Keys, values and the sequence of operations, as functions of the seed.

use prism_base::rng::Rng;

use crate::amounts::KEY_BYTES;
use crate::kinds::Pattern;

/// An operation on one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The record gets a new value.
    Put(u64),
    /// The record is read.
    Get(u64),
}

/// The operations of a key-value application, one after another.
#[derive(Clone, Debug)]
pub struct Operations {
    rng: Rng,
    pattern: Pattern,
    records: u64,
    operations: u64,
    done: u64,
}

impl Operations {
    /// `operations` operations on `records` records.
    ///
    /// # Panics
    /// If there is no record.
    #[must_use]
    pub fn new(seed: u64, pattern: Pattern, records: u64, operations: u64) -> Self {
        assert!(records > 0, "an operation needs a record");
        Self { rng: Rng::stream(seed, "stack keys"), pattern, records, operations, done: 0 }
    }
}

impl Iterator for Operations {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.done == self.operations {
            return None;
        }
        let n = self.done;
        self.done += 1;
        Some(match self.pattern {
            Pattern::Seq => Operation::Put(n % self.records),
            Pattern::Rand => Operation::Put(self.rng.below(self.records)),
            Pattern::Mix if n.is_multiple_of(2) => Operation::Put(self.rng.below(self.records)),
            Pattern::Mix => Operation::Get(self.rng.below(self.records)),
        })
    }
}

/// The text of a key.
#[must_use]
pub fn key(record: u64) -> [u8; KEY_BYTES] {
    let mut text = [b'0'; KEY_BYTES];
    let mut rest = record;
    for place in text.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// Random values, which cannot be compressed.
#[derive(Clone, Debug)]
pub struct Values {
    rng: Rng,
    value: Vec<u8>,
}

impl Values {
    /// Values of `bytes` bytes, of the stream `label`.
    #[must_use]
    pub fn new(seed: u64, label: &str, bytes: usize) -> Self {
        Self { rng: Rng::stream(seed, label), value: vec![0; bytes] }
    }

    /// The next value.
    pub fn next_value(&mut self) -> &[u8] {
        for part in self.value.chunks_mut(8) {
            part.copy_from_slice(&self.rng.next_u64().to_le_bytes()[..part.len()]);
        }
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(seed: u64, pattern: Pattern, records: u64, operations: u64) -> Vec<Operation> {
        Operations::new(seed, pattern, records, operations).collect()
    }

    #[test]
    fn sequential_updates_repeat_in_order() {
        let puts = [0, 1, 2, 0, 1].map(Operation::Put);
        assert_eq!(all(1, Pattern::Seq, 3, 5), puts);
    }

    #[test]
    fn every_second_operation_of_a_mix_reads() {
        let mix = all(1, Pattern::Mix, 100, 1001);
        let puts = mix.iter().filter(|one| matches!(one, Operation::Put(_))).count();
        assert_eq!((mix.len(), puts), (1001, 501));
        assert!(matches!(mix[..2], [Operation::Put(_), Operation::Get(_)]));
    }

    #[test]
    fn random_operations_are_even_and_follow_the_seed() {
        let rand = all(1, Pattern::Rand, 10, 10_000);
        for record in 0..10 {
            let count = rand.iter().filter(|&&one| one == Operation::Put(record)).count();
            // The standard deviation is 30.
            assert!((880..1120).contains(&count), "record {record}: {count}");
        }
        assert_eq!(rand, all(1, Pattern::Rand, 10, 10_000));
        assert_ne!(rand, all(2, Pattern::Rand, 10, 10_000));
    }

    #[test]
    fn keys_are_ordered_as_numbers_are() {
        assert_eq!(&key(0), b"0000000000000000");
        assert_eq!(&key(120), b"0000000000000120");
        assert!(key(99) < key(100) && key(999_999) < key(1_000_000));
    }

    #[test]
    fn values_differ_and_depend_on_the_seed() {
        let mut values = Values::new(1, "test", 100);
        let (first, second) = (values.next_value().to_vec(), values.next_value().to_vec());
        assert_eq!(first.len(), 100);
        assert_ne!(first, second);
        assert_eq!(Values::new(1, "test", 100).next_value(), first);
        assert_ne!(Values::new(2, "test", 100).next_value(), first);
    }
}
