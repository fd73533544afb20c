//! A queue whose functions are always inlined.

use std::ops::{Index, IndexMut};

/// A FIFO queue in a growing ring buffer. A value is written directly to its slot. The compiler may
/// not inline the standard library's queue; a value is then built on the stack and copied, and the
/// copy stalls until the stores are done (docs/design/event-core.md).
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// Their number is a power of two.
    slots: Box<[T]>,
    /// The position of the first element, modulo the number of slots; it only grows, and wraps.
    head: u32,
    len: u32,
}

impl<T: Copy + Default> Ring<T> {
    const FEWEST: usize = 4;

    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self { slots: vec![T::default(); Self::FEWEST].into(), head: 0, len: 0 }
    }

    /// The number of elements.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it is empty.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn slot(&self, place: u32) -> usize {
        self.head.wrapping_add(place) as usize & (self.slots.len() - 1)
    }

    /// The first element.
    #[must_use]
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.slots[self.slot(0)])
    }

    /// The last element.
    #[must_use]
    #[inline(always)]
    pub fn back(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.slots[self.slot(self.len - 1)])
    }

    /// Appends `value`.
    #[inline(always)]
    pub fn push_back(&mut self, value: T) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.len);
        self.slots[slot] = value;
        self.len += 1;
    }

    /// Removes the first element.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        Some(first)
    }

    /// Inserts `value` at position `place`.
    ///
    /// # Panics
    /// If `place` is beyond the end.
    pub fn insert(&mut self, place: usize, value: T) {
        assert!(place <= self.len(), "place {place} is beyond {}", self.len());
        self.push_back(value);
        for at in (place + 1..self.len()).rev() {
            self[at] = self[at - 1];
        }
        self[place] = value;
    }

    /// The elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len()).map(|place| &self[place])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots: Vec<T> = self.iter().copied().collect();
        slots.resize(2 * self.slots.len(), T::default());
        (self.slots, self.head) = (slots.into(), 0);
    }
}

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The bounds are checked in tests only: an index beyond the end returns an old value.
impl<T: Copy + Default> Index<usize> for Ring<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, place: usize) -> &T {
        debug_assert!(place < self.len(), "place {place} of {}", self.len());
        &self.slots[self.slot(place as u32)]
    }
}

impl<T: Copy + Default> IndexMut<usize> for Ring<T> {
    #[inline(always)]
    fn index_mut(&mut self, place: usize) -> &mut T {
        debug_assert!(place < self.len(), "place {place} of {}", self.len());
        let slot = self.slot(place as u32);
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use prism_testkit::seed;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn random_operations_equal_the_standard_librarys() {
        let mut rng = Rng::stream(seed(7), "ring");
        let (mut ring, mut model) = (Ring::new(), VecDeque::new());
        for turn in 0..20_000u32 {
            // For some time more values are added than removed, then fewer.
            let growing = turn / 200 % 2 == 0;
            match rng.below(if growing { 4 } else { 8 }) {
                0 => {
                    let place = rng.below(model.len() as u64 + 1) as usize;
                    ring.insert(place, turn);
                    model.insert(place, turn);
                }
                1 | 2 => {
                    ring.push_back(turn);
                    model.push_back(turn);
                }
                _ => assert_eq!(ring.pop_front(), model.pop_front()),
            }
            assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
            assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
            assert!(ring.iter().eq(&model), "turn {turn}");
        }
    }
}
