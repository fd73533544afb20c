//! One pending time for each of a fixed number of slots, with access to the earliest.

use crate::units::SimTime;

/// A tournament tree over slots: every node holds the earliest of its four children, so the
/// earliest of all is at the root. Setting a time needs three comparisons per level, one of
/// which depends on the level below. Of equal times the lower slot is first, independent of the
/// order of setting.
///
/// If each slot has at most one pending time, this is faster than a heap: nothing is allocated
/// or moved, and no branch on the way to the root depends on data (docs/design/event-core.md).
/// A node is one number, with the time since an origin in the high bits and the slot in the low
/// bits, so that the earlier of two is their minimum. Its bits are read as a floating-point
/// number: positive ones have the order of their bits, and the lesser of two is one
/// instruction.
#[derive(Clone, Debug)]
pub struct Timers {
    /// Node i is the earliest of nodes 4 i to 4 i + 3; the root is node 1, and the leaves are the
    /// second half. Twice a power of four of them.
    nodes: Vec<f64>,
    /// The earliest of all.
    first: f64,
    /// The origin of the times in the nodes, in nanoseconds; it moves on as time does. It is
    /// [`Timers::BEHIND`] before the earliest time that can be stored, so before zero at first.
    origin: u64,
}

impl Timers {
    const NEVER: f64 = f64::INFINITY;
    const SLOT_BITS: u32 = 20;
    const SLOT_MASK: u32 = (1 << Self::SLOT_BITS) - 1;
    /// Times reach this far beyond the earliest that can be stored, in nanoseconds: 36 minutes.
    const REACH: u64 = 1 << (61 - Self::SLOT_BITS);
    /// The origin is so far behind that the highest bit of the exponent is always set, and the
    /// next bit never: a CPU may be configured to treat very small numbers as zero, and very
    /// large ones are infinite or NaN.
    const BEHIND: u64 = 2 * Self::REACH;

    /// `slots` slots without pending times.
    ///
    /// # Panics
    /// If there are more than a million.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        assert!(slots <= 1 << Self::SLOT_BITS, "{slots} slots are too many");
        let mut leaves = 4;
        while leaves < slots as usize {
            leaves *= 4;
        }
        Self {
            nodes: vec![Self::NEVER; 2 * leaves],
            first: Self::NEVER,
            origin: Self::origin_for(SimTime::ZERO),
        }
    }

    /// Sets the time of `slot`; [`SimTime::NEVER`] if nothing is pending there.
    ///
    /// # Panics
    /// If the time lies more than half an hour after or before others that are pending.
    #[inline]
    pub fn set(&mut self, slot: u32, at: SimTime) {
        if self.reaches(at) {
            self.put(slot, self.key(slot, at));
        } else {
            self.set_far(slot, at);
        }
    }

    /// The origin with which `at` is the earliest time that can be stored.
    fn origin_for(at: SimTime) -> u64 {
        at.0.wrapping_sub(Self::BEHIND)
    }

    #[inline]
    fn reaches(&self, at: SimTime) -> bool {
        at.0.wrapping_sub(self.origin) / Self::REACH == Self::BEHIND / Self::REACH
    }

    /// As [`Timers::set`], for [`SimTime::NEVER`] and for a time that needs another origin.
    #[inline(never)]
    fn set_far(&mut self, slot: u32, at: SimTime) {
        let key = if at == SimTime::NEVER {
            Self::NEVER
        } else {
            self.move_origin(at);
            self.key(slot, at)
        };
        self.put(slot, key);
    }

    #[inline]
    fn key(&self, slot: u32, at: SimTime) -> f64 {
        debug_assert!(self.reaches(at), "{at:?} cannot be stored");
        f64::from_bits(at.0.wrapping_sub(self.origin) << Self::SLOT_BITS | u64::from(slot))
    }

    #[inline]
    fn put(&mut self, slot: u32, key: f64) {
        let mut number = self.nodes.len() / 2 + slot as usize;
        assert!(number < self.nodes.len(), "slot {slot} is one of those there are");
        let mut winner = key;
        // The whole path is updated every time, without branches that depend on data: a branch
        // misprediction costs more than a level. The siblings were stored earlier, so no load
        // waits for a store of this loop.
        while number > 1 {
            // SAFETY: the number began below the length, a multiple of four, and only gets
            // smaller; its last two bits change nothing about that. Checked, a simulated read
            // takes 3 % more instructions.
            #[allow(unsafe_code, reason = "checked once, before the loop")]
            let others = unsafe {
                *self.nodes.get_unchecked_mut(number) = winner;
                let other = |bits: usize| *self.nodes.get_unchecked(number ^ bits);
                earlier(earlier(other(1), other(2)), other(3))
            };
            winner = earlier(winner, others);
            number /= 4;
        }
        self.first = winner;
    }

    /// Moves the origin so that all pending times and `at` can be stored.
    #[cold]
    fn move_origin(&mut self, at: SimTime) {
        let earliest = self.next_at().min(at);
        let pending: Vec<_> = self.nodes[self.nodes.len() / 2..]
            .iter()
            .filter(|&&key| key != Self::NEVER)
            .map(|&key| (key.to_bits() as u32 & Self::SLOT_MASK, self.time(key)))
            .collect();
        self.origin = Self::origin_for(earliest);
        self.nodes.fill(Self::NEVER);
        self.first = Self::NEVER;
        for (slot, time) in pending {
            assert!(self.reaches(time), "pending times more than half an hour apart");
            self.put(slot, self.key(slot, time));
        }
        assert!(self.reaches(at), "pending times more than half an hour apart");
    }

    #[inline]
    fn time(&self, key: f64) -> SimTime {
        SimTime(self.origin.wrapping_add(key.to_bits() >> Self::SLOT_BITS))
    }

    /// The earliest time pending, or [`SimTime::NEVER`].
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        if self.first == Self::NEVER { SimTime::NEVER } else { self.time(self.first) }
    }

    /// The earliest time pending, and its slot.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<(SimTime, u32)> {
        let slot = self.first.to_bits() as u32 & Self::SLOT_MASK;
        (self.first != Self::NEVER).then(|| (self.time(self.first), slot))
    }
}

/// The lesser of two keys. Neither is NaN, which makes it one instruction.
#[inline(always)]
fn earlier(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use prism_testkit::seed;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn random_timers_give_the_earliest_first() {
        let mut rng = Rng::stream(seed(4), "timers");
        for slots in [1u32, 2, 3, 4, 5, 16, 17, 64, 100] {
            let mut timers = Timers::new(slots);
            let mut model = vec![None; slots as usize];
            for turn in 0..3000 {
                let slot = rng.below(u64::from(slots)) as u32;
                // Days pass, so that the origin moves on.
                let now = turn * 1_000_000_000_000;
                let at = rng.chance(0.7).then(|| SimTime(now + rng.below(50)));
                if let Some(first) = model.iter().position(|at: &Option<SimTime>| {
                    at.is_some_and(|at| at.0 + 2_000_000_000_000 < now)
                }) {
                    timers.set(first as u32, SimTime::NEVER);
                    model[first] = None;
                }
                timers.set(slot, at.unwrap_or(SimTime::NEVER));
                model[slot as usize] = at;
                let times = model.iter().zip(0..).filter_map(|(at, slot)| Some(((*at)?, slot)));
                assert_eq!(timers.first(), times.min());
            }
        }
    }
}
