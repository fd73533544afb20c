//! One pending time for each of a fixed number of slots, the earliest first.

use crate::units::SimTime;

/// A tournament over slots: every node of a binary tree holds the earlier of its two
/// children, so that setting a time costs one comparison a level and the earliest is at
/// the root. Of equal times the lower slot wins, whatever the order of setting.
///
/// Where each actor has at most one thing pending, this beats a heap: nothing is
/// allocated, moved or compared but the path to the root (docs/design/event-core.md).
#[derive(Clone, Debug)]
pub struct Timers {
    /// Node i has children 2i and 2i + 1; leaves begin at `leaves`.
    nodes: Vec<Node>,
    leaves: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    at: u64,
    slot: u32,
}

impl Timers {
    const NEVER: u64 = SimTime::NEVER.0;

    /// `slots` slots with nothing pending.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        let leaves = (slots.max(1) as usize).next_power_of_two();
        let mut nodes = vec![Node { at: Self::NEVER, slot: 0 }; 2 * leaves];
        for slot in 0..leaves {
            nodes[leaves + slot].slot = slot as u32;
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Self { nodes, leaves }
    }

    /// Sets the time of `slot`; `None` if nothing is pending there.
    pub fn set(&mut self, slot: u32, at: Option<SimTime>) {
        let mut node = self.leaves + slot as usize;
        let mut winner = Node { at: at.map_or(Self::NEVER, |at| at.0), slot };
        // The whole path every time, without a branch on what is found there: a guess that
        // fails costs more than a level.
        let nodes = &mut self.nodes[..];
        nodes[node] = winner;
        while node > 1 {
            let other = nodes[node ^ 1];
            // Of equal times the left one wins, which is the other if this is odd.
            let other_wins = other.at < winner.at.saturating_add(node as u64 & 1);
            winner.at = if other_wins { other.at } else { winner.at };
            winner.slot = if other_wins { other.slot } else { winner.slot };
            node /= 2;
            nodes[node] = winner;
        }
    }

    /// The earliest time pending, or [`SimTime::NEVER`].
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        SimTime(self.nodes[1].at)
    }

    /// The earliest time pending, and its slot.
    #[must_use]
    pub fn first(&self) -> Option<(SimTime, u32)> {
        let root = self.nodes[1];
        (root.at != Self::NEVER).then_some((SimTime(root.at), root.slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_earliest_slot_is_first() {
        let mut rng = Rng::stream(4, "timers");
        for slots in [1u32, 2, 3, 64, 100] {
            let mut timers = Timers::new(slots);
            let mut model = vec![None; slots as usize];
            for _ in 0..3000 {
                let slot = rng.below(u64::from(slots)) as u32;
                let at = rng.chance(0.7).then(|| SimTime(rng.below(50)));
                timers.set(slot, at);
                model[slot as usize] = at;
                let times = model.iter().zip(0..).filter_map(|(at, slot)| Some(((*at)?, slot)));
                assert_eq!(timers.first(), times.min());
            }
        }
    }
}
