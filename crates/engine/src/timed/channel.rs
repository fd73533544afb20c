//! A channel, reserved first come, first served.
//!
//! A read requests its transfer when its cells are done, which is known when it begins. The
//! transfer is therefore reserved at that time, after those that will be requested earlier, and
//! moved if a program or a command takes the channel first. A read is then one event instead of
//! two, and ends when it would have ended with two (docs/design/event-core.md).

use prism_base::{Nanos, Ring, SimTime};

/// The order of requests: by time, at the same time by the die whose step makes the request.
pub(super) type RequestOrder = (SimTime, u32);

/// The reserved transfer of a read whose cells are not done yet.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    requested: RequestOrder,
    duration: Nanos,
    ends: SimTime,
}

/// The state of one channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    /// When all transfers that were requested so far are done.
    free: SimTime,
    /// Reserved transfers in the order in which they will be requested.
    reserved: Ring<Reservation>,
}

impl Channel {
    /// Takes the channel for `duration` as soon as it is free, and not before `from`; returns when
    /// the transfer ends. Calls `moved` for each die whose reserved transfer now ends at another
    /// time.
    #[inline(always)]
    pub(super) fn occupy(
        &mut self,
        duration: Nanos,
        from: SimTime,
        now: RequestOrder,
        moved: impl FnMut(u32, SimTime),
    ) -> SimTime {
        self.settle(now);
        self.free = from.max(self.free) + duration;
        self.follow(0, self.free, moved);
        self.free
    }

    /// Reserves the channel for a read that will request it at `requested`, not before `now`;
    /// returns when its transfer ends if the reservation is not moved. `moved` as for
    /// [`Self::occupy`].
    #[inline(always)]
    pub(super) fn reserve(
        &mut self,
        duration: Nanos,
        requested: RequestOrder,
        now: RequestOrder,
        moved: impl FnMut(u32, SimTime),
    ) -> SimTime {
        self.settle(now);
        let before = match self.reserved.back() {
            Some(last) if last.requested > requested => {
                return self.reserve_between(duration, requested, moved);
            }
            Some(last) => last.ends,
            None => self.free,
        };
        let ends = requested.0.max(before) + duration;
        self.reserved.push_back(Reservation { requested, duration, ends });
        ends
    }

    /// As [`Self::reserve`], for a read that requests the channel before others that have
    /// reservations.
    #[inline(never)]
    fn reserve_between(
        &mut self,
        duration: Nanos,
        requested: RequestOrder,
        moved: impl FnMut(u32, SimTime),
    ) -> SimTime {
        let behind = self.reserved.iter().rev().take_while(|it| it.requested >= requested);
        let place = self.reserved.len() - behind.count();
        let before = if place == 0 { self.free } else { self.reserved[place - 1].ends };
        let ends = requested.0.max(before) + duration;
        self.reserved.insert(place, Reservation { requested, duration, ends });
        self.follow(place + 1, ends, moved);
        ends
    }

    /// Reserved transfers whose request time has come become final.
    #[inline(always)]
    fn settle(&mut self, now: RequestOrder) {
        while let Some(first) = self.reserved.front()
            && first.requested < now
        {
            self.free = first.ends;
            self.reserved.pop_front();
        }
    }

    /// Moves the reservations from index `place` on, which start at `free` or later.
    #[inline(always)]
    fn follow(&mut self, place: usize, mut free: SimTime, mut moved: impl FnMut(u32, SimTime)) {
        for place in place..self.reserved.len() {
            let reserved = &mut self.reserved[place];
            let ends = reserved.requested.0.max(free) + reserved.duration;
            if ends == reserved.ends {
                // All later ones stay too.
                return;
            }
            reserved.ends = ends;
            free = ends;
            moved(reserved.requested.1, ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use prism_testkit::seed;

    use super::*;

    /// A use of a channel: a read that requests its transfer after some time in the cells, or a
    /// transfer requested at once.
    #[derive(Clone, Copy, Debug)]
    struct Use {
        begins: u64,
        cells: u64,
        duration: u64,
        die: u32,
    }

    /// The end of each transfer if they are served in the order of requests.
    fn first_come_first_served(uses: &[Use]) -> Vec<u64> {
        let mut order: Vec<usize> = (0..uses.len()).collect();
        order.sort_by_key(|&i| (uses[i].begins + uses[i].cells, uses[i].die));
        let (mut ends, mut free) = (vec![0; uses.len()], 0);
        for i in order {
            free = free.max(uses[i].begins + uses[i].cells) + uses[i].duration;
            ends[i] = free;
        }
        ends
    }

    #[test]
    fn random_reservations_equal_first_come_first_served() {
        let mut rng = Rng::stream(seed(5), "channel");
        for round in 0..2000 {
            let mut uses = Vec::new();
            let mut begins = 0;
            for die in 0..2 + round % 40 {
                begins += rng.below(12);
                let cells = if rng.chance(0.6) { 1 + rng.below(40) } else { 0 };
                uses.push(Use { begins, cells, duration: 1 + rng.below(15), die });
            }
            let mut channel = Channel::default();
            let mut ends = vec![0; uses.len()];
            for it in &uses {
                let (duration, now) = (Nanos(it.duration), (SimTime(it.begins), it.die));
                let mut moves = Vec::new();
                let moved = |die: u32, at: SimTime| moves.push((die, at.0));
                let at = if it.cells == 0 {
                    channel.occupy(duration, now.0, now, moved)
                } else {
                    let requested = (SimTime(it.begins + it.cells), it.die);
                    channel.reserve(duration, requested, now, moved)
                };
                for (die, at) in moves {
                    // Only transfers that were not requested yet can move.
                    let moved = uses[die as usize];
                    assert!(moved.begins + moved.cells >= it.begins, "{moved:?} was requested");
                    ends[die as usize] = at;
                }
                ends[it.die as usize] = at.0;
            }
            assert_eq!(ends, first_come_first_served(&uses), "{uses:?}");
        }
    }
}
