//! Write amplification of an FTL whose blocks fail, checked against the closed form at the
//! remaining over-provisioning.

use prism_base::Rng;
use prism_engine::FaultCounts;
use prism_ftl::{ConfigError, Frontiers, Ftl, PageConfig, PageMap, VictimPolicy};
use prism_nand::faults::FailureLaw;
use prism_nand::{FaultModel, Nand};

use crate::check::{Check, Simulation};
use crate::theory;
use crate::untimed::{Untimed, geometry};

/// Blocks of [`UNITS`] units.
const BLOCKS: u32 = 8192;
const UNITS: u32 = 64;
/// Share of blocks that are bad from the factory.
const FACTORY_BAD: f64 = 0.05;
/// Probability that an erase fails, and that a program fails, whatever the wear. A few percent of
/// the blocks fail in a run.
const ERASE_FAILURE: f64 = 3e-3;
const PROGRAM_FAILURE: f64 = 3e-6;
/// Writes before and during the measurement, as multiples of the flash.
const WARM_UP: f64 = 2.5;
const MEASURED: f64 = 0.75;
/// Largest relative difference at which simulation and theory agree.
const TOLERANCE: f64 = 0.01;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retired {
    /// Units programmed over units written.
    pub write_amplification: f64,
    /// Effective over-provisioning with the blocks that were left at the middle of the
    /// measurement.
    pub effective: f64,
    /// Effective over-provisioning if no block were bad.
    pub effective_at_first: f64,
    /// The failures.
    pub faults: FaultCounts,
}

/// Writes random units to `blocks` blocks that may fail, and measures.
///
/// # Errors
/// [`ConfigError`] if the flash is too small.
///
/// # Panics
/// If the FTL becomes read-only: the spare flash has to last.
pub fn measure(
    victim: VictimPolicy,
    blocks: u32,
    op: f64,
    seed: u64,
) -> Result<Retired, ConfigError> {
    let geometry = geometry(1, blocks, UNITS);
    let mut config = PageConfig::simple(1, victim, Frontiers::Shared);
    (config.reserve_blocks, config.free_blocks_low, config.free_blocks_high) = (3, 4, 4);
    let usable = config.usable_units(&geometry);
    config.logical_units = (usable as f64 / (1.0 + op)) as u32;
    let logical = config.logical_units;
    let mut nand = Nand::new(geometry.clone());
    nand.set_faults(model(), seed);
    let mut map = PageMap::new(geometry.clone(), config, seed)?;
    map.set_aside(nand.bad_blocks())?;
    let mut flash = Untimed::new(nand, Ftl::from(map));
    let mut rng = Rng::stream(seed, "retirement.address");
    flash.fill(logical);
    let units = f64::from(geometry.units());
    let mut write = |flash: &mut Untimed, share: f64| {
        let count = (units * share) as u64;
        (0..count).for_each(|_| flash.write(rng.below(u64::from(logical)) as u32));
        count
    };
    write(&mut flash, WARM_UP);
    let before = flash.counts();
    let mut writes = write(&mut flash, MEASURED / 2.0);
    let bad = bad_blocks(flash.ftl());
    writes += write(&mut flash, MEASURED / 2.0);
    assert!(!flash.ftl().is_read_only(), "the spare lasts");
    let faults = flash.counts().faults;
    let counts = flash.finish(&before);
    let spare = |units: u64| (units as f64 - f64::from(logical)) / f64::from(logical);
    Ok(Retired {
        write_amplification: counts.units.total() as f64 / writes as f64,
        effective: spare(usable - u64::from(bad * UNITS)),
        effective_at_first: spare(usable),
        faults,
    })
}

fn bad_blocks(ftl: &Ftl) -> u32 {
    ftl.page().map_or(0, PageMap::bad_blocks)
}

/// Failures that do not depend on wear, so that their rate is known.
fn model() -> FaultModel {
    let mut model = FaultModel::of_kind("tlc", 3000).expect("a kind of cell");
    model.factory_bad = FACTORY_BAD;
    model.erase = FailureLaw { at_endurance: ERASE_FAILURE, exponent: 0.0 };
    model.program = FailureLaw { at_endurance: PROGRAM_FAILURE, exponent: 0.0 };
    model
}

/// Checks of greedy and FIFO against theory at the over-provisioning that is left. The size does
/// not depend on the scale: on fewer blocks the failures during the measurement would matter too
/// much.
#[must_use]
pub fn checks(seed: u64) -> Vec<Simulation> {
    [VictimPolicy::Greedy, VictimPolicy::Fifo]
        .into_iter()
        .map(|victim| {
            let what = format!("{victim}, blocks that fail, OP 0.28 at first");
            Simulation::new(what.clone(), move || {
                let run = measure(victim, BLOCKS, 0.28, seed).expect("the flash is large enough");
                let expected = match victim {
                    VictimPolicy::Greedy => theory::greedy(run.effective, UNITS),
                    _ => theory::fifo(run.effective),
                };
                let what = format!("{victim}, blocks that fail, OP 0.28 to {:.3}", run.effective);
                let source = "the closed form at the over-provisioning that is left";
                Check::theory(what, [expected, run.write_amplification], TOLERANCE, source)
            })
        })
        .collect()
}
