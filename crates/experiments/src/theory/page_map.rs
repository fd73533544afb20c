//! Write amplification of a page map under synthetic writes against closed forms and published
//! simulations.

use prism_ftl::{Frontiers, VictimPolicy};

use super::closed_forms::{self as theory, HotCold};
use super::write_amplification::{Setup, measure};
use crate::check::{Check, Simulation};
use crate::scale::Scale;

/// Largest relative difference in write amplification at which simulation and theory agree.
const TOLERANCE: f64 = 0.01;
/// Effective over-provisioning at which everything is compared.
const SPARES: [f64; 3] = [0.07, 0.15, 0.28];
/// Units per block, unless a check says otherwise.
const UNITS: u32 = 64;
/// Blocks of [`UNITS`]: enough for the mean field to hold within 0.2 %.
const BLOCKS: u32 = 16_384;
/// Larger blocks as (units per block, blocks). Fewer of them are needed, because their number of
/// valid units varies less.
const LARGE_BLOCKS: [(u32, u32); 4] = [(128, 16_384), (256, 8192), (512, 4096), (1024, 2048)];
/// Blocks of the simulations with hot and cold writes, of which there are many.
const HOT_BLOCKS: u32 = 8192;
const VAN_HOUDT: &str = "Van Houdt, SIGMETRICS'13";
const DESNOYERS: &str = "Desnoyers, SYSTOR'12";
const PUBLISHED_RUN: &str = "simulation of an independent program";
const PUBLISHED_TIES: &str =
    "simulation of an independent program whose greedy breaks ties otherwise: no claim";

/// Checks of victim policies under uniform writes, of large blocks, trims, and hot and cold data.
pub(super) fn checks(seed: u64, scale: Scale) -> impl Iterator<Item = Simulation> {
    let table = [uniform(), large_blocks(), trims(), hot_cold_theory(), hot_cold_published(scale)];
    table.into_iter().flatten().map(move |check| check.simulation(seed, scale))
}

/// A simulation and the write amplification that it should have.
struct PlannedCheck {
    what: String,
    setup: Setup,
    expected: f64,
    tolerance: Option<f64>,
    source: &'static str,
}

impl PlannedCheck {
    fn claim(what: String, setup: Setup, expected: f64, source: &'static str) -> Self {
        Self { what, setup, expected, tolerance: Some(TOLERANCE), source }
    }

    fn simulation(mut self, seed: u64, scale: Scale) -> Simulation {
        self.setup.blocks = scale.blocks(self.setup.blocks);
        Simulation::new(self.what.clone(), move || {
            let Self { what, setup, expected, tolerance, source } = self;
            let (ours, _) = measure(&setup, seed).expect("the flash is large enough");
            Check { tolerance, ..Check::theory(what, [expected, ours], TOLERANCE, source) }
        })
    }
}

/// Uniform writes to one frontier, for long enough that the mean field settles.
fn setup(victim: VictimPolicy, op: f64) -> Setup {
    Setup { measured: 3.0, ..Setup::uniform(BLOCKS, UNITS, op, victim) }
}

fn uniform() -> Vec<PlannedCheck> {
    let mut all = Vec::new();
    let mut add = |victim: VictimPolicy, source, expected: &dyn Fn(f64) -> f64| {
        for op in SPARES {
            let what = format!("{victim}, OP {op}");
            all.push(PlannedCheck::claim(what, setup(victim, op), expected(op), source));
        }
    };
    add(VictimPolicy::Greedy, VAN_HOUDT, &|op| theory::greedy(op, UNITS));
    add(VictimPolicy::Fifo, DESNOYERS, &theory::fifo);
    add(VictimPolicy::WindowedGreedy { window: 1 }, DESNOYERS, &theory::fifo);
    add(VictimPolicy::Random, "1/(1 - U/T), exact", &theory::random);
    for d in [2, 5, 10, 30] {
        add(VictimPolicy::DChoices { d }, VAN_HOUDT, &|op| theory::d_choices(op, UNITS, d));
    }
    all
}

fn large_blocks() -> Vec<PlannedCheck> {
    let mut all = Vec::new();
    for (units_per_block, blocks) in LARGE_BLOCKS {
        for op in SPARES {
            let what = format!("greedy, {units_per_block} units a block, OP {op}");
            let setup = setup(VictimPolicy::Greedy, op);
            let setup = Setup { blocks, units_per_block, warm_up: 1.0, measured: 1.0, ..setup };
            let expected = theory::greedy(op, units_per_block);
            all.push(PlannedCheck::claim(what, setup, expected, VAN_HOUDT));
        }
    }
    all
}

fn trims() -> Vec<PlannedCheck> {
    let mut all = Vec::new();
    for op in [0.07, 0.15] {
        for trims in [0.1, 0.2, 0.3] {
            let what = format!("greedy, trims {trims}, OP {op}");
            // With trims write amplification is low, so that blocks are reclaimed slowly.
            let setup = Setup { trims, warm_up: 12.0, ..setup(VictimPolicy::Greedy, op) };
            let expected = theory::greedy(theory::op_with_trims(op, trims), UNITS);
            let source = "Frankie et al., arXiv 1208.1794";
            all.push(PlannedCheck::claim(what, setup, expected, source));
        }
    }
    all
}

fn hot_cold(victim: VictimPolicy, frontiers: Frontiers, op: f64, hot: HotCold) -> (String, Setup) {
    let (f, r) = (100.0 * hot.units, 100.0 * hot.writes);
    let count = match frontiers {
        Frontiers::Shared => "1 frontier",
        // There is one stream of host data, so its copies have one frontier in both cases.
        Frontiers::Separate | Frontiers::PerStream => "2 frontiers",
    };
    let what = format!("{victim}, hot {r:.0}/{f:.0}, {count}, OP {op}");
    let hot = Some(hot);
    // Cold data settles when every block has been cleaned, which takes more writes the more
    // spare flash there is.
    let warm_up = 45.0 * op;
    (what, Setup { blocks: HOT_BLOCKS, frontiers, hot, warm_up, ..setup(victim, op) })
}

fn hot_cold_theory() -> Vec<PlannedCheck> {
    let mut all = Vec::new();
    for row in &HOT_COLD {
        let hot = row.hot();
        let (what, setup) = hot_cold(VictimPolicy::Fifo, Frontiers::Shared, row.op, hot);
        let expected = theory::fifo_hot_cold(row.op, hot);
        all.push(PlannedCheck::claim(what, setup, expected, DESNOYERS));
    }
    all
}

/// Write amplification with 64 units per block, published with the closed forms. A share of the
/// units is hot and takes all but the same share of the writes. With two frontiers host writes go
/// to one and copies to the other.
struct Published {
    op: f64,
    hot_units: f64,
    /// Greedy victims, then the best of ten random blocks, each with one and with two frontiers.
    simulated: [[f64; 2]; 2],
}

const HOT_COLD: [Published; 9] = [
    Published::new(0.07, 0.20, [[7.414, 7.377], [7.677, 7.077]]),
    Published::new(0.07, 0.10, [[8.198, 7.873], [8.342, 5.687]]),
    Published::new(0.07, 0.05, [[9.603, 8.379], [9.393, 3.703]]),
    Published::new(0.15, 0.20, [[4.173, 4.095], [4.272, 3.859]]),
    Published::new(0.15, 0.10, [[4.832, 4.427], [4.844, 3.146]]),
    Published::new(0.15, 0.05, [[5.651, 4.677], [5.535, 2.193]]),
    Published::new(0.28, 0.20, [[2.753, 2.648], [2.796, 2.489]]),
    Published::new(0.28, 0.10, [[3.251, 2.873], [3.247, 2.102]]),
    Published::new(0.28, 0.05, [[3.704, 3.017], [3.663, 1.587]]),
];

impl Published {
    const fn new(op: f64, hot_units: f64, simulated: [[f64; 2]; 2]) -> Self {
        Self { op, hot_units, simulated }
    }

    fn hot(&self) -> HotCold {
        HotCold { units: self.hot_units, writes: 1.0 - self.hot_units }
    }

    /// Whether greedy with two frontiers depends on how ties are broken, that is on which of
    /// several blocks with equally few valid units becomes the victim. The hotter the hot data,
    /// the more these blocks differ in the units that they would still lose. At OP 0.07 and 5 %
    /// hot, simulations of 16,384 blocks give 7.60 if ties go to the block that was sealed first,
    /// 7.95 if to a random one, 8.16 if to the lowest index (as here), 8.35 if to the block that
    /// changed last, and 9.01 if to the block that was sealed last. Ties to the block that changed
    /// last reproduce the published values within 1 %. With less hot data the lowest index does so
    /// as well, but only with as many blocks as published, because there are fewer ties among
    /// fewer blocks. So the smaller scale leaves out greedy with two frontiers.
    fn depends_on_ties(&self) -> bool {
        self.hot_units < 0.06 && self.op < 0.2
    }
}

fn hot_cold_published(scale: Scale) -> Vec<PlannedCheck> {
    let mut all = Vec::new();
    let policies = [VictimPolicy::Greedy, VictimPolicy::DChoices { d: 10 }];
    for row in &HOT_COLD {
        for (victim, simulated) in policies.into_iter().zip(row.simulated) {
            for (frontiers, expected) in
                [Frontiers::Shared, Frontiers::Separate].into_iter().zip(simulated)
            {
                let (what, setup) = hot_cold(victim, frontiers, row.op, row.hot());
                let mut check = PlannedCheck::claim(what, setup, expected, PUBLISHED_RUN);
                if victim == VictimPolicy::Greedy && frontiers == Frontiers::Separate {
                    if scale == Scale::Quarter {
                        continue;
                    }
                    check.setup.blocks = BLOCKS;
                    if row.depends_on_ties() {
                        check.tolerance = None;
                        check.source = PUBLISHED_TIES;
                    }
                }
                all.push(check);
            }
        }
    }
    all
}
