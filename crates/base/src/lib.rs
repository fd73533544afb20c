//! What every other crate stands on: units, seeded random streams, histograms,
//! an event queue. No word about flash is known here.

pub mod events;
pub mod hash;
pub mod latency;
pub mod rng;
pub mod units;

pub use events::EventQueue;
pub use hash::FastMap;
pub use latency::Latencies;
pub use rng::Rng;
pub use units::{Bytes, Nanos, SimTime};
