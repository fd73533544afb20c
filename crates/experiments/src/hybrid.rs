//! The hybrid mapping under uniform random writes, beside its closed form.

use prism_base::{Bytes, Rng};
use prism_engine::{FlashCounts, Immediate};
use prism_ftl::{ConfigError, Hybrid, HybridConfig, Layer, Logs, VictimPolicy};
use prism_nand::{Cause, Geometry, Nand};

use crate::theory;
use crate::validate::{Check, Group, Pending, Scale};

/// Logical blocks at full scale: groups of every N here divide them, also at a quarter.
const LOGICAL_BLOCKS: u32 = 512;
const UNITS_PER_BLOCK: u32 = 256;
const LANES: u32 = 4;
/// Capacities written before and while it is measured: whole cycles of every N and K here.
const WARM_UP: u32 = 4;
const MEASURED: u32 = 16;
/// Largest relative difference in write amplification at which both agree.
const TOLERANCE: f64 = 0.01;
const SOURCE: &str = "1 + N/K, exact while a log block has units of all N blocks";

/// Logical blocks of a group and its most log blocks. With K up to 2 N the oldest log block
/// of a group has live units of all its logical blocks when it is merged.
const GROUPS: [(u32, u32); 8] = [(1, 1), (4, 1), (8, 2), (2, 2), (8, 4), (4, 4), (8, 8), (4, 8)];

/// What is simulated: a drive with room for the K log blocks of every group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HybridSetup {
    /// Logical blocks of 256 units.
    pub logical_blocks: u32,
    /// N.
    pub group_blocks: u32,
    /// K.
    pub group_log_blocks: u32,
}

/// Fills a drive and overwrites it at random; returns write amplification in steady state,
/// and what was done while it was measured.
///
/// # Errors
/// [`ConfigError`] if the numbers make no drive.
pub fn measure(setup: &HybridSetup, seed: u64) -> Result<(f64, FlashCounts), ConfigError> {
    let logs = setup.logical_blocks.div_ceil(setup.group_blocks) * setup.group_log_blocks;
    let geometry = Geometry {
        channels: LANES,
        dies_per_channel: 1,
        planes: 1,
        planes_ganged: 1,
        blocks_per_plane: (setup.logical_blocks + logs + 1).div_ceil(LANES),
        pages_per_block: UNITS_PER_BLOCK,
        pages_per_program: 1,
        dies_per_superblock: 1,
        parity: false,
        page: Bytes(4096),
        unit: Bytes(4096),
    };
    let config = HybridConfig {
        logs: Logs::Groups,
        gaps: false,
        logical_units: setup.logical_blocks * UNITS_PER_BLOCK,
        group_blocks: setup.group_blocks,
        group_log_blocks: setup.group_log_blocks,
        log_blocks: logs,
        victim: VictimPolicy::Fifo,
        free_blocks_low: 0,
        free_blocks_high: 0,
    };
    let logical = config.logical_units;
    let mut nand = Nand::new(geometry.clone());
    let mut ftl = Layer::from(Hybrid::new(geometry, config)?);
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    let mut rng = Rng::stream(seed, "hybrid.address");
    let mut version = 0;
    for lpn in 0..logical {
        version += 1;
        engine.write(lpn, version);
    }
    let mut overwrite = |engine: &mut Immediate<&mut Nand, &mut Layer>, capacities: u32| {
        for _ in 0..u64::from(capacities) * u64::from(logical) {
            version += 1;
            engine.write(rng.below(u64::from(logical)) as u32, version);
        }
    };
    overwrite(&mut engine, WARM_UP);
    let before = *engine.counts();
    overwrite(&mut engine, MEASURED);
    let counts = engine.counts().since(&before);
    nand.assert_conserved();
    ftl.assert_consistent();
    Ok((counts.units.total() as f64 / counts.units[Cause::Host] as f64, counts))
}

/// Write amplification of the hybrid mapping against its closed form.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Pending> {
    let logical_blocks = match scale {
        Scale::Full => LOGICAL_BLOCKS,
        Scale::Quarter => LOGICAL_BLOCKS / 4,
    };
    let pending = |(group_blocks, group_log_blocks)| {
        let setup = HybridSetup { logical_blocks, group_blocks, group_log_blocks };
        let what = format!("hybrid, N {group_blocks}, K {group_log_blocks}");
        Pending::new(what.clone(), move || {
            let (ours, _) = measure(&setup, seed).expect("the flash is large enough");
            Check {
                group: Group::Theory,
                what,
                expected: theory::hybrid(group_blocks, group_log_blocks),
                ours,
                tolerance: Some(TOLERANCE),
                source: SOURCE.into(),
                unit: "",
            }
        })
    };
    GROUPS.into_iter().map(pending).collect()
}
