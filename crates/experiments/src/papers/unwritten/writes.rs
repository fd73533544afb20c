//! How often units are written: units of metadata and of application data, and units in different
//! ranges of addresses.

use prism_base::{Bytes, FastMap};
use prism_trace::{Flags, Op, Record};

/// The block size of the file systems. The paper counts in flash pages of half this size.
pub(super) const UNIT: Bytes = Bytes(4096);
/// The number of equal ranges into which the device is divided.
const RANGES: u64 = 64;
/// Ranges with less than this share of the written units are ignored.
const SHARE_MIN: f64 = 0.01;

/// Writes of units of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Writes of units.
    pub writes: u64,
    /// Distinct units written.
    pub units: u64,
}

impl WriteCounts {
    /// Mean number of writes of a unit; `None` if no unit was written.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.units > 0).then(|| self.writes as f64 / self.units as f64)
    }
}

/// How unevenly ranges of addresses are written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RangeBias {
    /// Ranges with at least 1 % of the written units.
    pub ranges: u64,
    /// Mean writes of a unit in the range with the highest mean, over the mean of all units.
    pub most_over_mean: f64,
}

/// Counts the writes of a trace.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Writes of each unit: of application data, and of metadata.
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

    /// The writes of application data and of metadata. A unit that held both counts for both.
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

    /// How unevenly the ranges of a device of `span` bytes are written.
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
    fn counts_match_a_worked_example() {
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
        // Ranges have 64 units; their means are 4/3 and 6, and the mean of all units is 10/4.
        let bias = writes.bias(Bytes(64 * 64 * 4096));
        assert_eq!(bias, RangeBias { ranges: 2, most_over_mean: 6.0 / 2.5 });
        assert_eq!(Writes::default().bias(Bytes(4096)), RangeBias::default());
    }
}
