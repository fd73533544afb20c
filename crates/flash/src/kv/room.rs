//! The capacity of a store, such that cleaning always finds a block that gains.
//!
//! A record is charged for as many headers as it can ever need: pieces are split only where both
//! parts keep an eighth of a page, so a value of `n` bytes is never in more than `n / part_min`
//! pieces. The unused rest of a page is smaller than the largest piece that is not split. That
//! gives a minimum of bytes on a page of copies, and so a maximum of pages for the copies of a
//! block.

use crate::kv::page::{PAGE_HEADER, piece_size};
use crate::monitor::ShareGeometry;

/// The longest key in bytes, if pages are large enough.
pub(super) const KEY_MAX: usize = 255;

/// The geometry of a store, constant while it is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) blocks: u32,
    pub(super) pages: u32,
    pub(super) page_size: usize,
    /// Open blocks for user writes and for copies.
    pub(super) width: [u32; 2],
    /// Erased blocks that user writes leave to cleaning.
    pub(super) reserve: u32,
    /// The share without its over-provisioning, in bytes.
    pub(super) share: u64,
}

impl Shape {
    /// The geometry of a store on such a share.
    pub(super) fn new(geometry: &ShareGeometry, is_volatile: bool) -> Self {
        /// One in this many blocks may be open for each of the two.
        const OPEN_PART: u32 = 24;
        let blocks = geometry.blocks();
        let most = (blocks / OPEN_PART).min(geometry.max_open_blocks / 2);
        let width = most.clamp(1, geometry.luns);
        Self {
            blocks,
            pages: geometry.pages_per_block,
            page_size: geometry.page_size as usize,
            // With a volatile cache, blocks survive a power failure independently; one at a time
            // keeps the order of writes.
            width: [if is_volatile { 1 } else { width }, width],
            reserve: width,
            share: geometry.capacity(),
        }
    }

    pub(super) fn payload(&self) -> usize {
        self.page_size - PAGE_HEADER
    }

    /// The minimum of bytes of a value that a split leaves on both sides.
    pub(super) fn part_min(&self) -> usize {
        self.payload() / 8
    }

    /// The longest key in bytes.
    pub(super) fn key_max(&self) -> usize {
        KEY_MAX.min(self.page_size / 8)
    }

    /// The maximum of bytes that the pieces of a record ever take, including headers.
    pub(super) fn charge(&self, key: usize, value: usize) -> u64 {
        let headers = (value / self.part_min()).max(1) - 1;
        (piece_size(key, value) + headers * piece_size(key, 0)) as u64
    }

    /// The minimum of bytes of pieces on a page of copies, before they are split.
    fn useful(&self, longest: Longest) -> u64 {
        let head = piece_size(longest.key, 0);
        let unsplit = (head + 2 * self.part_min()).min(piece_size(longest.pair, 0));
        (self.payload() - unsplit - head) as u64
    }

    /// Cleaning a block with fewer live bytes gains at least a page: `n` bytes need at most one
    /// page more than `n / useful`, rounded down.
    pub(super) fn gains_below(&self, longest: Longest) -> u64 {
        u64::from(self.pages - 1) * self.useful(longest)
    }

    /// With at most this many bytes charged, one of the full blocks gains whenever no more than the
    /// reserve is erased: on average they have fewer live bytes than [`Self::gains_below`].
    pub(super) fn bound(&self, longest: Longest) -> u64 {
        let others = self.reserve + self.width[0] + self.width[1] + 1;
        u64::from(self.blocks.saturating_sub(others)) * self.gains_below(longest)
    }

    /// The bound for sets: the rest of the bound is reserved for deletions.
    pub(super) fn bound_for_values(&self, longest: Longest) -> u64 {
        self.bound(longest).saturating_sub(self.page_size as u64)
    }

    /// The bound for the newest records. It leaves room for the longest record, so that any can be
    /// overwritten in a full store, and for most of a block, so that pages can be filled before the
    /// records they replace are garbage.
    pub(super) fn capacity(&self, longest: Longest) -> u64 {
        let twice = self.charge(longest.key, longest.pair) + self.gains_below(longest);
        self.share.min(self.bound_for_values(longest).saturating_sub(twice))
    }
}

/// The longest key, and the longest key and value together, in the store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Longest {
    pub(super) key: usize,
    pub(super) pair: usize,
}

impl Longest {
    /// The same with one more record.
    pub(super) fn with(self, key: usize, value: usize) -> Self {
        Self { key: self.key.max(key), pair: self.pair.max(key + value) }
    }
}
