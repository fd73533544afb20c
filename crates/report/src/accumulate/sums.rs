//! Amounts over time: bytes written, requests served.

use super::timeline::{Bucket, Finished, Timeline};
use prism_base::{Nanos, SimTime};

/// What happened in one bucket of a [`SumSeries`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SumBucket {
    /// The sum of the amounts; it cannot overflow before 2^64 of them are recorded.
    pub sum: u128,
}

/// Sums of amounts by time.
///
/// Memory: 16 bytes a bucket.
#[derive(Clone, Debug)]
pub struct SumSeries(Timeline<SumBucket>);

impl Bucket for SumBucket {
    fn absorb(&mut self, later: &Self) {
        self.sum += later.sum;
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
        self.0.at(at).absorb(&SumBucket { sum: u128::from(amount) });
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
        let rate = |(bucket, span): (&SumBucket, Nanos)| {
            (span.0 > 0).then(|| bucket.sum as f64 / span.as_secs_f64())
        };
        self.buckets.iter().zip(self.spans()).map(rate).collect()
    }
}
