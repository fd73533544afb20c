//! Theory beside simulation: what `prism validate` prints and the tests check.

use prism_ftl::VictimPolicy;

use crate::theory;
use crate::write_amplification::{Setup, measure};

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is compared.
    pub what: String,
    /// What theory, or the data sheet, says.
    pub expected: f64,
    /// What the simulation says.
    pub ours: f64,
    /// Largest relative difference at which they agree; `None` where the two are shown
    /// side by side without a claim.
    pub tolerance: Option<f64>,
    /// Where the expected value comes from.
    pub source: String,
    /// What both count, for display.
    pub unit: &'static str,
}

impl Check {
    /// (ours - expected) / expected.
    #[must_use]
    pub fn difference(&self) -> f64 {
        (self.ours - self.expected) / self.expected
    }

    /// Whether the two agree within the tolerance; true where nothing is claimed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.tolerance.is_none_or(|t| self.difference().abs() <= t)
    }
}

/// A check that can be run later, with a name to show meanwhile.
pub struct Pending {
    /// What it will compare.
    pub what: String,
    run: Box<dyn FnOnce() -> Check + Send>,
}

impl Pending {
    /// Something to be run later.
    pub fn new(what: String, run: impl FnOnce() -> Check + Send + 'static) -> Self {
        Self { what, run: Box::new(run) }
    }

    /// Runs it.
    #[must_use]
    pub fn run(self) -> Check {
        (self.run)()
    }
}

/// Effective over-provisioning at which everything is compared.
const SPARES: [f64; 3] = [0.07, 0.15, 0.28];
/// Blocks and units a block: enough blocks for the mean field to hold within 0.2 %.
const BLOCKS: u32 = 16_384;
const UNITS: u32 = 64;

/// Write amplification of every policy under uniform random writes against its closed
/// form, and of greedy with trims.
#[must_use]
pub fn checks(seed: u64) -> Vec<Pending> {
    let mut all = Vec::new();
    for victim in VictimPolicy::ALL {
        for op in SPARES {
            let (expected, source) = match victim {
                VictimPolicy::Greedy => (theory::greedy(op, UNITS), "Van Houdt, SIGMETRICS'13"),
                VictimPolicy::Fifo => (theory::fifo(op), "Desnoyers, SYSTOR'12"),
                VictimPolicy::Random => (theory::random(op), "1/(1 - U/T), exact"),
            };
            let what = format!("{}, OP {op}", victim.name());
            all.push(write_amplification(what, seed, victim, op, 0.0, expected, source));
        }
    }
    for (op, q) in [(0.07, 0.1), (0.07, 0.2), (0.07, 0.3), (0.15, 0.1), (0.15, 0.2), (0.15, 0.3)] {
        let expected = theory::greedy(theory::op_with_trims(op, q), UNITS);
        let what = format!("greedy, trims {q}, OP {op}");
        let source = "Frankie et al., arXiv 1208.1794";
        all.push(write_amplification(what, seed, VictimPolicy::Greedy, op, q, expected, source));
    }
    all
}

fn write_amplification(
    what: String,
    seed: u64,
    victim: VictimPolicy,
    op: f64,
    trims: f64,
    expected: f64,
    source: &'static str,
) -> Pending {
    let setup = Setup {
        blocks: BLOCKS,
        units_per_block: UNITS,
        op,
        victim,
        trims,
        // With trims write amplification is low, so that the flash turns over slowly.
        warm_up: if trims > 0.0 { 12.0 } else { 2.0 },
        measured: 3.0,
    };
    let name = what.clone();
    Pending::new(what, move || {
        let (ours, _) = measure(&setup, seed).expect("the flash is large enough");
        let tolerance = Some(0.01);
        Check { what: name, expected, ours, tolerance, source: source.into(), unit: "" }
    })
}
