//! Published results of other simulators, repeated on drives with their parameters.
//!
//! An oracle is a number that somebody else's program gave for a configuration that is
//! known in full. Where both models agree on what a drive is, the numbers must agree;
//! where they do not, the difference and its reason are part of the check.

pub mod datasheet;
mod disksim;
mod swtf;
mod wiscsim;

pub use swtf::{Curve, curve};

use crate::check::Pending;
use crate::scale::Scale;

/// All oracles. At [`Scale::Full`] those of millions of requests are among them.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Pending> {
    let mut all = wiscsim::checks(seed);
    all.extend(disksim::checks(seed, scale));
    if scale == Scale::Full {
        all.extend(swtf::checks(seed));
    }
    all
}
