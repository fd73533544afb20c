//! Overwrites of blocks of a file, as the paper SFS has them. What does them is the caller: a file
//! system in virtual time, or a kernel.
//!
//! Source: SFS, FAST'12, section 4 and Figure 2; differs: its traces are replaced by samples of
//! their distributions, without order in time.

use prism_base::Rng;
use prism_base::distribution::{Scatter, Zipf};

/// Gigabytes of the paper's device, of which lengths are shares.
pub const CAPACITY: u64 = 30;
/// Gigabytes that are written before a measurement. Source: Figures 12 to 14; for others it is not
/// given.
pub const AGEING: u64 = 20;
/// Gigabytes that are written in a measurement.
pub const MEASURED: u64 = 8;
/// Live blocks of files over all blocks in Figures 12 to 14, in percent.
pub const UTILIZATION: u64 = 85;
/// Blocks of the paper's device.
const BLOCKS: f64 = 930.0 * 8192.0;

prism_base::named_enum! {
    /// A workload of the paper.
    pub enum Workload {
        /// Zipf's law.
        Zipf = "Zipf",
        /// All blocks are equally likely.
        Uniform = "uniform",
        /// The distribution of its trace of TPC-C.
        TpcC = "TPC-C",
        /// The distribution of its trace of research desktops.
        Res = "RES",
    }
}

/// Pairs: thousands of the most-written blocks, and the share of all writes that they get. Source:
/// Figure 2.
const TPC_C: [(f64, f64); 10] = [
    (1.0, 0.053),
    (5.0, 0.151),
    (10.0, 0.321),
    (20.0, 0.445),
    (50.0, 0.611),
    (100.0, 0.732),
    (200.0, 0.853),
    (300.0, 0.917),
    (400.0, 0.959),
    (587.0, 1.0),
];
const RES: [(f64, f64); 13] = [
    (1.0, 0.174),
    (5.0, 0.261),
    (10.0, 0.377),
    (20.0, 0.536),
    (50.0, 0.664),
    (100.0, 0.721),
    (200.0, 0.781),
    (300.0, 0.823),
    (400.0, 0.857),
    (600.0, 0.909),
    (800.0, 0.951),
    (1000.0, 0.974),
    (1184.0, 1.0),
];

impl Workload {
    /// Blocks that are written, of all those of a device.
    #[must_use]
    pub fn set_blocks(self, all: u64) -> u64 {
        (all as f64 * self.share()) as u64
    }

    /// The share of the device that is written. For uniform writes it fits the paper's write costs,
    /// and is used for Zipf's law too; the others are from Figure 2.
    fn share(self) -> f64 {
        match self {
            Self::Zipf | Self::Uniform => 0.27,
            Self::TpcC => 587_000.0 / BLOCKS,
            Self::Res => 1_184_000.0 / BLOCKS,
        }
    }
}

/// The blocks that are written, one after another, as a function of the seed.
pub struct BlockSequence {
    rng: Rng,
    order: Scatter,
    zipf: Zipf,
    workload: Workload,
    count: u64,
}

impl BlockSequence {
    /// Writes to `count` blocks.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(workload: Workload, count: u64, seed: u64) -> Self {
        assert!(count > 0, "a write needs a block");
        let mut rng = Rng::stream(seed, "sfs.files");
        let order = Scatter::new(count, &mut rng);
        Self { rng, order, zipf: Zipf::new(count, 1.0), workload, count }
    }

    /// The next block.
    pub fn next_block(&mut self) -> u64 {
        let rank = match self.workload {
            Workload::Uniform => return self.rng.below(self.count),
            Workload::Zipf => self.zipf.draw(&mut self.rng),
            Workload::TpcC => self.of_curve(&TPC_C),
            Workload::Res => self.of_curve(&RES),
        };
        self.order.place(rank.min(self.count - 1))
    }

    /// A rank of a distribution whose sum is piecewise linear.
    fn of_curve(&mut self, curve: &[(f64, f64)]) -> u64 {
        let at = self.rng.unit();
        let mut before = (0.0, 0.0);
        for &point in curve {
            if at <= point.1 {
                let blocks =
                    before.0 + (at - before.1) / (point.1 - before.1) * (point.0 - before.0);
                let last = curve.last().expect("points").0;
                return (blocks / last * self.count as f64) as u64;
            }
            before = point;
        }
        self.count - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_give_the_published_shares() {
        for (workload, curve) in [(Workload::TpcC, &TPC_C[..]), (Workload::Res, &RES[..])] {
            let last = curve.last().unwrap().0;
            let count = (last * 100.0) as u64;
            let mut sequence = BlockSequence::new(workload, count, 1);
            let mut ranks: Vec<u64> = (0..50_000).map(|_| sequence.of_curve(curve)).collect();
            ranks.sort_unstable();
            for &(thousands, share) in curve {
                let below = ranks.partition_point(|&rank| (rank as f64) < thousands * 100.0);
                let found = below as f64 / 50_000.0;
                assert!((found - share).abs() < 0.01, "{workload:?} {thousands}: {found} {share}");
            }
        }
    }
}
