//! A queue of future events, earliest first. Events of equal time leave in the order of their
//! insertion, so that a run never depends on the internal order of a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::SimTime;

/// Events with a payload of at most [`EventQueue::PAYLOAD_BITS`] bits.
///
/// An entry is one 128-bit number (time, insertion number, payload), so that ordering
/// is one integer comparison. Design: docs/design/event-core.md.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    inserted: u64,
}

impl EventQueue {
    /// Payloads are below two to this power.
    pub const PAYLOAD_BITS: u32 = 28;
    /// Insertion numbers take the bits between payload and time: 2^36 events may be
    /// inserted before the number wraps, and a wrap only matters between two events of
    /// the same nanosecond on either side of it.
    const SEQ_MASK: u64 = (1 << (64 - Self::PAYLOAD_BITS)) - 1;

    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    ///
    /// # Panics
    /// If `payload` has more than [`EventQueue::PAYLOAD_BITS`] bits.
    pub fn push(&mut self, at: SimTime, payload: u32) {
        assert!(payload >> Self::PAYLOAD_BITS == 0, "event payload {payload} is too wide");
        let seq = self.inserted & Self::SEQ_MASK;
        self.inserted += 1;
        let low = (seq << Self::PAYLOAD_BITS) | u64::from(payload);
        self.heap.push(Reverse((u128::from(at.0) << 64) | u128::from(low)));
    }

    /// When the earliest event is due.
    #[must_use]
    pub fn peek(&self) -> Option<SimTime> {
        self.heap.peek().map(|Reverse(key)| SimTime((key >> 64) as u64))
    }

    /// When the earliest event is due, or [`SimTime::NEVER`].
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        self.peek().unwrap_or(SimTime::NEVER)
    }

    /// Removes the earliest event.
    pub fn pop(&mut self) -> Option<(SimTime, u32)> {
        let Reverse(key) = self.heap.pop()?;
        let payload = key as u32 & ((1 << Self::PAYLOAD_BITS) - 1);
        Some((SimTime((key >> 64) as u64), payload))
    }

    /// Events waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use prism_testkit::seed;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn random_events_equal_a_stable_sort() {
        let mut rng = Rng::stream(seed(3), "events");
        let mut queue = EventQueue::new();
        let mut model = Vec::new();
        for payload in 0..10_000 {
            let at = SimTime(rng.below(500));
            queue.push(at, payload);
            model.push((at, payload));
        }
        model.sort_by_key(|&(at, _)| at);
        let out: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(out, model);
    }
}
