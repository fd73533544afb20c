//! Uniform data lifetime: where some data is overwritten far more often than other, blocks
//! wear apart, and wear levelling copies what would stay.

use prism_base::Rng;
use prism_base::distribution::{Scatter, Zipf};
use prism_nand::Cause;
use prism_ssd::HostOp;

use super::run::Bed;
use super::{Bench, Comparison, FLASH, Metric, PAGE, Published, Rule, SPACE, Side, published};

/// How blocks wore over a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Wear {
    /// Bytes moved by wear levelling over bytes written by the host.
    pub levelling_writes: f64,
    /// Erases a block, mean.
    pub mean: f64,
    /// Their standard deviation over their mean.
    pub variation: f64,
    /// Erases of the block that was erased most.
    pub max: u32,
    /// Distinct numbers of erases, ascending, each with the share of the blocks that were
    /// erased so often or less.
    pub distribution: Vec<(u32, f64)>,
}

impl Wear {
    fn of(erases: &[u32], moved: u64, written: u64) -> Self {
        let mut sorted = erases.to_vec();
        sorted.sort_unstable();
        let count = sorted.len() as f64;
        let mean = sorted.iter().map(|&n| f64::from(n)).sum::<f64>() / count;
        let square = |&n: &u32| (f64::from(n) - mean) * (f64::from(n) - mean);
        let deviation = (sorted.iter().map(square).sum::<f64>() / count).sqrt();
        let mut distribution: Vec<(u32, f64)> = Vec::new();
        for (rank, &n) in sorted.iter().enumerate() {
            let share = (rank + 1) as f64 / count;
            match distribution.last_mut() {
                Some(last) if last.0 == n => last.1 = share,
                _ => distribution.push((n, share)),
            }
        }
        Self {
            levelling_writes: moved as f64 / written as f64,
            mean,
            variation: if mean > 0.0 { deviation / mean } else { 0.0 },
            max: sorted.last().copied().unwrap_or(0),
            distribution,
        }
    }
}

/// How often data is overwritten.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Uniform,
    Zipf,
    HotCold,
    Pinned,
}

/// Exponent of the skewed pattern.
const THETA: f64 = 1.0;
/// Share of the units, and of the writes that go to them.
const HOT: (f64, f64) = (0.1, 0.9);
/// What is written, as a multiple of the capacity; all of it goes to one half, every unit of
/// which is written once at first.
const TRAFFIC: u64 = 20;
/// Blocks further than this behind the mean of their die are moved.
const BEHIND_MEAN: u32 = 5;
const PUBLISHED: &[Published] = &[published(Metric::Latency, 1.6)];

pub(super) fn run(bench: Bench) -> Vec<Comparison> {
    let side = |what: &str, pattern| measure(bench, what, pattern);
    let conform = side("uniform", Pattern::Uniform);
    let skewed = [
        ("zipf 1", side("zipf 1", Pattern::Zipf)),
        ("hot and cold", side("90 % to 10 %", Pattern::HotCold)),
        ("hot and fixed", side("all to 10 %", Pattern::Pinned)),
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

fn measure(bench: Bench, what: &str, pattern: Pattern) -> Side {
    let mut device = bench.device(SPACE, FLASH);
    device.ftl.wear_least_worn_first = true;
    device.ftl.wear_move_behind_mean = Some(BEHIND_MEAN);
    let mut bed = Bed::empty(device, bench.seed);
    let units = bench.bytes(SPACE) / 2 / PAGE;
    let offsets = addresses(pattern, units, TRAFFIC * 2 * units, bench.seed);
    let mut cost = bed.run(HostOp::Write, PAGE, bench.depth(), &offsets);
    let moved = bed.drive.flash_counts().units[Cause::Wear];
    let ftl = bed.drive.engine().ftl();
    cost.wear = Some(Wear::of(ftl.erases(), moved, offsets.len() as u64));
    Side { what: what.into(), cost }
}

fn addresses(pattern: Pattern, units: u64, count: u64, seed: u64) -> Vec<u64> {
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
                Pattern::Uniform => rng.below(units),
                Pattern::Zipf => zipf.draw(&mut rng),
                Pattern::HotCold if rng.chance(HOT.1) => rng.below(hot),
                Pattern::Pinned => rng.below(hot),
                Pattern::HotCold => hot + rng.below(units - hot),
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
        assert_eq!(wear.distribution, [(1, 0.5), (3, 1.0)]);
    }
}
