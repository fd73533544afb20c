//! Latencies over time: a small histogram for each bucket. Histograms can be merged and still
//! give percentiles; percentiles themselves cannot be merged.

use super::timeline::{Bucket, Finished, Timeline};
use prism_base::{Nanos, SimTime};

/// Every power of two is divided into this many classes, which is itself a power of two. With
/// eight, a class is at most an eighth as wide as its lower end, and a percentile read from it
/// is at most an eighth too high.
const CLASS_BITS: u32 = 3;
const CLASSES: u64 = 1 << CLASS_BITS;

/// Counts of values in classes whose width grows with the value.
///
/// Values below eight have a class each. Memory: eight bytes for each class up to the
/// largest value, 1.3 KiB where that is a millisecond.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHistogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

/// Latency percentiles by time.
///
/// Memory: about 1.5 KiB a bucket for latencies up to seconds.
#[derive(Clone, Debug)]
pub struct LatencySeries(Timeline<LogHistogram>);

/// The class of `value`.
fn class(value: u64) -> usize {
    let class = if value < CLASSES {
        value
    } else {
        let shift = value.ilog2() - CLASS_BITS;
        // The top bits are in CLASSES..2 * CLASSES, so the classes have no gap.
        u64::from(shift) * CLASSES + (value >> shift)
    };
    usize::try_from(class).expect("at most 8 * 62 classes")
}

/// The largest value of `class`.
fn class_end(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * CLASSES {
        return class;
    }
    let shift = class / CLASSES - 1;
    let next = u128::from(class % CLASSES + CLASSES + 1) << shift;
    u64::try_from(next - 1).expect("classes end where 64 bits end")
}

impl LogHistogram {
    /// Counts `value` once.
    pub fn record(&mut self, value: u64) {
        let class = class(value);
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.total += 1;
        self.max = self.max.max(value);
    }

    /// An upper bound of the value that `per_mille` thousandths of the values do not
    /// exceed (nearest rank), at most an eighth above it; none if nothing was counted.
    ///
    /// # Panics
    /// If `per_mille` is above 1000.
    #[must_use]
    pub fn percentile(&self, per_mille: u32) -> Option<u64> {
        assert!(per_mille <= 1000, "{per_mille} thousandths are more than all");
        let rank = (u128::from(self.total) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0u128;
        for (class, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                return Some(class_end(class).min(self.max));
            }
        }
        None
    }
}

impl Bucket for LogHistogram {
    fn absorb(&mut self, later: &Self) {
        if self.counts.len() < later.counts.len() {
            self.counts.resize(later.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&later.counts) {
            *mine += theirs;
        }
        self.total += later.total;
        self.max = self.max.max(later.max);
    }
}

impl LatencySeries {
    /// An empty series; see [`Timeline::new`] for the arguments and panics.
    #[must_use]
    pub fn new(start: SimTime, width: Nanos, buckets: usize) -> Self {
        Self(Timeline::new(start, width, buckets))
    }

    /// Counts `latency` at `at`. Times may come in any order.
    ///
    /// # Panics
    /// If `at` lies before the start.
    pub fn record(&mut self, at: SimTime, latency: Nanos) {
        self.0.at(at).record(latency.0);
    }

    /// The series up to `end`; see [`Timeline::finish`].
    #[must_use]
    pub fn finish(self, end: SimTime) -> Finished<LogHistogram> {
        self.0.finish(end)
    }
}

impl Finished<LogHistogram> {
    /// A percentile of each bucket; none where nothing was recorded.
    ///
    /// # Panics
    /// If `per_mille` is above 1000.
    #[must_use]
    pub fn percentiles(&self, per_mille: u32) -> Vec<Option<f64>> {
        let of = |bucket: &LogHistogram| bucket.percentile(per_mille).map(|v| v as f64);
        self.buckets.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_tile_all_numbers() {
        let last = class(u64::MAX);
        assert_eq!(class_end(last), u64::MAX);
        for c in 0..last {
            assert_eq!(class(class_end(c)), c, "the end of class {c} is in it");
            assert_eq!(class(class_end(c) + 1), c + 1, "the next value is in the next class");
            let width = class_end(c + 1) - class_end(c);
            assert!(c < 8 || width <= class_end(c).div_ceil(8), "class {c} is narrow");
        }
    }

    #[test]
    fn percentiles_of_few_values() {
        let mut histogram = LogHistogram::default();
        assert_eq!(histogram.percentile(500), None);
        for value in [1, 2, 3, 4, 1000] {
            histogram.record(value);
        }
        assert_eq!(histogram.percentile(0), Some(1));
        assert_eq!(histogram.percentile(500), Some(3));
        assert_eq!(histogram.percentile(800), Some(4));
        assert_eq!(histogram.percentile(1000), Some(1000), "never above the maximum");
    }
}
