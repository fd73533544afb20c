//! A channel, reserved first come, first served.
//!
//! A read asks for its transfer when the cells are done, which is known when it begins. So its
//! transfer is reserved then, behind those that will ask before it, and moved if a program or
//! a command comes in between. A read is one event that way instead of two, and ends when it
//! would have ended with two (docs/design/event-core.md).

use prism_base::{Nanos, Ring, SimTime};

/// When a transfer is asked for: the time, and at the same time the die whose step asks.
pub(super) type Turn = (SimTime, u32);

/// A transfer whose read is still in the cells.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    asks: Turn,
    takes: Nanos,
    ends: SimTime,
}

/// What is known of one channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    /// When all that has asked is through.
    free: SimTime,
    /// Those that will ask, in this order.
    ahead: Ring<Ahead>,
}

impl Channel {
    /// Takes the channel for `takes` as soon as it is free, and not before `from`; returns when
    /// that ends. `moved` is called for each die whose transfer ends at another time than was
    /// said.
    #[inline(always)]
    pub(super) fn occupy(
        &mut self,
        takes: Nanos,
        from: SimTime,
        now: Turn,
        moved: impl FnMut(u32, SimTime),
    ) -> SimTime {
        self.settle(now);
        self.free = from.max(self.free) + takes;
        self.follow(0, self.free, moved);
        self.free
    }

    /// Reserves the channel for a read that will ask for it at `asks`, not before `now`; returns
    /// when its transfer ends, if nothing comes in between. `moved` as above.
    #[inline(always)]
    pub(super) fn reserve(
        &mut self,
        takes: Nanos,
        asks: Turn,
        now: Turn,
        moved: impl FnMut(u32, SimTime),
    ) -> SimTime {
        self.settle(now);
        let before = match self.ahead.back() {
            Some(last) if last.asks > asks => return self.reserve_between(takes, asks, moved),
            Some(last) => last.ends,
            None => self.free,
        };
        let ends = asks.0.max(before) + takes;
        self.ahead.push_back(Ahead { asks, takes, ends });
        ends
    }

    /// The same for a read that asks before others which have reserved already.
    #[inline(never)]
    fn reserve_between(
        &mut self,
        takes: Nanos,
        asks: Turn,
        moved: impl FnMut(u32, SimTime),
    ) -> SimTime {
        let behind = self.ahead.iter().rev().take_while(|it| it.asks >= asks);
        let place = self.ahead.len() - behind.count();
        let before = if place == 0 { self.free } else { self.ahead[place - 1].ends };
        let ends = asks.0.max(before) + takes;
        self.ahead.insert(place, Ahead { asks, takes, ends });
        self.follow(place + 1, ends, moved);
        ends
    }

    /// Those whose turn has come have what they reserved.
    #[inline(always)]
    fn settle(&mut self, now: Turn) {
        while let Some(first) = self.ahead.front()
            && first.asks < now
        {
            self.free = first.ends;
            self.ahead.pop_front();
        }
    }

    /// Reserves anew from `place` on, behind what ends at `free`.
    #[inline(always)]
    fn follow(&mut self, place: usize, mut free: SimTime, mut moved: impl FnMut(u32, SimTime)) {
        for place in place..self.ahead.len() {
            let reserved = &mut self.ahead[place];
            let ends = reserved.asks.0.max(free) + reserved.takes;
            if ends == reserved.ends {
                // Nor does anything behind it move.
                return;
            }
            reserved.ends = ends;
            free = ends;
            moved(reserved.asks.1, ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use prism_testkit::seed;

    use super::*;

    /// What happens to a channel: a read that asks after some time in the cells, or something
    /// that asks at once.
    #[derive(Clone, Copy, Debug)]
    struct Use {
        begins: u64,
        cells: u64,
        takes: u64,
        die: u32,
    }

    /// When each transfer ends, served in the order in which they ask.
    fn in_turn(uses: &[Use]) -> Vec<u64> {
        let mut order: Vec<usize> = (0..uses.len()).collect();
        order.sort_by_key(|&i| (uses[i].begins + uses[i].cells, uses[i].die));
        let (mut ends, mut free) = (vec![0; uses.len()], 0);
        for i in order {
            free = free.max(uses[i].begins + uses[i].cells) + uses[i].takes;
            ends[i] = free;
        }
        ends
    }

    #[test]
    fn random_reservations_end_as_if_asked_for_in_turn() {
        let mut rng = Rng::stream(seed(5), "channel");
        for round in 0..2000 {
            let mut uses = Vec::new();
            let mut begins = 0;
            for die in 0..2 + round % 40 {
                begins += rng.below(12);
                let cells = if rng.chance(0.6) { 1 + rng.below(40) } else { 0 };
                uses.push(Use { begins, cells, takes: 1 + rng.below(15), die });
            }
            let mut channel = Channel::default();
            let mut ends = vec![0; uses.len()];
            for it in &uses {
                let (takes, now) = (Nanos(it.takes), (SimTime(it.begins), it.die));
                let mut moves = Vec::new();
                let moved = |die: u32, at: SimTime| moves.push((die, at.0));
                let at = if it.cells == 0 {
                    channel.occupy(takes, now.0, now, moved)
                } else {
                    let asks = (SimTime(it.begins + it.cells), it.die);
                    channel.reserve(takes, asks, now, moved)
                };
                for (die, at) in moves {
                    // Only what has not begun can move.
                    let moved = uses[die as usize];
                    assert!(moved.begins + moved.cells >= it.begins, "{moved:?} has asked");
                    ends[die as usize] = at;
                }
                ends[it.die as usize] = at.0;
            }
            assert_eq!(ends, in_turn(&uses), "{uses:?}");
        }
    }
}
