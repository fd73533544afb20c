//! Who has which block: handed out, erased, or waiting for its erase; and which pages of it
//! are still wanted.
//!
//! Cost: 32 bytes a block, some 16 more for an erased one, and a bit a page for blocks of which
//! single pages were trimmed.

use std::collections::BTreeSet;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Erased: it can be handed out.
    Erased,
    /// Handed out, as a whole or page by page.
    Allocated,
    /// Given back, not erased yet.
    Trimmed,
    /// It cannot be erased.
    Lost,
}

#[derive(Clone, Debug)]
struct Block {
    state: Use,
    /// Pages handed out, from the first on.
    handed: u32,
    /// Those of them that were not trimmed.
    live: u32,
    /// Bit by page, set once it is trimmed; absent while none was.
    trimmed: Option<Box<[u64]>>,
    /// A program was tried since the erase.
    begun: bool,
    /// Data that rests was put here by levelling, and nothing was erased since.
    rests: bool,
}

/// The blocks of a share, numbered LUN by LUN.
#[derive(Debug)]
pub(super) struct Blocks {
    per_lun: u32,
    pages: u32,
    blocks: Vec<Block>,
    /// By LUN, erased blocks by erase count, then number.
    erased: Vec<BTreeSet<(u32, u32)>>,
    /// By LUN, how many wait for their erase.
    trimmed: Vec<u32>,
    mapped: u32,
    lost: u32,
    /// Blocks that stay unmapped.
    pub(super) reserve: u32,
}

impl Blocks {
    /// Blocks of which each was allocated as a whole.
    pub(super) fn new(luns: u32, per_lun: u32, pages: u32) -> Self {
        let whole = Block {
            state: Use::Allocated,
            handed: pages,
            live: pages,
            trimmed: None,
            begun: true,
            rests: false,
        };
        Self {
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

    /// Blocks that are handed out.
    pub(super) fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Blocks that may be mapped at once if `reserve` of them must not.
    pub(super) fn mappable(&self, reserve: u32) -> u32 {
        self.count().saturating_sub(self.lost).saturating_sub(reserve)
    }

    /// Blocks that may still be handed out before the reserve is touched.
    pub(super) fn room(&self) -> u32 {
        self.mappable(self.reserve).saturating_sub(self.mapped)
    }

    /// Erased blocks of a LUN.
    pub(super) fn erased(&self, lun: u32) -> u32 {
        self.erased[lun as usize].len() as u32
    }

    /// Blocks of a LUN that wait for their erase, or are being erased.
    pub(super) fn erasing(&self, lun: u32) -> u32 {
        self.trimmed[lun as usize]
    }

    /// The erase count of the least worn erased block of a LUN.
    pub(super) fn least_worn(&self, lun: u32) -> Option<u32> {
        self.erased[lun as usize].first().map(|&(erases, _)| erases)
    }

    /// Hands out the least worn erased block of a LUN, without pages.
    pub(super) fn take(&mut self, lun: u32) -> Option<u32> {
        let (_, block) = self.erased[lun as usize].pop_first()?;
        self.mapped += 1;
        let state = &mut self.blocks[block as usize];
        state.state = Use::Allocated;
        (state.handed, state.live) = (0, 0);
        Some(block)
    }

    /// Hands out all pages of a block that was taken.
    pub(super) fn hand_out_all(&mut self, block: u32) {
        let state = &mut self.blocks[block as usize];
        (state.handed, state.live) = (self.pages, self.pages);
    }

    /// Hands out the next page of a block that was taken.
    pub(super) fn hand_out_page(&mut self, block: u32) -> u32 {
        let state = &mut self.blocks[block as usize];
        state.handed += 1;
        state.live += 1;
        state.handed - 1
    }

    /// Pages of a block that were not handed out.
    pub(super) fn left(&self, block: u32) -> u32 {
        self.pages - self.blocks[block as usize].handed
    }

    /// Whether a page is handed out.
    pub(super) fn is_allocated(&self, block: u32, page: u32) -> bool {
        let state = &self.blocks[block as usize];
        state.state == Use::Allocated && page < state.handed && !self.was_trimmed(block, page)
    }

    /// Whether a page of an allocated block was given back.
    pub(super) fn was_trimmed(&self, block: u32, page: u32) -> bool {
        let bits = self.blocks[block as usize].trimmed.as_ref();
        bits.is_some_and(|bits| bits[page as usize / 64] >> (page % 64) & 1 == 1)
    }

    /// Gives a page back that is allocated; whether nothing of its block is left to be wanted
    /// or handed out.
    pub(super) fn trim_page(&mut self, block: u32, page: u32) -> bool {
        let pages = self.pages;
        let state = &mut self.blocks[block as usize];
        let words = pages.div_ceil(64) as usize;
        let bits = state.trimmed.get_or_insert_with(|| vec![0; words].into());
        bits[page as usize / 64] |= 1 << (page % 64);
        state.live -= 1;
        state.live == 0 && state.handed == pages
    }

    /// Gives a block back that is allocated.
    pub(super) fn trim_block(&mut self, block: u32) {
        let lun = self.lun_of(block);
        self.trimmed[lun as usize] += 1;
        self.mapped -= 1;
        let state = &mut self.blocks[block as usize];
        state.state = Use::Trimmed;
        state.trimmed = None;
    }

    /// A block that was trimmed is erased.
    pub(super) fn put_erased(&mut self, block: u32, erases: u32) {
        let lun = self.lun_of(block) as usize;
        self.trimmed[lun] -= 1;
        self.erased[lun].insert((erases, block));
        let state = &mut self.blocks[block as usize];
        (state.state, state.begun, state.rests) = (Use::Erased, false, false);
    }

    /// A block that was trimmed cannot be erased.
    pub(super) fn put_lost(&mut self, block: u32) {
        let lun = self.lun_of(block) as usize;
        self.trimmed[lun] -= 1;
        self.lost += 1;
        self.blocks[block as usize].state = Use::Lost;
    }

    /// A program of the block is tried.
    pub(super) fn begin(&mut self, block: u32) {
        self.blocks[block as usize].begun = true;
    }

    /// Whether a program was tried since the block's erase, even one that failed.
    pub(super) fn is_begun(&self, block: u32) -> bool {
        self.blocks[block as usize].begun
    }

    /// Whether levelling put data that rests here.
    pub(super) fn rests(&self, block: u32) -> bool {
        self.blocks[block as usize].rests
    }

    /// Levelling put data that rests on `cold`, and not on `hot`.
    pub(super) fn levelled(&mut self, hot: u32, cold: u32) {
        self.blocks[cold as usize].rests = true;
        self.blocks[hot as usize].rests = false;
    }

    /// Erased blocks in the order of new erase counts.
    pub(super) fn reorder(&mut self, erases: &[u32]) {
        for set in &mut self.erased {
            // A block that the share has given back is the last to be handed out.
            let of = |block: u32| erases.get(block as usize).copied().unwrap_or(u32::MAX);
            *set = set.iter().map(|&(_, block)| (of(block), block)).collect();
        }
    }
}
