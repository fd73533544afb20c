//! A fixed number of time buckets whose width doubles when time passes the last one.

use prism_base::{Nanos, SimTime};

/// The content of a time bucket.
pub trait Bucket: Clone + Default {
    /// Adds the content of the next bucket.
    fn absorb(&mut self, later: &Self);
}

/// Buckets of equal width from a start, as far as needed.
///
/// The width is always the initial one times a power of two.
#[derive(Clone, Debug)]
pub struct Timeline<T> {
    start: SimTime,
    width: u64,
    buckets: Vec<T>,
}

/// A timeline cut at the end of the run.
#[derive(Clone, Debug)]
pub struct Finished<T> {
    /// Where the first bucket begins.
    pub start: SimTime,
    /// Where the last bucket ends: it may be narrower than the others.
    pub end: SimTime,
    /// The width of every bucket but the last.
    pub width: Nanos,
    /// The buckets in order of time; at least one.
    pub buckets: Vec<T>,
}

impl<T: Bucket> Timeline<T> {
    /// `count` empty buckets of `width` from `start`.
    ///
    /// # Panics
    /// If `width` is zero, or `count` is not an even number of at least two: buckets merge in
    /// pairs.
    #[must_use]
    pub fn new(start: SimTime, width: Nanos, count: usize) -> Self {
        assert!(width.0 > 0, "a bucket has a width");
        assert!(count >= 2 && count.is_multiple_of(2), "buckets merge in pairs, got {count}");
        Self { start, width: width.0, buckets: vec![T::default(); count] }
    }

    /// The bucket that `at` falls into, after widening as far as needed.
    ///
    /// # Panics
    /// If `at` lies before the start.
    pub fn at(&mut self, at: SimTime) -> &mut T {
        let index = self.index(at);
        &mut self.buckets[index]
    }

    /// The index of the bucket that `at` falls into, after widening as far as needed.
    ///
    /// # Panics
    /// If `at` lies before the start.
    pub(crate) fn index(&mut self, at: SimTime) -> usize {
        let offset = at.since(self.start).0;
        while offset / self.width >= self.buckets.len() as u64 {
            self.widen();
        }
        usize::try_from(offset / self.width).expect("less than the number of buckets")
    }

    /// When the bucket at `index` ends; the end of time if that is earlier.
    pub(crate) fn bucket_end(&self, index: usize) -> SimTime {
        let offset = self.width.saturating_mul(index as u64 + 1);
        SimTime(self.start.0.saturating_add(offset))
    }

    /// The bucket at `index`.
    pub(crate) fn bucket_mut(&mut self, index: usize) -> &mut T {
        &mut self.buckets[index]
    }

    /// Merges neighbours: half the buckets then cover the same time, and the rest are empty.
    fn widen(&mut self) {
        let half = self.buckets.len() / 2;
        for i in 0..half {
            let mut merged = std::mem::take(&mut self.buckets[2 * i]);
            merged.absorb(&self.buckets[2 * i + 1]);
            self.buckets[2 * i + 1] = T::default();
            self.buckets[i] = merged;
        }
        // With two or more buckets, the width reaches all of time before it overflows.
        self.width = self.width.checked_mul(2).expect("time has 64 bits");
    }

    /// Cuts the timeline at `end`. Events exactly at the end count in the last bucket.
    ///
    /// # Panics
    /// If `end` lies before the start.
    #[must_use]
    pub fn finish(mut self, end: SimTime) -> Finished<T> {
        let last = self.index(end);
        self.buckets.truncate(last + 1);
        let empty_tail = end.since(self.start).0.is_multiple_of(self.width);
        if empty_tail && last > 0 {
            let tail = self.buckets.pop().expect("at least one bucket");
            self.buckets[last - 1].absorb(&tail);
        }
        let Self { start, width, buckets } = self;
        Finished { start, end, width: Nanos(width), buckets }
    }
}

impl<T> Finished<T> {
    /// How long each bucket lasts; the last may be shorter.
    #[must_use]
    pub fn spans(&self) -> Vec<Nanos> {
        let total = self.end.since(self.start).0;
        let full = self.buckets.len() as u64 - 1;
        (0..=full)
            .map(|i| if i < full { self.width } else { Nanos(total - full * self.width.0) })
            .collect()
    }

    /// From start to end in nanoseconds: the extent of a chart's time axis.
    #[must_use]
    pub fn time_range(&self) -> std::ops::Range<u64> {
        self.start.0..self.end.0
    }

    /// The middle of each bucket, in nanoseconds since time zero: the x axis of a chart.
    #[must_use]
    pub fn midpoints(&self) -> Vec<f64> {
        let mut at = self.start.0 as f64;
        let middle = |span: Nanos| {
            let middle = at + span.0 as f64 / 2.0;
            at += span.0 as f64;
            middle
        };
        self.spans().into_iter().map(middle).collect()
    }
}
