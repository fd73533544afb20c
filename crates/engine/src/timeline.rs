//! Completion times of flash operations: reservations of dies and channels, for callers that change
//! their state at once and need the time that it would have taken.
//!
//! Callers with clocks of their own share a [`Timeline`] and may request operations out of order in
//! time. An operation gets the earliest time, not before it is ready, at which its die and its
//! channel are free for as long as it needs them; earlier reservations are never moved. A gap is
//! therefore filled by the first request that fits, and no operation waits for one that is
//! requested later.
//!
//! A die is occupied from the first cycle of a command to the end of the operation, including the
//! transfer of a read. A channel is occupied for command cycles and transfers.

use std::collections::VecDeque;

use prism_base::{Bytes, Nanos, SimTime};
use prism_nand::Timing;

/// The time from the first cycle of a command to the end of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the command begins.
    pub begin: SimTime,
    /// When the operation is done: the data of a read is transferred, the die is ready after a
    /// program or erase.
    pub end: SimTime,
}

/// The times of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// When the command begins.
    pub begin: SimTime,
    /// When the data has left the caller's buffer.
    pub sent: SimTime,
    /// When the cells are programmed.
    pub end: SimTime,
}

/// Reservations of the dies and channels of a device. Die *d* is on channel *d* modulo the number
/// of channels.
#[derive(Clone, Debug)]
pub struct Timeline {
    timing: Timing,
    channels: Vec<Busy>,
    dies: Vec<Busy>,
    /// Reservations that ended before this time are forgotten.
    horizon: SimTime,
}

/// The reservations of one resource: spans in order, neither overlapping nor adjacent.
#[derive(Clone, Debug, Default)]
struct Busy {
    spans: VecDeque<Span>,
    /// The end of the last span ever reserved.
    end: SimTime,
}

impl Busy {
    /// The earliest time from `ready` on at which it is free for `length`; `ready` for length 0.
    fn fit(&self, ready: SimTime, length: Nanos) -> SimTime {
        if ready >= self.end || length == Nanos::ZERO {
            return ready;
        }
        let first = self.spans.partition_point(|span| span.end <= ready);
        let mut at = ready;
        for span in self.spans.range(first..) {
            if at + length <= span.begin {
                return at;
            }
            at = span.end;
        }
        at
    }

    /// The end of the first span that overlaps the time from `begin` to `end`.
    fn in_the_way(&self, begin: SimTime, end: SimTime) -> Option<SimTime> {
        if begin >= self.end {
            return None;
        }
        let first = self.spans.partition_point(|span| span.end <= begin);
        self.spans.get(first).filter(|span| span.begin < end).map(|span| span.end)
    }

    /// Reserves `length` from `begin` on, which is free.
    fn reserve(&mut self, begin: SimTime, length: Nanos) {
        let span = Span { begin, end: begin + length };
        if length == Nanos::ZERO {
            return;
        }
        if begin > self.end || self.spans.is_empty() {
            self.spans.push_back(span);
        } else {
            self.insert(span);
        }
        self.end = self.end.max(span.end);
    }

    fn insert(&mut self, span: Span) {
        let after = self.spans.partition_point(|other| other.begin < span.begin);
        let free_before = after == 0 || self.spans[after - 1].end <= span.begin;
        let free_after = self.spans.get(after).is_none_or(|next| span.end <= next.begin);
        assert!(free_before && free_after, "{span:?} is reserved");
        let joins_next = self.spans.get(after).is_some_and(|next| next.begin == span.end);
        if after > 0 && self.spans[after - 1].end == span.begin {
            self.spans[after - 1].end = span.end;
            if joins_next {
                self.spans[after - 1].end = self.spans[after].end;
                self.spans.remove(after);
            }
        } else if joins_next {
            self.spans[after].begin = span.begin;
        } else {
            self.spans.insert(after, span);
        }
    }

    fn forget_before(&mut self, now: SimTime) {
        while self.spans.front().is_some_and(|span| span.end <= now) {
            self.spans.pop_front();
        }
    }
}

impl Timeline {
    /// A timeline for this many channels and dies, without reservations.
    ///
    /// # Panics
    /// If there is no channel.
    #[must_use]
    pub fn new(channels: u32, dies: u32, timing: Timing) -> Self {
        assert!(channels > 0, "a die needs a channel");
        Self {
            timing,
            channels: vec![Busy::default(); channels as usize],
            dies: vec![Busy::default(); dies as usize],
            horizon: SimTime::ZERO,
        }
    }

    /// Reads `bytes` of page number `page` of a block: command, tR, then the transfer, which may
    /// have to wait for the channel.
    ///
    /// # Panics
    /// If the die does not exist, or `ready` is before the time of the last
    /// [`Timeline::forget_before`]. This holds for all operations.
    pub fn read(&mut self, die: u32, page: u32, bytes: Bytes, ready: SimTime) -> Span {
        self.check(ready);
        let cells = self.timing.t_command + self.timing.t_read.of(page);
        let transfer = self.timing.transfer(bytes);
        let mut from = ready;
        let (begin, out) = loop {
            let begin = self.fit(die, from, self.timing.t_command, cells + transfer);
            let out = self.channel(die).fit(begin + cells, transfer);
            // If the transfer waits for the channel, the die may be reserved before it ends. A
            // later begin does not end earlier, so try again after that reservation.
            match self.dies[die as usize].in_the_way(begin, out + transfer) {
                Some(end) => from = end,
                None => break (begin, out),
            }
        };
        let end = out + transfer;
        self.dies[die as usize].reserve(begin, end.since(begin));
        let command = self.timing.t_command;
        let channel = self.channel(die);
        channel.reserve(begin, command);
        channel.reserve(out, transfer);
        Span { begin, end }
    }

    /// Programs `bytes` into page number `page` of a block: command and transfer, then tPROG.
    pub fn program(&mut self, die: u32, page: u32, bytes: Bytes, ready: SimTime) -> Program {
        self.check(ready);
        let on_channel = self.timing.t_command + self.timing.transfer(bytes);
        let whole = on_channel + self.timing.t_program.of(page);
        let Span { begin, end } = self.take(die, ready, on_channel, whole);
        Program { begin, sent: begin + on_channel, end }
    }

    /// Erases a block: command, then tBERS.
    pub fn erase(&mut self, die: u32, ready: SimTime) -> Span {
        self.check(ready);
        self.take(die, ready, self.timing.t_command, self.timing.t_command + self.timing.t_erase)
    }

    /// Forgets reservations that ended by `now`. Later operations must not be ready before `now`.
    /// If all clocks advance and this is called regularly, memory is bounded by the reservations
    /// after `now`.
    pub fn forget_before(&mut self, now: SimTime) {
        self.dies.iter_mut().chain(&mut self.channels).for_each(|busy| busy.forget_before(now));
        self.horizon = self.horizon.max(now);
    }

    fn channel(&mut self, die: u32) -> &mut Busy {
        let channel = die % self.channels.len() as u32;
        &mut self.channels[channel as usize]
    }

    fn check(&self, ready: SimTime) {
        assert!(ready >= self.horizon, "{ready:?} is before the last forget_before");
    }

    /// The earliest time from `ready` on at which the channel is free for `on_channel` and the die
    /// for `whole`.
    fn fit(&mut self, die: u32, ready: SimTime, on_channel: Nanos, whole: Nanos) -> SimTime {
        let mut at = ready;
        loop {
            let begin = self.dies[die as usize].fit(at, whole);
            at = self.channel(die).fit(begin, on_channel);
            if at == begin {
                return at;
            }
        }
    }

    fn take(&mut self, die: u32, ready: SimTime, on_channel: Nanos, whole: Nanos) -> Span {
        let begin = self.fit(die, ready, on_channel, whole);
        self.channel(die).reserve(begin, on_channel);
        self.dies[die as usize].reserve(begin, whole);
        Span { begin, end: begin + whole }
    }
}

#[cfg(test)]
mod tests {
    use prism_nand::PageTimes;

    use super::*;

    fn spans(busy: &Busy) -> Vec<(u64, u64)> {
        busy.spans.iter().map(|span| (span.begin.0, span.end.0)).collect()
    }

    #[test]
    fn adjacent_spans_are_merged() {
        let mut busy = Busy::default();
        for (begin, length) in [(10, 5), (20, 5), (30, 5), (40, 5), (3, 0)] {
            busy.reserve(SimTime(begin), Nanos(length));
        }
        assert_eq!(spans(&busy), [(10, 15), (20, 25), (30, 35), (40, 45)]);
        busy.reserve(SimTime(15), Nanos(5));
        busy.reserve(SimTime(27), Nanos(3));
        busy.reserve(SimTime(45), Nanos(1));
        busy.reserve(SimTime(35), Nanos(1));
        assert_eq!(spans(&busy), [(10, 25), (27, 36), (40, 46)]);
        busy.forget_before(SimTime(25));
        assert_eq!(spans(&busy), [(27, 36), (40, 46)]);
    }

    #[test]
    fn memory_is_bounded_by_future_reservations() {
        let timing = Timing {
            t_read: PageTimes::uniform(Nanos(50)),
            t_program: PageTimes::uniform(Nanos(300)),
            t_erase: Nanos(1000),
            t_command: Nanos(1),
            bus_bytes_per_second: Some(1_000_000_000),
        };
        let mut timeline = Timeline::new(2, 4, timing);
        for round in 0..20_000_u32 {
            let now = SimTime(u64::from(round) * 500);
            timeline.forget_before(now);
            timeline.read(round % 4, round, Bytes(20), now + Nanos(u64::from(round % 7) * 100));
            let dies = timeline.dies.iter().map(|die| die.spans.len());
            let most = dies.chain(timeline.channels.iter().map(|busy| busy.spans.len())).max();
            assert!(most < Some(8), "round {round}: {most:?}");
        }
    }
}
