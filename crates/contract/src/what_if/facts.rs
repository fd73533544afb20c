//! The facts about a trace that a plan depends on, gathered in one reading.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use prism_base::{Bytes, Nanos};
use prism_trace::{Flags, Op, Record, Source, SourceError, each_record};

/// The most requests in flight that are tracked. Without this limit, damaged completion times
/// could keep every request of the trace in memory. If the limit is exceeded, the queue depth
/// is reported as unknown.
const IN_FLIGHT_MAX: usize = 1 << 16;

/// Counts over a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// Requests, flushes included.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Writes that cover some mapping unit only in part.
    pub partial_writes: u64,
    /// Discards.
    pub discards: u64,
    /// Flushes, and requests with FUA or a preflush.
    pub barriers: u64,
    /// Accesses to mapping units: a unit that is read or written several times counts
    /// several times.
    pub units_accessed: u64,
    /// Time from the first issue to the last.
    pub duration: Nanos,
    /// Median queue depth: for each read and write, the number of requests in flight at its
    /// issue, including itself, without flushes. `None` if completion times are not known.
    pub median_depth: Option<u32>,
}

impl TraceFacts {
    /// Reads all of `source`, for a drive with mapping units of `unit` bytes.
    ///
    /// # Errors
    /// [`SourceError`] if the source cannot be read.
    pub fn of(source: &mut dyn Source, unit: Bytes) -> Result<Self, SourceError> {
        let mut facts = Self::default();
        let mut depth = DepthTracker::default();
        let mut first_ns = None;
        each_record(source, |record| {
            facts.add(record, unit.0);
            depth.add(record);
            let first = *first_ns.get_or_insert(record.issue_ns);
            facts.duration = Nanos(record.issue_ns.abs_diff(first));
        })?;
        facts.median_depth = depth.median();
        Ok(facts)
    }

    fn add(&mut self, record: &Record, unit: u64) {
        self.requests += 1;
        let durable = record.flags.has(Flags::FUA) || record.flags.has(Flags::PREFLUSH);
        self.barriers += u64::from(durable || record.op == Op::Flush);
        match record.op {
            Op::Read => self.reads += 1,
            Op::Write => {
                self.writes += 1;
                let whole = record.offset.is_multiple_of(unit) && record.len.is_multiple_of(unit);
                self.partial_writes += u64::from(!whole);
            }
            Op::Discard => self.discards += 1,
            Op::WriteZeroes | Op::Flush => {}
        }
        if matches!(record.op, Op::Read | Op::Write) {
            self.units_accessed += record.end().div_ceil(unit) - record.offset / unit;
        }
    }
}

/// Tracks the number of requests in flight.
#[derive(Debug, Default)]
struct DepthTracker {
    completions: BinaryHeap<Reverse<i64>>,
    /// Number of reads and writes issued at each queue depth; the index is the depth.
    counts: Vec<u64>,
    /// Whether the limit on tracked requests was exceeded.
    unknown: bool,
}

impl DepthTracker {
    fn add(&mut self, record: &Record) {
        if record.op == Op::Flush {
            return;
        }
        while self.completions.peek().is_some_and(|&Reverse(at)| at <= record.issue_ns) {
            self.completions.pop();
        }
        let Some(complete) = record.complete.get() else { return };
        self.completions.push(Reverse(complete));
        if self.completions.len() > IN_FLIGHT_MAX {
            self.completions.clear();
            self.unknown = true;
        }
        if matches!(record.op, Op::Read | Op::Write) {
            let depth = self.completions.len();
            self.counts.resize(self.counts.len().max(depth + 1), 0);
            self.counts[depth] += 1;
        }
    }

    fn median(&self) -> Option<u32> {
        let half = self.counts.iter().sum::<u64>().div_ceil(2);
        let mut passed = 0;
        let at = self.counts.iter().position(|&count| {
            passed += count;
            passed >= half && passed > 0
        });
        at.filter(|_| !self.unknown).map(|depth| depth.max(1) as u32)
    }
}

#[cfg(test)]
mod tests {
    use prism_trace::{OptTime, VecSource};

    use super::*;

    #[test]
    fn counts_requests_and_finds_the_median_depth() {
        let record = |op, at, offset, len, done: i64| Record {
            complete: OptTime::at(done),
            ..Record::new(op, at, offset, len)
        };
        let flushed = Record { flags: Flags::FUA, ..record(Op::Write, 30, 8192, 4096, 35) };
        let records = vec![
            record(Op::Write, 0, 0, 8192, 25),
            record(Op::Read, 10, 512, 4096, 15),
            record(Op::Write, 20, 4096, 512, 22),
            record(Op::Discard, 20, 0, 4096, 21),
            flushed,
            record(Op::Flush, 40, 0, 0, 41),
        ];
        let facts = TraceFacts::of(&mut VecSource::new(records), Bytes(4096)).unwrap();
        let expected = TraceFacts {
            requests: 6,
            reads: 1,
            writes: 3,
            partial_writes: 1,
            discards: 1,
            barriers: 2,
            units_accessed: 2 + 2 + 1 + 1,
            duration: Nanos(40),
            // In flight at issue: 1, 2, 2, 1.
            median_depth: Some(1),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn without_completions_the_depth_is_unknown() {
        let records = vec![Record::new(Op::Read, 0, 0, 512)];
        let facts = TraceFacts::of(&mut VecSource::new(records), Bytes(4096)).unwrap();
        assert_eq!(facts.median_depth, None);
    }
}
