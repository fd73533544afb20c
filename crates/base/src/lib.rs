//! Foundations of all other crates: units, seeded random streams, histograms, event queues,
//! encoding of numbers. Nothing here knows about flash.

pub mod codec;
mod counts;
pub mod distribution;
pub mod divisor;
pub mod events;
pub mod hash;
mod huge;
pub mod latency;
mod named;
pub mod pipe;
pub mod prefetch;
pub mod ring;
pub mod rng;
pub mod slab;
pub mod symbols;
pub mod table;
pub mod timers;
pub mod units;
pub mod zeroed;

pub use codec::Snapshot;
pub use divisor::Divisor;
pub use events::EventQueue;
pub use hash::{FastMap, FastSet};
pub use huge::vec_in_huge_pages;
pub use latency::Latencies;
pub use named::Named;
pub use pipe::Pipe;
pub use prefetch::prefetch;
pub use ring::Ring;
pub use rng::Rng;
pub use slab::Slab;
pub use symbols::{Symbol, Symbols};
pub use table::{Column, DataTable, Values};
pub use timers::Timers;
pub use units::{Bytes, Nanos, SimTime, counted};
pub use zeroed::{OutOfMemory, Zeroed, zeroed_bytes};
