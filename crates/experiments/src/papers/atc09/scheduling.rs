//! Section 3.2: shortest wait time first against first come, first served, over load.
//!
//! The paper gives one number: under random requests, two thirds of them reads, the mean response
//! is about 8 % lower. It gives neither load nor queue depth nor drive; see
//! [`crate::oracles::curve`].

use super::{closest, line};
use crate::comparison::{Basis, Comparison, Quantity, Why};
use crate::oracles::{self, Curve};
use crate::scale::Scale;

/// Percent by which the mean response is lower (section 3.2: "about 8 %").
pub const PUBLISHED_GAIN: f64 = 8.0;
/// Loads, up to near the saturation of first come, first served, which is at 0.65 of the rate of
/// all dies, because eight requests in service do not keep eight dies busy.
pub(super) const LOADS: [f64; 7] = [0.3, 0.4, 0.5, 0.55, 0.6, 0.62, 0.64];
/// Requests of a run at full scale: their writes fit into the spare flash.
const COUNT: u64 = 100_000;

/// Mean response of both schedulers by load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scheduling {
    /// One for each load, in ascending order.
    pub curves: Vec<Curve>,
}

pub(super) fn curve(load: f64, scale: Scale, seed: u64) -> Curve {
    oracles::curve(load, scale.of(COUNT), seed)
}

/// Percent by which shortest wait time first lowers the mean response.
#[must_use]
pub fn gain(curve: &Curve) -> f64 {
    100.0 * (1.0 - curve.swtf / curve.fcfs)
}

impl Scheduling {
    /// The load with the gain closest to the published one.
    #[must_use]
    pub fn closest(&self) -> Option<&Curve> {
        closest(&self.curves, |curve| (gain(curve) - PUBLISHED_GAIN).abs())
    }

    pub(super) fn lines(&self) -> Vec<Comparison> {
        let reason =
            Why::NotGiven("the load is not given, and the gain depends on it: see the curve");
        let line = |curve: &Curve| {
            let what = format!("SWTF: lower mean response, load {}", curve.load);
            line("3.2", what, Quantity::Percent, [PUBLISHED_GAIN, gain(curve)], reason)
                .on(Basis::Closest)
        };
        self.closest().map(line).into_iter().collect()
    }
}
