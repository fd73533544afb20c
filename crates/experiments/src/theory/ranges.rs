//! Two mappings on one drive, each beside its own closed form.

use prism_base::{Bytes, Rng};
use prism_engine::Immediate;
use prism_ftl::{
    Frontiers, Ftl, FtlConfig, HybridConfig, PageConfig, RangeConfig, RangesConfig, VictimPolicy,
};
use prism_nand::{Cause, Geometry, Nand};

use crate::check::{Check, Group, Pending};
use crate::scale::Scale;
use crate::theory;

/// Units of a block.
const UNITS: u32 = 64;
/// Logical blocks of the range that FAST maps, and its log blocks for random writes.
const FAST: (u32, u32) = (240, 48);
/// Blocks of the range that is mapped by unit at full scale, and its effective spare.
const BY_UNIT: (u32, f64) = (16_384, 0.28);
/// Shares of the writes that go to the first range.
const SHARES: [f64; 3] = [0.0, 0.05, 1.0];
/// Largest relative difference in write amplification at which both agree.
const TOLERANCE: f64 = 0.01;

/// Write amplification of a drive of two ranges under uniform random writes of which `share`
/// goes to the first, after as many writes as either needs to settle.
fn measure(share: f64, by_unit_blocks: u32, seed: u64) -> f64 {
    let (logical_blocks, logs) = FAST;
    let fast = HybridConfig::fast(logical_blocks * UNITS, logs + 1, false);
    let geometry = |blocks_per_plane| Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes: 1,
        planes_ganged: 1,
        blocks_per_plane,
        pages_per_block: UNITS,
        pages_per_program: 1,
        dies_per_superblock: 1,
        parity: false,
        page: Bytes(4096),
        unit: Bytes(4096),
        slc: None,
    };
    let mut page = PageConfig::simple(1, VictimPolicy::Greedy, Frontiers::Shared);
    let usable = page.usable_units(&geometry(by_unit_blocks)) as f64;
    page.logical_units = (usable / (1.0 + BY_UNIT.1)) as u32;
    let fast_blocks = logical_blocks + logs + 2;
    let range = |blocks_per_plane, ftl| RangeConfig { blocks_per_plane, ftl };
    let (first, second) = (u64::from(fast.logical_units), u64::from(page.logical_units));
    let ranges = vec![
        range(fast_blocks, FtlConfig::Hybrid(fast)),
        range(by_unit_blocks, FtlConfig::Page(page)),
    ];
    let geometry = geometry(fast_blocks + by_unit_blocks);
    let mut nand = Nand::new(geometry.clone());
    let config = FtlConfig::Ranges(RangesConfig { ranges });
    let mut ftl = Ftl::new(geometry, config, seed).expect("the ranges fit the flash");
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    let mut rng = Rng::stream(seed, "ranges.address");
    let mut version = 0;
    for lpn in 0..first + second {
        version += 1;
        engine.write(lpn as u32, version);
    }
    let turns = |units: u64, share: f64| if share > 0.0 { 3.0 * units as f64 / share } else { 0.0 };
    let warm_up = turns(first, share).max(turns(second, 1.0 - share)) as u64;
    let mut before = *engine.counts();
    for turn in 0..3 * warm_up {
        if turn == warm_up {
            before = *engine.counts();
        }
        version += 1;
        let in_first = rng.chance(share);
        let lpn = if in_first { rng.below(first) } else { first + rng.below(second) };
        engine.write(lpn as u32, version);
    }
    let counts = engine.counts().since(&before);
    nand.assert_conserved();
    ftl.assert_consistent();
    counts.units.total() as f64 / counts.units[Cause::Host] as f64
}

/// Write amplification of two ranges against the mean of their closed forms.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Pending> {
    let blocks = match scale {
        Scale::Full => BY_UNIT.0,
        Scale::Quarter => BY_UNIT.0 / 4,
    };
    let pending = |share: f64| {
        let what = format!("fast beside greedy, {:.0} % of writes to fast", 100.0 * share);
        Pending::new(what.clone(), move || {
            let (logical_blocks, logs) = FAST;
            let fast = theory::fast(UNITS, logical_blocks, logs);
            let greedy = theory::greedy(BY_UNIT.1, UNITS);
            Check {
                group: Group::Theory,
                what,
                expected: share * fast + (1.0 - share) * greedy,
                ours: measure(share, blocks, seed),
                tolerance: Some(TOLERANCE),
                source: "each range as if alone".into(),
                unit: "",
            }
        })
    };
    SHARES.into_iter().map(pending).collect()
}
