//! The figures of a trace: counts, bytes, sizes, written set, span, queue depth.
//!
//! A [`Summary`] counts records one by one in bounded memory. To summarise one phase or one
//! device, add only its records.

mod sizes;
mod touched;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::Serialize;

pub use self::sizes::Sizes;
use self::touched::Touched;
use crate::record::{Flags, Op, Record};
use crate::symbols::{Symbol, Symbols};

/// The most requests in flight that are tracked. Devices queue some thousands; with damaged
/// completion times every request of the trace would stay in memory otherwise.
const IN_FLIGHT_MAX: usize = 1 << 20;

/// Counts of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpFigures {
    /// The operation, as [`Op::name`] prints it.
    pub op: &'static str,
    /// How many there are.
    pub count: u64,
    /// The sum of their bytes.
    pub bytes: u64,
    /// The median of their sizes in bytes: the mean of the two middle ones if their number is
    /// even; `None` if there are none, or for flushes.
    pub size_p50_bytes: Option<u64>,
    /// Whether the median is exact. It is rounded down by at most 1/128 if there are more than
    /// 16384 different sizes.
    pub size_p50_exact: bool,
}

/// Counts of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceFigures {
    /// Its name in the source.
    pub device: String,
    /// Requests without flushes.
    pub requests: u64,
    /// Flushes.
    pub flushes: u64,
    /// First byte after the highest request.
    pub span_bytes: u64,
}

/// All figures of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Reads, writes, discards and write-zeroes; flushes are counted apart.
    pub requests: u64,
    /// Flushes.
    pub flushes: u64,
    /// One entry per operation, in the order of [`Op::ALL`].
    pub ops: Vec<OpFigures>,
    /// Bytes of writes with the metadata flag.
    pub metadata_write_bytes: u64,
    /// Bytes of the 4 KiB units that were written, each counted once.
    pub unique_written_bytes: u64,
    /// Whether the written set was small enough to be counted completely; otherwise
    /// `unique_written_bytes` is a lower bound.
    pub unique_written_exact: bool,
    /// First byte after the highest request of any device.
    pub span_bytes: u64,
    /// Issue of the first record, flushes included (ns since trace start).
    pub first_issue_ns: Option<i64>,
    /// From the first issue to the last issue or completion, whichever is later.
    pub duration_ns: u64,
    /// The most requests in flight at any issue, including the issued one and without flushes;
    /// `None` if no completion is known. A request that completes at the time of an issue is no
    /// longer in flight.
    pub queue_depth_max: Option<u64>,
    /// Requests whose offset and length are multiples of 4 KiB.
    pub aligned_4k: u64,
    /// Devices, in the order in which the source first named them.
    pub devices: Vec<DeviceFigures>,
}

impl Figures {
    /// The figures of `op`.
    #[must_use]
    pub fn op(&self, op: Op) -> &OpFigures {
        &self.ops[op as usize]
    }
}

#[derive(Debug, Default)]
struct Device {
    requests: u64,
    flushes: u64,
    span: u64,
}

/// Accumulates the figures of a trace.
#[derive(Debug, Default)]
pub struct Summary {
    counts: [u64; 5],
    bytes: [u64; 5],
    sizes: [Sizes; 5],
    metadata_write_bytes: u64,
    written: Touched,
    span: u64,
    first_issue_ns: Option<i64>,
    last_ns: i64,
    in_flight: BinaryHeap<Reverse<i64>>,
    queue_depth_max: u64,
    aligned_4k: u64,
    /// Limited by the number of names that [`Symbols`] keeps.
    devices: BTreeMap<Symbol, Device>,
}

impl Summary {
    /// An empty summary.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a record. Records come in the order of their issue times.
    pub fn add(&mut self, record: &Record) {
        let complete_ns = record.complete.get();
        if self.first_issue_ns.is_none() {
            self.first_issue_ns = Some(record.issue_ns);
            self.last_ns = record.issue_ns;
        }
        let done = complete_ns.unwrap_or(record.issue_ns);
        self.last_ns = self.last_ns.max(record.issue_ns).max(done);
        let op = record.op as usize;
        self.counts[op] += 1;
        let device = self.devices.entry(record.device).or_default();
        if record.op == Op::Flush {
            device.flushes += 1;
            return;
        }
        device.requests += 1;
        device.span = device.span.max(record.end());
        self.span = self.span.max(record.end());
        self.bytes[op] = self.bytes[op].saturating_add(record.len);
        self.sizes[op].add(record.len);
        if record.op == Op::Write && record.len > 0 {
            self.written.add(record.device, record.offset, record.len);
            if record.flags.has(Flags::META) {
                self.metadata_write_bytes = self.metadata_write_bytes.saturating_add(record.len);
            }
        }
        self.aligned_4k += u64::from((record.offset | record.len).is_multiple_of(4096));
        if let Some(complete_ns) = complete_ns {
            self.follow(record.issue_ns, complete_ns);
        }
    }

    fn follow(&mut self, issue_ns: i64, complete_ns: i64) {
        while self.in_flight.peek().is_some_and(|Reverse(done)| *done <= issue_ns) {
            self.in_flight.pop();
        }
        if self.in_flight.len() < IN_FLIGHT_MAX {
            self.in_flight.push(Reverse(complete_ns));
        }
        self.queue_depth_max = self.queue_depth_max.max(self.in_flight.len() as u64);
    }

    /// The figures of what was added so far; `symbols` names the devices.
    #[must_use]
    pub fn figures(&self, symbols: &Symbols) -> Figures {
        let flushes = self.counts[Op::Flush as usize];
        let ops = Op::ALL.into_iter().map(|op| OpFigures {
            op: op.name(),
            count: self.counts[op as usize],
            bytes: self.bytes[op as usize],
            size_p50_bytes: self.sizes[op as usize].median(),
            size_p50_exact: self.sizes[op as usize].is_exact(),
        });
        let devices = self.devices.iter().map(|(&device, figures)| DeviceFigures {
            device: symbols.name(device).to_owned(),
            requests: figures.requests,
            flushes: figures.flushes,
            span_bytes: figures.span,
        });
        Figures {
            requests: self.counts.iter().sum::<u64>() - flushes,
            flushes,
            ops: ops.collect(),
            metadata_write_bytes: self.metadata_write_bytes,
            unique_written_bytes: self.written.units() * touched::UNIT,
            unique_written_exact: self.written.is_exact(),
            span_bytes: self.span,
            first_issue_ns: self.first_issue_ns,
            duration_ns: self.first_issue_ns.map_or(0, |first| self.last_ns.abs_diff(first)),
            queue_depth_max: (self.queue_depth_max > 0).then_some(self.queue_depth_max),
            aligned_4k: self.aligned_4k,
            devices: devices.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OptTime;

    fn summarise(records: &[Record], symbols: &Symbols) -> Figures {
        let mut summary = Summary::new();
        records.iter().for_each(|record| summary.add(record));
        summary.figures(symbols)
    }

    #[test]
    fn a_trace_worked_out_by_hand() {
        let mut symbols = Symbols::new();
        let (a, b) = (symbols.intern("a"), symbols.intern("b"));
        let make = |op, device, issue, done: i64, offset, len, flags| Record {
            device,
            complete: OptTime::at(done),
            flags,
            ..Record::new(op, issue, offset, len)
        };
        let plain = Flags::NONE;
        let records = [
            make(Op::Write, a, 100, 400, 0, 8192, plain),
            make(Op::Write, a, 150, 300, 4096, 8192, Flags::META),
            // The flush is in flight together with both writes and does not count.
            make(Op::Flush, a, 160, 900, 0, 0, plain),
            make(Op::Read, b, 200, 250, 512, 1024, plain),
            // At 300 the second write has just completed: first write and this one.
            make(Op::Discard, b, 300, 310, 1 << 40, 1 << 30, plain),
            make(Op::WriteZeroes, a, 450, 460, 65536, 4096, plain),
            // Two units, one of them the same number as on device a, but of device b.
            make(Op::Write, b, 500, 510, 4095, 2, plain),
        ];
        let figures = summarise(&records, &symbols);
        assert_eq!((figures.requests, figures.flushes), (6, 1));
        let op = |op| {
            let found = figures.op(op);
            (found.count, found.bytes, found.size_p50_bytes)
        };
        assert_eq!(op(Op::Write), (3, 16386, Some(8192)));
        assert_eq!(op(Op::Read), (1, 1024, Some(1024)));
        assert_eq!(op(Op::Discard), (1, 1 << 30, Some(1 << 30)));
        assert_eq!(op(Op::WriteZeroes), (1, 4096, Some(4096)));
        assert_eq!(op(Op::Flush), (1, 0, None));
        assert_eq!(figures.metadata_write_bytes, 8192);
        assert_eq!((figures.unique_written_bytes, figures.unique_written_exact), (20480, true));
        assert_eq!(figures.span_bytes, (1 << 40) + (1 << 30));
        assert_eq!((figures.first_issue_ns, figures.duration_ns), (Some(100), 800));
        assert_eq!(figures.queue_depth_max, Some(3));
        assert_eq!(figures.aligned_4k, 4);
        let device = |at: usize| {
            let row = &figures.devices[at];
            (row.device.as_str(), row.requests, row.flushes, row.span_bytes)
        };
        assert_eq!(device(0), ("a", 3, 1, 69632));
        assert_eq!(device(1), ("b", 3, 0, (1 << 40) + (1 << 30)));
        let json = serde_json::to_value(&figures).unwrap();
        assert_eq!(json["ops"][1]["size_p50_bytes"], 8192);
    }

    #[test]
    fn nothing_is_known_of_nothing() {
        let figures = summarise(&[], &Symbols::new());
        assert_eq!((figures.requests, figures.duration_ns), (0, 0));
        assert_eq!((figures.first_issue_ns, figures.queue_depth_max), (None, None));
    }

    #[test]
    fn without_completions_there_is_no_depth() {
        let figures = summarise(&[Record::new(Op::Read, 5, 0, 512)], &Symbols::new());
        assert_eq!(figures.queue_depth_max, None);
        assert_eq!(figures.aligned_4k, 0);
    }
}
