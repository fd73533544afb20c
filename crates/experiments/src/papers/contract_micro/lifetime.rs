//! Uniform data lifetime: if some data is overwritten far more often than other data, blocks wear
//! unevenly, and wear levelling copies the data that is not overwritten.

use prism_base::Rng;
use prism_base::distribution::{Scatter, Zipf};
use prism_nand::Cause;
use prism_ssd::HostOp;

use super::measured::MeasuredDrive;
use super::{Bench, Comparison, FLASH, Metric, PAGE, Published, Rule, SPACE, Side, published};

/// The wear of blocks over a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Wear {
    /// Bytes moved by wear levelling over bytes written by the host.
    pub levelling_writes: f64,
    /// Mean number of erases of a block.
    pub mean: f64,
    /// Standard deviation of the erases of a block over their mean.
    pub variation: f64,
    /// Erases of the block that was erased most often.
    pub max: u32,
}

impl Wear {
    fn of(erases: &[u32], moved: u64, written: u64) -> Self {
        let mut sorted = erases.to_vec();
        sorted.sort_unstable();
        let count = sorted.len() as f64;
        let mean = sorted.iter().map(|&n| f64::from(n)).sum::<f64>() / count;
        let square = |&n: &u32| (f64::from(n) - mean) * (f64::from(n) - mean);
        let deviation = (sorted.iter().map(square).sum::<f64>() / count).sqrt();
        Self {
            levelling_writes: moved as f64 / written as f64,
            mean,
            variation: if mean > 0.0 { deviation / mean } else { 0.0 },
            max: sorted.last().copied().unwrap_or(0),
        }
    }
}

/// The distribution of overwrites.
#[derive(Clone, Copy, Debug)]
enum OverwritePattern {
    Uniform,
    Zipf,
    HotCold,
    Pinned,
}

/// Exponent of the Zipf distribution.
const THETA: f64 = 1.0;
/// Share of the units that is hot, and the share of the writes that goes to it.
const HOT: (f64, f64) = (0.1, 0.9);
/// Bytes written, as a multiple of the capacity. All writes go to one half of the addresses; first
/// every unit of it is written once.
const TRAFFIC: u64 = 20;
/// Wear levelling moves the data of blocks with this many erases less than the mean of their die.
const BEHIND_MEAN: u32 = 5;
const PUBLISHED: &[Published] = &[published(Metric::Latency, 1.6)];

pub(super) fn run(bench: Bench) -> Vec<Comparison> {
    let side = |what: &str, pattern| measure(bench, what, pattern);
    let conform = side("uniform", OverwritePattern::Uniform);
    let skewed = [
        ("zipf 1", side("zipf 1", OverwritePattern::Zipf)),
        ("hot and cold", side("90 % to 10 %", OverwritePattern::HotCold)),
        ("hot and fixed", side("all to 10 %", OverwritePattern::Pinned)),
    ];
    skewed
        .into_iter()
        .map(|(name, violate)| Comparison {
            rule: Rule::UniformLifetime,
            name,
            conform: conform.clone(),
            violate,
            published: PUBLISHED,
        })
        .collect()
}

fn measure(bench: Bench, what: &str, pattern: OverwritePattern) -> Side {
    let mut device = bench.device(SPACE, FLASH);
    device.ftl.wear_least_worn_first = true;
    device.ftl.wear_move_behind_mean = Some(BEHIND_MEAN);
    let mut drive = MeasuredDrive::empty(device, bench.seed);
    let units = bench.bytes(SPACE) / 2 / PAGE;
    let offsets = addresses(pattern, units, TRAFFIC * 2 * units, bench.seed);
    let mut cost = drive.run(HostOp::Write, PAGE, bench.depth(), &offsets);
    let moved = drive.drive.flash_counts().units[Cause::Wear];
    let ftl = drive.drive.engine().ftl();
    cost.wear = Some(Wear::of(ftl.erases(), moved, offsets.len() as u64));
    Side { what: what.into(), cost }
}

fn addresses(pattern: OverwritePattern, units: u64, count: u64, seed: u64) -> Vec<u64> {
    let mut rng = Rng::stream(seed, "lifetime.address");
    let zipf = Zipf::new(units, THETA);
    let scatter = Scatter::new(units, &mut Rng::stream(seed, "lifetime.scatter"));
    let hot = (units as f64 * HOT.0) as u64;
    (0..count)
        .map(|number| {
            if number < units {
                return number * PAGE;
            }
            let rank = match pattern {
                OverwritePattern::Uniform => rng.below(units),
                OverwritePattern::Zipf => zipf.draw(&mut rng),
                OverwritePattern::HotCold if rng.chance(HOT.1) => rng.below(hot),
                OverwritePattern::Pinned => rng.below(hot),
                OverwritePattern::HotCold => hot + rng.below(units - hot),
            };
            scatter.place(rank) * PAGE
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_by_hand() {
        let wear = Wear::of(&[3, 1, 3, 1], 5, 20);
        assert_eq!((wear.mean, wear.variation, wear.max), (2.0, 0.5, 3));
        assert_eq!(wear.levelling_writes, 0.25);
    }
}
