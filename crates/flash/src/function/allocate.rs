//! Allocation: choosing the channel and the block, and waiting for an erase.

use std::cmp::Reverse;

use prism_base::{Nanos, SimTime};

use crate::error::{FlashError, Result};
use crate::function::state::State;
use crate::function::{Allocated, Channel, Unit};

impl State {
    pub(super) fn erased_in(&self, channel: usize) -> u32 {
        self.geometry.channels[channel].iter().map(|&lun| self.blocks.erased(lun)).sum()
    }

    pub(super) fn erasing_in(&self, channel: usize) -> u32 {
        self.geometry.channels[channel].iter().map(|&lun| self.blocks.erasing(lun)).sum()
    }

    /// How many units of `unit` a channel can allocate without a wait.
    fn free(&self, channel: usize, unit: Unit) -> u32 {
        let blocks = self.erased_in(channel).min(self.blocks.room());
        match unit {
            Unit::Block => blocks,
            Unit::Page => {
                let left = self.open[channel].map_or(0, |block| self.blocks.left(block));
                blocks * self.geometry.pages_per_block + left
            }
        }
    }

    /// The time that a LUN of the channel needs for commands in flight and queued, on average.
    fn load(&self, channel: usize, now: SimTime) -> u64 {
        let luns = &self.geometry.channels[channel];
        let scheduler = self.share.scheduler();
        luns.iter().map(|&lun| scheduler.load(lun, now)).sum::<u64>() / luns.len() as u64
    }

    /// The channel with the least work that can allocate, preferably without a wait.
    fn least_loaded(&mut self, unit: Unit, now: SimTime) -> Result<usize> {
        let limited = unit == Unit::Page && self.is_open_limit()?;
        let rank = |channel: &usize| {
            let begun = self.open[*channel].is_some_and(|block| self.blocks.left(block) > 0);
            let wait = if unit == Unit::Page && begun {
                0
            } else if self.erased_in(*channel) > 0 {
                u32::from(limited)
            } else {
                2 + u32::from(self.erasing_in(*channel) == 0)
            };
            (wait, self.load(*channel, now), Reverse(self.free(*channel, unit)), *channel)
        };
        Ok((0..self.open.len()).min_by_key(rank).expect("a share has channels"))
    }

    pub(super) fn allocate(&mut self, channel: Channel, unit: Unit) -> Result<Allocated> {
        let now = self.settle()?;
        let channel = match channel {
            Channel::Any => self.least_loaded(unit, now)?,
            Channel::Number(number) if (number as usize) < self.open.len() => number as usize,
            Channel::Number(number) => {
                let (what, count) = ("channel", self.open.len() as u64);
                return Err(FlashError::OutOfRange { what, value: number.into(), count });
            }
        };
        let (block, page) = match unit {
            Unit::Block => {
                let block = self.take_block(channel)?;
                self.blocks.allocate_all(block);
                (block, 0)
            }
            Unit::Page => {
                let block = self.page_block(channel)?;
                (block, self.blocks.allocate_page(block))
            }
        };
        let free_left = self.free(channel, unit);
        Ok(Allocated {
            at: self.address(block, page),
            free_left,
            erasing: self.erasing_in(channel),
        })
    }

    /// The block of a channel from which pages are allocated; a new one if it has none left.
    fn page_block(&mut self, channel: usize) -> Result<u32> {
        if let Some(block) = self.open[channel].filter(|&block| self.blocks.left(block) > 0) {
            return Ok(block);
        }
        while self.is_open_limit()? {
            let mut scheduler = self.share.scheduler();
            if !scheduler.has_pages() || !scheduler.step(&self.share) {
                return Err(FlashError::TooManyOpen { max: self.geometry.max_open_blocks });
            }
        }
        let block = self.take_block(channel)?;
        self.open[channel] = Some(block);
        if self.geometry.max_open_blocks != u32::MAX {
            self.filling.push(block);
        }
        Ok(block)
    }

    /// Whether no further block may be opened for pages.
    fn is_open_limit(&mut self) -> Result<bool> {
        if (self.filling.len() as u32) < self.geometry.max_open_blocks {
            return Ok(false);
        }
        let pages = self.geometry.pages_per_block;
        let mut filling = Vec::new();
        for &block in &self.filling {
            let written = self.share.write_pointer(block)?;
            if written == pages {
                continue;
            }
            // Trimmed pages will not be written, so the block can be closed.
            let given_back = |page| self.blocks.was_trimmed(block, page);
            if self.is_idle(block) && (written..pages).all(given_back) {
                self.share.finish(block)?;
            } else {
                filling.push(block);
            }
        }
        self.filling = filling;
        Ok(self.filling.len() as u32 >= self.geometry.max_open_blocks)
    }

    /// The least worn erased block of a channel; waits for an erase if there is none.
    fn take_block(&mut self, channel: usize) -> Result<u32> {
        if self.blocks.room() == 0 {
            return Err(FlashError::OnlyReserve { reserve: self.blocks.reserve });
        }
        if self.erased_in(channel) == 0 {
            self.wait_for_erase(channel)?;
        }
        let (blocks, share) = (&self.blocks, &self.share);
        let scheduler = share.scheduler();
        let rank = |&lun: &u32| {
            let wear = blocks.least_worn(lun)?;
            Some((wear, scheduler.free(lun), Reverse(blocks.erased(lun)), lun))
        };
        let lun = self.geometry.channels[channel].iter().filter_map(rank).min();
        let (.., lun) = lun.expect("waited for one");
        drop(scheduler);
        let durable = |block: u32| share.erase_is_durable(block);
        Ok(self.blocks.take(lun, durable).expect("it has an erased block"))
    }

    /// Lets time pass until a trimmed block is erased, at most for `timeout`.
    pub(super) fn reach_erase(&mut self, timeout: Option<Nanos>) -> Result<bool> {
        if !self.share.is_timed() {
            return Ok(false);
        }
        self.settle()?;
        self.erases.wait(timeout);
        self.take_erased()
    }

    fn wait_for_erase(&mut self, channel: usize) -> Result<()> {
        if !self.share.is_timed() {
            self.erase_idle()?;
            if self.erased_in(channel) > 0 {
                return Ok(());
            }
        }
        while let Some(end) = self.erases.issue_erase(&self.geometry.channels[channel]) {
            self.share.reach_if_timed(end)?;
            self.take_erased()?;
            if self.erased_in(channel) > 0 {
                return Ok(());
            }
        }
        Err(self.erase_error.take().unwrap_or_else(|| FlashError::ChannelFull {
            channel: channel as u32,
            waiting: self.erasing_in(channel),
        }))
    }
}
