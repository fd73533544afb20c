//! The request scale rule: the size of requests and the number in flight.
//!
//! The queue depth is defined as in the paper: the number of requests in flight just before
//! the issue of a read or write. Discards count as in flight, flushes do not. A request that
//! completes at the time of the issue is no longer in flight. The paper does not define a
//! score. Here it is the number of flash pages in flight divided by the number of channels,
//! at most 1.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use prism_base::Bytes;
use prism_trace::summary::Sizes;
use prism_trace::{Flags, Op, Record};

use super::offenders::Blame;

/// The number of distinct values that are counted; larger values count as the largest.
const VALUES_MAX: usize = 1 << 16;
/// The most requests in flight that are tracked. Without this limit, damaged completion times
/// could keep every request of the trace in memory.
const IN_FLIGHT_MAX: usize = 1 << 20;

/// Counts how often each whole number occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    counts: Vec<u64>,
}

impl ValueCounts {
    /// Counts `value`; values above 65,535 count as 65,535.
    pub fn add(&mut self, value: u64) {
        let index = (value as usize).min(VALUES_MAX - 1);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// The number of values counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How often each value occurred; the index is the value.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The smallest value that at least a share `q` of the values do not exceed; `None` if
    /// no value was counted.
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

/// Sizes and queue depths of all reads, or of all writes.
#[derive(Debug, Default)]
pub struct Side {
    /// Number of requests.
    pub requests: u64,
    /// Bytes read or written.
    pub bytes: u64,
    /// Request sizes in bytes.
    pub sizes: Sizes,
    /// Requests in flight just before each request. All are 0 if no completion is known.
    pub depth: ValueCounts,
    /// Reads in flight just before each read, or writes in flight just before each write.
    pub depth_same: ValueCounts,
}

/// Measures the request scale rule, and is its result.
#[derive(Debug)]
pub struct RequestScale {
    page: u64,
    channels: f64,
    /// Reads.
    pub reads: Side,
    /// Writes.
    pub writes: Side,
    /// Discards and write-zeroes requests.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
    /// Writes with FUA or a preflush.
    pub durable_writes: u64,
    /// KiB written between one barrier (a flush or a durable write) and the next.
    pub kib_between_barriers: ValueCounts,
    since_barrier: u64,
    /// Completion time, flash pages and operation of each request in flight.
    in_flight: BinaryHeap<Reverse<(i64, u64, Op)>>,
    pages_in_flight: u64,
    /// Reads and writes in flight.
    same_in_flight: [u64; 2],
    /// Whether the trace has at least one completion time.
    pub depth_known: bool,
    /// Sum of the scores of all requests.
    score_sum: f64,
    /// Sum of the scores weighted by the bytes of each request.
    score_bytes: f64,
    /// The sum over a group's requests of 1 - their score.
    pub blame: Blame,
}

impl RequestScale {
    /// A request has full scale (score 1) if a flash `page` for each of `channels` is in
    /// flight.
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

    /// Adds `record` of `group`.
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
            // Barriers without writes between them count as one, such as a flush followed by
            // a durable commit record.
            if self.since_barrier > 0 {
                self.kib_between_barriers.add(self.since_barrier / 1024);
            }
            self.since_barrier = 0;
        }
        if record.op == Op::Write {
            self.since_barrier += record.len;
        }
    }

    /// The mean score over reads and writes; `None` if there are none.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        let requests = self.reads.requests + self.writes.requests;
        (requests > 0).then(|| self.score_sum / requests as f64)
    }

    /// The mean score over the bytes read and written; `None` if there are none.
    #[must_use]
    pub fn score_by_bytes(&self) -> Option<f64> {
        let bytes = self.reads.bytes + self.writes.bytes;
        (bytes > 0).then(|| self.score_bytes / bytes as f64)
    }

    /// The number of discards divided by the number of requests without flushes.
    #[must_use]
    pub fn discard_ratio(&self) -> Option<f64> {
        let all = self.reads.requests + self.writes.requests + self.discards;
        (all > 0).then(|| self.discards as f64 / all as f64)
    }

    /// The size of a request that has full scale by itself.
    #[must_use]
    pub fn full_scale(&self) -> Bytes {
        Bytes(self.page * self.channels as u64)
    }
}

/// The index of a request's statistics: 0 for reads, 1 for writes, `None` for requests that
/// transfer no data.
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
    fn hand_computed_example() {
        // Four channels, pages of 4 KiB.
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
        // The only request in flight: one page for four channels.
        add(Op::Write, 0, 100, 0, 4096, plain);
        // One request in flight; 8 KiB on three pages: 1 + 3 pages are full scale.
        add(Op::Write, 50, 300, 2048, 8192, plain);
        // At 100 the first write completes, and the discard is in flight from then on.
        add(Op::Discard, 100, 400, 1 << 20, 1 << 20, plain);
        add(Op::Flush, 150, 160, 0, 0, plain);
        // Two requests in flight (write and discard), 3 + 1 pages.
        add(Op::Read, 200, 250, 0, 512, plain);
        // No other request in flight; 16 KiB by itself is full scale. The preflush is a
        // barrier, but no bytes were written since the flush.
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
        // 12 KiB before the first flush, 20 KiB before the last one.
        assert_eq!(rule.kib_between_barriers.total(), 2);
        assert_eq!(rule.kib_between_barriers.quantile(0.5), Some(12));
        assert_eq!(rule.kib_between_barriers.quantile(1.0), Some(20));
        assert_eq!(rule.full_scale(), Bytes(16384));
    }

    #[test]
    fn without_completions_only_the_request_itself_is_in_flight() {
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
