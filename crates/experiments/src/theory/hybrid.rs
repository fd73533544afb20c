//! Block-level and hybrid mappings under uniform random writes, checked against closed forms.

use prism_base::Rng;
use prism_engine::FlashCounts;
use prism_ftl::{ConfigError, Ftl, Hybrid, HybridConfig, Logs, VictimPolicy};
use prism_nand::{Cause, Geometry, Nand};

use crate::check::{Check, Simulation};
use crate::scale::Scale;
use crate::theory;
use crate::untimed::{Untimed, geometry};

/// Logical blocks at full scale: a multiple of every N below, also at a quarter.
const LOGICAL_BLOCKS: u32 = 512;
const UNITS_PER_BLOCK: u32 = 256;
const DIES: u32 = 4;
/// Capacities written before and during the measurement: whole cycles for every N and K below.
const WARM_UP: f64 = 4.0;
const MEASURED: f64 = 16.0;
/// Largest relative difference in write amplification at which simulation and theory agree.
const TOLERANCE: f64 = 0.01;
const SOURCE: &str = "1 + N/K, exact while a log block has units of all N blocks";

/// N and K: the logical blocks of a group and the maximum of its log blocks. With K up to 2 N the
/// oldest log block of a group has live units of all its logical blocks when it is merged.
const GROUPS: [(u32, u32); 8] = [(1, 1), (4, 1), (8, 2), (2, 2), (8, 4), (4, 4), (8, 8), (4, 8)];

/// Units per block and logical blocks for block-level mapping, where almost every write rewrites a
/// block, so that few writes are enough; then the same for BAST with its log blocks.
const BLOCK: [(u32, u32); 3] = [(64, 512), (256, 64), (128, 16)];
const BAST: [(u32, u32, u32); 3] = [(64, 512, 64), (64, 512, 256), (256, 64, 8)];
/// The same for FAST, with its log blocks for random writes.
const FAST: [(u32, u32, u32); 4] = [(64, 480, 48), (64, 240, 48), (128, 240, 24), (64, 96, 48)];

/// A drive with a block-level or hybrid mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HybridSetup {
    /// Logical blocks.
    pub logical_blocks: u32,
    /// Units of a block, each of which is a program unit.
    pub block_units: u32,
    /// Log blocks, capacity and policies, from which the number of flash blocks follows.
    pub config: HybridConfig,
}

impl HybridSetup {
    /// A drive with K log blocks for every group.
    #[must_use]
    pub fn groups(logical_blocks: u32, group_blocks: u32, group_log_blocks: u32) -> Self {
        let log_blocks = logical_blocks.div_ceil(group_blocks) * group_log_blocks;
        let config = HybridConfig {
            logs: Logs::Groups,
            gaps: false,
            logical_units: logical_blocks * UNITS_PER_BLOCK,
            group_blocks,
            group_log_blocks,
            log_blocks,
            victim: VictimPolicy::Fifo,
            free_blocks_low: 0,
            free_blocks_high: 0,
            reserve_blocks: 0,
        };
        Self { logical_blocks, block_units: UNITS_PER_BLOCK, config }
    }

    fn geometry(&self) -> Geometry {
        let blocks = self.logical_blocks + self.config.log_blocks + 1;
        geometry(DIES, blocks, self.block_units)
    }
}

/// Fills a drive and overwrites random units: `warm_up` capacities before the measurement and
/// `measured` capacities during it. Returns the write amplification and the flash operations of
/// the measured part.
///
/// # Errors
/// [`ConfigError`] if no drive has these numbers.
pub fn measure(
    setup: &HybridSetup,
    warm_up: f64,
    measured: f64,
    seed: u64,
) -> Result<(f64, FlashCounts), ConfigError> {
    let geometry = setup.geometry();
    let logical = setup.config.logical_units;
    let nand = Nand::new(geometry.clone()).with_gaps(setup.config.gaps);
    let mut flash = Untimed::new(nand, Ftl::from(Hybrid::new(geometry, setup.config.clone())?));
    let mut rng = Rng::stream(seed, "hybrid.address");
    flash.fill(logical);
    let mut overwrite = |flash: &mut Untimed, capacities: f64| {
        for _ in 0..(capacities * f64::from(logical)) as u64 {
            flash.write(rng.below(u64::from(logical)) as u32);
        }
    };
    overwrite(&mut flash, warm_up);
    let before = flash.counts();
    overwrite(&mut flash, measured);
    let counts = flash.finish(&before);
    Ok((counts.units.total() as f64 / counts.units[Cause::Host] as f64, counts))
}

/// Checks of the write amplification of block-level and hybrid mappings.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Simulation> {
    let logical_blocks = scale.blocks(LOGICAL_BLOCKS);
    let mut all = Vec::new();
    for (n, k) in GROUPS {
        let setup = HybridSetup::groups(logical_blocks, n, k);
        let what = format!("hybrid, N {n}, K {k}");
        all.push((what, setup, (WARM_UP, MEASURED), theory::hybrid(n, k), SOURCE));
    }
    for (b, w) in BLOCK {
        let setup = by_block(b, w, HybridConfig::block(b * w, 1, false));
        let what = format!("block, {b} units, {w} blocks");
        all.push((
            what,
            setup,
            (0.1, 2.0),
            theory::block(b, w),
            "b / (w ((1 + 1/bw)^b - 1)), exact",
        ));
    }
    for (b, w, l) in BAST {
        let setup = by_block(b, w, HybridConfig::bast(b * w, l));
        let what = format!("bast, {b} units, {w} blocks, {l} log blocks");
        all.push((what, setup, (0.2, 2.0), theory::bast(b, w, l), "1 + b (1 - l/w)"));
    }
    for (b, w, r) in FAST {
        let setup = by_block(b, w, HybridConfig::fast(b * w, r + 1, false));
        let what = format!("fast, {b} units, {w} blocks, {r} log blocks");
        all.push((what, setup, (2.0, 8.0), theory::fast(b, w, r), "1 + W/L with runs and blocks"));
    }
    all.into_iter().map(|row| simulation(row, seed)).collect()
}

fn by_block(block_units: u32, logical_blocks: u32, config: HybridConfig) -> HybridSetup {
    HybridSetup { logical_blocks, block_units, config }
}

type Row = (String, HybridSetup, (f64, f64), f64, &'static str);

fn simulation((what, setup, (warm_up, measured), expected, source): Row, seed: u64) -> Simulation {
    Simulation::new(what.clone(), move || {
        let run = measure(&setup, warm_up, measured, seed);
        let (ours, _) = run.expect("the flash is large enough");
        Check::theory(what, [expected, ours], TOLERANCE, source)
    })
}
