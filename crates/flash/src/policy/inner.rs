//! The state of the policy level behind its lock: opening, trims and flushes over all ranges.

use prism_base::SimTime;

use super::config::Tables;
use super::division;
use super::program_units::ProgramUnitFormat;
use super::range::Range;
use super::ranges::open_of;
use super::trims::{
    JOURNAL_BLOCKS, decode_trims, encode_trims, open_journal, sync_journal, trims_max,
};
use crate::error::{FlashError, Result};
use crate::journal::Journal;
use crate::monitor::{Hold, Level, Share, ShareGeometry, Urgency};

/// Trims that are pending at most, before they are made durable without a flush.
const TRIMS_WAITING_MAX: u32 = 512;

/// The size of a mapping unit, the smallest that is written without a read-modify-write.
const UNIT: u32 = 4096;

/// The level on one share, for the thread that holds its lock.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) share: Share,
    pub(crate) level: Level,
    pub(crate) geometry: ShareGeometry,
    pub(crate) format: ProgramUnitFormat,
    pub(crate) tables: Tables,
    pub(crate) ranges: Vec<Range>,
    journal: Journal,
    trims_waiting: u32,
    _hold: Hold,
}

impl Inner {
    /// Opens `share` for `level`, which keeps a journal of its own on `above` blocks.
    pub(crate) fn open(share: Share, level: Level, above: u32) -> Result<Self> {
        let hold = share.hold(Some(level))?;
        let geometry = share.geometry()?;
        let unit = (1..=UNIT.min(geometry.page_size)).rev();
        let unit = unit.into_iter().find(|unit| geometry.page_size.is_multiple_of(*unit));
        let format = ProgramUnitFormat::new(&geometry, unit.expect("1 divides everything"));
        let meta = share.meta()?;
        let tables = if meta.is_empty() {
            for block in 0..geometry.blocks() {
                if share.write_pointer(block)? > 0 {
                    let what = "the share holds data of another level; erase its blocks first";
                    return Err(FlashError::Busy { what: what.into() });
                }
            }
            let none = vec![false; geometry.blocks() as usize];
            let journal = division::take_any(&geometry, &none, JOURNAL_BLOCKS + above);
            let mut journal = journal.ok_or_else(|| FlashError::NoSpace {
                what: "the share has fewer blocks than the level's journal; grow it".into(),
            })?;
            for &block in &journal {
                share.erase_if_used(block)?;
            }
            share.sync()?;
            let above = journal.split_off(JOURNAL_BLOCKS as usize);
            let tables = Tables { journal, above, ..Tables::default() };
            share.set_meta(tables.encode(level))?;
            tables
        } else {
            Tables::decode(&meta).map_err(|error| FlashError::Tables { what: error.to_string() })?
        };
        let (journal, records) = open_journal(&share, &geometry, &tables.journal)?;
        let mut ranges = Vec::new();
        for record in &tables.ranges {
            let trims = decode_trims(record.id, &records)?;
            let open = open_of(&geometry, &record.config);
            ranges.push(Range::open(&share, record.clone(), format, open, Some(trims))?);
        }
        Ok(Self {
            share,
            level,
            geometry,
            format,
            tables,
            ranges,
            journal,
            trims_waiting: 0,
            _hold: hold,
        })
    }

    /// Stores `tables` and, if that succeeds, uses them.
    pub(crate) fn save(&mut self, tables: Tables) -> Result<()> {
        self.share.set_meta(tables.encode(self.level))?;
        self.tables = tables;
        Ok(())
    }
    pub(crate) fn range_of(&mut self, address: u64, bytes: u64) -> Result<(&mut Range, u64)> {
        let place = self.ranges.partition_point(|range| range.record.end <= address);
        match self.ranges.get_mut(place) {
            Some(range)
                if range.record.begin <= address
                    && address.checked_add(bytes).is_some_and(|end| end <= range.record.end) =>
            {
                let offset = address - range.record.begin;
                Ok((range, offset))
            }
            Some(range) if range.record.begin <= address => {
                let (end, limit) = (address.saturating_add(bytes), range.record.end);
                Err(FlashError::PastEnd { within: "range", end, limit })
            }
            _ => Err(FlashError::NoRange { address }),
        }
    }

    pub(crate) fn trim(&mut self, address: u64, bytes: u64) -> Result<()> {
        let end = self.begin_trim(address, bytes)?;
        self.share.reach_if_timed(end)
    }

    /// As [`Inner::trim`], without waiting for the flush of many trims, whose end it returns.
    pub(super) fn begin_trim(&mut self, address: u64, bytes: u64) -> Result<SimTime> {
        let unit = u64::from(self.format.unit);
        let (range, offset) = self.range_of(address, bytes)?;
        for (what, value) in [("the address of a trim", address), ("its length", bytes)] {
            if value % unit != 0 {
                return Err(FlashError::Unaligned { what, value, unit });
            }
        }
        range.trim((offset / unit) as u32, ((offset + bytes) / unit) as u32)?;
        self.trims_waiting += 1;
        match self.trims_waiting {
            TRIMS_WAITING_MAX.. => self.begin_flush(),
            _ => self.share.now_if_timed(),
        }
    }

    /// Makes these addresses read as zeros: whole units are trimmed, parts of units written.
    /// Returns the time at which that is done.
    pub(super) fn begin_write_zeroes(&mut self, address: u64, bytes: u64) -> Result<SimTime> {
        let unit = u64::from(self.format.unit);
        let (range, offset) = self.range_of(address, bytes)?;
        let end = offset + bytes;
        let (first, last) = (offset.next_multiple_of(unit), end / unit * unit);
        let parts = match first <= last {
            true => [(offset, first - offset), (last, end - last)],
            false => [(offset, bytes), (end, 0)],
        };
        let mut done = SimTime::ZERO;
        for (at, len) in parts.into_iter().filter(|&(_, len)| len > 0) {
            done = done.max(range.begin_write(at, &vec![0; len as usize], 0, Urgency::Normal)?);
        }
        match last.saturating_sub(first) {
            0 => Ok(done),
            whole => Ok(done.max(self.begin_trim(address - offset + first, whole)?)),
        }
    }

    /// When an operation ends for which program units of queued writes may wait.
    pub(super) fn next_dispatch(&self) -> Option<SimTime> {
        self.ranges.iter().filter_map(Range::next_dispatch).min()
    }

    /// Ends operations by `time` in the ranges in which program units wait, and begins these.
    pub(super) fn dispatch(&mut self, time: SimTime) {
        for range in self.ranges.iter_mut().filter(|range| range.next_dispatch().is_some()) {
            // A failure is reported by the writes that wait, and by every later call.
            let _ = range.follow(time);
        }
    }

    /// Begins the program units of all queued writes, ahead of the share's clock.
    pub(super) fn program_waiting(&mut self) {
        for range in &mut self.ranges {
            // As above.
            let _ = range.program_waiting();
        }
    }

    /// Whether a flush has to write trims.
    pub(super) fn has_trims(&self) -> bool {
        self.ranges.iter().any(Range::has_trims)
    }

    /// Programs everything written; if there are no trims, a sync makes it durable.
    pub(super) fn program_all(&mut self) -> Result<()> {
        for range in &mut self.ranges {
            range.program_all()?;
            range.forget_programmed();
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let end = self.begin_flush()?;
        self.share.reach_if_timed(end)
    }

    /// As [`Inner::flush`], without waiting for the time at which everything is durable, which it
    /// returns.
    pub(super) fn begin_flush(&mut self) -> Result<SimTime> {
        let most = trims_max(&self.geometry) / self.ranges.len().max(1);
        // On a device with timing the ends of programs are known when they begin, and later
        // commands do not wait for them.
        let timed = self.share.is_timed();
        for range in &mut self.ranges {
            range.limit_trims(most)?;
            if timed { range.begin_program_all()? } else { range.program_all()? }
        }
        let mut records = Vec::new();
        for range in &self.ranges {
            encode_trims(range.record.id, range.new_trims(), &mut records);
        }
        let mut end = self.share.now_if_timed()?;
        if records.is_empty() {
            self.share.sync()?;
        } else {
            for record in &records {
                let appended = self.journal.append(record);
                appended.map_err(|error| FlashError::Tables { what: error.to_string() })?;
            }
            let ranges = &self.ranges;
            let snapshot = || {
                let mut all = Vec::new();
                for range in ranges {
                    encode_trims(range.record.id, range.all_trims(), &mut all);
                }
                all
            };
            let (journal, blocks) = (&mut self.journal, &self.tables.journal);
            end = sync_journal(journal, &self.share, &self.geometry, blocks, snapshot)?;
        }
        self.trims_waiting = 0;
        let ends = self.ranges.iter_mut().map(Range::flushed);
        Ok(ends.fold(end, SimTime::max))
    }
}
