//! The logical space of the policy level in two parts, one for shards and one for results (section
//! VI.C of Prism-SSD).

use std::sync::Arc;

use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::{FlashError, Share};
use prism_segments::PolicyStore;

/// Blocks of each range, and how results are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Ranges {
    /// Blocks for shards.
    pub(in super::super) shards: u64,
    /// Blocks for results.
    pub(in super::super) results: u64,
    /// The mapping of results; that of shards is by blocks.
    pub(in super::super) mapping: Mapping,
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
    let block = policy.block_bytes();
    let (middle, end) = (ranges.shards * block, (ranges.shards + ranges.results) * block);
    policy.configure(0, middle, RangeConfig::new(Mapping::Block, Cleaning::Greedy))?;
    policy.configure(middle, end, RangeConfig::new(ranges.mapping, Cleaning::Greedy))?;
    let store = |begin, end| PolicyStore::shared(policy.clone(), begin, end - begin, 1);
    let stores = [store(0, middle), store(middle, end)];
    Ok((policy, stores))
}
