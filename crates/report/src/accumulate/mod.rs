//! Counters that are updated while a simulation runs, in bounded memory.
//!
//! The length of a run is not known when it starts, so time is divided into a fixed number of
//! buckets that are narrow at first: whenever time runs past the last bucket, neighbours merge
//! and the width doubles. Merging loses no count and no sum, so totals stay exact. All
//! arithmetic is on integers, so the same run gives the same bytes.
//!
//! Accumulators made with the same start, width and number of buckets and finished at
//! the same end have the same buckets, and can share one time axis.

mod heat;
mod latency;
mod level;
mod sizes;
mod sums;
mod timeline;

pub use heat::HeatGrid;
pub use latency::{LatencySeries, LogHistogram};
pub use level::{LevelBucket, LevelSeries};
pub use sizes::{SizeClass, SizeHistogram};
pub use sums::{SumBucket, SumSeries};
pub use timeline::{Bucket, Finished, Timeline};
