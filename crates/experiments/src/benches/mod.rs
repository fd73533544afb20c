//! Benchmarks: work that the caller times with a clock.

pub mod calls;
pub mod judging;
pub mod levels;
pub(crate) mod library;
pub mod preparing;
pub mod real_time;
pub mod recovery;
pub mod speed;
