//! What cleaning costs on a drive that is full to a given share.

use prism_ftl::VictimPolicy;
use prism_nand::Cause;

use super::CalcError;
use crate::theory;
use crate::theory::write_amplification::{Setup, measure};

/// The lowest utilization that is computed: below it hardly any victim has a valid page.
pub const UTILIZATION_MIN: f64 = 0.01;
/// The highest utilization that is computed: the simulated FTL keeps some garbage, so that cleaning
/// always makes progress.
pub const UTILIZATION_MAX: f64 = 0.97;
/// The fewest pages of a block: a block of one page is valid or garbage and is never copied.
pub const PAGES_MIN: u32 = 2;
/// The most pages of a block: about the maximum of real flash, and simulated in seconds.
pub const PAGES_MAX: u32 = 4096;

/// Pages that are simulated, unless blocks are too large.
const PAGES_SIMULATED: u32 = 1 << 18;
/// The fewest blocks that are simulated, so that there are enough to choose a victim from.
const BLOCKS_SIMULATED_MIN: u32 = 512;

/// The cost of freeing one block net, that is one block more than the copies fill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Share of a victim's pages that are valid, on average.
    pub valid: f64,
    /// Victims cleaned for one free block: 1 / (1 - valid).
    pub blocks: f64,
    /// Pages copied for one free block: P x valid / (1 - valid), where P is the pages of a block.
    pub pages: f64,
    /// Pages programmed per page that the host writes.
    pub write_amplification: f64,
}

impl Cost {
    /// The cost if victims have the share `valid` of valid pages. A free block takes P host writes,
    /// for which 1 / (1 - valid) blocks are programmed in all.
    fn of_victims(valid: f64, pages_per_block: u32) -> Self {
        let blocks = 1.0 / (1.0 - valid);
        let pages = f64::from(pages_per_block) * valid / (1.0 - valid);
        Self { valid, blocks, pages, write_amplification: blocks }
    }
}

/// The cost of cleaning at one utilization, under uniform random writes of pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleaning {
    /// Share of the flash that holds valid data. Spare flash counts, open and erased blocks do
    /// not.
    pub utilization: f64,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// The cost by the article's formula, where victims are as full as the drive on average, as
    /// random victims are.
    pub average: Cost,
    /// The cost with greedy victims in theory ([`theory::greedy`]).
    pub theory: Cost,
    /// The cost with greedy victims, simulated.
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
    let blocks = (PAGES_SIMULATED / pages_per_block).max(BLOCKS_SIMULATED_MIN);
    let setup = Setup::uniform(blocks, pages_per_block, op, VictimPolicy::Greedy);
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

/// Checks the arguments of [`cleaning`] without the simulation, which takes seconds.
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

    fn near(ours: f64, expected: f64, tolerance: f64) {
        assert!((ours - expected).abs() <= tolerance * expected, "{ours}, not {expected}");
    }

    #[test]
    fn published_costs_are_reproduced_and_greedy_is_cheaper() {
        // If 1 + c pages are programmed per page written, c are copies: P x c for a free block.
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
    fn arguments_out_of_range_are_refused() {
        for utilization in [0.0, 0.98, 1.0, -0.5, f64::NAN] {
            let refused = cleaning(utilization, 128, 1);
            assert!(matches!(refused, Err(CalcError::Utilization { .. })), "{utilization}");
        }
        for pages in [0, 1, 4097] {
            assert_eq!(cleaning(0.5, pages, 1), Err(CalcError::Pages { given: pages }));
        }
    }

    #[test]
    fn the_ends_of_the_range_are_computed() {
        for (utilization, pages) in [(UTILIZATION_MIN, 2), (UTILIZATION_MAX, 64), (0.9, 1024)] {
            let cost = cleaning(utilization, pages, 1).unwrap();
            near(cost.simulated.write_amplification, cost.theory.write_amplification, 0.02);
        }
    }
}
