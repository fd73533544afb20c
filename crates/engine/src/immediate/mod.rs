//! The engine without time: executes plans at once, in bulk where the flash keeps no content. For
//! filling and preconditioning drives, and for questions about write amplification alone.

mod clean;

use std::borrow::BorrowMut;

use prism_ftl::{Ftl, PageMap, ProgramUnitRun, ReadRun, UnitWrite, Units};
use prism_nand::{Cause, DieGroupId, ProgramUnitId, Status};

use crate::counts::FlashCounts;
use crate::flash::{Flash, LAWFUL};

use clean::Goal;

/// A program unit that is being filled.
#[derive(Clone, Debug, Default)]
struct ProgramUnit {
    units: Vec<UnitWrite>,
    /// Indices of units that were trimmed while the program unit was being filled: they are
    /// programmed but do not take effect.
    lost: Vec<usize>,
}

/// How many writes ahead the map entries and their physical units are prefetched: enough to hide
/// the memory latency, few enough to stay in the cache.
const LOOK_AHEAD: usize = 64;

/// The immediate engine over flash `F` and an FTL that it owns or borrows.
#[derive(Debug)]
pub struct Immediate<F, L> {
    flash: F,
    ftl: L,
    counts: FlashCounts,
    next_die_group: u32,
    /// By stream.
    program_units: Vec<ProgramUnit>,
    /// By die group: an erase has ended since wear levelling was last checked.
    check_wear: Vec<bool>,
    /// The current step of cleaning.
    copied: Units,
    copy_reads: Vec<ReadRun>,
    /// Buffers that are reused for each block.
    scratch: Vec<u32>,
    runs: Vec<ProgramUnitRun>,
}

impl<F: Flash, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// A new engine.
    pub fn new(flash: F, ftl: L) -> Self {
        Self {
            program_units: vec![ProgramUnit::default(); ftl.borrow().streams() as usize],
            check_wear: vec![false; flash.nand().geometry().die_groups() as usize],
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

    /// Flash operations so far.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    /// The flash.
    #[must_use]
    pub fn flash(&self) -> &F {
        &self.flash
    }

    /// Mutable access to the flash, for operations that bypass the FTL, such as reads. Only the
    /// engine programs and erases.
    pub fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    /// The FTL.
    #[must_use]
    pub fn ftl(&self) -> &Ftl {
        self.ftl.borrow()
    }

    /// Mutable access to the FTL, for trims. Only the engine reserves program units and picks
    /// victims.
    pub fn ftl_mut(&mut self) -> &mut Ftl {
        self.ftl.borrow_mut()
    }

    /// Programs a program unit with `units` of `stream`, at most as many as a program unit has, all
    /// of which take effect; the rest of the program unit is padding. Cleans first if the die group
    /// is below its low watermark. Versions of a unit must grow. Returns the program unit written.
    /// Nothing is written if the FTL is, or becomes, read-only ([`Ftl::is_read_only`]), which
    /// happens only on flash that may fail.
    ///
    /// # Panics
    /// If there are more `units` than a program unit has.
    pub fn write_program_unit(&mut self, stream: u32, units: &[UnitWrite]) -> ProgramUnitId {
        self.put(stream, units, &[])
    }

    /// As [`Immediate::write_program_unit`]; the units with the indices `lost` (sorted) do not take
    /// effect.
    fn put(&mut self, stream: u32, units: &[UnitWrite], lost: &[usize]) -> ProgramUnitId {
        assert!(
            units.len() <= self.flash.nand().layout().units_per_program_unit() as usize,
            "more than a program unit"
        );
        let first = units.first().expect("a program unit has units").lpn;
        let mut die_group = self.choose_die_group(stream, first);
        if lost.is_empty() && self.in_bulk() {
            let program_unit = self.ftl_mut().page_mut().put_program_unit(die_group, stream, units);
            self.flash.nand_mut().program_bulk(program_unit, 1).expect(LAWFUL);
            self.count(program_unit, Cause::Host, units);
            self.count_overflow(program_unit, stream, units);
            return program_unit;
        }
        loop {
            if self.ftl().is_read_only() {
                return ProgramUnitId(0);
            }
            let program_unit = self.ftl_mut().reserve_host(die_group, stream, first);
            while let Some(pad) = self.ftl_mut().take_pad() {
                self.program_or_drop(pad, Cause::Pad, &[], &[]);
            }
            if self.program_or_drop(program_unit, Cause::Host, units, lost) == Status::Passed {
                self.count_overflow(program_unit, stream, units);
                return program_unit;
            }
            die_group = self.choose_die_group(stream, first);
        }
    }

    /// Whether program units and blocks may be moved in bulk.
    fn in_bulk(&self) -> bool {
        let has_content = self.flash.nand().keeps_content() || self.flash.may_fail();
        !has_content && self.ftl().page().is_some_and(PageMap::supports_bulk)
    }

    fn count(&mut self, program_unit: ProgramUnitId, cause: Cause, units: &[UnitWrite]) {
        let logical = self.ftl().logical_units();
        let (geometry, layout) = (self.flash.nand().geometry(), self.flash.nand().layout());
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

    /// Programs `program_unit`; all units but the `lost` ones (sorted indices) take effect, unless
    /// the program fails.
    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        lost: &[usize],
    ) -> Status {
        self.flash.program(program_unit, cause, units, self.ftl.borrow());
        self.count(program_unit, cause, units);
        let status = self.flash.take_status();
        if status == Status::Failed {
            self.counts.faults.program_failures += 1;
            self.ftl_mut().program_failed(program_unit);
        } else {
            self.commit(program_unit, cause, units, lost);
        }
        while let Some(parity) = self.ftl_mut().take_parity() {
            // A stripe whose parity fails cannot rebuild units.
            self.program_or_drop(parity, Cause::Parity, &[], &[]);
        }
        status
    }

    /// As [`Immediate::program`], unless another program unit of the same block has failed since
    /// this one was reserved.
    fn program_or_drop(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        lost: &[usize],
    ) -> Status {
        if self.ftl().has_failed(self.flash.nand().layout().block_of(program_unit)) {
            self.ftl_mut().program_failed(program_unit);
            return Status::Failed;
        }
        self.program(program_unit, cause, units, lost)
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

impl<F: Flash, L: BorrowMut<Ftl>> Immediate<F, L> {
    /// Writes one logical unit. It is programmed when its program unit, which has units of one
    /// stream, is full. Versions of a unit must grow.
    pub fn write(&mut self, lpn: u32, version: u64) {
        let stream = self.ftl().stream_of(lpn, 0);
        let program_unit = &mut self.program_units[stream as usize];
        program_unit.units.push(UnitWrite { lpn, source: None, version });
        if program_unit.units.len() == self.flash.nand().layout().units_per_program_unit() as usize
        {
            self.program_host(stream);
        }
    }

    /// Writes `lpns` one after another, with versions from `version` on. Equivalent to
    /// [`Immediate::write`] of each, and several times as fast on a large drive, because map
    /// entries are prefetched.
    pub fn write_all(&mut self, lpns: &[u32], version: u64) {
        for (i, &lpn) in lpns.iter().enumerate() {
            if let Some(&ahead) = lpns.get(i + LOOK_AHEAD) {
                self.ftl().prefetch(ahead);
            }
            if let (Some(&ahead), Some(map)) = (lpns.get(i + LOOK_AHEAD / 2), self.ftl().page()) {
                map.prefetch_old(ahead);
            }
            self.write(lpn, version + i as u64);
        }
    }

    /// Trims `start..end` at once, including units of program units that are being filled.
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

    /// Programs all program units that are being filled, with padding.
    pub fn flush(&mut self) {
        for stream in 0..self.program_units.len() as u32 {
            if !self.program_units[stream as usize].units.is_empty() {
                self.program_host(stream);
            }
        }
    }

    /// Merges every log block, and erases every block without valid units, if the mapping has log
    /// blocks. Program units that are being filled are programmed first.
    pub fn merge_all(&mut self) {
        self.flush();
        self.ftl_mut().request_all_merges();
        let mut at_rest = false;
        while !at_rest && !self.ftl().is_read_only() {
            at_rest = true;
            for die_group in (0..self.flash.nand().geometry().die_groups()).map(DieGroupId) {
                if !self.ftl().reached_high(die_group) {
                    self.clean(die_group, Goal::High);
                    at_rest &= self.ftl().reached_high(die_group);
                }
            }
        }
    }

    /// Cleans every die group up to its high watermark.
    pub fn clean_to_high(&mut self) {
        for die_group in (0..self.flash.nand().geometry().die_groups()).map(DieGroupId) {
            self.clean(die_group, Goal::High);
        }
    }

    /// Does the work of a long idle time: empties an SLC write cache, and completes the cleaning of
    /// all die groups below their low watermark or with cleaning in progress. Program units that
    /// are being filled are programmed first.
    pub fn rest(&mut self) {
        self.flush();
        // A merge or an erase on one die group may give another work to do. Each iteration frees a
        // block, so that there are at most as many iterations as blocks.
        for _ in 0..self.flash.nand().geometry().blocks() {
            let mut did = false;
            for die_group in (0..self.flash.nand().geometry().die_groups()).map(DieGroupId) {
                did |= self.clean(die_group, Goal::Folded);
                if self.ftl().below_low(die_group) {
                    did |= self.clean(die_group, Goal::High);
                }
            }
            if !did {
                return;
            }
        }
    }

    fn program_host(&mut self, stream: u32) {
        // The lists are taken one by one: a wide copy of a structure that was just modified in part
        // would wait for all earlier stores, and those to the map miss the cache.
        let program_unit = &mut self.program_units[stream as usize];
        let mut units = std::mem::take(&mut program_unit.units);
        let mut lost = std::mem::take(&mut program_unit.lost);
        self.put(stream, &units, &lost);
        units.clear();
        lost.clear();
        let program_unit = &mut self.program_units[stream as usize];
        program_unit.units = units;
        program_unit.lost = lost;
    }
}
