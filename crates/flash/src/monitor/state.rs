//! The monitor's state: the mapping of virtual blocks, the owners of LUNs, and all operations on
//! flash.
//!
//! A *virtual block* is a block as shares see it, `virtual LUN * usable blocks + index`; a table
//! maps it to a block of the device. So failed blocks are replaced and LUNs exchanged without a
//! change for the shares. Cost: 8 bytes per virtual block, 5 bytes per block.

use std::collections::VecDeque;
use std::sync::Arc;

use prism_base::{Bytes, Divisor, SimTime};
use prism_engine::timeline::Timeline;
use prism_nand::{Cause, Counts};

use crate::error::{FlashError, Result};
use crate::journal::Journal;
use crate::medium::{DeviceGeometry, Medium, MediumError};
use crate::monitor::levelling::Levelling;
use crate::monitor::map::{BlockMap, DirectPath, ShareMap};
use crate::monitor::records::Record;
use crate::monitor::ring::RingBlocks;
use crate::monitor::wall::Wall;

/// Operations on flash, by cause: pages read and programmed, blocks erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounts {
    /// Pages read.
    pub reads: Counts,
    /// Pages programmed.
    pub programs: Counts,
    /// Blocks erased.
    pub erases: Counts,
}

/// What a LUN is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LunUse {
    /// Erased, free.
    Free,
    /// Free, but not yet erased.
    Dirty,
    /// Part of a share.
    Owned,
    /// Not erased, as one of its blocks failed; tried again when the device is opened next.
    WornOut,
}

impl LunUse {
    /// Whether a share may get it.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Self::Free | Self::Dirty)
    }
}

/// A share.
#[derive(Debug)]
pub(crate) struct ShareState {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) ops_luns: u32,
    pub(crate) luns: Vec<u32>,
    /// The same LUNs, and reads, for calls without the monitor's lock.
    pub(crate) map: Arc<ShareMap>,
    pub(crate) meta: Vec<u8>,
    pub(crate) attached: bool,
    /// Whether a level with tables in memory has it open.
    pub(crate) held: bool,
    /// Blocks that may be partly written, and those that are.
    pub(crate) open_max: u32,
    pub(crate) open: u32,
    /// Bytes/s, if limited, and when the next transfer may begin.
    pub(crate) bandwidth: Option<u64>,
    pub(crate) next_transfer: SimTime,
    /// The share's clock.
    pub(crate) now: SimTime,
    pub(crate) counts: OpCounts,
}

/// Whether an access waits for less urgent operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    Normal,
    Urgent,
}

/// An access to a page: its cause and its earliest start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Block of the share: LUN of the share times usable blocks, plus block of the LUN.
    pub(crate) block: u32,
    pub(crate) page: u32,
    pub(crate) cause: Cause,
    pub(crate) ready: SimTime,
    /// Urgent accesses do not wait for the bandwidth limit.
    pub(crate) urgency: Urgency,
}

/// Pages of a block that may be padded with zeros if they are not written when a later page is:
/// they were given back before.
#[derive(Debug)]
pub(crate) struct Pads {
    /// The first of them; they end with the page that is programmed.
    pub(crate) from: u32,
    /// The out-of-band bytes of page 0, if it is one.
    pub(crate) first_oob: Vec<u8>,
}

impl Pads {
    /// No page.
    pub(crate) const NONE: Self = Self { from: u32::MAX, first_oob: Vec::new() };

    /// Whether the pages from `expected` to before `page` may be padded.
    pub(crate) fn cover(&self, expected: u32, page: u32) -> bool {
        self.from <= expected && expected < page
    }
}

/// When the data of a program is transferred, and when the program is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Programmed {
    pub(crate) sent: SimTime,
    pub(crate) end: SimTime,
}

/// Marks of the operations since a sync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsynced([bool; 3]);

/// A program in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(super) virtual_block: u32,
    /// The block of the device.
    pub(crate) block: u32,
    pages: u32,
    /// Whether it begins an erased block.
    opens: bool,
}

#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) geometry: DeviceGeometry,
    pub(crate) usable: u32,
    pub(crate) by_usable: Divisor,
    pub(crate) timeline: Option<Timeline>,
    /// The clock of real time, if operations also take wall-clock time.
    pub(crate) wall: Option<Wall>,
    pub(crate) map: Arc<BlockMap>,
    /// The mapping as it was when the device was formatted.
    pub(crate) origin: Vec<u32>,
    /// By block of the device.
    pub(crate) erases: Vec<u32>,
    pub(crate) bad: Vec<bool>,
    /// By LUN of the device.
    pub(crate) spares: Vec<VecDeque<u32>>,
    /// By virtual LUN.
    pub(crate) luns: Vec<LunUse>,
    pub(crate) shares: Vec<Option<ShareState>>,
    pub(crate) next_id: u32,
    pub(crate) next_channel: u32,
    pub(crate) ring: RingBlocks,
    pub(crate) journal: Option<Journal>,
    /// Blocks erased since their erase counts were recorded.
    pub(crate) worn: Vec<u32>,
    pub(crate) levelling: Levelling,
    /// Operations for the tables and for levelling.
    pub(crate) counts: OpCounts,
    pub(crate) unsynced: bool,
    /// Whether unsynced operations include programs, which have to be durable before an erase.
    pub(crate) programmed: bool,
    /// A block of a share was filled, closed or erased since the last sync: a power failure may
    /// make it partly written again.
    pub(crate) closed_unsynced: bool,
    /// No operation can start before this time any more; and operations since it was last computed.
    pub(crate) floor: SimTime,
    pub(crate) since_forgotten: u32,
    pub(crate) scratch: Vec<u8>,
}

impl std::fmt::Debug for dyn Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a medium of {:?}", self.geometry())
    }
}

/// Erases after which their counts are written to the journal; fewer on a small device, as the
/// records have to fit into a checkpoint together with the tables.
const WORN_MAX: usize = 256;

impl Monitor {
    pub(crate) fn medium(&self) -> Result<&dyn Medium> {
        if self.map.is_closed() { Err(FlashError::Released) } else { Ok(&*self.medium) }
    }

    pub(crate) fn share(&mut self, place: usize, id: u32) -> Result<&mut ShareState> {
        match self.shares.get_mut(place) {
            Some(Some(share)) if share.id == id => Ok(share),
            _ => Err(FlashError::Released),
        }
    }

    /// The virtual block of block `block` of a share.
    #[inline]
    pub(super) fn virtual_block(&self, share: usize, block: u32) -> Result<u32> {
        let state = self.shares[share].as_ref().expect("checked by the caller");
        let (lun, place) = self.by_usable.split(block);
        match state.luns.get(lun as usize) {
            Some(&lun) => Ok(lun * self.usable + place),
            None => {
                let count = state.luns.len() as u64 * u64::from(self.usable);
                Err(FlashError::OutOfRange { what: "block", value: block.into(), count })
            }
        }
    }

    /// The block of the device to which block `block` of a share is mapped.
    pub(crate) fn block_of(&self, share: usize, block: u32) -> Result<u32> {
        Ok(self.map.block(self.virtual_block(share, block)?))
    }

    fn check_page(&self, page: u32) -> Result<()> {
        let count = self.geometry.pages_per_block;
        if page < count {
            return Ok(());
        }
        let (value, count) = (page.into(), count.into());
        Err(FlashError::OutOfRange { what: "page", value, count })
    }

    #[inline]
    pub(crate) fn lun_of(&self, block: u32) -> u32 {
        block / self.geometry.blocks_per_lun
    }

    /// How far the clock of a share may lag behind the latest, in nanoseconds of virtual time. A
    /// share that lags further is taken to have been idle.
    const LAG_MAX: u64 = 1_000_000_000;
    /// The timeline forgets past operations once in this many new ones.
    const FORGET_EVERY: u32 = 1024;

    /// `ready`, or the end of what the timeline has forgotten, if that is later.
    #[inline]
    pub(crate) fn at_earliest(&mut self, ready: SimTime) -> SimTime {
        self.since_forgotten += 1;
        if self.since_forgotten == Self::FORGET_EVERY {
            self.forget();
        }
        ready.max(self.floor)
    }

    fn forget(&mut self) {
        self.since_forgotten = 0;
        let clocks = self.shares.iter().flatten().filter(|share| share.attached);
        let (first, last) = clocks.fold((u64::MAX, 0), |(first, last), share| {
            (first.min(share.now.0), last.max(share.now.0))
        });
        let floor = first.min(last).max(last.saturating_sub(Self::LAG_MAX));
        self.floor = self.floor.max(SimTime(floor));
        if let Some(timeline) = &mut self.timeline {
            timeline.forget_before(self.floor);
        }
    }

    /// Delays `ready` according to the share's bandwidth limit.
    fn admit(&mut self, share: usize, bytes: u64, at: Access) -> SimTime {
        /// Time for which an idle share may save up bandwidth, in nanoseconds.
        const BURST: u64 = 1_000_000;
        let ready = self.at_earliest(at.ready);
        let state = self.shares[share].as_mut().expect("checked by the caller");
        let Some(rate) = state.bandwidth else { return ready };
        let begin = ready.max(state.next_transfer);
        let from = SimTime(begin.0.saturating_sub(BURST).max(state.next_transfer.0));
        let time = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
        state.next_transfer = SimTime(from.0 + time);
        // An urgent access does not wait, but delays those that follow.
        if at.urgency == Urgency::Urgent { ready } else { begin }
    }

    /// The path of a share to its pages without the monitor's lock.
    pub(crate) fn direct_path(&self, share: usize) -> DirectPath {
        let state = self.shares[share].as_ref().expect("checked by the caller");
        DirectPath {
            medium: Arc::clone(&self.medium),
            map: Arc::clone(&self.map),
            share: Arc::clone(&state.map),
            usable: self.usable,
            by_usable: self.by_usable,
            pages: self.geometry.pages_per_block,
            page_size: self.geometry.page_size,
            channels: self.geometry.channels,
        }
    }

    /// The time that a read takes on a device with timing; returns its end.
    #[inline]
    pub(crate) fn time_read(&mut self, share: usize, at: Access, bytes: u64) -> Result<SimTime> {
        let block = self.block_of(share, at.block)?;
        let ready = self.admit(share, bytes, at);
        let lun = self.lun_of(block);
        let Some(timeline) = &mut self.timeline else { return Ok(ready) };
        Ok(timeline.read(lun, at.page, Bytes(bytes), ready).end)
    }

    /// Begins a program of `pages` pages: the medium is to be called with the block that is
    /// returned, without the lock, and then [`Monitor::end_program`]. Until then the block does not
    /// move.
    pub(crate) fn begin_program(
        &mut self,
        share: usize,
        at: Access,
        pages: u32,
    ) -> Result<Program> {
        self.check_page(at.page)?;
        self.check_page(at.page + pages - 1)?;
        self.medium()?;
        let virtual_block = self.virtual_block(share, at.block)?;
        let state = self.shares[share].as_mut().expect("checked");
        if at.page == 0 && state.open >= state.open_max {
            return Err(FlashError::TooManyOpen { max: state.open_max });
        }
        let closed = self.closed_unsynced || self.map.is_syncing();
        if at.page == 0 && closed && self.geometry.max_open_blocks.is_some() {
            // If a power failure undid the closing, too many blocks would be partly written.
            self.sync_if_volatile()?;
        }
        let block = self.map.block(virtual_block);
        let opens =
            at.page == 0 && !self.medium.is_open(block) && !self.map.is_programmed(virtual_block);
        self.shares[share].as_mut().expect("checked").open += u32::from(opens);
        self.map.begin_program(virtual_block);
        Ok(Program { virtual_block, block, pages, opens })
    }

    /// Ends a program with the result of the medium. If the block failed, it is replaced by a spare
    /// one, and the program has to be begun again from the page that is returned.
    pub(crate) fn end_program(
        &mut self,
        share: usize,
        at: Access,
        program: Program,
        result: Result<(), MediumError>,
    ) -> Result<Option<u32>> {
        let Program { virtual_block, block, pages, opens } = program;
        self.map.end_program(virtual_block);
        let moved = self.map.block(virtual_block) != block;
        let opened = opens && !moved && self.medium.write_pointer(block) > 0;
        let state = self.shares[share].as_mut().expect("checked by the caller");
        if opens && !opened {
            state.open = state.open.saturating_sub(1);
        }
        match result {
            Ok(()) if !moved => {
                let fills = at.page + pages == self.geometry.pages_per_block;
                state.open = state.open.saturating_sub(u32::from(fills));
                state.counts.programs[at.cause] += u64::from(pages);
                self.closed_unsynced |= fills;
                (self.unsynced, self.programmed) = (true, true);
                Ok(None)
            }
            Err(MediumError::ProgramFailed { .. }) if !moved => {
                let written = self.medium()?.write_pointer(block);
                let state = self.shares[share].as_mut().expect("checked by the caller");
                state.counts.programs[at.cause] += u64::from(written.saturating_sub(at.page));
                self.replace(virtual_block, written, at.ready)?;
                Ok(Some(written.max(at.page)))
            }
            // Another program of the block failed before, and the block was replaced.
            Ok(()) => Ok(Some(at.page)),
            Err(
                MediumError::ProgramFailed { .. }
                | MediumError::OutOfOrder { .. }
                | MediumError::Full { .. },
            ) if moved => Ok(Some(at.page)),
            Err(error) => Err(self.direct_path(share).named(error, at.block, at.page)),
        }
    }

    /// Programs pages of a share under the lock, on a device with timing. A block that fails is
    /// replaced by a spare one.
    pub(crate) fn program(
        &mut self,
        share: usize,
        at: Access,
        data: &[u8],
        oob: &[u8],
    ) -> Result<Programmed> {
        let block = loop {
            let program = self.begin_program(share, at, 1)?;
            let result = self.medium()?.program(program.block, at.page, data, oob);
            if self.end_program(share, at, program, result)?.is_none() {
                break program.block;
            }
        };
        let bytes = (data.len() + oob.len()) as u64;
        let ready = self.admit(share, bytes, at);
        let lun = self.lun_of(block);
        let Some(timeline) = &mut self.timeline else {
            return Ok(Programmed { sent: ready, end: ready });
        };
        let program = timeline.program(lun, at.page, Bytes(bytes), ready);
        Ok(Programmed { sent: program.sent, end: program.end })
    }

    /// Refuses an erase or a finish while programs of the block are in flight: they could land in
    /// what is written there next.
    pub(crate) fn check_no_programs(&self, virtual_block: u32) -> Result<()> {
        if !self.map.is_programmed(virtual_block) {
            return Ok(());
        }
        let what = "writes of the block are in flight: take their completions first";
        Err(FlashError::Busy { what: what.into() })
    }

    /// Erases a block of a share. One that fails is replaced by a spare one, which is erased.
    pub(crate) fn erase(&mut self, share: usize, at: Access) -> Result<SimTime> {
        let virtual_block = self.virtual_block(share, at.block)?;
        self.check_no_programs(virtual_block)?;
        let block = self.map.block(virtual_block);
        let was_open = self.medium()?.is_open(block);
        let end = self.erase_virtual_block(virtual_block, at.cause, at.ready)?;
        // If the block was replaced, `remap` has updated the count.
        let same = self.map.block(virtual_block) == block;
        let state = self.shares[share].as_mut().expect("checked by the caller");
        state.open = state.open.saturating_sub(u32::from(was_open && same));
        state.counts.erases[at.cause] += 1;
        self.closed_unsynced |= was_open;
        self.level_a_little(end)?;
        Ok(end)
    }

    /// Erases the block of `virtual_block`. With a volatile cache, earlier programs have to be
    /// durable first: they may be copies of the data erased here. A medium that syncs as a whole
    /// keeps that order by itself.
    pub(crate) fn erase_virtual_block(
        &mut self,
        virtual_block: u32,
        cause: Cause,
        ready: SimTime,
    ) -> Result<SimTime> {
        let programmed = self.programmed || self.map.is_syncing();
        if programmed && !self.medium()?.syncs_as_a_whole() {
            self.sync_if_volatile()?;
        }
        let block = self.map.block(virtual_block);
        self.map.note_erase(virtual_block);
        let erased = self.erase_block(block);
        self.map.note_erase(virtual_block);
        if erased? {
            self.levelling.erased(self.by_usable.divide(virtual_block), cause);
        } else {
            self.replace(virtual_block, 0, ready)?;
        }
        self.note_wear()?;
        let lun = self.lun_of(block);
        let ready = self.at_earliest(ready);
        Ok(self.timeline.as_mut().map_or(ready, |timeline| timeline.erase(lun, ready).end))
    }

    /// Erases a block of the device; returns whether that succeeded.
    pub(crate) fn erase_block(&mut self, block: u32) -> Result<bool> {
        self.erases[block as usize] += 1;
        match self.medium()?.erase(block) {
            Ok(()) => {}
            Err(MediumError::EraseFailed { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if self.medium()?.erase_count(block).is_none() {
            self.worn.push(block);
        }
        self.unsynced = true;
        Ok(true)
    }

    pub(super) fn worn_max(&self) -> usize {
        WORN_MAX.min(self.erases.len() / 4)
    }

    /// Writes the counts of erased blocks to the journal once there are enough of them.
    pub(crate) fn note_wear(&mut self) -> Result<()> {
        if self.worn.len() < self.worn_max() {
            return Ok(());
        }
        let worn = std::mem::take(&mut self.worn);
        let records = worn
            .into_iter()
            .map(|block| Record::Wear { first: block, counts: vec![self.erases[block as usize]] });
        let records: Vec<_> = records.collect();
        self.commit(&records)
    }

    pub(crate) fn sync(&mut self) -> Result<()> {
        self.medium()?;
        let number = self.map.begin_sync();
        self.medium()?.sync()?;
        self.map.end_sync(number);
        (self.unsynced, self.programmed, self.closed_unsynced) = (false, false, false);
        Ok(())
    }

    /// The marks of operations that are not durable, taken before a sync without the lock.
    pub(crate) fn take_unsynced(&mut self) -> Unsynced {
        let marks = Unsynced([self.unsynced, self.programmed, self.closed_unsynced]);
        (self.unsynced, self.programmed, self.closed_unsynced) = (false, false, false);
        marks
    }

    /// Puts them back, because the sync failed.
    pub(crate) fn put_unsynced(&mut self, marks: Unsynced) {
        self.unsynced |= marks.0[0];
        self.programmed |= marks.0[1];
        self.closed_unsynced |= marks.0[2];
    }

    pub(crate) fn sync_if_volatile(&mut self) -> Result<()> {
        let unsynced = self.unsynced || self.map.is_syncing();
        if unsynced && self.medium()?.has_volatile_cache() {
            self.sync()?;
        }
        Ok(())
    }
}
