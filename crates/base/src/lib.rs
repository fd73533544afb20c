//! What every other crate stands on: units, seeded random streams, histograms,
//! an event queue. No word about flash is known here.

pub mod rng;
pub mod units;

pub use rng::Rng;
pub use units::{Bytes, Nanos, SimTime};
