//! Closed forms of theory, and the simulations that are checked against them.

mod closed_forms;
mod hybrid;
mod page_map;
mod ranges;
pub mod retirement;
pub mod tiers;
pub mod write_amplification;
mod zones;

pub use closed_forms::*;

use crate::check::Simulation;
use crate::scale::Scale;

/// Write amplification without time against closed forms: of a page map, under uniform writes
/// with each victim policy, with large blocks, trims, and hot and cold data; of flash that loses
/// blocks; of block-level mappings; of two mappings on one drive; and of zoned drives and host
/// FTLs over them.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Simulation> {
    let mut all: Vec<Simulation> = page_map::checks(seed, scale).collect();
    all.extend(retirement::checks(seed));
    all.extend(hybrid::checks(seed, scale));
    all.extend(ranges::checks(seed, scale));
    all.extend(zones::checks(seed));
    all
}
