//! Two mappings on one drive, checked against the closed forms of both.

use prism_base::Rng;
use prism_ftl::{
    Frontiers, Ftl, FtlConfig, HybridConfig, PageConfig, RangeConfig, RangesConfig, VictimPolicy,
};
use prism_nand::{Cause, Nand};

use crate::check::{Check, Simulation};
use crate::scale::Scale;
use crate::theory;
use crate::untimed::{Untimed, geometry};

/// Units of a block.
const UNITS: u32 = 64;
/// The range mapped by FAST: its logical blocks, and its log blocks for random writes.
const FAST: (u32, u32) = (240, 48);
/// The range with a page map: its blocks at full scale, and its effective over-provisioning.
const BY_UNIT: (u32, f64) = (16_384, 0.28);
/// Shares of the writes that go to the range of FAST.
const SHARES: [f64; 3] = [0.0, 0.05, 1.0];
/// Largest relative difference in write amplification at which simulation and theory agree.
const TOLERANCE: f64 = 0.01;

/// Write amplification of a drive with two ranges under uniform random writes, of which `share`
/// goes to the first range. The warm-up is long enough for both ranges to settle.
fn measure(share: f64, by_unit_blocks: u32, seed: u64) -> f64 {
    let (logical_blocks, logs) = FAST;
    let fast = HybridConfig::fast(logical_blocks * UNITS, logs + 1, false);
    let mut page = PageConfig::simple(1, VictimPolicy::Greedy, Frontiers::Shared);
    let usable = page.usable_units(&geometry(1, by_unit_blocks, UNITS)) as f64;
    page.logical_units = (usable / (1.0 + BY_UNIT.1)) as u32;
    let fast_blocks = logical_blocks + logs + 2;
    let range = |blocks_per_plane, ftl| RangeConfig { blocks_per_plane, ftl };
    let (first, second) = (u64::from(fast.logical_units), u64::from(page.logical_units));
    let ranges = vec![
        range(fast_blocks, FtlConfig::Hybrid(fast)),
        range(by_unit_blocks, FtlConfig::Page(page)),
    ];
    let geometry = geometry(1, fast_blocks + by_unit_blocks, UNITS);
    let nand = Nand::new(geometry.clone());
    let config = FtlConfig::Ranges(RangesConfig { ranges });
    let ftl = Ftl::new(geometry, config, seed).expect("the ranges fit the flash");
    let mut flash = Untimed::new(nand, ftl);
    let mut rng = Rng::stream(seed, "ranges.address");
    flash.fill((first + second) as u32);
    let turns = |units: u64, share: f64| if share > 0.0 { 3.0 * units as f64 / share } else { 0.0 };
    let warm_up = turns(first, share).max(turns(second, 1.0 - share)) as u64;
    let mut write = |flash: &mut Untimed| {
        let in_first = rng.chance(share);
        let lpn = if in_first { rng.below(first) } else { first + rng.below(second) };
        flash.write(lpn as u32);
    };
    (0..warm_up).for_each(|_| write(&mut flash));
    let before = flash.counts();
    (0..2 * warm_up).for_each(|_| write(&mut flash));
    let counts = flash.finish(&before);
    counts.units.total() as f64 / counts.units[Cause::Host] as f64
}

/// Checks of two ranges against the mean of their closed forms, weighted by their writes.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Simulation> {
    let blocks = scale.blocks(BY_UNIT.0);
    let simulation = |share: f64| {
        let what = format!("FAST and page-mapped ranges, {:.0} % of writes to FAST", 100.0 * share);
        Simulation::new(what.clone(), move || {
            let (logical_blocks, logs) = FAST;
            let fast = theory::fast(UNITS, logical_blocks, logs);
            let greedy = theory::greedy(BY_UNIT.1, UNITS);
            let expected = share * fast + (1.0 - share) * greedy;
            let ours = measure(share, blocks, seed);
            Check::theory(
                what,
                [expected, ours],
                TOLERANCE,
                "closed forms of the two ranges, weighted by writes",
            )
        })
    };
    SHARES.into_iter().map(simulation).collect()
}
