//! Work for a drive: jobs written as fio options, and what is measured while a drive serves
//! requests.
//!
//! [`fio`] reads jobs and runs them in simulated time. [`Measured`] and [`Observer`] are used by
//! everything that submits requests to a drive, whether they come from jobs or from a trace.
//! Traces and the printing of results are unknown here.

pub mod fio;
pub mod measure;
pub mod observe;

pub use measure::Measured;
pub use observe::{Finished, Issuer, Observer, Progress, Silent};
