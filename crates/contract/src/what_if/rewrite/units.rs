//! Converts byte ranges of records to mapping units, and splits writes by placement handle.

use std::ops::Range;

use prism_base::Bytes;
use prism_trace::{Op, Record};

/// The mapping units of a drive.
#[derive(Clone, Copy, Debug)]
pub(in crate::what_if) struct Units {
    size: u64,
    /// Number of logical units.
    count: u32,
}

impl Units {
    pub(in crate::what_if) fn new(size: Bytes, count: u32) -> Self {
        Self { size: size.0, count }
    }

    pub(super) fn count(self) -> usize {
        self.count as usize
    }

    /// Units that a record covers at least in part. Units beyond the end of the drive are
    /// left out; the drive will reject such a request.
    pub(super) fn touched(self, record: &Record) -> Range<usize> {
        self.range(record.offset / self.size, record.end().div_ceil(self.size))
    }

    /// Units that a record covers completely.
    pub(super) fn whole(self, record: &Record) -> Range<usize> {
        self.range(record.offset.div_ceil(self.size), record.end() / self.size)
    }

    fn range(self, start: u64, end: u64) -> Range<usize> {
        let most = u64::from(self.count);
        let end = end.min(most);
        start.min(end) as usize..end as usize
    }

    /// First byte and number of bytes of `units`.
    pub(super) fn bytes(self, units: &Range<usize>) -> (u64, u64) {
        (units.start as u64 * self.size, units.len() as u64 * self.size)
    }

    /// The part of `record` that lies in `units`.
    pub(super) fn part(self, record: &Record, units: &Range<usize>) -> Record {
        let start = record.offset.max(units.start as u64 * self.size);
        let end = record.end().min(units.end as u64 * self.size);
        Record { offset: start, len: end - start, ..*record }
    }

    /// Splits a write into as few parts as possible such that all units of a part have the
    /// same class. The class becomes the placement handle of the part.
    pub(super) fn divide(
        self,
        record: &Record,
        mut class_of: impl FnMut(usize) -> u16,
        out: &mut Vec<Record>,
    ) {
        debug_assert!(record.op == Op::Write);
        let units = self.touched(record);
        let Some(first) = units.clone().next() else { return out.push(*record) };
        let mut begun = first;
        let mut class = class_of(first);
        for unit in first + 1..units.end {
            let other = class_of(unit);
            if other != class {
                out.push(Record { stream: class, ..self.part(record, &(begun..unit)) });
                (begun, class) = (unit, other);
            }
        }
        let rest = self.part(record, &(begun..units.end));
        // The last part keeps the bytes beyond the end of the drive, where there are no units.
        out.push(Record { stream: class, len: record.end() - rest.offset, ..rest });
    }
}
