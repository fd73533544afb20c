//! The five rules, each a number over a trace.

mod rule;
mod stack;
mod units;

pub use rule::{Rule, Thresholds, Verdict};
pub use stack::{Distances, Stack};
pub use units::{Run, Units};
