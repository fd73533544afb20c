//! Synthetic workloads, described by fio options, and the figures measured while a drive serves
//! requests.
//!
//! [`fio`] reads jobs and runs them in simulated time. [`Measured`] and [`Observer`] are used both
//! by jobs and by the replay of traces. [`overwrites`] are blocks of a file without a drive, which
//! file systems are made to write. The crate knows no traces and prints nothing.

pub mod fio;
pub mod measure;
pub mod observe;
pub mod overwrites;

pub use measure::Measured;
pub use observe::{Finished, Issuer, Observer, Progress, Silent};
