//! What a free block costs on a full drive, and how long a drive lasts.

use prism_base::Bytes;
use prism_ftl::{Frontiers, VictimPolicy};
use prism_nand::Cause;

use super::Bench;
use crate::calculators::{Cell, life, usual_cycles};
use crate::theory;
use crate::theory::write_amplification::{Setup, measure};

/// Pages a block in the article's example of cleaning.
pub const PAGES: u32 = 128;
/// Shares of the drive that hold valid data, in hundredths.
pub const FULL: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95];

/// What it takes to free one block, net.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Blocks that are cleaned.
    pub blocks: f64,
    /// Pages that are copied.
    pub pages: f64,
}

impl Price {
    /// Where victims have the share `valid` of valid pages.
    fn of(valid: f64) -> Self {
        let blocks = 1.0 / (1.0 - valid);
        Self { blocks, pages: f64::from(PAGES) * valid * blocks }
    }
}

/// The price on a drive that is so full, under uniform random writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullRow {
    /// A: the share of the flash that holds valid data.
    pub full: f64,
    /// The article's: 1 / (1 - A) blocks and P A / (1 - A) pages.
    pub formula: Price,
    /// Simulated, a random block being the victim.
    pub random: Price,
    /// Simulated, the block with fewest valid pages being the victim.
    pub greedy: Price,
    /// Greedy in the mean field.
    pub greedy_theory: Price,
}

fn setup(bench: Bench, victim: VictimPolicy, op: f64) -> Setup {
    Setup {
        blocks: bench.scale.blocks(4096),
        units_per_block: PAGES,
        op,
        victim,
        frontiers: Frontiers::Shared,
        hot: None,
        trims: 0.0,
        warm_up: 2.0,
        measured: 2.0,
    }
}

/// The price at `full` hundredths.
pub(super) fn row(bench: Bench, full: u32) -> FullRow {
    let full = f64::from(full) / 100.0;
    let op = 1.0 / full - 1.0;
    let simulated = |victim| {
        let (_, counts) = measure(&setup(bench, victim, op), bench.seed).expect("room enough");
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

/// How long a drive lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LifeRow {
    /// Bits a cell.
    pub cell: Cell,
    /// Cycles that a block is good for.
    pub cycles: u32,
    /// The write amplification that the article supposes.
    pub write_amplification: f64,
    /// Days in the article: 10 months and one.
    pub published: f64,
    /// Days by its formula.
    pub formula: f64,
    /// Spare over capacity at which greedy cleaning under uniform random writes has that
    /// write amplification in theory.
    pub spare: f64,
    /// What it is when simulated with that.
    pub measured: f64,
    /// Days by the formula with what was measured.
    pub by_measured: f64,
    /// Days until blocks are erased so often in the mean: the spare flash, which the
    /// formula leaves out, wears as well.
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
    let days = |amplification| {
        life(SIZE, cycles, amplification, RATE).expect("nothing of it is zero").days
    };
    let spare = spare_of(write_amplification);
    let setup = setup(bench, VictimPolicy::Greedy, spare);
    let (measured, counts) = measure(&setup, bench.seed).expect("room enough");
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

/// The spare at which greedy has this write amplification in theory.
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
    fn the_prices_of_the_article_come_out() {
        for (full, blocks, pages) in [(0.5, 2.0, 128.0), (0.8, 5.0, 512.0), (0.95, 20.0, 2432.0)] {
            let price = Price::of(full);
            assert!((price.blocks - blocks).abs() < 1e-9, "{price:?}");
            assert!((price.pages - pages).abs() < 1e-9, "{price:?}");
        }
    }

    #[test]
    fn a_spare_is_found_for_a_write_amplification() {
        for wanted in [1.5, 4.0, 10.0] {
            let found = theory::greedy(spare_of(wanted), PAGES);
            assert!((found / wanted - 1.0).abs() < 1e-3, "{found} for {wanted}");
        }
    }
}
