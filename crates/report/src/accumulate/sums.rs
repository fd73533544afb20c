//! Amounts over time: bytes written, requests served.

use super::timeline::{Bucket, Finished, Timeline};
use prism_base::{Nanos, SimTime};

/// What happened in one bucket of a [`SumSeries`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SumBucket {
    /// How many amounts were recorded.
    pub count: u64,
    /// Their sum; it cannot overflow before the count does.
    pub sum: u128,
    /// The largest; zero if there is none.
    pub max: u64,
}

/// Count, sum and maximum of amounts by time.
///
/// Memory: 48 bytes a bucket.
#[derive(Clone, Debug)]
pub struct SumSeries(Timeline<SumBucket>);

impl Bucket for SumBucket {
    fn absorb(&mut self, later: &Self) {
        self.count += later.count;
        self.sum += later.sum;
        self.max = self.max.max(later.max);
    }
}

impl SumSeries {
    /// An empty series; see [`Timeline::new`] for the arguments and panics.
    #[must_use]
    pub fn new(start: SimTime, width: Nanos, buckets: usize) -> Self {
        Self(Timeline::new(start, width, buckets))
    }

    /// Counts `amount` at `at`. Times may come in any order.
    ///
    /// # Panics
    /// If `at` lies before the start.
    pub fn record(&mut self, at: SimTime, amount: u64) {
        self.0.at(at).absorb(&SumBucket { count: 1, sum: u128::from(amount), max: amount });
    }

    /// The series up to `end`; see [`Timeline::finish`].
    #[must_use]
    pub fn finish(self, end: SimTime) -> Finished<SumBucket> {
        self.0.finish(end)
    }
}

impl Finished<SumBucket> {
    /// The sum of each bucket per second; none for a bucket that takes no time.
    #[must_use]
    pub fn rates(&self) -> Vec<Option<f64>> {
        self.per_second(|bucket| bucket.sum as f64)
    }

    /// The count of each bucket per second; none for a bucket that takes no time.
    #[must_use]
    pub fn count_rates(&self) -> Vec<Option<f64>> {
        self.per_second(|bucket| bucket.count as f64)
    }

    /// The mean amount of each bucket; none where nothing was recorded.
    #[must_use]
    pub fn means(&self) -> Vec<Option<f64>> {
        let mean = |b: &SumBucket| (b.count > 0).then(|| b.sum as f64 / b.count as f64);
        self.buckets.iter().map(mean).collect()
    }

    fn per_second(&self, amount: fn(&SumBucket) -> f64) -> Vec<Option<f64>> {
        let rate = |(bucket, span): (&SumBucket, Nanos)| {
            (span.0 > 0).then(|| amount(bucket) / span.as_secs_f64())
        };
        self.buckets.iter().zip(self.spans()).map(rate).collect()
    }
}
