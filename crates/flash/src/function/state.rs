//! The state of the function level: which blocks are allocated, and which wait for their erase.

use prism_base::SimTime;
use prism_nand::Cause;

use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::function::Unit;
use crate::function::blocks::{Blocks, Use};
use crate::medium::PageState;
use crate::monitor::{Share, ShareGeometry, ShareOp, TimedQueue};
use crate::raw::{Address, block_number};

#[derive(Debug)]
pub(super) struct State {
    pub(super) share: Share,
    pub(super) geometry: ShareGeometry,
    pub(super) blocks: Blocks,
    /// By LUN of the share: its channel and its number there.
    positions: Vec<(u32, u32)>,
    /// By channel: the block from which pages are allocated.
    pub(super) open: Vec<Option<u32>>,
    /// Blocks allocated page by page that may be partly written; used if the device limits those.
    pub(super) filling: Vec<u32>,
    /// Trimmed blocks whose erase waits for commands in progress; on a device with timing, only for
    /// those that are not queued yet.
    deferred: Vec<u32>,
    /// On a device with timing: erases of trimmed blocks.
    pub(super) erases: TimedQueue,
    /// The error of a background erase, not reported yet.
    pub(super) erase_error: Option<FlashError>,
}

impl State {
    pub(super) fn open(share: Share) -> Result<Self> {
        let geometry = share.geometry()?;
        let (luns, per_lun, pages) =
            (geometry.luns, geometry.blocks_per_lun, geometry.pages_per_block);
        let mut positions = vec![(0, 0); luns as usize];
        for (channel, luns) in (0u32..).zip(&geometry.channels) {
            for (lun, &number) in (0u32..).zip(luns) {
                positions[number as usize] = (channel, lun);
            }
        }
        let mut state = Self {
            blocks: Blocks::new(luns, per_lun, pages),
            positions,
            open: vec![None; geometry.channels.len()],
            filling: Vec::new(),
            deferred: Vec::new(),
            erases: TimedQueue::new(&share),
            share,
            erase_error: None,
            geometry,
        };
        state.blocks.reserve = state.geometry.ops_luns * per_lun;
        state.find()?;
        Ok(state)
    }

    /// Finds the state of each block; one whose erase was interrupted is erased again.
    fn find(&mut self) -> Result<()> {
        for block in 0..self.blocks.count() {
            if self.share.write_pointer(block)? > 0 {
                continue;
            }
            self.blocks.trim_block(block);
            match self.share.state_of(block)? {
                PageState::Torn => self.erase_later(block),
                _ => self.blocks.put_erased(block, self.share.erases(block)?),
            }
        }
        Ok(())
    }

    pub(super) fn address(&self, block: u32, page: u32) -> Address {
        let (channel, lun) = self.positions[self.blocks.lun_of(block) as usize];
        Address { channel, lun, block: block % self.geometry.blocks_per_lun, page }
    }

    /// Issues all commands that could start before now, and frees blocks erased by now. Returns the
    /// share's clock.
    pub(super) fn settle(&mut self) -> Result<SimTime> {
        let now = self.share.now_if_timed()?;
        if self.share.is_timed() {
            self.share.scheduler().settle(&self.share, now);
            self.take_erased()?;
        }
        Ok(now)
    }

    /// Notes the blocks erased by now; returns whether there are any.
    pub(super) fn take_erased(&mut self) -> Result<bool> {
        let mut any = false;
        while let Some(reply) = self.erases.poll() {
            let block = reply.tag as u32;
            match reply.result {
                Ok(_) => {
                    self.blocks.put_erased(block, self.share.erases(block)?);
                    any = true;
                }
                Err(error) => {
                    self.blocks.put_lost(block);
                    self.erase_error.get_or_insert(error);
                }
            }
        }
        Ok(any)
    }

    /// Erases trimmed blocks that no command in progress uses, or queues their erases.
    pub(super) fn erase_idle(&mut self) -> Result<()> {
        for block in std::mem::take(&mut self.deferred) {
            if !self.blocks.table.is_idle(block) {
                self.deferred.push(block);
                continue;
            }
            if self.share.is_timed() {
                self.erase_later(block);
                continue;
            }
            match self.share.erase(self.share.access(block, 0, Cause::Host, SimTime::ZERO)) {
                Ok(_) => self.blocks.put_erased(block, self.share.erases(block)?),
                Err(error) => {
                    self.blocks.put_lost(block);
                    self.erase_error.get_or_insert(error);
                }
            }
        }
        Ok(())
    }

    /// Erases a trimmed block when its LUN has time, or when no command in progress uses it.
    fn erase_later(&mut self, block: u32) {
        if self.share.is_timed() && self.blocks.table.is_idle(block) {
            let op = ShareOp::Erase { block };
            self.erases.submit(block.into(), op, Buffer::default(), Vec::new());
        } else {
            self.deferred.push(block);
        }
    }

    /// Whether all pages from `first` to before `page` were trimmed before they were written.
    pub(super) fn may_pad(&self, block: u32, first: u32, page: u32) -> bool {
        first < page && (first..page).all(|page| self.blocks.was_trimmed(block, page))
    }

    /// The block and the number of its pages, which all have to be allocated.
    pub(super) fn check(&self, at: Address, len: usize) -> Result<(u32, u32)> {
        let block = block_number(&self.geometry, at)?;
        let (unit, pages) = (self.geometry.page_size, self.geometry.pages_per_block);
        if !len.is_multiple_of(unit as usize) {
            let (what, value) = ("a length of", len as u64);
            return Err(FlashError::Unaligned { what, value, unit: unit.into() });
        }
        let count = (len / unit as usize) as u64;
        let end = u64::from(at.page) + count;
        if end > pages.into() {
            let (what, value) = ("page", end - 1);
            return Err(FlashError::OutOfRange { what, value, count: pages.into() });
        }
        if self.blocks.state(block) != Use::Allocated {
            return Err(FlashError::NotAllocated { what: "block", number: at.block.into() });
        }
        match (at.page..end as u32).find(|&page| !self.blocks.is_allocated(block, page)) {
            Some(page) => Err(FlashError::NotAllocated { what: "page", number: page.into() }),
            None => Ok((block, count as u32)),
        }
    }

    /// Trims a block or a page.
    pub(super) fn trim(&mut self, at: Address, unit: Unit) -> Result<()> {
        let block = block_number(&self.geometry, at)?;
        if self.blocks.state(block) != Use::Allocated {
            return Err(FlashError::NotAllocated { what: "block", number: at.block.into() });
        }
        if unit == Unit::Page {
            if !self.blocks.is_allocated(block, at.page) {
                return Err(FlashError::NotAllocated { what: "page", number: at.page.into() });
            }
            if !self.blocks.trim_page(block, at.page) {
                return Ok(());
            }
        }
        self.blocks.trim_block(block);
        let open = &mut self.open[at.channel as usize];
        *open = open.filter(|&open| open != block);
        self.filling.retain(|&filling| filling != block);
        if self.is_idle(block) && !self.blocks.table.is_begun(block) {
            // Nothing was written, so there is nothing to erase.
            self.blocks.put_erased(block, self.share.erases(block)?);
        } else {
            self.erase_later(block);
        }
        Ok(())
    }

    /// Whether no command on a block waits or is in progress.
    pub(super) fn is_idle(&self, block: u32) -> bool {
        let is_queued = self.share.is_timed() && !self.share.scheduler().is_idle(block);
        !is_queued && self.blocks.table.is_idle(block)
    }

    /// Issues all erases, and the commands before them, and waits for the erases.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.settle()?;
        self.erase_idle()?;
        if let Some(end) = self.erases.issue_all() {
            self.share.reach_if_timed(end)?;
            self.take_erased()?;
        }
        self.erase_error.take().map_or(Ok(()), Err)
    }
}
