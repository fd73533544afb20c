//! Moves data from one block to another, to replace a failed block or to level wear.

use std::sync::Arc;

use prism_base::{Bytes, SimTime};
use prism_nand::Cause;

use crate::error::{FlashError, Result};
use crate::medium::{MediumError, PageState};
use crate::monitor::records::Record;
use crate::monitor::state::Monitor;

impl Monitor {
    /// Replaces the failed block of `virtual_block`: maps it to a spare block of the LUN, with a
    /// copy of its first `pages` pages.
    pub(super) fn replace(
        &mut self,
        virtual_block: u32,
        pages: u32,
        ready: SimTime,
    ) -> Result<SimTime> {
        let lun = self.lun_of(self.map.block(virtual_block));
        let failed = self.map.block(virtual_block);
        self.bad[failed as usize] = true;
        loop {
            let Some(spare) = self.take_spare(lun, Cause::Scrub)? else {
                return Err(FlashError::WornOut { lun });
            };
            let end = self.remap(virtual_block, spare, pages, Cause::Scrub, ready)?;
            if self.map.block(virtual_block) == spare {
                return Ok(end);
            }
        }
    }

    /// Maps `virtual_block` to the erased block `to`, with a copy of its first `pages` pages. If
    /// `to` fails, it is marked as bad and the mapping stays. Otherwise the old block becomes
    /// spare, unless it is bad.
    pub(crate) fn remap(
        &mut self,
        virtual_block: u32,
        to: u32,
        pages: u32,
        cause: Cause,
        ready: SimTime,
    ) -> Result<SimTime> {
        let from = self.map.block(virtual_block);
        let was_open = self.medium()?.is_open(from);
        if !self.copy_pages(from, to, pages, cause)? {
            self.bad[to as usize] = true;
            self.finish_if_open(to)?;
            self.commit(&[Record::Bad { blocks: vec![to] }])?;
            return Ok(ready);
        }
        // A block whose erase was interrupted has nothing to copy; the new one is erased.
        if !was_open {
            self.finish_if_open(to)?;
        }
        self.sync()?;
        self.map.set(virtual_block, to);
        let mut records = vec![Record::VirtualBlock { virtual_block, block: to }];
        if self.bad[from as usize] {
            records.push(Record::Bad { blocks: vec![from] });
        } else {
            let lun = self.lun_of(from);
            self.spares[lun as usize].push_back(from);
        }
        self.commit(&records)?;
        if was_open {
            // Not before: after a power failure the virtual block may still be mapped to it.
            self.medium()?.finish(from)?;
            if !self.medium()?.is_open(to) {
                // No page of it could be copied.
                let lun = self.by_usable.divide(virtual_block);
                let owner = self.shares.iter_mut().flatten().find(|s| s.luns.contains(&lun));
                owner.into_iter().for_each(|share| share.open -= 1);
            }
        }
        let (lun_from, lun_to) = (self.lun_of(from), self.lun_of(to));
        let ready = self.at_earliest(ready);
        let (mut end, size) = (ready, Bytes(self.geometry.page_size.into()));
        if let Some(timeline) = &mut self.timeline {
            for page in 0..pages {
                let read = timeline.read(lun_from, page, size, ready).end;
                end = timeline.program(lun_to, page, size, read).end;
            }
        }
        Ok(end)
    }

    /// Closes a block that is not written any more, so that it does not count as partly written.
    pub(super) fn finish_if_open(&mut self, block: u32) -> Result<()> {
        let medium = self.medium()?;
        Ok(if medium.is_open(block) { medium.finish(block) } else { Ok(()) }?)
    }

    /// The least worn spare block of a LUN. It is erased first, as it may hold old data.
    pub(crate) fn take_spare(&mut self, lun: u32, cause: Cause) -> Result<Option<u32>> {
        loop {
            let spares = &self.spares[lun as usize];
            let worn = |place: &usize| self.erases[spares[*place] as usize];
            let Some(place) = (0..spares.len()).min_by_key(worn) else { return Ok(None) };
            let spare = self.spares[lun as usize].remove(place).expect("a place in the list");
            self.counts.erases[cause] += 1;
            if self.erase_block(spare)? {
                return Ok(Some(spare));
            }
            self.bad[spare as usize] = true;
        }
    }

    /// Copies the first `pages` pages of a block to an erased one; returns whether it could be
    /// programmed. Torn pages at the end are left out; a torn page before others is copied as
    /// zeros, which every level above ignores.
    pub(crate) fn copy_pages(
        &mut self,
        from: u32,
        to: u32,
        pages: u32,
        cause: Cause,
    ) -> Result<bool> {
        let (size, oob) = (self.geometry.page_size as usize, self.geometry.oob_size as usize);
        let mut buffer = std::mem::take(&mut self.scratch);
        buffer.resize(size + oob, 0);
        let mut copied = true;
        let mut pages = pages;
        while pages > 0
            && self.medium()?.read(from, pages - 1, 0, &mut [], &mut [])? == PageState::Torn
        {
            pages -= 1;
        }
        for page in 0..pages {
            let (data, spare) = buffer.split_at_mut(size);
            let medium = Arc::clone(&self.medium);
            if medium.read(from, page, 0, data, spare)? != PageState::Written {
                data.fill(0);
                spare.fill(0);
            }
            match medium.program(to, page, data, spare) {
                Ok(()) => {}
                Err(MediumError::ProgramFailed { .. }) => {
                    copied = false;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            self.counts.reads[cause] += 1;
            self.counts.programs[cause] += 1;
        }
        self.scratch = buffer;
        (self.unsynced, self.programmed) = (true, true);
        Ok(copied)
    }
}
