//! How flash ages and fails: bad blocks, failing programs and erases, bits that flip, and
//! what error correction makes of them.
//!
//! The model is a set of closed forms over two quantities: *wear*, the cycles of a block over
//! its rated endurance, and *age*, the time since it was first programmed. Whether an
//! operation fails is a draw by hash of seed, place and cycle, so that it does not depend on
//! what else the device does, and a unit that cannot be read stays so until it is erased.
//! Design and sources: docs/design/faults.md.

mod forms;
mod kinds;
mod snapshot;
mod state;

pub use forms::{BitErrors, Ecc, FailureLaw, PageFactors, binomial_tail};
pub use state::{Health, UnitRead};

pub(crate) use state::{Bad, Faults};

use prism_base::Nanos;

/// A device of one kind, and how old it is when the run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultModel {
    /// Share of blocks that are bad from the factory; superblocks are put together from good
    /// blocks, so there it is a share of these.
    pub factory_bad: f64,
    /// Cycles a block is rated for: wear is counted in these.
    pub endurance: u32,
    /// Programs of a program unit that fail.
    pub program: FailureLaw,
    /// Erases of a block of a die that fail.
    pub erase: FailureLaw,
    /// Bits that are wrong when read.
    pub bits: BitErrors,
    /// What can be put right.
    pub ecc: Ecc,
    /// Cycles that every block starts with.
    pub wear: u32,
    /// How long ago what the drive holds at the start was programmed.
    pub age: Nanos,
}

impl FaultModel {
    /// The wear of a block with `erases` erases in this run, as a share of its endurance.
    #[must_use]
    pub fn wear_of(&self, erases: u32) -> f64 {
        (f64::from(self.wear) + f64::from(erases)) / f64::from(self.endurance)
    }
}

/// A number from 0 to 1 (excluded) that belongs to `place` in cycle `cycle`: two rounds of
/// SplitMix64 over all of it.
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

/// What a draw decides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    /// Whether a block is bad from the factory.
    Factory = 1,
    /// Whether the program of a program unit fails.
    Program = 2,
    /// Whether an erase fails.
    Erase = 3,
    /// How well a unit can be read.
    Read = 4,
}

#[cfg(test)]
mod tests;
