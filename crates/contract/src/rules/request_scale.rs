//! The request scale rule: how large requests are, and how many are outstanding.
//!
//! Depth is the paper's: requests outstanding just before each issue of a read or write;
//! discards count as outstanding, flushes do not. A request that completes at the very time
//! of an issue is done. What the paper leaves open is how size and number become one score;
//! here it is the flash pages outstanding, against one page a channel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use prism_base::Bytes;
use prism_trace::summary::Sizes;
use prism_trace::{Flags, Op, Record};

use super::offenders::Blame;

/// Depths told apart; deeper ones count as this.
const DEPTH_MAX: usize = 1 << 16;
/// Requests in flight that are followed at once; damaged completion times could otherwise
/// hold a whole trace.
const IN_FLIGHT_MAX: usize = 1 << 20;

/// How often each whole number occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    counts: Vec<u64>,
}

impl ValueCounts {
    /// Counts `value`; above 65,535 as this.
    pub fn add(&mut self, value: u64) {
        let place = (value as usize).min(DEPTH_MAX - 1);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// How many values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How often each value from 0 on occurred.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The smallest value that a share `q` of all does not exceed; none if there is none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let total = self.total();
        let wanted = ((q * total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(value, &count)| {
            seen += count;
            (count > 0 && seen >= wanted).then_some(value as u64)
        })
    }
}

/// Sizes and depths of the reads, or of the writes.
#[derive(Debug, Default)]
pub struct Side {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their sizes in bytes.
    pub sizes: Sizes,
    /// Requests outstanding just before each; empty if no completion is known.
    pub depth: ValueCounts,
    /// Requests of the same kind outstanding just before each.
    pub depth_same: ValueCounts,
}

/// What the rule counts.
#[derive(Debug)]
pub struct RequestScale {
    page: u64,
    channels: f64,
    /// Reads.
    pub reads: Side,
    /// Writes.
    pub writes: Side,
    /// Discards and writes of zeroes.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
    /// Writes that are durable by themselves, or have a flush before them.
    pub durable_writes: u64,
    /// Bytes written between one barrier (flush, or write with one) and the next, in KiB.
    pub kib_between_barriers: ValueCounts,
    since_barrier: u64,
    in_flight: BinaryHeap<Reverse<(i64, u64, Op)>>,
    pages_in_flight: u64,
    same_in_flight: [u64; 2],
    /// Whether some completion is known.
    pub depth_known: bool,
    score_sum: f64,
    /// Score by bytes instead of by requests.
    score_bytes: f64,
    /// Who issues below full scale, in requests.
    pub blame: Blame,
}

impl RequestScale {
    /// Full scale is a flash `page` for each of `channels`.
    #[must_use]
    pub fn new(page: Bytes, channels: u32) -> Self {
        Self {
            page: page.0,
            channels: f64::from(channels),
            reads: Side::default(),
            writes: Side::default(),
            discards: 0,
            flushes: 0,
            durable_writes: 0,
            kib_between_barriers: ValueCounts::default(),
            since_barrier: 0,
            in_flight: BinaryHeap::new(),
            pages_in_flight: 0,
            same_in_flight: [0; 2],
            depth_known: false,
            score_sum: 0.0,
            score_bytes: 0.0,
            blame: Blame::default(),
        }
    }

    /// Counts `record` of `group`.
    pub fn add(&mut self, record: &Record, group: u16) {
        self.barriers(record);
        if record.op == Op::Flush {
            return;
        }
        while let Some(&Reverse((done, pages, op))) = self.in_flight.peek() {
            if done > record.issue_ns {
                break;
            }
            self.in_flight.pop();
            self.pages_in_flight -= pages;
            if let Some(side) = side_of(op) {
                self.same_in_flight[side] -= 1;
            }
        }
        let (op, moves) = (record.op, side_of(record.op));
        let pages = match moves {
            Some(_) => (record.end().div_ceil(self.page) - record.offset / self.page).max(1),
            None => 0,
        };
        match moves {
            None => self.discards += 1,
            Some(side) => self.count(record, side, pages, group),
        }
        if let Some(done) = record.complete.get()
            && self.in_flight.len() < IN_FLIGHT_MAX
        {
            self.depth_known = true;
            self.in_flight.push(Reverse((done, pages, op)));
            self.pages_in_flight += pages;
            if let Some(side) = moves {
                self.same_in_flight[side] += 1;
            }
        }
    }

    fn count(&mut self, record: &Record, side: usize, pages: u64, group: u16) {
        let depth = self.in_flight.len() as u64;
        let same = self.same_in_flight[side];
        let counted = if side == 0 { &mut self.reads } else { &mut self.writes };
        counted.requests += 1;
        counted.bytes += record.len;
        counted.sizes.add(record.len);
        counted.depth.add(depth);
        counted.depth_same.add(same);
        let scale = ((self.pages_in_flight + pages) as f64 / self.channels).min(1.0);
        self.score_sum += scale;
        self.score_bytes += scale * record.len as f64;
        self.blame.add(group, 1.0 - scale);
    }

    fn barriers(&mut self, record: &Record) {
        let durable = record.op == Op::Write
            && (record.flags.has(Flags::FUA) || record.flags.has(Flags::PREFLUSH));
        if record.op == Op::Flush || durable {
            self.flushes += u64::from(record.op == Op::Flush);
            self.durable_writes += u64::from(durable);
            // Two barriers in a row are one: a commit record with a flush before it.
            if self.since_barrier > 0 {
                self.kib_between_barriers.add(self.since_barrier / 1024);
            }
            self.since_barrier = 0;
        }
        if record.op == Op::Write {
            self.since_barrier += record.len;
        }
    }

    /// Mean scale over reads and writes; none if there are none.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        let requests = self.reads.requests + self.writes.requests;
        (requests > 0).then(|| self.score_sum / requests as f64)
    }

    /// Mean scale over the bytes read and written.
    #[must_use]
    pub fn score_by_bytes(&self) -> Option<f64> {
        let bytes = self.reads.bytes + self.writes.bytes;
        (bytes > 0).then(|| self.score_bytes / bytes as f64)
    }

    /// Discards as a share of all requests, flushes apart: a ratio of counts.
    #[must_use]
    pub fn discard_ratio(&self) -> Option<f64> {
        let all = self.reads.requests + self.writes.requests + self.discards;
        (all > 0).then(|| self.discards as f64 / all as f64)
    }

    /// Bytes that make full scale.
    #[must_use]
    pub fn full_scale(&self) -> Bytes {
        Bytes(self.page * self.channels as u64)
    }
}

/// Reads are side 0, writes side 1; others move no data.
fn side_of(op: Op) -> Option<usize> {
    match op {
        Op::Read => Some(0),
        Op::Write => Some(1),
        Op::Discard | Op::WriteZeroes | Op::Flush => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_trace::OptTime;

    #[test]
    fn worked_out_by_hand() {
        // Four channels of 4 KiB pages.
        let mut rule = RequestScale::new(Bytes(4096), 4);
        let mut add = |op, issue, done: i64, offset, len, flags| {
            let record = Record {
                complete: OptTime::at(done),
                flags,
                ..Record::new(op, issue, offset, len)
            };
            rule.add(&record, 0);
        };
        let plain = Flags::NONE;
        // Alone: one page of four.
        add(Op::Write, 0, 100, 0, 4096, plain);
        // One outstanding before it; 8 KiB across three pages: 1 + 3 pages, full scale.
        add(Op::Write, 50, 300, 2048, 8192, plain);
        // At 100 the first is done; the discard counts as outstanding from then on.
        add(Op::Discard, 100, 400, 1 << 20, 1 << 20, plain);
        add(Op::Flush, 150, 160, 0, 0, plain);
        // Two outstanding (write, discard), 3 + 1 pages.
        add(Op::Read, 200, 250, 0, 512, plain);
        // All done; 16 KiB by itself is full scale. A commit: the bytes before were 0.
        add(Op::Write, 500, 600, 0, 16384, Flags::PREFLUSH);
        add(Op::Write, 700, 800, 0, 4096, plain);
        add(Op::Flush, 900, 910, 0, 0, plain);
        let depths = |side: &Side| side.depth.counts().to_vec();
        assert_eq!(depths(&rule.writes), [3, 1]);
        assert_eq!(depths(&rule.reads), [0, 0, 1]);
        assert_eq!(rule.reads.depth_same.counts(), [1]);
        assert_eq!((rule.discards, rule.flushes, rule.durable_writes), (1, 2, 1));
        assert_eq!(rule.discard_ratio(), Some(1.0 / 6.0));
        // (1/4 + 1 + 1 + 1 + 1/4) / 5
        assert!((rule.score().unwrap() - 0.7).abs() < 1e-12);
        let by_bytes = (0.25 * 8192.0 + 8192.0 + 512.0 + 16384.0) / (32768.0 + 512.0);
        assert!((rule.score_by_bytes().unwrap() - by_bytes).abs() < 1e-12);
        assert!((rule.blame.total() - 1.5).abs() < 1e-12);
        // 12 KiB before the first flush, 20 KiB before the last.
        assert_eq!(rule.kib_between_barriers.total(), 2);
        assert_eq!(rule.kib_between_barriers.quantile(0.5), Some(12));
        assert_eq!(rule.kib_between_barriers.quantile(1.0), Some(20));
        assert_eq!(rule.full_scale(), Bytes(16384));
    }

    #[test]
    fn without_completions_a_request_stands_alone() {
        let mut rule = RequestScale::new(Bytes(4096), 2);
        for at in 0..3 {
            rule.add(&Record::new(Op::Read, at, 0, 4096), 0);
        }
        assert!(!rule.depth_known);
        assert_eq!(rule.score(), Some(0.5));
        assert_eq!(RequestScale::new(Bytes(4096), 2).score(), None);
        assert_eq!(ValueCounts::default().quantile(0.5), None);
    }
}
