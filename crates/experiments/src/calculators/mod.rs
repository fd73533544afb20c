//! Arithmetic for buyers of drives: how long a drive lasts, and what cleaning costs on a full one.
//!
//! The formulas are those of "Designing SSD-Friendly Applications", 2016. The formula for cleaning
//! is compared with what greedy cleaning costs, in theory and in simulation.

mod cleaning;
mod lifetime;

use prism_ftl::ConfigError;

pub use cleaning::{
    Cleaning, Cost, PAGES_MAX, PAGES_MIN, UTILIZATION_MAX, UTILIZATION_MIN, check, cleaning,
};
pub use lifetime::{Cell, life, usual_cycles};

/// Why a calculator refuses its arguments.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalcError {
    /// A quantity that must be positive is 0.
    #[error("{field} is 0; it must be more")]
    Zero {
        /// The name of the quantity.
        field: &'static str,
    },
    /// The write amplification is not a positive number.
    #[error("the write amplification {given} is not a number above 0; write for example 2.5")]
    WriteAmplification {
        /// The value.
        given: f64,
    },
    /// The utilization is out of range.
    #[error(
        "the utilization {}% is out of range; give one from {}% to {}%",
        given * 100.0, UTILIZATION_MIN * 100.0, UTILIZATION_MAX * 100.0
    )]
    Utilization {
        /// The share.
        given: f64,
    },
    /// The size of a block is out of range.
    #[error("{given} pages per block are out of range; give {PAGES_MIN} to {PAGES_MAX}")]
    Pages {
        /// The pages of a block.
        given: u32,
    },
    /// The flash to be simulated is impossible.
    #[error(transparent)]
    Flash(#[from] ConfigError),
}
