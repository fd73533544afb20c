//! How often units are written: of the file system's own data and of the application's,
//! and by where they lie.

use prism_base::{Bytes, FastMap};
use prism_trace::{Flags, Op, Record};

/// File systems write in blocks of this size; the paper counts in flash pages of half of it.
pub(super) const UNIT: Bytes = Bytes(4096);
/// Even ranges that the device is cut into.
const RANGES: u64 = 64;
/// A range with less than this share of the written units says nothing of a file system.
const SHARE_MIN: f64 = 0.01;

/// Writes of units of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Units written, each as often as it was.
    pub writes: u64,
    /// Different units.
    pub units: u64,
}

impl WriteCounts {
    /// Writes of a unit, mean; none if there is none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.units > 0).then(|| self.writes as f64 / self.units as f64)
    }
}

/// How unequally ranges of addresses are written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RangeBias {
    /// Ranges with at least a hundredth of the units written.
    pub ranges: u64,
    /// Writes of a unit in the range where they are most, over those of all units.
    pub most_over_mean: f64,
}

/// Follows the writes of a trace.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Writes of each unit: the application's, and those marked as metadata.
    counts: FastMap<u64, [u32; 2]>,
}

impl Writes {
    pub(super) fn add(&mut self, record: &Record) {
        if record.op != Op::Write {
            return;
        }
        let kind = usize::from(record.flags.has(Flags::META));
        for unit in record.offset / UNIT.0..record.end().div_ceil(UNIT.0) {
            self.counts.entry(unit).or_default()[kind] += 1;
        }
    }

    /// What the application wrote, and what the file system wrote for itself. A unit that
    /// held both counts for both.
    pub(super) fn kinds(&self) -> [WriteCounts; 2] {
        let mut kinds = [WriteCounts::default(); 2];
        for counts in self.counts.values() {
            for (kind, &writes) in kinds.iter_mut().zip(counts) {
                kind.writes += u64::from(writes);
                kind.units += u64::from(writes > 0);
            }
        }
        kinds
    }

    /// Over even ranges of a device of `span` bytes.
    pub(super) fn bias(&self, span: Bytes) -> RangeBias {
        let range_units = span.0.div_ceil(UNIT.0).div_ceil(RANGES).max(1);
        let mut ranges = vec![WriteCounts::default(); RANGES as usize];
        let mut all = WriteCounts::default();
        for (unit, counts) in &self.counts {
            let writes = u64::from(counts[0]) + u64::from(counts[1]);
            let place = (unit / range_units).min(RANGES - 1) as usize;
            for sum in [&mut ranges[place], &mut all] {
                sum.writes += writes;
                sum.units += 1;
            }
        }
        let worth = |range: &&WriteCounts| range.units as f64 >= SHARE_MIN * all.units as f64;
        let means: Vec<f64> = ranges.iter().filter(worth).filter_map(WriteCounts::mean).collect();
        let most = means.iter().copied().fold(0.0, f64::max);
        RangeBias {
            ranges: means.len() as u64,
            most_over_mean: all.mean().map_or(0.0, |mean| most / mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let mut writes = Writes::default();
        let mut add = |op, unit: u64, units: u64, flags| {
            let record = Record::new(op, 0, unit * 4096, units * 4096);
            writes.add(&Record { flags, ..record });
        };
        add(Op::Write, 0, 3, Flags::NONE);
        add(Op::Write, 2, 1, Flags::SYNC);
        add(Op::Write, 64, 1, Flags::META);
        (0..5).for_each(|_| add(Op::Write, 64, 1, Flags::META.with(Flags::SYNC)));
        add(Op::Read, 9, 1, Flags::NONE);
        let [data, metadata] = writes.kinds();
        assert_eq!(data, WriteCounts { writes: 4, units: 3 });
        assert_eq!(metadata, WriteCounts { writes: 6, units: 1 });
        // Ranges of 64 units: means 4/3 and 6, of all 10/4.
        let bias = writes.bias(Bytes(64 * 64 * 4096));
        assert_eq!(bias, RangeBias { ranges: 2, most_over_mean: 6.0 / 2.5 });
        assert_eq!(Writes::default().bias(Bytes(4096)), RangeBias::default());
    }
}
