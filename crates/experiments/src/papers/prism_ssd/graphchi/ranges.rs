//! The logical space of the policy level in two parts, one for shards and one for results (section
//! VI.C of Prism-SSD).

use std::sync::Arc;

use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::{FlashError, Share};
use prism_segments::PolicyStore;

/// The ranges of shards and of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Ranges {
    /// Blocks of each.
    pub(in super::super) blocks: [u64; 2],
    /// The mapping of each.
    pub(in super::super) mappings: [Mapping; 2],
}

/// Opens both ranges of a new share: stores of shards and of results. Each has the paper's static
/// over-provisioning of 25 %.
///
/// # Errors
/// [`FlashError`] if the share is too small.
pub(in super::super) fn open(
    share: Share,
    ranges: Ranges,
) -> Result<(Arc<Policy>, [PolicyStore; 2]), FlashError> {
    let policy = Arc::new(Policy::open(share)?);
    let [shards, results] = ranges.blocks.map(|blocks| blocks * policy.block_bytes());
    let (middle, end) = (shards, shards + results);
    let config = ranges.mappings.map(|mapping| RangeConfig::new(mapping, Cleaning::Greedy));
    policy.configure(0, middle, config[0])?;
    policy.configure(middle, end, config[1])?;
    let store = |begin, end| PolicyStore::shared(policy.clone(), begin, end - begin, 1);
    let stores = [store(0, middle), store(middle, end)];
    Ok((policy, stores))
}
