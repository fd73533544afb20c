//! A channel: command cycles and data transfers of its dies, one at a time.
//!
//! Data transfers are served first come, first served; [`Channel::interrupt`] and
//! [`Channel::wait_for_data`] are for commands that go before or behind them.
//!
//! A read requests its transfer when its cells are done, which is known when it begins. The
//! transfer is therefore reserved at that time, after those that will be requested earlier, and
//! moved if a program or a command takes the channel first. A read is then one event instead of
//! two, and ends when it would have ended with two (docs/design/event-core.md).

use prism_base::{Nanos, Ring, SimTime};

/// The order of requests: by time, at the same time by the die whose step makes the request.
pub(super) type RequestOrder = (SimTime, u32);

/// A reserved use of the channel: the transfer of a read whose cells are not done yet, or one that
/// may still be moved.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    requested: RequestOrder,
    duration: Nanos,
    ends: SimTime,
}

/// Stands for no die in the order of requests: behind all others of the same time.
const NO_DIE: u32 = u32::MAX;

/// The state of one channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    /// When all transfers that were requested so far are done; where commands interrupt them, when
    /// all that have begun are done.
    free: SimTime,
    /// Reserved transfers in the order in which they will be requested.
    reserved: Ring<Reservation>,
    /// When the last command that does not use [`Channel::occupy`] has been sent.
    commands_sent: SimTime,
    /// The die of the last transfer that has begun, where commands interrupt transfers.
    transferring: u32,
}

impl Channel {
    /// Takes the channel for `duration` as soon as it is free; returns when the transfer ends.
    /// Calls `moved` for each die whose reserved transfer now ends later: by how much, and when.
    #[inline(always)]
    pub(super) fn occupy(
        &mut self,
        duration: Nanos,
        now: RequestOrder,
        moved: impl FnMut(u32, Nanos, SimTime),
    ) -> SimTime {
        self.settle(now);
        self.free = now.0.max(self.free) + duration;
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
        moved: impl FnMut(u32, Nanos, SimTime),
    ) -> SimTime {
        self.settle(now);
        let before = match self.reserved.back() {
            Some(last) if last.requested > requested => {
                return self.reserve_between(duration, requested, self.free, moved);
            }
            Some(last) => last.ends,
            None => self.free,
        };
        let ends = requested.0.max(before) + duration;
        self.reserved.push_back(Reservation { requested, duration, ends });
        ends
    }

    /// Sends a command for `duration` at once, or after the commands that are being sent; returns
    /// when it has been sent. The transfer in progress is interrupted. `moved` as for
    /// [`Self::occupy`].
    pub(super) fn interrupt(
        &mut self,
        duration: Nanos,
        now: SimTime,
        mut moved: impl FnMut(u32, Nanos, SimTime),
    ) -> SimTime {
        self.begin_transfers(now);
        self.commands_sent = now.max(self.commands_sent) + duration;
        if self.free > now {
            self.free += duration;
            moved(self.transferring, duration, self.free);
        }
        self.follow(0, self.free.max(self.commands_sent), moved);
        self.commands_sent
    }

    /// As [`Self::reserve`], for the transfer of the die `requested.1` where commands interrupt
    /// transfers: until it ends, it may be moved.
    pub(super) fn reserve_interruptible(
        &mut self,
        duration: Nanos,
        requested: RequestOrder,
        now: SimTime,
        moved: impl FnMut(u32, Nanos, SimTime),
    ) -> SimTime {
        self.begin_transfers(now);
        self.reserve_between(duration, requested, self.free.max(self.commands_sent), moved)
    }

    /// Reserved transfers that have begun before `now` stay in order; their end may still move.
    fn begin_transfers(&mut self, now: SimTime) {
        while let Some(first) = self.reserved.front()
            && first.ends.0 - first.duration.0 < now.0
        {
            (self.free, self.transferring) = (first.ends, first.requested.1);
            self.reserved.pop_front();
        }
    }

    /// Sends a command, for `duration` with the data that follows it, as soon as earlier commands
    /// have been sent, the channel is free and no transfer waits for it; returns when it has been
    /// sent. Transfers that will be requested later are all known: they are those of reads whose
    /// commands were sent before.
    pub(super) fn wait_for_data(
        &mut self,
        duration: Nanos,
        now: RequestOrder,
        moved: impl FnMut(u32, Nanos, SimTime),
    ) -> SimTime {
        self.settle(now);
        let mut begins = now.0.max(self.free).max(self.commands_sent);
        for reserved in self.reserved.iter() {
            if reserved.requested.0 > begins {
                break;
            }
            begins = begins.max(reserved.ends);
        }
        self.commands_sent = begins + duration;
        if duration > Nanos::ZERO {
            self.reserve_between(duration, (begins, NO_DIE), self.free, moved);
        }
        self.commands_sent
    }

    /// As [`Self::reserve`], for a use that is requested before others that have reservations;
    /// `free` is when the channel is free for the first reservation.
    #[inline(never)]
    fn reserve_between(
        &mut self,
        duration: Nanos,
        requested: RequestOrder,
        free: SimTime,
        moved: impl FnMut(u32, Nanos, SimTime),
    ) -> SimTime {
        let behind = self.reserved.iter().rev().take_while(|it| it.requested >= requested);
        let place = self.reserved.len() - behind.count();
        let before = if place == 0 { free } else { self.reserved[place - 1].ends };
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
    fn follow(
        &mut self,
        place: usize,
        mut free: SimTime,
        mut moved: impl FnMut(u32, Nanos, SimTime),
    ) {
        for place in place..self.reserved.len() {
            let reserved = &mut self.reserved[place];
            let ends = reserved.requested.0.max(free) + reserved.duration;
            if ends == reserved.ends {
                // All later ones stay too.
                return;
            }
            let later = ends.since(reserved.ends);
            reserved.ends = ends;
            free = ends;
            moved(reserved.requested.1, later, ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

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
                let moved = |die: u32, _, at: SimTime| moves.push((die, at.0));
                let at = if it.cells == 0 {
                    channel.occupy(duration, now, moved)
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

    /// An operation of a die: command, then the array of a read (none of a program), then data.
    #[derive(Clone, Copy, Debug)]
    struct Operation {
        begins: u64,
        command: u64,
        array: Option<u64>,
        data: u64,
    }

    /// When the data of each operation has been transferred, nanosecond by nanosecond: at each, the
    /// channel continues or chooses anew.
    fn by_nanosecond(operations: &[Operation], commands_first: bool) -> Vec<u64> {
        let mut ends = vec![0; operations.len()];
        // Commands in order of request, and data with the time of its request.
        let mut commands: VecDeque<(usize, u64)> = VecDeque::new();
        let mut data: Vec<(u64, usize, u64)> = Vec::new();
        let mut busy = false;
        for now in 0.. {
            let begun = operations.iter().enumerate().filter(|(_, it)| it.begins == now);
            for (die, it) in begun {
                // A program is one use with its data, unless commands go first.
                let with = if commands_first || it.array.is_some() { 0 } else { it.data };
                commands.push_back((die, it.command + with));
            }
            data.sort_unstable();
            loop {
                let waits = data.first().is_some_and(|&(requested, ..)| requested <= now);
                let transfers = waits && (commands.is_empty() || !commands_first);
                if transfers && (commands_first || !busy) {
                    data[0].2 -= 1;
                    if data[0].2 == 0 {
                        ends[data.remove(0).1] = now + 1;
                    } else if !commands_first {
                        // Begun: it stays the first.
                        data[0].0 = 0;
                    }
                    break;
                }
                let Some((die, left)) = commands.front_mut() else { break };
                busy = *left > 1;
                let takes = u64::from(*left > 0);
                *left -= takes;
                if *left == 0 {
                    let (die, sent, it) = (*die, now + takes, operations[*die]);
                    commands.pop_front();
                    match it.array {
                        Some(array) => data.push((sent + array, die, it.data)),
                        None if commands_first => data.push((sent, die, it.data)),
                        None => ends[die] = sent,
                    }
                    data.sort_unstable();
                }
                if takes == 1 {
                    break;
                }
            }
            if now > operations.len() as u64 * 100 && commands.is_empty() && data.is_empty() {
                return ends;
            }
        }
        unreachable!("all operations end")
    }

    #[test]
    fn random_commands_before_and_behind_data_equal_a_model() {
        let mut rng = Rng::stream(seed(7), "arbitration");
        for round in 0..3000 {
            let commands_first = rng.chance(0.5);
            let least = u64::from(commands_first);
            let (command, mut begins) = (least + rng.below(6), 0);
            let mut operations = Vec::new();
            for _ in 0..2 + round % 20 {
                begins += rng.below(8);
                let array = rng.chance(0.7).then(|| 1 + rng.below(40));
                operations.push(Operation { begins, command, array, data: 1 + rng.below(15) });
            }
            let mut channel = Channel::default();
            let mut ends = vec![0; operations.len()];
            for (die, it) in operations.iter().enumerate() {
                let (die, now) = (die as u32, SimTime(it.begins));
                let (command, data) = (Nanos(it.command), Nanos(it.data));
                let array = Nanos(it.array.unwrap_or(0));
                let mut moves = Vec::new();
                let mut moved = |die: u32, _, at: SimTime| moves.push((die, at.0));
                let end = if commands_first {
                    let sent = channel.interrupt(command, now, &mut moved);
                    channel.reserve_interruptible(data, (sent + array, die), now, &mut moved)
                } else if it.array.is_some() {
                    let sent = channel.wait_for_data(command, (now, die), &mut moved);
                    channel.reserve(data, (sent + array, die), (now, die), &mut moved)
                } else {
                    channel.wait_for_data(command + data, (now, die), &mut moved)
                };
                for (die, at) in moves {
                    ends[die as usize] = at;
                }
                ends[die as usize] = end.0;
            }
            assert_eq!(ends, by_nanosecond(&operations, commands_first), "{operations:?}");
        }
    }
}
