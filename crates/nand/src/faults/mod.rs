//! Fault injection: bad blocks, failing programs and erases, bit errors and their correction.
//!
//! The model is a set of closed forms over two quantities: *wear*, the cycles of a block over its
//! rated endurance, and *age*, the time since it was first programmed. Whether an operation fails
//! is decided by a hash of seed, address and cycle. It does therefore not depend on other
//! operations, and a unit that cannot be read stays unreadable until it is erased. Design and
//! sources: docs/design/faults.md.

mod forms;
mod kinds;
mod state;

pub use forms::{BitErrors, Ecc, FailureLaw, PageFactors, binomial_tail};
pub use state::{Health, UnitRead};

pub(crate) use state::{Bad, Faults};

use prism_base::Nanos;

/// The fault model of a device, and its wear and age when the run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultModel {
    /// Fraction of blocks that are bad from the factory. Superblocks are assembled from good
    /// blocks, so there it is a fraction of superblocks.
    pub factory_bad: f64,
    /// Rated endurance in cycles: the unit of wear.
    pub endurance: u32,
    /// Probability that the program of a program unit fails.
    pub program: FailureLaw,
    /// Probability that the erase of a block of a die fails.
    pub erase: FailureLaw,
    /// Raw bit errors.
    pub bits: BitErrors,
    /// Error correction.
    pub ecc: Ecc,
    /// Cycles that every block has at the start.
    pub wear: u32,
    /// Age of the data that the drive holds at the start.
    pub age: Nanos,
}

impl FaultModel {
    /// The wear of a block with `erases` erases in this run, as a fraction of its endurance.
    #[must_use]
    pub fn wear_of(&self, erases: u32) -> f64 {
        (f64::from(self.wear) + f64::from(erases)) / f64::from(self.endurance)
    }
}

/// A number from 0 to 1 (excluded) for `place` in cycle `cycle`: a hash of all parameters by two
/// rounds of SplitMix64.
pub(crate) fn draw(seed: u64, what: Draw, place: u64, cycle: u64) -> f64 {
    let mut mix = seed ^ (what as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mix = scatter(mix.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    mix = scatter(mix ^ cycle.wrapping_mul(0xa24b_aed4_963e_e407));
    (mix >> 11) as f64 / (1u64 << 53) as f64
}

fn scatter(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a random number decides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    /// Whether a block is bad from the factory.
    Factory = 1,
    /// Whether the program of a program unit fails.
    Program = 2,
    /// Whether an erase fails.
    Erase = 3,
    /// Whether a unit can be read.
    Read = 4,
}

#[cfg(test)]
mod tests;
