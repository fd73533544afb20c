//! A histogram of latencies with exact count, sum, mean and maximum.

use hdrhistogram::Histogram;

use crate::units::Nanos;

/// Latencies in nanoseconds. Count, sum, minimum and maximum are exact; quantiles have three
/// significant digits (HdrHistogram).
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u128,
    /// Sum of squares, for the deviation.
    squares: u128,
    min: u64,
    max: u64,
}

impl Latencies {
    /// The longest latency that quantiles distinguish (about 13 simulated days); longer ones
    /// count as this long, in quantiles only.
    const LONGEST: u64 = 1 << 50;

    /// An empty histogram.
    ///
    /// # Panics
    /// Never: the bounds are constants that the library accepts.
    #[must_use]
    pub fn new() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, Self::LONGEST, 3).expect("constant bounds are valid");
        Self { histogram, sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one latency.
    pub fn record(&mut self, latency: Nanos) {
        self.histogram.saturating_record(latency.0.min(Self::LONGEST));
        self.sum += u128::from(latency.0);
        let square = u128::from(latency.0) * u128::from(latency.0);
        self.squares = self.squares.saturating_add(square);
        self.min = self.min.min(latency.0);
        self.max = self.max.max(latency.0);
    }

    /// The number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The exact sum.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The mean in nanoseconds; 0 if there are no latencies.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// The standard deviation in nanoseconds; 0 if there are no latencies.
    #[must_use]
    pub fn deviation_ns(&self) -> f64 {
        let count = u128::from(self.count());
        if count == 0 {
            return 0.0;
        }
        // In integers as long as they do not overflow, because the difference of two large
        // numbers is small.
        let variance = match (self.squares.checked_mul(count), self.sum.checked_mul(self.sum)) {
            (Some(a), Some(b)) => a.saturating_sub(b) as f64 / (count as f64 * count as f64),
            _ => self.squares as f64 / count as f64 - self.mean_ns() * self.mean_ns(),
        };
        variance.max(0.0).sqrt()
    }

    /// The exact minimum; 0 if there are no latencies.
    #[must_use]
    pub fn min(&self) -> Nanos {
        Nanos(if self.count() == 0 { 0 } else { self.min })
    }

    /// Latencies to three digits with their counts, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.histogram
            .iter_recorded()
            .map(|bucket| (Nanos(bucket.value_iterated_to()), bucket.count_at_value()))
    }

    /// The exact maximum; 0 if there are no latencies.
    #[must_use]
    pub fn max(&self) -> Nanos {
        Nanos(self.max)
    }

    /// The quantile `q` (0 to 1), at most [`Self::max`].
    #[must_use]
    pub fn quantile(&self, q: f64) -> Nanos {
        if self.count() == 0 {
            return Nanos::ZERO;
        }
        Nanos(self.histogram.value_at_quantile(q).min(self.max))
    }

    /// Adds the latencies of `other`.
    ///
    /// # Panics
    /// Never: both have the same bounds.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("same bounds");
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_max_are_exact() {
        let mut latencies = Latencies::new();
        for ns in [1_234_567, 7, 999_999_999_999] {
            latencies.record(Nanos(ns));
        }
        assert_eq!(latencies.count(), 3);
        assert_eq!(latencies.sum_ns(), 1_234_567 + 7 + 999_999_999_999);
        assert_eq!(latencies.max(), Nanos(999_999_999_999));
        assert_eq!(latencies.min(), Nanos(7));
        assert_eq!(latencies.buckets().map(|(_, count)| count).sum::<u64>(), 3);
        assert!(latencies.quantile(0.5).0.abs_diff(1_234_567) < 1_300);
    }

    /// The nearest rank is the smallest value at or below which the share lies. These values are
    /// small enough to be exact.
    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|ns| latencies.record(Nanos(ns)));
        for (share, expected) in
            [(0.0, 1), (0.001, 1), (0.5, 500), (0.501, 501), (0.9, 900), (0.99, 990), (0.999, 999)]
        {
            assert_eq!(latencies.quantile(share), Nanos(expected), "{share}");
        }
        assert_eq!(latencies.quantile(1.0), Nanos(1000));
        // Of two values the lower is the median.
        let mut two = Latencies::new();
        two.record(Nanos(7));
        two.record(Nanos(9));
        assert_eq!([0.5, 0.51].map(|share| two.quantile(share)), [Nanos(7), Nanos(9)]);
    }

    #[test]
    fn the_deviation_is_that_of_the_values() {
        let mut latencies = Latencies::new();
        assert_eq!((latencies.deviation_ns(), latencies.min()), (0.0, Nanos::ZERO));
        for ns in [2, 4, 4, 4, 5, 5, 7, 9] {
            latencies.record(Nanos(ns * 1_000_000_000));
        }
        assert_eq!(latencies.deviation_ns(), 2e9);
    }
}
