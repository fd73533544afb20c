//! A level that holds until it changes, such as a queue depth, with its exact integral over
//! time, so that means are weighted by time.

use super::timeline::{Bucket, Finished, Timeline};
use prism_base::{Nanos, SimTime};

/// The level within one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelBucket {
    /// The integral: levels times nanoseconds.
    pub integral: u128,
    /// The highest level, even if it held for no time.
    pub max: u64,
}

/// A level by time.
///
/// Memory: 32 bytes a bucket.
#[derive(Clone, Debug)]
pub struct LevelSeries {
    timeline: Timeline<LevelBucket>,
    /// The time up to which the level is accounted for.
    now: SimTime,
    level: u64,
}

impl Bucket for LevelBucket {
    fn absorb(&mut self, later: &Self) {
        self.integral += later.integral;
        self.max = self.max.max(later.max);
    }
}

impl LevelSeries {
    /// A level of zero from `start` on; see [`Timeline::new`] for the panics.
    #[must_use]
    pub fn new(start: SimTime, width: Nanos, buckets: usize) -> Self {
        Self { timeline: Timeline::new(start, width, buckets), now: start, level: 0 }
    }

    /// The level is `level` from `at` on.
    ///
    /// # Panics
    /// If `at` lies before an earlier change.
    pub fn set(&mut self, at: SimTime, level: u64) {
        self.advance(at);
        self.level = level;
        let bucket = self.timeline.at(at);
        bucket.max = bucket.max.max(level);
    }

    /// The series up to `end`; see [`Timeline::finish`].
    ///
    /// # Panics
    /// If `end` lies before the last change.
    #[must_use]
    pub fn finish(mut self, end: SimTime) -> Finished<LevelBucket> {
        self.advance(end);
        self.timeline.finish(end)
    }

    /// Accounts for the level from the last change to `to`, bucket by bucket: at most as
    /// many steps as there are buckets, because widening comes first.
    fn advance(&mut self, to: SimTime) {
        assert!(to >= self.now, "a level was set at {to:?}, before {:?}", self.now);
        let last = self.timeline.index(to);
        let mut index = self.timeline.index(self.now);
        while self.now < to {
            let until = if index < last { self.timeline.bucket_end(index) } else { to };
            let span = u128::from(until.since(self.now).0);
            let level = self.level;
            self.timeline
                .bucket_mut(index)
                .absorb(&LevelBucket { integral: u128::from(level) * span, max: level });
            self.now = until;
            index += 1;
        }
    }
}

impl Finished<LevelBucket> {
    /// The mean level of each bucket by time; none for a bucket that takes no time.
    #[must_use]
    pub fn means(&self) -> Vec<Option<f64>> {
        let mean = |(bucket, span): (&LevelBucket, Nanos)| {
            (span.0 > 0).then(|| bucket.integral as f64 / span.0 as f64)
        };
        self.buckets.iter().zip(self.spans()).map(mean).collect()
    }

    /// The highest level of each bucket.
    #[must_use]
    pub fn maxima(&self) -> Vec<Option<f64>> {
        self.buckets.iter().map(|bucket| Some(bucket.max as f64)).collect()
    }
}
