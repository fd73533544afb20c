//! Holds writes back for a short time, so that adjacent writes merge and data that is
//! overwritten meanwhile is not written at all.
//!
//! A buffer in software could do the same, because the rewrite does not look ahead in the
//! trace. A write is held for at most the window. It is issued earlier if it has reached its
//! full size, if a flush or a write with FUA or a preflush follows, if a request reads,
//! discards or zeroes some of its bytes, or if the trace ends.

use std::collections::{BTreeMap, BTreeSet};

use prism_base::{Bytes, Nanos};
use prism_trace::{Op, OptTime, Record, Symbol};

use super::{HELD_MAX, Rewrite, after, is_barrier, issued_at, latency};

/// The ranges that a merged write may have.
#[derive(Clone, Copy, Debug)]
pub(in crate::what_if) enum Shape {
    /// Any range of at most this size.
    UpTo(Bytes),
    /// A range within one stripe, the area between two consecutive multiples of this size.
    /// Writes are cut at the multiples, and a whole stripe is issued at once.
    Stripes(Bytes),
}

/// The data in the last unit of a write after rounding it up to whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    /// Only data of the trace.
    None,
    /// Data of the trace, padded with the unit's previous data.
    Old,
}

/// Holds writes back and merges them.
pub(in crate::what_if) struct Merge {
    shape: Shape,
    window: Nanos,
    /// Writes are first padded to multiples of this size; 1 does not pad them.
    round: u64,
    /// Held writes by their first byte. They do not overlap.
    held: BTreeMap<u64, HeldWrite>,
    /// The deadlines of the held writes: (time, first byte).
    deadlines: BTreeSet<(i64, u64)>,
    last_ns: i64,
}

/// A write that is held back.
#[derive(Clone, Copy, Debug)]
struct HeldWrite {
    record: Record,
    deadline_ns: i64,
}

/// The attributes that two writes must share to be merged.
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

    /// Whether a range has reached the largest size.
    fn is_full(&self, start: u64, end: u64) -> bool {
        match self.shape {
            Shape::UpTo(most) | Shape::Stripes(most) => end - start >= most.0,
        }
    }

    /// First bytes of the held writes that overlap or touch a range, in descending order.
    fn near(&self, start: u64, end: u64) -> Vec<u64> {
        let before = self.held.range(..=end).rev();
        let near = before.take_while(|(_, held)| held.record.end() >= start);
        near.map(|(&first, _)| first).collect()
    }

    fn take(&mut self, first: u64) -> HeldWrite {
        let held = self.held.remove(&first).expect("a write that is held");
        self.deadlines.remove(&(held.deadline_ns, first));
        held
    }

    fn hold(&mut self, held: HeldWrite) {
        self.deadlines.insert((held.deadline_ns, held.record.offset));
        self.held.insert(held.record.offset, held);
    }

    /// Issues the held writes whose deadline has passed. If too many writes are held, also
    /// issues those with the earliest deadlines.
    fn release_due(&mut self, now_ns: i64, out: &mut Vec<Record>) {
        while let Some(&(deadline_ns, first)) = self.deadlines.first()
            && (deadline_ns <= now_ns || self.held.len() > HELD_MAX)
        {
            let held = self.take(first);
            out.push(issued_at(&held.record, deadline_ns.min(now_ns)));
        }
    }

    fn release_all(&mut self, now_ns: i64, out: &mut Vec<Record>) {
        while let Some(&(_, first)) = self.deadlines.first() {
            let held = self.take(first);
            out.push(issued_at(&held.record, now_ns));
        }
    }

    /// Issues the held writes that overlap a range.
    fn release_overlapping(&mut self, start: u64, end: u64, now_ns: i64, out: &mut Vec<Record>) {
        let mut firsts = self.near(start, end);
        firsts.retain(|&first| first < end && self.held[&first].record.end() > start);
        for first in firsts.into_iter().rev() {
            let held = self.take(first);
            out.push(issued_at(&held.record, now_ns));
        }
    }

    /// Holds a write, merged with the held writes that it touches. A write that ends with
    /// padding is held even if it has its full size, as the rest of its last unit may follow.
    fn write(&mut self, record: &Record, padding: Padding, out: &mut Vec<Record>) {
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
                // The held write is overwritten. The new write takes over its deadline.
                due_ns = due_ns.min(self.take(first).deadline_ns);
            } else if other.offset < record.end() && other.end() > record.offset {
                let held = self.take(first);
                out.push(issued_at(&held.record, now_ns));
            }
        }
        let mut merged = HeldWrite { record: *record, deadline_ns: due_ns };
        for first in joined.into_iter().rev() {
            merged = join(self.take(first), merged);
        }
        (merged.record.offset, merged.record.len) = (start, end - start);
        if padding == Padding::None && self.is_full(start, end) {
            out.push(issued_at(&merged.record, now_ns));
        } else {
            self.hold(merged);
        }
    }

    /// Cuts a write at the first and the last multiple of the stripe inside it.
    fn cut(&mut self, record: &Record, padding: Padding, out: &mut Vec<Record>) {
        let Shape::Stripes(size) = self.shape else { return self.write(record, padding, out) };
        let (start, end) = (record.offset, record.end());
        let first = start.next_multiple_of(size.0).min(end);
        // A last unit with padding stays in the tail, so that it is held.
        let whole = if padding == Padding::None { end } else { end - 1 };
        let last = (whole / size.0 * size.0).max(first);
        let head_padding = if first == end { padding } else { Padding::None };
        for (from, to, padding) in
            [(start, first, head_padding), (first, last, Padding::None), (last, end, padding)]
        {
            if from < to {
                self.write(&Record { offset: from, len: to - from, ..*record }, padding, out);
            }
        }
    }
}

/// Merges two held writes: the older one with the flags, the longer latency and the earlier
/// deadline of both. The caller sets the range.
fn join(older: HeldWrite, newer: HeldWrite) -> HeldWrite {
    let (a, b) = (&older.record, &newer.record);
    let longest = latency(a).zip(latency(b)).map(|(a, b)| a.max(b));
    let issue_ns = a.issue_ns.min(b.issue_ns);
    let complete = longest.map_or(OptTime::UNKNOWN, |span| OptTime::at(issue_ns + span));
    let record = Record { issue_ns, complete, flags: a.flags.with(b.flags), ..*a };
    HeldWrite { record, deadline_ns: older.deadline_ns.min(newer.deadline_ns) }
}

impl Rewrite for Merge {
    fn restart(&mut self) {
        debug_assert!(self.held.is_empty());
        self.last_ns = i64::MIN;
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        self.last_ns = record.issue_ns;
        self.release_due(record.issue_ns, out);
        let mut record = *record;
        let mut padding = Padding::None;
        if record.op == Op::Write {
            let end = record.end().next_multiple_of(self.round);
            if end > record.end() {
                padding = Padding::Old;
            }
            record.offset -= record.offset % self.round;
            record.len = end - record.offset;
        }
        if is_barrier(&record) {
            self.release_all(record.issue_ns, out);
            out.push(record);
        } else if record.op == Op::Write && record.len > 0 {
            self.cut(&record, padding, out);
        } else {
            self.release_overlapping(record.offset, record.end(), record.issue_ns, out);
            out.push(record);
        }
    }

    fn finish(&mut self, out: &mut Vec<Record>) {
        self.release_all(self.last_ns, out);
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
    fn adjacent_writes_merge_until_the_window_ends() {
        check("0 w 0+4; 1 w 4+4; 50 r 64+4", "10 w 0+8; 50 r 64+4");
        // The order of the writes does not matter, and a gap can be filled later.
        check("0 w 8+4; 1 w 0+4; 2 w 4+4; 50 r 64+4", "10 w 0+12; 50 r 64+4");
        // Writes that are not adjacent stay separate, each with its own window.
        check("0 w 0+4; 1 w 8+4; 50 r 64+4", "10 w 0+4; 11 w 8+4; 50 r 64+4");
        // A write at the very end of the window does not merge.
        check("0 w 0+4; 10 w 4+4; 50 r 64+4", "10 w 0+4; 20 w 4+4; 50 r 64+4");
        // At the end of the trace, all held writes are issued.
        check("0 w 0+4; 1 w 4+4", "1 w 0+8");
    }

    #[test]
    fn overwritten_data_is_not_written() {
        check("0 w 0+4; 1 w 0+4; 2 w 0+4", "2 w 0+4");
        check("0 w 0+4; 1 w 2+4; 2 r 64+4", "2 r 64+4; 2 w 0+6");
        // The same if the new write is too large to be held.
        check("0 w 4+4; 1 w 0+64", "1 w 0+64");
        check("0 w 60+8; 1 w 0+64", "1 w 60+8; 1 w 0+64");
    }

    #[test]
    fn a_write_of_full_size_is_issued_at_once() {
        check("0 w 0+16; 1 w 16+16; 2 w 32+4", "1 w 0+32; 2 w 32+4");
        check("0 w 0+20; 1 w 20+20", "1 w 0+20; 1 w 20+20");
        // If the merged write would be too large, the older one is issued first.
        check("0 w 0+20; 1 w 16+20; 2 f", "1 w 0+20; 2 w 16+20; 2 f");
    }

    #[test]
    fn held_writes_do_not_pass_a_barrier_or_an_access_to_their_bytes() {
        check("0 w 0+4; 1 f; 2 w 4+4", "1 w 0+4; 1 f; 2 w 4+4");
        check("0 w 0+4; 1 w! 8+4; 2 w 4+4", "1 w 0+4; 1 w! 8+4; 2 w 4+4");
        check("0 w 0+4; 1 w^ 4+4", "1 w 0+4; 1 w^ 4+4");
        check("0 w 0+4; 1 r 2+4; 2 w 4+4", "1 w 0+4; 1 r 2+4; 2 w 4+4");
        check("0 w 0+4; 1 d 0+4; 2 w 0+4", "1 w 0+4; 1 d 0+4; 2 w 0+4");
        check("0 w 0+4; 1 z 0+4; 2 w 4+4", "1 w 0+4; 1 z 0+4; 2 w 4+4");
        // A read of other bytes does not release the write.
        check("0 w 0+4; 1 r 4+4; 2 w 4+4", "1 r 4+4; 2 w 0+8");
    }

    #[test]
    fn writes_of_different_streams_do_not_merge() {
        check("0 w 0+4#1; 1 w 4+4#2", "1 w 0+4#1; 1 w 4+4#2");
        check("0 w 0+4#1; 1 w 0+4#2", "1 w 0+4#2");
        check("0 w 0+8#1; 1 w 0+4#2", "1 w 0+8#1; 1 w 0+4#2");
    }

    #[test]
    fn writes_are_cut_and_joined_to_stripes() {
        let check = |to: u64, trace: &str, expected: &str| {
            let shape = Shape::Stripes(Bytes(to * KIB));
            let merge = Merge::new(shape, Nanos(10_000_000), Bytes(4 * KIB));
            testing::check(merge, trace, expected);
        };
        // A partial unit is padded. It is held if its last bytes were not written.
        check(4, "0 w 1+3; 1 w 6+2; 2 w 8+8", "0 w 0+4; 1 w 4+4; 2 w 8+8");
        check(4, "0 w 0+2; 1 w 2+2; 2 w 16+2; 50 r 64+4", "1 w 0+4; 12 w 16+4; 50 r 64+4");
        check(4, "0 w 0+6; 1 w 6+2", "0 w 0+4; 1 w 4+4");
        // A stripe of 16 KiB is issued when it is complete; an incomplete one is held.
        check(16, "0 w 0+8; 1 w 8+8; 2 w 16+8; 50 r 64+4", "1 w 0+16; 12 w 16+8; 50 r 64+4");
        // A large write is cut into head, whole stripes, and tail.
        check(16, "0 w 12+40; 1 w 52+12", "0 w 16+32; 1 w 48+16; 1 w 12+4");
        check(16, "0 w 4+4; 1 w 0+32", "1 w 0+32");
        // Partial units are padded before they are joined.
        check(16, "0 w 0.5+1; 1 f", "1 w 0+4; 1 f");
        check(16, "0 w 0+8; 1 w 8+6; 2 w 14+2; 3 f", "2 w 0+16; 3 f");
        check(16, "0 w 0+30; 1 w 30+2; 2 f", "0 w 0+16; 1 w 16+16; 2 f");
        // Writes in adjacent stripes do not merge.
        check(16, "0 w 12+4; 1 w 16+4; 2 f", "2 w 12+4; 2 w 16+4; 2 f");
    }

    #[test]
    fn a_merged_write_has_the_latency_of_its_slowest_part() {
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
