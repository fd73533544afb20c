//! The tables that reads and programs use without the monitor's lock: the map of virtual blocks,
//! and the LUNs of a share.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use prism_base::Divisor;
use prism_nand::{Cause, Counts};

use crate::address::Address;
use crate::error::{FlashError, Result};
use crate::medium::{Medium, MediumError, PageState};
use crate::monitor::state::Access;
use crate::monitor::steps::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The map from virtual blocks to blocks of the device, which changes under the monitor's lock and
/// is read without it.
///
/// Each entry also has the number of changes of what is there: a move of the block, and the begin
/// and the end of each erase. A read is valid if the entry is the same after it as before.
#[derive(Debug)]
pub(crate) struct BlockMap {
    /// Changes in the upper half, the block in the lower half.
    entries: Box<[AtomicU64]>,
    /// Programs in progress by virtual block, which must not move until they end.
    programs: Box<[AtomicU32]>,
    /// The device was closed.
    closed: AtomicBool,
    /// Syncs that were begun, and the last of those that are complete.
    syncs_begun: AtomicU64,
    synced: AtomicU64,
}

const CHANGE: u64 = 1 << 32;

impl BlockMap {
    pub(super) fn new(blocks: &[u32]) -> Self {
        Self {
            entries: blocks.iter().map(|&block| AtomicU64::new(block.into())).collect(),
            programs: blocks.iter().map(|_| AtomicU32::new(0)).collect(),
            closed: AtomicBool::new(false),
            syncs_begun: AtomicU64::new(0),
            synced: AtomicU64::new(0),
        }
    }

    /// Virtual blocks.
    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(|virtual_block| self.block(virtual_block))
    }

    /// The entry of a virtual block, to be compared with a later one.
    #[inline]
    pub(crate) fn entry(&self, virtual_block: u32) -> u64 {
        self.entries[virtual_block as usize].load(Ordering::Acquire)
    }

    /// The block of the device.
    #[inline]
    pub(crate) fn block(&self, virtual_block: u32) -> u32 {
        self.entry(virtual_block) as u32
    }

    /// Moves a virtual block.
    pub(super) fn set(&self, virtual_block: u32, block: u32) {
        let changes = (self.entry(virtual_block) & !(CHANGE - 1)).wrapping_add(CHANGE);
        let entry = changes | u64::from(block);
        self.entries[virtual_block as usize].store(entry, Ordering::Release);
    }

    /// Notes the begin or the end of an erase.
    pub(super) fn note_erase(&self, virtual_block: u32) {
        self.entries[virtual_block as usize].fetch_add(CHANGE, Ordering::AcqRel);
    }

    /// Programs of this virtual block are in progress, so it must not move.
    pub(super) fn is_programmed(&self, virtual_block: u32) -> bool {
        self.programs[virtual_block as usize].load(Ordering::Acquire) > 0
    }

    /// Notes the begin of a program, under the monitor's lock.
    pub(super) fn begin_program(&self, virtual_block: u32) {
        self.programs[virtual_block as usize].fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_program(&self, virtual_block: u32) {
        self.programs[virtual_block as usize].fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A ticket for everything that is complete now: see [`BlockMap::is_synced`].
    pub(crate) fn ticket(&self) -> u64 {
        self.syncs_begun.load(Ordering::Acquire) + 1
    }

    /// Whether a sync is complete that was begun after the ticket was drawn.
    pub(crate) fn is_synced(&self, ticket: u64) -> bool {
        self.synced.load(Ordering::Acquire) >= ticket
    }

    /// The number of a sync that begins now.
    pub(crate) fn begin_sync(&self) -> u64 {
        self.syncs_begun.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Whether a sync was begun that is not complete: what it covers is not durable yet.
    pub(crate) fn is_syncing(&self) -> bool {
        self.synced.load(Ordering::Acquire) < self.syncs_begun.load(Ordering::Acquire)
    }

    pub(crate) fn end_sync(&self, number: u64) {
        self.synced.fetch_max(number, Ordering::AcqRel);
    }
}

/// The virtual LUNs of a share.
#[derive(Debug)]
pub(crate) struct ShareMap {
    /// As long as the device has LUNs; the first `count` are those of the share.
    luns: Box<[AtomicU32]>,
    /// 0 once the share was released.
    count: AtomicU32,
    /// Pages read without the monitor's lock, by cause.
    reads: [AtomicU64; Cause::ALL.len()],
}

impl ShareMap {
    pub(super) fn new(device_luns: u32, luns: &[u32]) -> Self {
        let map = Self {
            luns: (0..device_luns).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicU32::new(0),
            reads: [const { AtomicU64::new(0) }; Cause::ALL.len()],
        };
        map.set(luns);
        map
    }

    /// Publishes the LUNs of the share; none once it was released.
    pub(super) fn set(&self, luns: &[u32]) {
        let shorter = luns.len().min(self.count.load(Ordering::Relaxed) as usize);
        self.count.store(shorter as u32, Ordering::Release);
        for (place, &lun) in self.luns.iter().zip(luns) {
            place.store(lun, Ordering::Release);
        }
        self.count.store(luns.len() as u32, Ordering::Release);
    }

    fn luns(&self) -> impl Iterator<Item = u32> {
        let count = self.count.load(Ordering::Acquire) as usize;
        self.luns[..count].iter().map(|lun| lun.load(Ordering::Acquire))
    }

    /// The pages read without the lock.
    pub(super) fn add_reads(&self, to: &mut Counts) {
        for (reads, cause) in self.reads.iter().zip(Cause::ALL) {
            to[cause] += reads.load(Ordering::Relaxed);
        }
    }
}

/// What a share needs to reach its pages without the monitor's lock.
#[derive(Debug)]
pub(crate) struct DirectPath {
    pub(super) medium: Arc<dyn Medium>,
    pub(crate) map: Arc<BlockMap>,
    pub(super) share: Arc<ShareMap>,
    pub(super) usable: u32,
    pub(super) by_usable: Divisor,
    pub(super) pages: u32,
    pub(crate) page_size: u32,
    pub(super) channels: u32,
}

impl DirectPath {
    /// The virtual block of block `block` of the share.
    #[inline]
    pub(crate) fn virtual_block(&self, block: u32) -> Result<u32> {
        let (lun, place) = self.by_usable.split(block);
        let count = self.share.count.load(Ordering::Acquire);
        if lun < count {
            let lun = self.share.luns[lun as usize].load(Ordering::Acquire);
            return Ok(lun * self.usable + place);
        }
        if count == 0 {
            return Err(FlashError::Released);
        }
        let (what, value) = ("block", block.into());
        Err(FlashError::OutOfRange {
            what,
            value,
            count: u64::from(count) * u64::from(self.usable),
        })
    }

    #[inline]
    pub(crate) fn check_page(&self, page: u32) -> Result<()> {
        if page < self.pages {
            return Ok(());
        }
        let (what, value, count) = ("page", page.into(), self.pages.into());
        Err(FlashError::OutOfRange { what, value, count })
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.map.is_closed() { Err(FlashError::Released) } else { Ok(()) }
    }

    /// Counts the pages of a read of `bytes` bytes from `offset` of the first on.
    #[inline]
    pub(crate) fn count_read(&self, cause: Cause, offset: u32, bytes: usize) {
        let end = u64::from(offset) + bytes as u64;
        let one = end <= u64::from(self.page_size);
        let pages = if one { 1 } else { end.div_ceil(u64::from(self.page_size)) };
        self.share.reads[cause as usize].fetch_add(pages, Ordering::Relaxed);
    }

    /// Reads from a page. No lock is held while the device works: if the block moved or was
    /// erased meanwhile, the page is read again.
    pub(crate) fn read(
        &self,
        at: Access,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState> {
        self.check_open()?;
        self.check_page(at.page)?;
        let virtual_block = self.virtual_block(at.block)?;
        loop {
            let entry = self.map.entry(virtual_block);
            let read = self.medium.read(entry as u32, at.page, offset, data, oob);
            // The LUN may have gone to another share before its blocks were erased.
            if self.virtual_block(at.block)? != virtual_block {
                return self.read(at, offset, data, oob);
            }
            if self.map.entry(virtual_block) == entry {
                let state = read.map_err(|error| self.named(error, at.block, at.page))?;
                self.count_read(at.cause, offset, data.len());
                return Ok(state);
            }
        }
    }

    /// The address of a page of the share: LUNs are numbered in the order of their allocation, and
    /// channels in the order in which the share got LUNs on them.
    pub(crate) fn address(&self, block: u32, page: u32) -> Address {
        let (number, block) = self.by_usable.split(block);
        let channels: Vec<u32> = self.share.luns().map(|lun| lun % self.channels).collect();
        let Some(&of_device) = channels.get(number as usize) else {
            return Address { channel: 0, lun: number, block, page };
        };
        let mut known: Vec<u32> = Vec::new();
        for &channel in &channels {
            if !known.contains(&channel) {
                known.push(channel);
            }
        }
        let channel = known.iter().position(|&known| known == of_device).expect("listed") as u32;
        let before = &channels[..number as usize];
        let lun = before.iter().filter(|&&other| other == of_device).count() as u32;
        Address { channel, lun, block, page }
    }

    /// The error as the owner of the share sees it.
    pub(crate) fn named(&self, error: MediumError, block: u32, page: u32) -> FlashError {
        let at = || self.address(block, page);
        match error {
            MediumError::OutOfOrder { page, expected, .. } => {
                FlashError::OutOfOrder { page, expected }
            }
            MediumError::Full { .. } | MediumError::Unstable { .. } => {
                FlashError::NotErased { at: at() }
            }
            MediumError::Damaged { .. } => FlashError::Damaged { at: at() },
            MediumError::TooManyOpen { max } => FlashError::TooManyOpen { max },
            other => other.into(),
        }
    }
}
