//! Runs plans at once: moves state, knows no time. For filling and preconditioning a
//! drive, for questions about write amplification alone, and for flash whose time passes by
//! itself.

mod clean;

use std::borrow::{Borrow, BorrowMut};

use prism_ftl::{Ftl, ProgramUnitRun, ReadRun, UnitWrite, Units};
use prism_nand::{BlockId, Cause, DieGroupId, Nand, NandError, ProgramUnitId, Status};

use crate::counts::FlashCounts;
use crate::flash::Flash;

pub use clean::Pace;
use clean::{ALL, Cleaner, Goal, Urgency};

/// A program unit that is being filled.
#[derive(Clone, Debug, Default)]
struct ProgramUnit {
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
    next_die_group: u32,
    /// By stream.
    program_units: Vec<ProgramUnit>,
    /// By die group.
    cleaners: Vec<Cleaner>,
    /// The die group of the last program unit that was not urgent, whose cleaning is still to come.
    clean_due: Option<DieGroupId>,
    /// An erase may not be on flash for good yet.
    erase_unsynced: bool,
    /// Blocks with program units of the host that may not be, where merges may read them.
    program_units_unsynced: Vec<BlockId>,
    /// The step of cleaning that is planned.
    copied: Units,
    copy_reads: Vec<ReadRun>,
    /// Reused from block to block.
    scratch: Vec<u32>,
    runs: Vec<ProgramUnitRun>,
}

impl<F: Flash, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// An engine that has done nothing yet, with all cleaning at once ([`Pace::ToHigh`]).
    pub fn new(flash: F, ftl: L) -> Self {
        Self {
            program_units: vec![ProgramUnit::default(); ftl.borrow().streams() as usize],
            cleaners: vec![Cleaner::default(); flash.geometry().die_groups() as usize],
            clean_due: None,
            erase_unsynced: false,
            program_units_unsynced: Vec::new(),
            pace: Pace::ToHigh,
            flash,
            ftl,
            counts: FlashCounts::default(),
            next_die_group: 0,
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

    /// The FTL, for trims. Program units and victims are the engine's affair.
    pub fn ftl_mut(&mut self) -> &mut Ftl {
        self.ftl.borrow_mut()
    }

    /// Programs a program unit with `units` of `stream`, at most as many as a program unit has,
    /// of which each takes effect; the rest of the program unit is padding. Cleans before that as
    /// far as the pace says. `bytes` is empty, or has a mapping unit of bytes for each unit.
    /// Versions of a unit must grow. Returns where the units stand; nowhere if the FTL is, or has
    /// become, read-only ([`Ftl::is_read_only`]), which it does only on flash that may fail.
    ///
    /// # Errors
    /// If the flash fails. The engine and its FTL are of no use then: what did happen is
    /// found out by [`Ftl::recover`].
    ///
    /// # Panics
    /// If `units` are more than a program unit has, or `bytes` are not theirs.
    pub fn write_program_unit(
        &mut self,
        stream: u32,
        units: &[UnitWrite],
        bytes: &[u8],
    ) -> Result<ProgramUnitId, F::Error> {
        self.put(stream, units, bytes, &[], Urgency::Normal)
    }

    /// As [`Immediate::write_program_unit`], before any cleaning that can wait (priority-aware
    /// cleaning; Rajimwale, Prabhakaran, Davis, USENIX ATC'09, section 3.6).
    ///
    /// # Errors
    /// The same.
    pub fn write_urgent_program_unit(
        &mut self,
        stream: u32,
        units: &[UnitWrite],
        bytes: &[u8],
    ) -> Result<ProgramUnitId, F::Error> {
        self.put(stream, units, bytes, &[], Urgency::Urgent)
    }

    /// As [`Immediate::write_program_unit`]; the units at the places `lost` (in order) take no
    /// effect.
    fn put(
        &mut self,
        stream: u32,
        units: &[UnitWrite],
        bytes: &[u8],
        lost: &[usize],
        urgency: Urgency,
    ) -> Result<ProgramUnitId, F::Error> {
        let unit = self.flash.geometry().unit.0 as usize;
        assert!(
            units.len() <= self.flash.layout().units_per_program_unit() as usize,
            "more than a program unit"
        );
        assert!(bytes.is_empty() || bytes.len() == units.len() * unit, "bytes of some units only");
        let first = units.first().expect("a program unit holds something").lpn;
        let die_group = self.choose_die_group(stream, first, urgency)?;
        if urgency == Urgency::Normal {
            self.clean_due = Some(die_group);
        }
        if self.erase_unsynced {
            // The program unit may open the block that only this erase allows to be opened. If the
            // erase were undone, no erased block would be left for cleaning.
            self.sync()?;
        }
        if lost.is_empty() && self.at_once() {
            let program_unit = self.ftl_mut().put_program_unit(die_group, stream, units);
            self.flash.program_bulk(program_unit, 1)?;
            self.count(program_unit, Cause::Host, units);
            self.count_overflow(program_unit, stream, units);
            return Ok(program_unit);
        }
        let mut die_group = die_group;
        loop {
            if self.ftl().is_read_only() {
                return Ok(ProgramUnitId(0));
            }
            let program_unit = self.ftl_mut().reserve_host(die_group, stream, first);
            let block = self.flash.layout().block_of(program_unit);
            while let Some(pad) = self.ftl_mut().take_pad() {
                self.program_or_drop(pad, Cause::Pad, &[], &[], &[])?;
            }
            if self.ftl().copies_in_order(block) && !self.program_units_unsynced.contains(&block) {
                self.program_units_unsynced.push(block);
            }
            if self.program_or_drop(program_unit, Cause::Host, units, bytes, lost)?
                == Status::Passed
            {
                self.count_overflow(program_unit, stream, units);
                return Ok(program_unit);
            }
            die_group = self.choose_die_group(stream, first, urgency)?;
        }
    }

    fn sync(&mut self) -> Result<(), F::Error> {
        self.erase_unsynced = false;
        self.program_units_unsynced.clear();
        self.flash.sync()
    }

    /// Whether program units and blocks may be moved as a whole.
    fn at_once(&self) -> bool {
        !self.flash.keeps_content()
            && !self.flash.may_fail()
            && self.ftl().takes_program_units_at_once()
    }

    fn count(&mut self, program_unit: ProgramUnitId, cause: Cause, units: &[UnitWrite]) {
        let logical = self.ftl().logical_units();
        let (geometry, layout) = (self.flash.geometry(), self.flash.layout());
        let full = units.len() == layout.units_per_program_unit() as usize;
        let before = self.counts.before_slc(layout, program_unit);
        if full && units.iter().all(|unit| unit.lpn < logical) {
            self.counts.count_full_program_units(geometry, cause, 1);
        } else {
            self.counts.count_program(geometry, layout, cause, logical, units);
        }
        self.counts.count_slc(before);
    }

    fn count_overflow(&mut self, program_unit: ProgramUnitId, stream: u32, units: &[UnitWrite]) {
        if self.ftl().is_overflow(program_unit, stream) {
            self.counts.slc_overflow += units.len() as u64;
        }
    }

    /// Programs `program_unit`; all units but the `lost` ones (their places, in order) take effect,
    /// unless the program fails.
    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        lost: &[usize],
    ) -> Result<Status, F::Error> {
        self.flash.program(program_unit, cause, units, bytes, self.ftl.borrow())?;
        self.count(program_unit, cause, units);
        let status = self.flash.take_status();
        if status == Status::Failed {
            self.counts.faults.program_failures += 1;
            self.ftl_mut().program_failed(program_unit);
        } else {
            self.commit(program_unit, cause, units, lost);
        }
        while let Some(parity) = self.ftl_mut().take_parity() {
            // A stripe without parity is one that nothing is rebuilt from.
            self.program_or_drop(parity, Cause::Parity, &[], &[], &[])?;
        }
        Ok(status)
    }

    /// As [`Immediate::program`], if no program unit of the same block that was reserved with
    /// this one has failed since.
    fn program_or_drop(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        lost: &[usize],
    ) -> Result<Status, F::Error> {
        if self.ftl().has_failed(self.flash.layout().block_of(program_unit)) {
            self.ftl_mut().program_failed(program_unit);
            return Ok(Status::Failed);
        }
        self.program(program_unit, cause, units, bytes, lost)
    }

    fn commit(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        lost: &[usize],
    ) {
        let ftl: &mut Ftl = self.ftl.borrow_mut();
        if cause == Cause::Host {
            for (place, write) in units.iter().enumerate() {
                if write.lpn != UnitWrite::TOMBSTONE && !lost.contains(&place) {
                    ftl.write_begin(write.lpn);
                }
            }
        }
        ftl.commit(program_unit, units, lost);
    }
}

/// Why an operation of the simulated array does not fail.
const LAWFUL: &str = "the engine obeys the law of flash";

/// Over the simulated array, which fails only where the engine has a bug.
impl<F: Flash<Error = NandError>, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// Writes one logical unit; it reaches the flash with the rest of its program unit, which holds
    /// units of one stream. Versions of a unit must grow.
    pub fn write(&mut self, lpn: u32, version: u64) {
        let stream = self.ftl().stream_of(lpn, 0);
        let program_unit = &mut self.program_units[stream as usize];
        program_unit.units.push(UnitWrite { lpn, source: None, version });
        if program_unit.units.len() == self.flash.layout().units_per_program_unit() as usize {
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
    /// then holds. Units with and without bytes may not share a program unit.
    ///
    /// # Panics
    /// If the program unit that is being filled has units without bytes, or `bytes` are not as many
    /// as a mapping unit has.
    pub fn write_bytes(&mut self, lpn: u32, version: u64, bytes: &[u8]) {
        let unit = self.flash.geometry().unit.0 as usize;
        assert!(bytes.len() == unit, "a mapping unit has {unit} bytes");
        let program_unit = &mut self.program_units[self.ftl.borrow().stream_of(lpn, 0) as usize];
        assert!(
            program_unit.bytes.len() == program_unit.units.len() * unit,
            "a program unit with bytes of some units only"
        );
        program_unit.bytes.extend_from_slice(bytes);
        self.write(lpn, version);
    }

    /// The bytes of `lpn` as the flash holds them; `None` if it holds nothing, or what
    /// was written had no bytes. What still waits for its program unit is not there yet.
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

    /// Trims `start..end` at once, also what waits for its program unit.
    pub fn trim(&mut self, start: u32, end: u32, version: u64) {
        self.ftl_mut().trim_now(start, end, version);
        for program_unit in &mut self.program_units {
            let trimmed = |&place: &usize| (start..end).contains(&program_unit.units[place].lpn);
            let mut lost: Vec<_> = (0..program_unit.units.len()).filter(trimmed).collect();
            lost.append(&mut program_unit.lost);
            lost.sort_unstable();
            lost.dedup();
            program_unit.lost = lost;
        }
    }

    /// Programs what waits for its program unit to fill up; the rest of the program unit is
    /// padding.
    pub fn flush(&mut self) {
        for stream in 0..self.program_units.len() as u32 {
            if !self.program_units[stream as usize].units.is_empty() {
                self.program_host(stream);
            }
        }
    }

    /// Merges every log block, and erases every block with nothing live in it, where the
    /// mapping has such blocks. Program units that wait for more units are programmed first.
    pub fn merge_all(&mut self) {
        self.flush();
        self.ftl_mut().request_all_merges();
        let mut at_rest = false;
        while !at_rest && !self.ftl().is_read_only() {
            at_rest = true;
            for die_group in (0..self.flash.geometry().die_groups()).map(DieGroupId) {
                if !self.ftl().reached_high(die_group) {
                    self.clean(die_group, Goal::High, &mut { ALL }).expect(LAWFUL);
                    at_rest &= self.ftl().reached_high(die_group);
                }
            }
        }
    }

    /// Does what a drive does in a long idle time: empties a write cache of SLC, and ends the
    /// cleaning that its die groups have begun, or would begin at once. Program units that wait
    /// for more units are programmed first.
    pub fn rest(&mut self) {
        self.flush();
        // A merge or an erase on one die group may give another something to do. Each round makes
        // some block free, so that there are no more rounds than blocks.
        for _ in 0..self.flash.geometry().blocks() {
            let mut did = false;
            for die_group in (0..self.flash.geometry().die_groups()).map(DieGroupId) {
                did |= self.clean(die_group, Goal::Folded, &mut { ALL }).expect(LAWFUL);
                if self.ftl().below_low(die_group) {
                    did |= self.clean(die_group, Goal::High, &mut { ALL }).expect(LAWFUL);
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
        let program_unit = &mut self.program_units[stream as usize];
        let mut units = std::mem::take(&mut program_unit.units);
        let mut bytes = std::mem::take(&mut program_unit.bytes);
        let mut lost = std::mem::take(&mut program_unit.lost);
        self.put(stream, &units, &bytes, &lost, Urgency::Normal).expect(LAWFUL);
        units.clear();
        bytes.clear();
        lost.clear();
        let program_unit = &mut self.program_units[stream as usize];
        program_unit.units = units;
        program_unit.bytes = bytes;
        program_unit.lost = lost;
    }
}
