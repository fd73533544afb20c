//! Writes held back for a while, so that neighbours become one and what is overwritten
//! meanwhile is not written at all.
//!
//! This is what a buffer in software would do, so it knows nothing of the future: a write
//! waits for at most the window, and leaves earlier when it has grown to its full size, when
//! a flush or a write with FUA asks for durability, when somebody reads, discards or zeroes
//! bytes of it, or when the trace ends.

use std::collections::{BTreeMap, BTreeSet};

use prism_base::{Bytes, Nanos};
use prism_trace::{Op, OptTime, Record, Symbol};

use super::{HELD_MAX, Rewrite, after, is_barrier, issued_at, service};

/// What a merged write may be.
#[derive(Clone, Copy, Debug)]
pub(in crate::what_if) enum Shape {
    /// Any range of at most so many bytes.
    UpTo(Bytes),
    /// Nothing beyond the multiples of so many bytes on both sides: writes are cut there,
    /// and whole stripes leave at once.
    Stripes(Bytes),
}

/// What stands at the end of a write that was rounded out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    /// The trace's own data.
    None,
    /// What the unit held before.
    Old,
}

/// Holds writes back and merges them.
pub(in crate::what_if) struct Merge {
    shape: Shape,
    window: Nanos,
    /// Writes are rounded out to multiples of this first; 1 leaves them as they are.
    round: u64,
    /// Writes held, by their first byte; they do not overlap.
    held: BTreeMap<u64, Held>,
    /// When they have to leave: (time, first byte).
    deadlines: BTreeSet<(i64, u64)>,
    last_ns: i64,
}

/// A write that waits for others.
#[derive(Clone, Copy, Debug)]
struct Held {
    record: Record,
    deadline_ns: i64,
}

/// What has to be the same for two writes to become one.
fn kind(record: &Record) -> (Symbol, u16, u8, Symbol) {
    (record.device, record.stream, record.hint, record.phase)
}

impl Merge {
    /// `round` is 1 or the size of a mapping unit.
    pub(in crate::what_if) fn new(shape: Shape, window: Nanos, round: Bytes) -> Self {
        Self {
            shape,
            window,
            round: round.0.max(1),
            held: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            last_ns: i64::MIN,
        }
    }

    fn fits(&self, start: u64, end: u64) -> bool {
        match self.shape {
            Shape::UpTo(most) => end - start <= most.0,
            Shape::Stripes(size) => start / size.0 == (end - 1) / size.0,
        }
    }

    /// Whether a range can grow no further.
    fn is_full(&self, start: u64, end: u64) -> bool {
        match self.shape {
            Shape::UpTo(most) | Shape::Stripes(most) => end - start >= most.0,
        }
    }

    /// First bytes of held writes that overlap or touch a range, from the last one back.
    fn near(&self, start: u64, end: u64) -> Vec<u64> {
        let before = self.held.range(..=end).rev();
        let near = before.take_while(|(_, held)| held.record.end() >= start);
        near.map(|(&first, _)| first).collect()
    }

    fn take(&mut self, first: u64) -> Held {
        let held = self.held.remove(&first).expect("a write that is held");
        self.deadlines.remove(&(held.deadline_ns, first));
        held
    }

    fn hold(&mut self, held: Held) {
        self.deadlines.insert((held.deadline_ns, held.record.offset));
        self.held.insert(held.record.offset, held);
    }

    /// Lets go what has waited long enough, and the oldest if there are too many.
    fn let_go_due(&mut self, now_ns: i64, out: &mut Vec<Record>) {
        while let Some(&(deadline_ns, first)) = self.deadlines.first()
            && (deadline_ns <= now_ns || self.held.len() > HELD_MAX)
        {
            let held = self.take(first);
            out.push(issued_at(&held.record, deadline_ns.min(now_ns)));
        }
    }

    fn let_go_all(&mut self, now_ns: i64, out: &mut Vec<Record>) {
        while let Some(&(_, first)) = self.deadlines.first() {
            let held = self.take(first);
            out.push(issued_at(&held.record, now_ns));
        }
    }

    /// Lets go what holds bytes of a range.
    fn let_go_overlapping(&mut self, start: u64, end: u64, now_ns: i64, out: &mut Vec<Record>) {
        let mut first_ones = self.near(start, end);
        first_ones.retain(|&first| first < end && self.held[&first].record.end() > start);
        for first in first_ones.into_iter().rev() {
            let held = self.take(first);
            out.push(issued_at(&held.record, now_ns));
        }
    }

    /// Holds a write, alone or with those it touches. One that ends with padding waits for
    /// the rest even if it could not be larger.
    fn write(&mut self, record: &Record, end_is: Padding, out: &mut Vec<Record>) {
        let now_ns = record.issue_ns;
        let (mut start, mut end) = (record.offset, record.end());
        let mut due_ns = after(now_ns, self.window);
        let mut joined = Vec::new();
        for first in self.near(start, end) {
            let other = self.held[&first].record;
            let (low, high) = (start.min(other.offset), end.max(other.end()));
            if kind(&other) == kind(record) && self.fits(low, high) {
                (start, end) = (low, high);
                joined.push(first);
            } else if other.offset >= record.offset && other.end() <= record.end() {
                // Overwritten before it was written; what replaces it is due when it was.
                due_ns = due_ns.min(self.take(first).deadline_ns);
            } else if other.offset < record.end() && other.end() > record.offset {
                let held = self.take(first);
                out.push(issued_at(&held.record, now_ns));
            }
        }
        let mut merged = Held { record: *record, deadline_ns: due_ns };
        for first in joined.into_iter().rev() {
            merged = join(self.take(first), merged);
        }
        (merged.record.offset, merged.record.len) = (start, end - start);
        if end_is == Padding::None && self.is_full(start, end) {
            out.push(issued_at(&merged.record, now_ns));
        } else {
            self.hold(merged);
        }
    }

    /// Cuts a write at the first and the last multiple of the stripe inside it.
    fn cut(&mut self, record: &Record, end_is: Padding, out: &mut Vec<Record>) {
        let Shape::Stripes(size) = self.shape else { return self.write(record, end_is, out) };
        let (start, end) = (record.offset, record.end());
        let first = start.next_multiple_of(size.0).min(end);
        // What waits for its rest is within one stripe.
        let whole = if end_is == Padding::None { end } else { end - 1 };
        let last = (whole / size.0 * size.0).max(first);
        let head_is = if first == end { end_is } else { Padding::None };
        for (from, to, end_is) in
            [(start, first, head_is), (first, last, Padding::None), (last, end, end_is)]
        {
            if from < to {
                self.write(&Record { offset: from, len: to - from, ..*record }, end_is, out);
            }
        }
    }
}

/// The older of two writes with what it has to know of the newer one.
fn join(older: Held, newer: Held) -> Held {
    let (a, b) = (&older.record, &newer.record);
    let longest = service(a).zip(service(b)).map(|(a, b)| a.max(b));
    let issue_ns = a.issue_ns.min(b.issue_ns);
    let complete = longest.map_or(OptTime::UNKNOWN, |span| OptTime::at(issue_ns + span));
    let record = Record { issue_ns, complete, flags: a.flags.with(b.flags), ..*a };
    Held { record, deadline_ns: older.deadline_ns.min(newer.deadline_ns) }
}

impl Rewrite for Merge {
    fn restart(&mut self) {
        debug_assert!(self.held.is_empty());
        self.last_ns = i64::MIN;
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        self.last_ns = record.issue_ns;
        self.let_go_due(record.issue_ns, out);
        let mut record = *record;
        let mut end_is = Padding::None;
        if record.op == Op::Write {
            let end = record.end().next_multiple_of(self.round);
            if end > record.end() {
                end_is = Padding::Old;
            }
            record.offset -= record.offset % self.round;
            record.len = end - record.offset;
        }
        if is_barrier(&record) {
            self.let_go_all(record.issue_ns, out);
            out.push(record);
        } else if record.op == Op::Write && record.len > 0 {
            self.cut(&record, end_is, out);
        } else {
            self.let_go_overlapping(record.offset, record.end(), record.issue_ns, out);
            out.push(record);
        }
    }

    fn finish(&mut self, out: &mut Vec<Record>) {
        self.let_go_all(self.last_ns, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    const KIB: u64 = 1024;

    fn check(trace: &str, expected: &str) {
        let shape = Shape::UpTo(Bytes(32 * KIB));
        testing::check(Merge::new(shape, Nanos(10_000_000), Bytes(1)), trace, expected);
    }

    #[test]
    fn neighbours_become_one_when_the_first_has_waited_long_enough() {
        check("0 w 0+4; 1 w 4+4; 50 r 64+4", "10 w 0+8; 50 r 64+4");
        // In any order, and with a gap that is filled later.
        check("0 w 8+4; 1 w 0+4; 2 w 4+4; 50 r 64+4", "10 w 0+12; 50 r 64+4");
        // Not with what is not near, and each after its own wait.
        check("0 w 0+4; 1 w 8+4; 50 r 64+4", "10 w 0+4; 11 w 8+4; 50 r 64+4");
        // The one that comes when the time is up is too late.
        check("0 w 0+4; 10 w 4+4; 50 r 64+4", "10 w 0+4; 20 w 4+4; 50 r 64+4");
        // The trace ends: nothing waits beyond its last record.
        check("0 w 0+4; 1 w 4+4", "1 w 0+8");
    }

    #[test]
    fn what_is_overwritten_is_not_written() {
        check("0 w 0+4; 1 w 0+4; 2 w 0+4", "2 w 0+4");
        check("0 w 0+4; 1 w 2+4; 2 r 64+4", "2 r 64+4; 2 w 0+6");
        // Also by a write that is too large to wait.
        check("0 w 4+4; 1 w 0+64", "1 w 0+64");
        check("0 w 60+8; 1 w 0+64", "1 w 60+8; 1 w 0+64");
    }

    #[test]
    fn a_full_write_leaves_at_once_and_none_grows_beyond() {
        check("0 w 0+16; 1 w 16+16; 2 w 32+4", "1 w 0+32; 2 w 32+4");
        check("0 w 0+20; 1 w 20+20", "1 w 0+20; 1 w 20+20");
        // What cannot grow over it makes way for newer data.
        check("0 w 0+20; 1 w 16+20; 2 f", "1 w 0+20; 2 w 16+20; 2 f");
    }

    #[test]
    fn nothing_passes_a_barrier_or_an_access_to_its_bytes() {
        check("0 w 0+4; 1 f; 2 w 4+4", "1 w 0+4; 1 f; 2 w 4+4");
        check("0 w 0+4; 1 w! 8+4; 2 w 4+4", "1 w 0+4; 1 w! 8+4; 2 w 4+4");
        check("0 w 0+4; 1 w^ 4+4", "1 w 0+4; 1 w^ 4+4");
        check("0 w 0+4; 1 r 2+4; 2 w 4+4", "1 w 0+4; 1 r 2+4; 2 w 4+4");
        check("0 w 0+4; 1 d 0+4; 2 w 0+4", "1 w 0+4; 1 d 0+4; 2 w 0+4");
        check("0 w 0+4; 1 z 0+4; 2 w 4+4", "1 w 0+4; 1 z 0+4; 2 w 4+4");
        // Others pass by.
        check("0 w 0+4; 1 r 4+4; 2 w 4+4", "1 r 4+4; 2 w 0+8");
    }

    #[test]
    fn only_the_same_kind_merges() {
        check("0 w 0+4#1; 1 w 4+4#2", "1 w 0+4#1; 1 w 4+4#2");
        check("0 w 0+4#1; 1 w 0+4#2", "1 w 0+4#2");
        check("0 w 0+8#1; 1 w 0+4#2", "1 w 0+8#1; 1 w 0+4#2");
    }

    #[test]
    fn stripes_are_filled_and_cut() {
        let check = |to: u64, trace: &str, expected: &str| {
            let shape = Shape::Stripes(Bytes(to * KIB));
            let merge = Merge::new(shape, Nanos(10_000_000), Bytes(4 * KIB));
            testing::check(merge, trace, expected);
        };
        // A unit is rounded out, and waits for its rest if it was not written to its end.
        check(4, "0 w 1+3; 1 w 6+2; 2 w 8+8", "0 w 0+4; 1 w 4+4; 2 w 8+8");
        check(4, "0 w 0+2; 1 w 2+2; 2 w 16+2; 50 r 64+4", "1 w 0+4; 12 w 16+4; 50 r 64+4");
        check(4, "0 w 0+6; 1 w 6+2", "0 w 0+4; 1 w 4+4");
        // Stripes of 16 KiB leave when whole; the rest waits.
        check(16, "0 w 0+8; 1 w 8+8; 2 w 16+8; 50 r 64+4", "1 w 0+16; 12 w 16+8; 50 r 64+4");
        // A large write is cut into head, whole stripes, and tail.
        check(16, "0 w 12+40; 1 w 52+12", "0 w 16+32; 1 w 48+16; 1 w 12+4");
        check(16, "0 w 4+4; 1 w 0+32", "1 w 0+32");
        // Partial units are rounded out before they are put together.
        check(16, "0 w 0.5+1; 1 f", "1 w 0+4; 1 f");
        check(16, "0 w 0+8; 1 w 8+6; 2 w 14+2; 3 f", "2 w 0+16; 3 f");
        check(16, "0 w 0+30; 1 w 30+2; 2 f", "0 w 0+16; 1 w 16+16; 2 f");
        // Stripes that touch stay two.
        check(16, "0 w 12+4; 1 w 16+4; 2 f", "2 w 12+4; 2 w 16+4; 2 f");
    }

    #[test]
    fn a_merged_write_is_served_as_long_as_its_slowest_part() {
        let mut merge = Merge::new(Shape::UpTo(Bytes(1 << 20)), Nanos(10), Bytes(1));
        let record = |at, offset, done| Record {
            complete: OptTime::at(done),
            ..Record::new(Op::Write, at, offset, 4096)
        };
        let mut out = Vec::new();
        merge.push(&record(0, 0, 7), &mut out);
        merge.push(&record(2, 4096, 5), &mut out);
        merge.push(&Record::new(Op::Read, 100, 1 << 20, 512), &mut out);
        assert_eq!((out[0].issue_ns, out[0].complete, out[0].len), (10, OptTime::at(17), 8192));
    }
}
