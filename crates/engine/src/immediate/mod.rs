//! Runs plans at once: moves state, knows no time. For filling and preconditioning a
//! drive, for questions about write amplification alone, and for flash whose time passes by
//! itself.

mod clean;

use std::borrow::{Borrow, BorrowMut};

use prism_ftl::{Ftl, ReadRun, RowRun, UnitWrite, Units};
use prism_nand::{BlockId, Cause, LaneId, Nand, NandError, RowId, Status};

use crate::counts::FlashCounts;
use crate::flash::Flash;

pub use clean::Pace;
use clean::{ALL, Cleaner, Goal, Urgency};

/// A row that is being filled.
#[derive(Clone, Debug, Default)]
struct Row {
    units: Vec<UnitWrite>,
    /// Bytes of the units one after another, if they have any.
    bytes: Vec<u8>,
    /// Places of units that were trimmed while they waited: they are programmed and take
    /// no effect.
    lost: Vec<usize>,
}

/// How many writes ahead the map is asked for, and what it then leads to: enough to hide
/// the way to memory, few enough to stay in the cache.
const LOOK_AHEAD: usize = 64;

/// An engine without time over flash `F` and an FTL that it owns or borrows.
#[derive(Debug)]
pub struct Immediate<F, L> {
    flash: F,
    ftl: L,
    pace: Pace,
    counts: FlashCounts,
    next_lane: u32,
    /// By stream.
    rows: Vec<Row>,
    /// By lane.
    cleaners: Vec<Cleaner>,
    /// The lane of the last row that was not urgent, whose cleaning is still to come.
    clean_due: Option<LaneId>,
    /// An erase may not be on flash for good yet.
    erase_unsynced: bool,
    /// Blocks with rows of the host that may not be, where merges may read them.
    rows_unsynced: Vec<BlockId>,
    /// The step of cleaning that is planned.
    copied: Units,
    copy_reads: Vec<ReadRun>,
    /// Reused from block to block.
    scratch: Vec<u32>,
    runs: Vec<RowRun>,
}

impl<F: Flash, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// An engine that has done nothing yet, with all cleaning at once ([`Pace::ToHigh`]).
    pub fn new(flash: F, ftl: L) -> Self {
        Self {
            rows: vec![Row::default(); ftl.borrow().streams() as usize],
            cleaners: vec![Cleaner::default(); flash.geometry().lanes() as usize],
            clean_due: None,
            erase_unsynced: false,
            rows_unsynced: Vec::new(),
            pace: Pace::ToHigh,
            flash,
            ftl,
            counts: FlashCounts::default(),
            next_lane: 0,
            copied: Units::new(),
            copy_reads: Vec::new(),
            scratch: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Cleans at `pace` from now on.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    /// The flash.
    #[must_use]
    pub fn flash(&self) -> &F {
        &self.flash
    }

    /// The flash, for what goes past the FTL: reads, or being told things. What is
    /// programmed and erased is the engine's affair.
    pub fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    /// The FTL.
    #[must_use]
    pub fn ftl(&self) -> &Ftl {
        self.ftl.borrow()
    }

    /// The FTL, for trims. Rows and victims are the engine's affair.
    pub fn ftl_mut(&mut self) -> &mut Ftl {
        self.ftl.borrow_mut()
    }

    /// Programs a row with `units` of `stream`, at most as many as a row has, of which each
    /// takes effect; the rest of the row is padding. Cleans before that as far as the pace
    /// says. `bytes` is empty, or has a mapping unit of bytes for each unit. Versions of a
    /// unit must grow. Returns where the units stand; nowhere if the FTL is, or has become,
    /// read-only ([`Ftl::is_read_only`]), which it does only on flash that may fail.
    ///
    /// # Errors
    /// If the flash fails. The engine and its FTL are of no use then: what did happen is
    /// found out by [`Ftl::recover`].
    ///
    /// # Panics
    /// If `units` are more than a row has, or `bytes` are not theirs.
    pub fn write_row(
        &mut self,
        stream: u32,
        units: &[UnitWrite],
        bytes: &[u8],
    ) -> Result<RowId, F::Error> {
        self.put(stream, units, bytes, &[], Urgency::Normal)
    }

    /// As [`Immediate::write_row`], before any cleaning that can wait (priority-aware
    /// cleaning; Rajimwale, Prabhakaran, Davis, USENIX ATC'09, section 3.6).
    ///
    /// # Errors
    /// The same.
    pub fn write_urgent_row(
        &mut self,
        stream: u32,
        units: &[UnitWrite],
        bytes: &[u8],
    ) -> Result<RowId, F::Error> {
        self.put(stream, units, bytes, &[], Urgency::Urgent)
    }

    /// As [`Immediate::write_row`]; the units at the places `lost` (in order) take no effect.
    fn put(
        &mut self,
        stream: u32,
        units: &[UnitWrite],
        bytes: &[u8],
        lost: &[usize],
        urgency: Urgency,
    ) -> Result<RowId, F::Error> {
        let unit = self.flash.geometry().unit.0 as usize;
        assert!(units.len() <= self.flash.layout().units_per_row() as usize, "more than a row");
        assert!(bytes.is_empty() || bytes.len() == units.len() * unit, "bytes of some units only");
        let first = units.first().expect("a row holds something").lpn;
        let lane = self.choose_lane(stream, first, urgency)?;
        if urgency == Urgency::Normal {
            self.clean_due = Some(lane);
        }
        if self.erase_unsynced {
            // The row may open the block that only this erase allows to be opened. If the
            // erase were undone, no erased block would be left for cleaning.
            self.sync()?;
        }
        if lost.is_empty() && self.at_once() {
            let row = self.ftl_mut().put_row(lane, stream, units);
            self.flash.program_rows(row, 1)?;
            self.count(row, Cause::Host, units);
            self.count_overflow(row, stream, units);
            return Ok(row);
        }
        let mut lane = lane;
        loop {
            if self.ftl().is_read_only() {
                return Ok(RowId(0));
            }
            let row = self.ftl_mut().reserve_host(lane, stream, first);
            let block = self.flash.layout().block_of(row);
            while let Some(pad) = self.ftl_mut().take_pad() {
                self.program_or_drop(pad, Cause::Pad, &[], &[], &[])?;
            }
            if self.ftl().copies_in_order(block) && !self.rows_unsynced.contains(&block) {
                self.rows_unsynced.push(block);
            }
            if self.program_or_drop(row, Cause::Host, units, bytes, lost)? == Status::Passed {
                self.count_overflow(row, stream, units);
                return Ok(row);
            }
            lane = self.choose_lane(stream, first, urgency)?;
        }
    }

    fn sync(&mut self) -> Result<(), F::Error> {
        self.erase_unsynced = false;
        self.rows_unsynced.clear();
        self.flash.sync()
    }

    /// Whether rows and blocks may be moved as a whole.
    fn at_once(&self) -> bool {
        !self.flash.keeps_content() && !self.flash.may_fail() && self.ftl().takes_rows_at_once()
    }

    fn count(&mut self, row: RowId, cause: Cause, units: &[UnitWrite]) {
        let logical = self.ftl().logical_units();
        let (geometry, layout) = (self.flash.geometry(), self.flash.layout());
        let full = units.len() == layout.units_per_row() as usize;
        let before = self.counts.before_slc(layout, row);
        if full && units.iter().all(|unit| unit.lpn < logical) {
            self.counts.count_full_rows(geometry, cause, 1);
        } else {
            self.counts.count_program(geometry, layout, cause, logical, units);
        }
        self.counts.count_slc(before);
    }

    fn count_overflow(&mut self, row: RowId, stream: u32, units: &[UnitWrite]) {
        if self.ftl().is_overflow(row, stream) {
            self.counts.slc_overflow += units.len() as u64;
        }
    }

    /// Programs `row`; all units but the `lost` ones (their places, in order) take effect,
    /// unless the program fails.
    fn program(
        &mut self,
        row: RowId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        lost: &[usize],
    ) -> Result<Status, F::Error> {
        self.flash.program(row, cause, units, bytes, self.ftl.borrow())?;
        self.count(row, cause, units);
        let status = self.flash.take_status();
        if status == Status::Failed {
            self.counts.faults.program_failures += 1;
            self.ftl_mut().program_failed(row);
        } else {
            self.commit(row, cause, units, lost);
        }
        while let Some(parity) = self.ftl_mut().take_parity() {
            // A stripe without parity is one that nothing is rebuilt from.
            self.program_or_drop(parity, Cause::Parity, &[], &[], &[])?;
        }
        Ok(status)
    }

    /// As [`Immediate::program`], if no row of the same block that was reserved with this one
    /// has failed since.
    fn program_or_drop(
        &mut self,
        row: RowId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        lost: &[usize],
    ) -> Result<Status, F::Error> {
        if self.ftl().has_failed(self.flash.layout().block_of(row)) {
            self.ftl_mut().program_failed(row);
            return Ok(Status::Failed);
        }
        self.program(row, cause, units, bytes, lost)
    }

    fn commit(&mut self, row: RowId, cause: Cause, units: &[UnitWrite], lost: &[usize]) {
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        if cause == Cause::Host {
            for (place, write) in units.iter().enumerate() {
                if write.lpn != UnitWrite::TOMBSTONE && !lost.contains(&place) {
                    ftl.write_begin(write.lpn);
                }
            }
        }
        ftl.commit(row, units, lost);
    }
}

/// Why an operation of the simulated array does not fail.
const LAWFUL: &str = "the engine obeys the law of flash";

/// Over the simulated array, which fails only where the engine has a bug.
impl<F: Flash<Error = NandError>, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// Writes one logical unit; it reaches the flash with the rest of its row, which holds
    /// units of one stream. Versions of a unit must grow.
    pub fn write(&mut self, lpn: u32, version: u64) {
        let stream = self.ftl().stream_of(lpn, 0);
        let row = &mut self.rows[stream as usize];
        row.units.push(UnitWrite { lpn, source: None, version });
        if row.units.len() == self.flash.layout().units_per_row() as usize {
            self.program_host(stream);
        }
    }

    /// Writes `lpns` one after another, with versions from `version` on. The same as
    /// [`Immediate::write`] of each, and several times as fast on a large drive, because
    /// the map is looked up ahead of time.
    pub fn write_all(&mut self, lpns: &[u32], version: u64) {
        for (i, &lpn) in lpns.iter().enumerate() {
            if let Some(&ahead) = lpns.get(i + LOOK_AHEAD) {
                self.ftl().prefetch(ahead);
            }
            if let Some(&ahead) = lpns.get(i + LOOK_AHEAD / 2) {
                self.ftl().prefetch_old(ahead);
            }
            self.write(lpn, version + i as u64);
        }
    }

    /// As [`Immediate::write`], with the unit's bytes, which a device that keeps content
    /// then holds. Units with and without bytes may not share a row.
    ///
    /// # Panics
    /// If the row that is being filled has units without bytes, or `bytes` are not as many
    /// as a mapping unit has.
    pub fn write_bytes(&mut self, lpn: u32, version: u64, bytes: &[u8]) {
        let unit = self.flash.geometry().unit.0 as usize;
        assert!(bytes.len() == unit, "a mapping unit has {unit} bytes");
        let row = &mut self.rows[self.ftl.borrow().stream_of(lpn, 0) as usize];
        assert!(row.bytes.len() == row.units.len() * unit, "a row with bytes of some units only");
        row.bytes.extend_from_slice(bytes);
        self.write(lpn, version);
    }

    /// The bytes of `lpn` as the flash holds them; `None` if it holds nothing, or what
    /// was written had no bytes. What still waits for its row is not there yet.
    ///
    /// # Panics
    /// If the map leads to a unit that cannot be read, which is a bug.
    #[must_use]
    pub fn read_bytes(&self, lpn: u32) -> Option<&[u8]>
    where
        F: Borrow<Nand>,
    {
        let at = self.ftl().lookup(lpn)?;
        let nand: &Nand = self.flash.borrow();
        let unit = nand.read(at).expect("the map points to readable units only")?;
        unit.payload.as_deref()
    }

    /// Trims `start..end` at once, also what waits for its row.
    pub fn trim(&mut self, start: u32, end: u32, version: u64) {
        self.ftl_mut().trim_now(start, end, version);
        for row in &mut self.rows {
            let trimmed = |&place: &usize| (start..end).contains(&row.units[place].lpn);
            let mut lost: Vec<_> = (0..row.units.len()).filter(trimmed).collect();
            lost.append(&mut row.lost);
            lost.sort_unstable();
            lost.dedup();
            row.lost = lost;
        }
    }

    /// Programs what waits for its row to fill up; the rest of the row is padding.
    pub fn flush(&mut self) {
        for stream in 0..self.rows.len() as u32 {
            if !self.rows[stream as usize].units.is_empty() {
                self.program_host(stream);
            }
        }
    }

    /// Merges every log block, and erases every block with nothing live in it, where the
    /// mapping has such blocks. Rows that wait for more units are programmed first.
    pub fn merge_all(&mut self) {
        self.flush();
        self.ftl_mut().want_all();
        let mut at_rest = false;
        while !at_rest && !self.ftl().is_read_only() {
            at_rest = true;
            for lane in (0..self.flash.geometry().lanes()).map(LaneId) {
                if !self.ftl().reached_high(lane) {
                    self.clean(lane, Goal::High, &mut { ALL }).expect(LAWFUL);
                    at_rest &= self.ftl().reached_high(lane);
                }
            }
        }
    }

    /// Does what a drive does in a long idle time: empties a write cache of one bit a cell, and
    /// ends the cleaning that its lanes have begun, or would begin at once. Rows that wait for
    /// more units are programmed first.
    pub fn rest(&mut self) {
        self.flush();
        // A merge or an erase on one lane may give another something to do. Each round makes
        // some block free, so that there are no more rounds than blocks.
        for _ in 0..self.flash.geometry().blocks() {
            let mut did = false;
            for lane in (0..self.flash.geometry().lanes()).map(LaneId) {
                did |= self.clean(lane, Goal::Folded, &mut { ALL }).expect(LAWFUL);
                if self.ftl().below_low(lane) {
                    did |= self.clean(lane, Goal::High, &mut { ALL }).expect(LAWFUL);
                }
            }
            if !did {
                return;
            }
        }
    }

    fn program_host(&mut self, stream: u32) {
        // List by list: a copy in larger words of what has just been changed in part waits for
        // every write to memory before it, and those of the map miss every cache.
        let row = &mut self.rows[stream as usize];
        let mut units = std::mem::take(&mut row.units);
        let mut bytes = std::mem::take(&mut row.bytes);
        let mut lost = std::mem::take(&mut row.lost);
        self.put(stream, &units, &bytes, &lost, Urgency::Normal).expect(LAWFUL);
        units.clear();
        bytes.clear();
        lost.clear();
        let row = &mut self.rows[stream as usize];
        row.units = units;
        row.bytes = bytes;
        row.lost = lost;
    }
}
