//! Figure 1: the number of requests in flight while a log-structured store compacts.

use prism_base::{Bytes, Nanos};
use prism_trace::summary::Sizes;
use prism_trace::{Op, Record};

/// The time span of the figure.
pub const WINDOW: Nanos = Nanos(200_000_000);
/// Windows begin at multiples of this since the first request.
const STEP: Nanos = Nanos(50_000_000);
/// Steps of a window.
const STEPS: usize = (WINDOW.0 / STEP.0) as usize;
/// Windows are searched in the first day of a trace only.
const STEPS_MAX: usize = 20 * 86_400;

/// The requests in flight from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The time since the start of the window.
    pub at: Nanos,
    /// Reads in flight.
    pub reads: u32,
    /// Writes in flight.
    pub writes: u32,
}

/// The window that the figure shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure1 {
    /// Its start, counted from the first request.
    pub start: Nanos,
    /// Bytes read in the window.
    pub read: Bytes,
    /// Bytes written in the window.
    pub written: Bytes,
    /// The requests in flight at each change; the first point is the start of the window.
    pub points: Vec<Point>,
    /// Maximum of the reads in flight.
    pub reads_max: u32,
    /// Maximum of the writes in flight.
    pub writes_max: u32,
    /// Median size of the reads issued in the window.
    pub read_median: Option<Bytes>,
}

impl Figure1 {
    /// The window in which the smaller of bytes read and bytes written is largest, as during a
    /// compaction; the first of equal ones. `None` if no window has both reads and writes.
    ///
    /// `records` are the reads and writes in the order of issue.
    #[must_use]
    pub fn of(records: &[Record]) -> Option<Self> {
        let origin = records.first()?.issue_ns;
        let mut moved = vec![[0u64; 2]];
        for record in records {
            let step = (record.issue_ns.abs_diff(origin) / STEP.0) as usize;
            let Some(side) = side_of(record).filter(|_| step < STEPS_MAX) else { continue };
            if moved.len() <= step {
                moved.resize(step + 1, [0; 2]);
            }
            moved[step][side] += record.len;
        }
        let sum = |first: usize, side: usize| -> u64 {
            moved[first..].iter().take(STEPS).map(|step| step[side]).sum()
        };
        let (mut best, mut most) = (0, 0);
        for first in 0..moved.len() {
            let lesser = sum(first, 0).min(sum(first, 1));
            if lesser > most {
                (best, most) = (first, lesser);
            }
        }
        (most > 0).then(|| {
            let start = Nanos(best as u64 * STEP.0);
            Self::window(records, origin, start, [sum(best, 0), sum(best, 1)])
        })
    }

    fn window(records: &[Record], origin: i64, start: Nanos, moved: [u64; 2]) -> Self {
        let from = origin.saturating_add_unsigned(start.0);
        let end = from.saturating_add_unsigned(WINDOW.0);
        let mut sizes = Sizes::default();
        // (time, whether it is an issue, side). At the same time, completions sort before issues.
        let mut changes = Vec::new();
        for record in records {
            let Some(side) = side_of(record).filter(|_| record.issue_ns < end) else { continue };
            if side == 0 && record.issue_ns >= from {
                sizes.add(record.len);
            }
            let Some(done) = record.complete.get().filter(|&done| done > from.max(record.issue_ns))
            else {
                continue;
            };
            changes.push((record.issue_ns.max(from), true, side));
            if done < end {
                changes.push((done, false, side));
            }
        }
        changes.sort_unstable();
        let mut points = vec![Point { at: Nanos::ZERO, reads: 0, writes: 0 }];
        let (mut reads_max, mut writes_max) = (0, 0);
        for (time, issue, side) in changes {
            let at = Nanos(time.abs_diff(from));
            let mut point = Point { at, ..points[points.len() - 1] };
            let count = if side == 0 { &mut point.reads } else { &mut point.writes };
            *count = if issue { *count + 1 } else { *count - 1 };
            reads_max = reads_max.max(point.reads);
            writes_max = writes_max.max(point.writes);
            match points.last_mut() {
                Some(last) if last.at == at => *last = point,
                _ => points.push(point),
            }
        }
        Self {
            start,
            read: Bytes(moved[0]),
            written: Bytes(moved[1]),
            points,
            reads_max,
            writes_max,
            read_median: sizes.median().map(Bytes),
        }
    }
}

fn side_of(record: &Record) -> Option<usize> {
    match record.op {
        Op::Read => Some(0),
        Op::Write => Some(1),
        Op::Discard | Op::WriteZeroes | Op::Flush => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_trace::OptTime;

    const MS: i64 = 1_000_000;

    fn record(op: Op, issue_ms: i64, done_ms: i64, len: u64) -> Record {
        let complete = OptTime::at(done_ms * MS);
        Record { complete, ..Record::new(op, issue_ms * MS, 0, len) }
    }

    #[test]
    fn the_window_has_the_most_reads_and_writes() {
        let records = [
            record(Op::Write, 0, 10, 1 << 20),
            record(Op::Read, 400, 410, 4096),
            record(Op::Write, 410, 420, 8192),
            record(Op::Write, 990, 1015, 8192),
            record(Op::Read, 1000, 1020, 4096),
            record(Op::Read, 1010, 1020, 4096),
            record(Op::Read, 1020, 1030, 16384),
            record(Op::Write, 1190, 1900, 4096),
        ];
        let figure = Figure1::of(&records).unwrap();
        // 8 KiB were written in the window from 850 ms, and less in that from 1000 ms.
        assert_eq!(figure.start, Nanos(850 * MS as u64));
        assert_eq!((figure.read, figure.written), (Bytes(24576), Bytes(8192)));
        let points: Vec<_> =
            figure.points.iter().map(|p| (p.at.0 / MS as u64, p.reads, p.writes)).collect();
        let expected = [
            (0, 0, 0),
            (140, 0, 1),
            (150, 1, 1),
            (160, 2, 1),
            (165, 2, 0),
            (170, 1, 0),
            (180, 0, 0),
        ];
        assert_eq!(points, expected);
        assert_eq!((figure.reads_max, figure.writes_max), (2, 1));
        assert_eq!(figure.read_median, Some(Bytes(4096)));
    }

    #[test]
    fn there_is_no_window_without_both_reads_and_writes() {
        assert_eq!(Figure1::of(&[]), None);
        assert_eq!(Figure1::of(&[record(Op::Read, 0, 1, 4096)]), None);
    }
}
