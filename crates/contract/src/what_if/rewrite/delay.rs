//! Holds discards back, merges them, and issues them all at once.

use std::collections::BTreeMap;

use prism_base::Nanos;
use prism_trace::{Op, Record};

use super::{HELD_MAX, Rewrite, after, is_barrier, issued_at};

/// Holds discards back until the first of them has waited for the given time. A range that is
/// written meanwhile is removed from the held discards.
pub(in crate::what_if) struct DelayDiscards {
    by: Nanos,
    /// Ranges to discard: first byte -> end. No two ranges touch.
    held: BTreeMap<u64, u64>,
    /// The first held discard, with the time at which all are issued; `None` if none is
    /// held.
    first: Option<Record>,
    last_ns: i64,
}

impl DelayDiscards {
    pub(in crate::what_if) fn new(by: Nanos) -> Self {
        Self { by, held: BTreeMap::new(), first: None, last_ns: i64::MIN }
    }

    /// The held ranges that overlap or touch `start..end`: first byte and end of each.
    fn near(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let before = self.held.range(..=end).rev().map(|(&first, &last)| (first, last));
        before.take_while(|&(_, last)| last >= start).collect()
    }

    fn hold(&mut self, record: &Record) {
        let (mut start, mut end) = (record.offset, record.end());
        for (first, last) in self.near(start, end) {
            self.held.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.held.insert(start, end);
        let at_ns = after(record.issue_ns, self.by);
        self.first.get_or_insert_with(|| issued_at(record, at_ns));
    }

    /// Removes `start..end` from the held ranges, because new data is written there.
    fn written(&mut self, start: u64, end: u64) {
        for (first, last) in self.near(start, end) {
            if first < end && last > start {
                self.held.remove(&first);
                if first < start {
                    self.held.insert(first, start);
                }
                if last > end {
                    self.held.insert(end, last);
                }
            }
        }
    }

    fn release(&mut self, now_ns: i64, out: &mut Vec<Record>) {
        let Some(first) = self.first.take() else { return };
        let first = issued_at(&first, first.issue_ns.min(now_ns));
        for (start, end) in std::mem::take(&mut self.held) {
            out.push(Record { offset: start, len: end - start, ..first });
        }
    }
}

impl Rewrite for DelayDiscards {
    fn restart(&mut self) {
        debug_assert!(self.held.is_empty() && self.first.is_none());
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        self.last_ns = record.issue_ns;
        let is_due = self.first.is_some_and(|first| first.issue_ns <= record.issue_ns);
        if is_due || self.held.len() >= HELD_MAX {
            self.release(record.issue_ns, out);
        }
        match record.op {
            Op::Discard if record.len > 0 && !is_barrier(record) => return self.hold(record),
            Op::Write | Op::WriteZeroes => self.written(record.offset, record.end()),
            Op::Discard | Op::Read | Op::Flush => {}
        }
        out.push(*record);
    }

    fn finish(&mut self, out: &mut Vec<Record>) {
        self.release(self.last_ns, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn check(trace: &str, expected: &str) {
        testing::check(DelayDiscards::new(Nanos(10_000_000)), trace, expected);
    }

    #[test]
    fn discards_are_delayed_and_merged() {
        check("0 d 0+4; 1 d 8+4; 2 d 4+4; 50 r 0+4", "10 d 0+12; 50 r 0+4");
        check("0 d 0+4; 5 d 8+4; 12 r 0+4; 13 d 0+4", "10 d 0+4; 10 d 8+4; 12 r 0+4; 13 d 0+4");
        check("0 d 0+4; 1 r 64+4", "1 r 64+4; 1 d 0+4");
    }

    #[test]
    fn new_data_is_not_discarded() {
        check("0 d 0+16; 1 w 4+4; 2 f", "1 w 4+4; 2 f; 2 d 0+4; 2 d 8+8");
        check("0 d 0+16; 1 z 0+16; 2 f", "1 z 0+16; 2 f");
        check("0 d 0+4; 1 w 4+4; 2 d 4+4; 3 f", "1 w 4+4; 3 f; 3 d 0+8");
    }

    #[test]
    fn a_durable_discard_is_not_delayed() {
        check("0 d! 0+4; 1 r 0+4", "0 d! 0+4; 1 r 0+4");
    }
}
