//! Published results of other simulators, repeated on drives with the same parameters, and data
//! sheets.
//!
//! An oracle is a number that another program gave for a configuration that is known in full. If
//! both programs model the drive in the same way, the numbers must agree. If they do not, no
//! agreement is claimed and the check names the reason.

pub mod datasheet;
mod disksim;
mod swtf;
mod wiscsim;

pub use swtf::{Curve, curve};

use crate::check::Simulation;
use crate::scale::Scale;

/// The checks against other simulators. Those with millions of requests need [`Scale::Full`].
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Simulation> {
    let mut all = wiscsim::checks(seed);
    all.extend(disksim::checks(seed, scale));
    if scale == Scale::Full {
        all.extend(swtf::checks(seed));
    }
    all
}
