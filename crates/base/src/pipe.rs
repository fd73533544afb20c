//! Future events of one kind whose times nearly always grow.

use std::collections::VecDeque;

use crate::units::SimTime;

/// A queue of (time, payload), earliest first; of equal times the one added first. Adding
/// at or near the end is cheap, so a stage with a fixed delay pays a push and a pop for
/// an event instead of two walks through a heap.
#[derive(Clone, Debug)]
pub struct Pipe {
    events: VecDeque<(SimTime, u32)>,
    /// When the earliest is due: asked for far more often than it changes.
    next: SimTime,
}

impl Default for Pipe {
    fn default() -> Self {
        Self { events: VecDeque::new(), next: SimTime::NEVER }
    }
}

impl Pipe {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    pub fn push(&mut self, at: SimTime, payload: u32) {
        if self.events.back().is_none_or(|&(last, _)| last <= at) {
            self.events.push_back((at, payload));
        } else {
            let place = self.events.partition_point(|&(other, _)| other <= at);
            self.events.insert(place, (at, payload));
        }
        self.next = self.next.min(at);
    }

    /// When the earliest is due, or [`SimTime::NEVER`].
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        self.next
    }

    /// Takes out the earliest.
    pub fn pop(&mut self) -> Option<(SimTime, u32)> {
        let first = self.events.pop_front();
        self.next = self.events.front().map_or(SimTime::NEVER, |&(at, _)| at);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn equals_a_stable_sort() {
        let mut rng = Rng::stream(3, "pipe");
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
