//! A histogram of latencies with exact count, sum, mean and maximum.

use crate::units::Nanos;

/// Latencies in nanoseconds. Count, sum, minimum and maximum are exact; quantiles have three
/// significant digits.
///
/// The classes are those of HdrHistogram: below 2048 ns each latency has its own, above that each
/// doubling is divided into 1024 of equal width. They are stored up to the longest latency, since a
/// report has hundreds of histograms: 80 KB for one that ends at a millisecond.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// By class; the last is not 0.
    counts: Vec<u64>,
    count: u64,
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

    /// The classes of a doubling, as a power of two.
    const PRECISION: u32 = 10;

    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: Vec::new(), count: 0, sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }

    /// The class of a latency.
    #[inline]
    fn class_of(latency: u64) -> usize {
        // The number of low bits that a class ignores.
        let shift = (latency | (1 << Self::PRECISION)).ilog2() - Self::PRECISION;
        ((shift as usize) << Self::PRECISION) + (latency >> shift) as usize
    }

    /// The longest latency of a class.
    fn longest_of(class: usize) -> u64 {
        let shift = (class >> Self::PRECISION).saturating_sub(1);
        let first = (class - (shift << Self::PRECISION)) as u64;
        ((first + 1) << shift) - 1
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.record_all(std::iter::once(latency));
    }

    /// Counts several latencies, which is faster than one after another: their sums do not pass
    /// through memory.
    #[inline(always)]
    pub fn record_all(&mut self, latencies: impl Iterator<Item = Nanos>) {
        let (mut count, mut sum, mut squares) = (self.count, self.sum, self.squares);
        let (mut min, mut max) = (self.min, self.max);
        for Nanos(latency) in latencies {
            match self.counts.get_mut(Self::class_of(latency)) {
                Some(count) => *count += 1,
                None => self.lengthen(latency),
            }
            count += 1;
            sum += u128::from(latency);
            squares = squares.saturating_add(u128::from(latency) * u128::from(latency));
            min = min.min(latency);
            max = max.max(latency);
        }
        (self.count, self.sum, self.squares) = (count, sum, squares);
        (self.min, self.max) = (min, max);
    }

    /// Counts a latency of a class beyond the last one, or longer than the last class has.
    #[cold]
    fn lengthen(&mut self, latency: u64) {
        let class = Self::class_of(latency.min(Self::LONGEST));
        self.counts.resize(self.counts.len().max(class + 1), 0);
        self.counts[class] += 1;
    }

    /// The number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
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
        let classes = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        classes.map(|(class, &count)| (Nanos(Self::longest_of(class)), count))
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
        let rank = ((q.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut passed = 0;
        let class = self.counts.iter().position(|&count| {
            passed += count;
            passed >= rank
        });
        let class = class.unwrap_or(self.counts.len() - 1);
        Nanos(Self::longest_of(class).min(self.max))
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
        self.count += other.count;
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

    #[test]
    fn classes_follow_one_another_and_are_narrow() {
        let mut next = 0;
        for class in 0..45 << 10 {
            let longest = Latencies::longest_of(class);
            assert_eq!((Latencies::class_of(next), Latencies::class_of(longest)), (class, class));
            assert!((longest - next) * 1024 <= next, "{next} to {longest}");
            next = longest + 1;
        }
        assert!(next > Latencies::LONGEST);
        let mut latencies = Latencies::new();
        latencies.record(Nanos(u64::MAX));
        assert_eq!(latencies.quantile(0.5).0, Latencies::longest_of(41 << 10));
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
