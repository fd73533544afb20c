//! The cost of a free block on a full drive, and the lifetime of a drive.

use prism_base::Bytes;
use prism_ftl::VictimPolicy;
use prism_nand::Cause;

use super::Bench;
use crate::calculators::{Cell, life, usual_cycles};
use crate::theory;
use crate::theory::write_amplification::{Setup, measure};

/// Pages per block in the article's example of cleaning.
pub const PAGES: u32 = 128;
/// Shares of the drive that hold valid data, in percent.
pub const FULL: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95];

/// The cost of freeing one block net.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Blocks cleaned.
    pub blocks: f64,
    /// Pages copied.
    pub pages: f64,
}

impl Price {
    /// The cost if victims have the share `valid` of valid pages.
    fn of(valid: f64) -> Self {
        let blocks = 1.0 / (1.0 - valid);
        Self { blocks, pages: f64::from(PAGES) * valid * blocks }
    }
}

/// The cost of a free block on a drive that is `full`, under uniform random writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullRow {
    /// The share of the flash that holds valid data, A.
    pub full: f64,
    /// The article's formula: 1 / (1 - A) blocks and P A / (1 - A) pages.
    pub formula: Price,
    /// Simulated with random victims.
    pub random: Price,
    /// Simulated with greedy victims.
    pub greedy: Price,
    /// Greedy victims in theory.
    pub greedy_theory: Price,
}

fn setup(bench: Bench, victim: VictimPolicy, op: f64) -> Setup {
    Setup::uniform(bench.scale.blocks(4096), PAGES, op, victim)
}

/// The cost at `full` percent.
pub(super) fn row(bench: Bench, full: u32) -> FullRow {
    let full = f64::from(full) / 100.0;
    let op = 1.0 / full - 1.0;
    let simulated = |victim| {
        let (_, counts) =
            measure(&setup(bench, victim, op), bench.seed).expect("the flash is large enough");
        let cleaned = counts.erases[Cause::Gc] as f64 * f64::from(PAGES);
        Price::of(counts.units[Cause::Gc] as f64 / cleaned)
    };
    FullRow {
        full,
        formula: Price::of(full),
        random: simulated(VictimPolicy::Random),
        greedy: simulated(VictimPolicy::Greedy),
        greedy_theory: Price::of(1.0 - 1.0 / theory::greedy(op, PAGES)),
    }
}

/// The lifetime of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LifeRow {
    /// Bits per cell.
    pub cell: Cell,
    /// P/E cycles that a block endures.
    pub cycles: u32,
    /// The write amplification that the article assumes.
    pub write_amplification: f64,
    /// Days in the article, which gives 10 months and 1 month.
    pub published: f64,
    /// Days by the formula of the article.
    pub formula: f64,
    /// Spare flash over capacity at which greedy cleaning under uniform random writes has this
    /// write amplification in theory.
    pub spare: f64,
    /// The write amplification simulated with this spare flash.
    pub measured: f64,
    /// Days by the formula with the simulated write amplification.
    pub by_measured: f64,
    /// Days until the mean number of erases reaches `cycles`. The formula leaves out the spare
    /// flash, which wears as well.
    pub by_erases: f64,
}

const SIZE: Bytes = Bytes(1_000_000_000_000);
const RATE: Bytes = Bytes(100_000_000);
const MONTH: f64 = 365.25 / 12.0;
/// The drives of the article: cells, write amplification, months.
const DRIVES: [(Cell, f64, f64); 2] = [(Cell::Mlc, 4.0, 10.0), (Cell::Tlc, 10.0, 1.0)];

/// Both drives of the article.
pub(super) fn lives(bench: Bench) -> Vec<LifeRow> {
    DRIVES.map(|(cell, supposed, months)| one_life(bench, cell, supposed, months)).into()
}

fn one_life(bench: Bench, cell: Cell, write_amplification: f64, months: f64) -> LifeRow {
    let cycles = usual_cycles(cell);
    let days =
        |amplification| life(SIZE, cycles, amplification, RATE).expect("no quantity is 0").days;
    let spare = spare_of(write_amplification);
    let setup = setup(bench, VictimPolicy::Greedy, spare);
    let (measured, counts) = measure(&setup, bench.seed).expect("the flash is large enough");
    let written = counts.units[Cause::Host] as f64;
    let logical = f64::from(setup.blocks * PAGES) / (1.0 + spare);
    let erases_a_capacity =
        counts.erases.total() as f64 / f64::from(setup.blocks) / (written / logical);
    let capacities = f64::from(cycles) / erases_a_capacity;
    let by_erases = capacities * SIZE.0 as f64 / RATE.0 as f64 / 86_400.0;
    LifeRow {
        cell,
        cycles,
        write_amplification,
        published: months * MONTH,
        formula: days(write_amplification),
        spare,
        measured,
        by_measured: days(measured),
        by_erases,
    }
}

/// The spare flash over capacity at which greedy has this write amplification in theory.
fn spare_of(write_amplification: f64) -> f64 {
    let (mut low, mut high) = (0.01, 2.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if theory::greedy(middle, PAGES) > write_amplification {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_the_article_are_reproduced() {
        for (full, blocks, pages) in [(0.5, 2.0, 128.0), (0.8, 5.0, 512.0), (0.95, 20.0, 2432.0)] {
            let price = Price::of(full);
            assert!((price.blocks - blocks).abs() < 1e-9, "{price:?}");
            assert!((price.pages - pages).abs() < 1e-9, "{price:?}");
        }
    }

    #[test]
    fn spare_flash_is_found_for_a_write_amplification() {
        for wanted in [1.5, 4.0, 10.0] {
            let found = theory::greedy(spare_of(wanted), PAGES);
            assert!((found / wanted - 1.0).abs() < 1e-3, "{found} for {wanted}");
        }
    }
}
