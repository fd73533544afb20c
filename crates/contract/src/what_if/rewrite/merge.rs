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

    /// Holds a write, alone or with those it touches.
    fn write(&mut self, record: &Record, out: &mut Vec<Record>) {
        let now_ns = record.issue_ns;
        let (mut start, mut end) = (record.offset, record.end());
        let mut joined = Vec::new();
        for first in self.near(start, end) {
            let other = self.held[&first].record;
            let (low, high) = (start.min(other.offset), end.max(other.end()));
            if kind(&other) == kind(record) && self.fits(low, high) {
                (start, end) = (low, high);
                joined.push(first);
            } else if other.offset >= record.offset && other.end() <= record.end() {
                // Overwritten before it was written.
                self.take(first);
            } else if other.offset < record.end() && other.end() > record.offset {
                let held = self.take(first);
                out.push(issued_at(&held.record, now_ns));
            }
        }
        let mut merged = Held { record: *record, deadline_ns: after(now_ns, self.window) };
        for first in joined.into_iter().rev() {
            merged = join(self.take(first), merged);
        }
        (merged.record.offset, merged.record.len) = (start, end - start);
        if self.is_full(start, end) {
            out.push(issued_at(&merged.record, now_ns));
        } else {
            self.hold(merged);
        }
    }

    /// Cuts a write at the first and the last multiple of the stripe inside it.
    fn cut(&mut self, record: &Record, out: &mut Vec<Record>) {
        let Shape::Stripes(size) = self.shape else { return self.write(record, out) };
        let (start, end) = (record.offset, record.end());
        let first = start.next_multiple_of(size.0).min(end);
        let last = (end / size.0 * size.0).max(first);
        for (from, to) in [(start, first), (first, last), (last, end)] {
            if from < to {
                self.write(&Record { offset: from, len: to - from, ..*record }, out);
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
        if record.op == Op::Write {
            let end = record.end().next_multiple_of(self.round);
            record.offset -= record.offset % self.round;
            record.len = end - record.offset;
        }
        if is_barrier(&record) {
            self.let_go_all(record.issue_ns, out);
            out.push(record);
        } else if record.op == Op::Write && record.len > 0 {
            self.cut(&record, out);
        } else {
            self.let_go_overlapping(record.offset, record.end(), record.issue_ns, out);
            out.push(record);
        }
    }

    fn finish(&mut self, out: &mut Vec<Record>) {
        self.let_go_all(self.last_ns, out);
    }
}
