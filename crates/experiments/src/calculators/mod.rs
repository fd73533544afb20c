//! Arithmetic for a buyer: how long a drive lasts, and what cleaning costs on a full one.
//!
//! The formulas are those of "Designing SSD-Friendly Applications", 2016. That of cleaning
//! stands beside what greedy cleaning really costs, from theory and by simulation.

use prism_base::{Bytes, Nanos};
use prism_ftl::{ConfigError, Frontiers, VictimPolicy};
use prism_nand::Cause;
use prism_replay::lifetime::{Lifetime, lifetime};
pub use prism_ssd::device::Cell;

use crate::theory;
use crate::theory::write_amplification::{Setup, measure};

/// P/E cycles that a block of such cells is usually good for. The article gives those of
/// one and two bits, and "a few thousand" for three; for four bits it gives none, and 1,000
/// is what data sheets have.
#[must_use]
pub fn usual_cycles(cell: Cell) -> u32 {
    match cell {
        Cell::Slc => 100_000,
        Cell::Mlc => 10_000,
        Cell::Tlc => 3_000,
        Cell::Qlc => 1_000,
    }
}

/// A question that has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalcError {
    /// A quantity that has to be more than nothing is nothing.
    #[error("{field} is 0, and has to be more")]
    Zero {
        /// Which quantity.
        field: &'static str,
    },
    /// Write amplification is no positive number.
    #[error("the write amplification {given} is no number above 0; write for example 2.5")]
    WriteAmplification {
        /// The value.
        given: f64,
    },
    /// The drive is emptier or fuller than what is computed.
    #[error(
        "the utilization {}% is out of range; give one from {}% to {}%",
        given * 100.0, UTILIZATION_MIN * 100.0, UTILIZATION_MAX * 100.0
    )]
    Utilization {
        /// The share.
        given: f64,
    },
    /// Blocks of a size that is not computed.
    #[error("{given} pages a block are out of range; give {PAGES_MIN} to {PAGES_MAX}")]
    Pages {
        /// The pages of a block.
        given: u32,
    },
    /// The flash that would be simulated is impossible.
    #[error(transparent)]
    Flash(#[from] ConfigError),
}

/// The lifetime of a drive of `capacity` good for `cycles`, to which the host writes `rate`
/// bytes a second: capacity x cycles / (write amplification x rate). Spare flash beyond the
/// capacity is left out, as in the article; it would add its share.
///
/// # Errors
/// [`CalcError`] if a quantity is 0 or no number.
pub fn life(
    capacity: Bytes,
    cycles: u32,
    write_amplification: f64,
    rate: Bytes,
) -> Result<Lifetime, CalcError> {
    let none = [
        ("the capacity", capacity.0 == 0),
        ("the number of cycles", cycles == 0),
        ("the rate of writes", rate.0 == 0),
    ];
    if let Some((field, _)) = none.into_iter().find(|(_, is_zero)| *is_zero) {
        return Err(CalcError::Zero { field });
    }
    if !(write_amplification.is_finite() && write_amplification > 0.0) {
        return Err(CalcError::WriteAmplification { given: write_amplification });
    }
    let second = Nanos(1_000_000_000);
    let life = lifetime(capacity, cycles, capacity, write_amplification, rate, second);
    Ok(life.expect("the host writes, and it reaches the flash"))
}

/// The least utilization that is computed: with less, hardly a victim has a valid page.
pub const UTILIZATION_MIN: f64 = 0.01;
/// The greatest: the FTL that is simulated keeps a little garbage, so that cleaning
/// never runs in circles.
pub const UTILIZATION_MAX: f64 = 0.97;
/// The fewest pages of a block: with one, a block is valid or garbage and none is copied.
pub const PAGES_MIN: u32 = 2;
/// The most pages of a block: about as many as flash has, and simulated in seconds.
pub const PAGES_MAX: u32 = 4096;

/// Pages simulated, where blocks are not too large for that.
const PAGES_SIMULATED: u32 = 1 << 18;
/// Blocks simulated at least, so that the choice of a victim is a choice.
const BLOCKS_SIMULATED_MIN: u32 = 512;

/// What it costs to free one block, net: as many pages erased as copied, and a block more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Share of a victim's pages that are valid, on average.
    pub valid: f64,
    /// Victims cleaned for one free block: 1 / (1 - valid).
    pub blocks: f64,
    /// Pages copied for one free block: P x valid / (1 - valid), P the pages of a block.
    pub pages: f64,
    /// Pages programmed for each that the host writes.
    pub write_amplification: f64,
}

impl Cost {
    /// The cost where victims have the share `valid` of valid pages. A free block takes
    /// P host writes and costs 1 / (1 - valid) blocks of programs in all.
    fn of_victims(valid: f64, pages_per_block: u32) -> Self {
        let blocks = 1.0 / (1.0 - valid);
        let pages = f64::from(pages_per_block) * valid / (1.0 - valid);
        Self { valid, blocks, pages, write_amplification: blocks }
    }
}

/// The cost of cleaning at one utilization, under uniform random writes of pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleaning {
    /// Share of the flash that holds valid data; spare flash counts as flash, open and
    /// erased blocks do not.
    pub utilization: f64,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// The article's: victims are as full as the drive is on average, as random ones are.
    pub average: Cost,
    /// Greedy's in the mean field ([`theory::greedy`]).
    pub theory: Cost,
    /// Greedy's, simulated.
    pub simulated: Cost,
}

/// Computes and simulates the cost of cleaning at `utilization` with blocks of
/// `pages_per_block`.
///
/// # Errors
/// [`CalcError`] if one of the two is out of range.
pub fn cleaning(utilization: f64, pages_per_block: u32, seed: u64) -> Result<Cleaning, CalcError> {
    check(utilization, pages_per_block)?;
    let op = 1.0 / utilization - 1.0;
    let setup = Setup {
        blocks: (PAGES_SIMULATED / pages_per_block).max(BLOCKS_SIMULATED_MIN),
        units_per_block: pages_per_block,
        op,
        victim: VictimPolicy::Greedy,
        frontiers: Frontiers::Shared,
        hot: None,
        trims: 0.0,
        warm_up: 2.0,
        measured: 2.0,
    };
    let (write_amplification, counts) = measure(&setup, seed)?;
    let cleaned = counts.erases[Cause::Gc] as f64 * f64::from(pages_per_block);
    let valid = counts.units[Cause::Gc] as f64 / cleaned;
    let in_theory = 1.0 - 1.0 / theory::greedy(op, pages_per_block);
    Ok(Cleaning {
        utilization,
        pages_per_block,
        average: Cost::of_victims(utilization, pages_per_block),
        theory: Cost::of_victims(in_theory, pages_per_block),
        simulated: Cost { write_amplification, ..Cost::of_victims(valid, pages_per_block) },
    })
}

/// Checks the arguments of [`cleaning`], which takes seconds.
///
/// # Errors
/// [`CalcError`] if one of the two is out of range.
pub fn check(utilization: f64, pages_per_block: u32) -> Result<(), CalcError> {
    if !(UTILIZATION_MIN..=UTILIZATION_MAX).contains(&utilization) {
        return Err(CalcError::Utilization { given: utilization });
    }
    if !(PAGES_MIN..=PAGES_MAX).contains(&pages_per_block) {
        return Err(CalcError::Pages { given: pages_per_block });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TB: Bytes = Bytes(1_000_000_000_000);
    const RATE: Bytes = Bytes(100_000_000);

    fn near(ours: f64, expected: f64, tolerance: f64) {
        assert!((ours - expected).abs() <= tolerance * expected, "{ours}, not {expected}");
    }

    #[test]
    fn the_published_lifetimes_come_out() {
        // 1e12 x 1e4 / (4 x 1e8) = 2.5e7 s, 10 months; 1e12 x 3e3 / (10 x 1e8) = 3e6 s, 1 month.
        for (cell, write_amplification, seconds) in
            [(Cell::Mlc, 4.0, 2.5e7), (Cell::Tlc, 10.0, 3e6)]
        {
            let life = life(TB, usual_cycles(cell), write_amplification, RATE).unwrap();
            near(life.days, seconds / 86_400.0, 1e-12);
        }
    }

    #[test]
    fn a_life_of_nothing_is_refused() {
        let zero = |field| Err(CalcError::Zero { field });
        assert_eq!(life(Bytes(0), 1, 1.0, RATE), zero("the capacity"));
        assert_eq!(life(TB, 0, 1.0, RATE), zero("the number of cycles"));
        assert_eq!(life(TB, 1, 1.0, Bytes(0)), zero("the rate of writes"));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(
                matches!(life(TB, 1, wrong, RATE), Err(CalcError::WriteAmplification { .. })),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_published_costs_come_out_and_greedy_is_cheaper() {
        // Of 1 + c pages programmed for each written, c are copies: P x c for a free block.
        for (utilization, blocks, pages) in [(0.5, 2.0, 128.0), (0.8, 5.0, 512.0)] {
            let cost = cleaning(utilization, 128, 1).unwrap();
            near(cost.average.blocks, blocks, 1e-12);
            near(cost.average.pages, pages, 1e-12);
            let greedy = theory::greedy(1.0 / utilization - 1.0, 128);
            near(cost.theory.blocks, greedy, 1e-12);
            near(cost.theory.pages, 128.0 * (greedy - 1.0), 1e-12);
            near(cost.simulated.write_amplification, greedy, 0.01);
            near(cost.simulated.blocks, greedy, 0.01);
            assert!(cost.simulated.pages < cost.average.pages);
        }
        let full = Cost::of_victims(0.95, 128);
        near(full.blocks, 20.0, 1e-12);
        near(full.pages, 2432.0, 1e-12);
    }

    #[test]
    fn what_is_not_computed_is_refused() {
        for utilization in [0.0, 0.98, 1.0, -0.5, f64::NAN] {
            let refused = cleaning(utilization, 128, 1);
            assert!(matches!(refused, Err(CalcError::Utilization { .. })), "{utilization}");
        }
        for pages in [0, 1, 4097] {
            assert_eq!(cleaning(0.5, pages, 1), Err(CalcError::Pages { given: pages }));
        }
    }

    #[test]
    fn the_edges_are_computed() {
        for (utilization, pages) in [(UTILIZATION_MIN, 2), (UTILIZATION_MAX, 64), (0.9, 1024)] {
            let cost = cleaning(utilization, pages, 1).unwrap();
            near(cost.simulated.write_amplification, cost.theory.write_amplification, 0.02);
        }
    }
}
