//! The state of each block: allocated, erased, or to be erased; and which of its pages are
//! allocated.
//!
//! Cost: 32 bytes per block, about 16 more for an erased one, and a bit per page for blocks of
//! which single pages were trimmed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::function::table::{BlockTable, Seen};

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Erased: it can be allocated.
    Erased,
    /// Allocated, as a whole or page by page.
    Allocated,
    /// Trimmed, not erased yet.
    Trimmed,
    /// It cannot be erased.
    Lost,
}

#[derive(Clone, Debug)]
struct Block {
    state: Use,
    /// Pages allocated, from the first on.
    allocated: u32,
    /// Those of them that were not trimmed.
    live: u32,
    /// Bit by page, set once it is trimmed; absent while none was.
    trimmed: Option<Box<[u64]>>,
    /// Levelling has moved cold data here, and the block was not erased since.
    holds_cold: bool,
}

/// The blocks of a share, numbered LUN by LUN.
#[derive(Debug)]
pub(super) struct Blocks {
    /// What calls without the level's lock see.
    pub(super) table: Arc<BlockTable>,
    per_lun: u32,
    pages: u32,
    blocks: Vec<Block>,
    /// By LUN, erased blocks by erase count, then number.
    erased: Vec<BTreeSet<(u32, u32)>>,
    /// By LUN, blocks to be erased.
    trimmed: Vec<u32>,
    mapped: u32,
    lost: u32,
    /// Blocks that stay unmapped.
    pub(super) reserve: u32,
}

impl Blocks {
    /// All blocks allocated, each as a whole.
    pub(super) fn new(luns: u32, per_lun: u32, pages: u32) -> Self {
        let whole = Block {
            state: Use::Allocated,
            allocated: pages,
            live: pages,
            trimmed: None,
            holds_cold: false,
        };
        let table = BlockTable::new(luns * per_lun);
        (0..luns * per_lun).for_each(|block| table.set(block, Seen::Allocated(pages)));
        Self {
            table: Arc::new(table),
            per_lun,
            pages,
            blocks: vec![whole; (luns * per_lun) as usize],
            erased: vec![BTreeSet::new(); luns as usize],
            trimmed: vec![0; luns as usize],
            mapped: luns * per_lun,
            lost: 0,
            reserve: 0,
        }
    }

    #[inline]
    pub(super) fn lun_of(&self, block: u32) -> u32 {
        block / self.per_lun
    }

    pub(super) fn count(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(super) fn state(&self, block: u32) -> Use {
        self.blocks[block as usize].state
    }

    /// Allocated blocks.
    pub(super) fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Blocks that may be mapped at once if `reserve` of them must not.
    pub(super) fn mappable(&self, reserve: u32) -> u32 {
        self.count().saturating_sub(self.lost).saturating_sub(reserve)
    }

    /// Blocks that may still be allocated without using the reserve.
    pub(super) fn room(&self) -> u32 {
        self.mappable(self.reserve).saturating_sub(self.mapped)
    }

    /// Erased blocks of a LUN.
    pub(super) fn erased(&self, lun: u32) -> u32 {
        self.erased[lun as usize].len() as u32
    }

    /// Blocks of a LUN that are trimmed and not erased yet.
    pub(super) fn erasing(&self, lun: u32) -> u32 {
        self.trimmed[lun as usize]
    }

    /// The erase count of the least worn erased block of a LUN.
    pub(super) fn least_worn(&self, lun: u32) -> Option<u32> {
        self.erased[lun as usize].first().map(|&(erases, _)| erases)
    }

    /// Allocates the least worn erased block of a LUN, without pages; of those that `prefer`
    /// accepts, if there are any.
    pub(super) fn take(&mut self, lun: u32, prefer: impl Fn(u32) -> bool) -> Option<u32> {
        let erased = &mut self.erased[lun as usize];
        let best = erased.iter().find(|(_, block)| prefer(*block)).or_else(|| erased.first());
        let best = *best?;
        erased.remove(&best);
        let (_, block) = best;
        self.mapped += 1;
        let state = &mut self.blocks[block as usize];
        state.state = Use::Allocated;
        (state.allocated, state.live) = (0, 0);
        self.publish(block);
        Some(block)
    }

    /// Shows a change to calls without the level's lock.
    fn publish(&self, block: u32) {
        let state = &self.blocks[block as usize];
        let seen = match state.state {
            Use::Allocated if state.trimmed.is_some() => Seen::PartlyTrimmed,
            Use::Allocated => Seen::Allocated(state.allocated),
            Use::Trimmed => Seen::Trimmed,
            Use::Erased | Use::Lost => Seen::Free,
        };
        self.table.set(block, seen);
    }

    /// Allocates all pages of a block that was taken.
    pub(super) fn allocate_all(&mut self, block: u32) {
        let state = &mut self.blocks[block as usize];
        (state.allocated, state.live) = (self.pages, self.pages);
        self.publish(block);
    }

    /// Allocates the next page of a block that was taken.
    pub(super) fn allocate_page(&mut self, block: u32) -> u32 {
        let state = &mut self.blocks[block as usize];
        state.allocated += 1;
        state.live += 1;
        let page = state.allocated - 1;
        self.publish(block);
        page
    }

    /// Pages of a block that were not allocated.
    pub(super) fn left(&self, block: u32) -> u32 {
        self.pages - self.blocks[block as usize].allocated
    }

    /// Whether a page is allocated.
    pub(super) fn is_allocated(&self, block: u32, page: u32) -> bool {
        let state = &self.blocks[block as usize];
        state.state == Use::Allocated && page < state.allocated && !self.was_trimmed(block, page)
    }

    /// Whether a page of an allocated block was trimmed.
    pub(super) fn was_trimmed(&self, block: u32, page: u32) -> bool {
        let bits = self.blocks[block as usize].trimmed.as_ref();
        bits.is_some_and(|bits| bits[page as usize / 64] >> (page % 64) & 1 == 1)
    }

    /// Trims an allocated page; returns whether all pages of its block are allocated and trimmed
    /// now.
    pub(super) fn trim_page(&mut self, block: u32, page: u32) -> bool {
        let pages = self.pages;
        let state = &mut self.blocks[block as usize];
        let words = pages.div_ceil(64) as usize;
        let bits = state.trimmed.get_or_insert_with(|| vec![0; words].into());
        bits[page as usize / 64] |= 1 << (page % 64);
        state.live -= 1;
        let all = state.live == 0 && state.allocated == pages;
        self.publish(block);
        all
    }

    /// Trims an allocated block.
    pub(super) fn trim_block(&mut self, block: u32) {
        let lun = self.lun_of(block);
        self.trimmed[lun as usize] += 1;
        self.mapped -= 1;
        let state = &mut self.blocks[block as usize];
        state.state = Use::Trimmed;
        state.trimmed = None;
        self.publish(block);
    }

    /// A block that was trimmed is erased.
    pub(super) fn put_erased(&mut self, block: u32, erases: u32) {
        let lun = self.lun_of(block) as usize;
        self.trimmed[lun] -= 1;
        self.erased[lun].insert((erases, block));
        let state = &mut self.blocks[block as usize];
        (state.state, state.holds_cold) = (Use::Erased, false);
        self.table.note_erased(block);
        self.publish(block);
    }

    /// A block that was trimmed cannot be erased.
    pub(super) fn put_lost(&mut self, block: u32) {
        let lun = self.lun_of(block) as usize;
        self.trimmed[lun] -= 1;
        self.lost += 1;
        self.blocks[block as usize].state = Use::Lost;
        self.publish(block);
    }

    /// Whether levelling has moved cold data here.
    pub(super) fn holds_cold(&self, block: u32) -> bool {
        self.blocks[block as usize].holds_cold
    }

    /// Notes that levelling has moved cold data to the block of `cold`, and hot data to that of
    /// `hot`.
    pub(super) fn levelled(&mut self, hot: u32, cold: u32) {
        self.blocks[cold as usize].holds_cold = true;
        self.blocks[hot as usize].holds_cold = false;
    }

    /// Sorts erased blocks by new erase counts.
    pub(super) fn reorder(&mut self, erases: &[u32]) {
        for set in &mut self.erased {
            // A block that the share has given back is the last to be allocated.
            let of = |block: u32| erases.get(block as usize).copied().unwrap_or(u32::MAX);
            *set = set.iter().map(|&(_, block)| (of(block), block)).collect();
        }
    }
}
