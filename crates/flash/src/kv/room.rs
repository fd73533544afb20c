//! How much a store can hold so that cleaning always finds a block that gains.
//!
//! A record is charged for as many headers as it can ever need: pieces are split only where
//! both parts keep an eighth of a page, so a value of `n` bytes is never in more than
//! `n / part_min` pieces. A page that is left because the next piece does not fit in it wastes
//! less than the largest piece that is not split. From that follows the least that a page of
//! copies takes up, and from that how many pages the copies of a block need at most.

use crate::kv::page::{PAGE_HEADER, piece_size};
use crate::monitor::ShareGeometry;

/// The most bytes of a key, where pages are large enough.
pub(super) const KEY_MAX: usize = 255;

/// The shape of a store: numbers that stay while it is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) blocks: u32,
    pub(super) pages: u32,
    pub(super) page_size: usize,
    /// Open blocks for users and for copies.
    pub(super) width: [u32; 2],
    /// Erased blocks that users leave to cleaning.
    pub(super) reserve: u32,
    /// The share without its over-provisioning, in bytes.
    pub(super) share: u64,
}

impl Shape {
    /// The shape of a store on such a share.
    pub(super) fn new(geometry: &ShareGeometry, is_volatile: bool) -> Self {
        /// Of the blocks, one in so many may be open for each of the two.
        const OPEN_PART: u32 = 24;
        let blocks = geometry.blocks();
        let most = (blocks / OPEN_PART).min(geometry.max_open_blocks / 2);
        let width = most.clamp(1, geometry.luns);
        Self {
            blocks,
            pages: geometry.pages_per_block,
            page_size: geometry.page_size as usize,
            // With a volatile cache, blocks would survive a loss of power each by itself;
            // one at a time keeps the order of writing.
            width: [if is_volatile { 1 } else { width }, width],
            reserve: width,
            share: geometry.capacity(),
        }
    }

    pub(super) fn payload(&self) -> usize {
        self.page_size - PAGE_HEADER
    }

    /// The least of a value that a split leaves on both sides.
    pub(super) fn part_min(&self) -> usize {
        self.payload() / 8
    }

    /// The most bytes of a key.
    pub(super) fn key_max(&self) -> usize {
        KEY_MAX.min(self.page_size / 8)
    }

    /// The most bytes that the pieces of a record ever take, headers included.
    pub(super) fn charge(&self, key: usize, value: usize) -> u64 {
        let headers = (value / self.part_min()).max(1) - 1;
        (piece_size(key, value) + headers * piece_size(key, 0)) as u64
    }

    /// Bytes of pieces that a page of copies takes at least, before they are split.
    fn useful(&self, longest: Longest) -> u64 {
        let head = piece_size(longest.key, 0);
        let unsplit = (head + 2 * self.part_min()).min(piece_size(longest.pair, 0));
        (self.payload() - unsplit - head) as u64
    }

    /// A block with fewer live bytes gains a page at least when it is cleaned: `n` bytes need
    /// at most `n / useful`, rounded down, and one more page.
    pub(super) fn gains_below(&self, longest: Longest) -> u64 {
        u64::from(self.pages - 1) * self.useful(longest)
    }

    /// With at most so many bytes charged, one of the full blocks gains whenever no more than
    /// the reserve is erased: fewer than the average.
    pub(super) fn bound(&self, longest: Longest) -> u64 {
        let others = self.reserve + self.width[0] + self.width[1] + 1;
        u64::from(self.blocks.saturating_sub(others)) * self.gains_below(longest)
    }

    /// What values may take: bytes below the bound stay for deletions.
    pub(super) fn bound_for_values(&self, longest: Longest) -> u64 {
        self.bound(longest).saturating_sub(self.page_size as u64)
    }

    /// What users may fill. The longest record stays below the bound, so that any can be
    /// overwritten when this is reached, and most of a block, so that pages can be filled
    /// before what they replace is garbage.
    pub(super) fn capacity(&self, longest: Longest) -> u64 {
        let twice = self.charge(longest.key, longest.pair) + self.gains_below(longest);
        self.share.min(self.bound_for_values(longest).saturating_sub(twice))
    }
}

/// The longest key, and the most bytes of a key and its value, of those in the store.
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
