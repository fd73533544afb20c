//! A queue for events whose times nearly always grow.

use std::collections::VecDeque;

use crate::units::SimTime;

/// A queue of (time, payload), earliest first; of equal times the one added first. Adding at or
/// near the end is cheap, so a stage with a fixed delay needs a push and a pop per event
/// instead of two operations on a heap.
#[derive(Clone, Debug)]
pub struct Pipe {
    events: VecDeque<(SimTime, u32)>,
    /// When the earliest event is due. It is read far more often than it changes.
    next: SimTime,
    /// When the latest event is due, or later.
    last: SimTime,
}

impl Default for Pipe {
    fn default() -> Self {
        Self { events: VecDeque::new(), next: SimTime::NEVER, last: SimTime::ZERO }
    }
}

impl Pipe {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: SimTime, payload: u32) {
        if at >= self.last {
            self.events.push_back((at, payload));
            self.last = at;
        } else {
            self.insert(at, payload);
        }
        self.next = self.next.min(at);
    }

    fn insert(&mut self, at: SimTime, payload: u32) {
        // Nearly always the event belongs near the end.
        let mut place = self.events.len();
        while place > 0 && self.events[place - 1].0 > at {
            place -= 1;
        }
        self.events.insert(place, (at, payload));
    }

    /// When the earliest event is due, or [`SimTime::NEVER`].
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        self.next
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(SimTime, u32)> {
        let first = self.events.pop_front();
        self.next = self.events.front().map_or(SimTime::NEVER, |&(at, _)| at);
        first
    }
}

#[cfg(test)]
mod tests {
    use prism_testkit::seed;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn random_entries_equal_a_stable_sort() {
        let mut rng = Rng::stream(seed(3), "pipe");
        let mut pipe = Pipe::new();
        let mut model = Vec::new();
        for payload in 0..5000 {
            let at = SimTime(u64::from(payload) + rng.below(40));
            pipe.push(at, payload);
            model.push((at, payload));
        }
        model.sort_by_key(|&(at, _)| at);
        let out: Vec<_> = std::iter::from_fn(|| pipe.pop()).collect();
        assert_eq!(out, model);
    }
}
