//! Flash operations by cause.

use prism_base::counts;
use prism_ftl::{MapCounts, MergeCounts, UnitWrite};
use prism_nand::{Cause, Counts, Geometry, Layout, ProgramUnitId};

/// Counts of flash operations by cause. Reads and programs are counted in pages of one plane,
/// erases in blocks of one plane, so that the numbers compare with data sheets whether or not
/// planes are ganged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounts {
    /// Pages read.
    pub reads: Counts,
    /// Pages programmed.
    pub programs: Counts,
    /// Blocks erased.
    pub erases: Counts,
    /// Mapping units programmed; the units of a page may have several causes (such as padding).
    pub units: Counts,
    /// Of these, the units programmed in SLC blocks.
    pub slc_units: Counts,
    /// Host units intended for SLC blocks that were written elsewhere because these were full.
    pub slc_overflow: u64,
    /// Failures and their consequences.
    pub faults: FaultCounts,
}

/// Failures of flash and their consequences. Failed programs are counted as operations as well;
/// failed erases are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Programs of a program unit that failed.
    pub program_failures: u64,
    /// Erases of a block of a die that failed.
    pub erase_failures: u64,
    /// Page reads repeated after the first attempt.
    pub read_retries: u64,
    /// Mapping units that needed read retries.
    pub retried_units: u64,
    /// Mapping units rebuilt from the rest of their stripe.
    pub rebuilt_units: u64,
    /// Mapping units read by the host that could not be corrected.
    pub unreadable_units: u64,
    /// Mapping units whose content was lost because a copy or a read-modify-write could not read
    /// them.
    pub lost_units: u64,
}

/// Work of a device on its flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashWork {
    /// Flash operations.
    pub flash: FlashCounts,
    /// Hits and misses of the map cache, if the map is on flash.
    pub map: Option<MapCounts>,
    /// Merges by kind, with block-level and hybrid mappings.
    pub merges: Option<MergeCounts>,
}

impl FlashWork {
    /// What was done after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            flash: self.flash.since(&earlier.flash),
            map: self.map.zip(earlier.map).map(|(now, before)| now.since(&before)),
            merges: self.merges.zip(earlier.merges).map(|(now, before)| now.since(&before)),
        }
    }
}

counts!(FaultCounts {
    values: program_failures, erase_failures, read_retries, retried_units, rebuilt_units,
        unreadable_units, lost_units;
});

counts!(FlashCounts {
    parts: reads, programs, erases, units, slc_units, faults;
    values: slc_overflow;
});

impl FlashCounts {
    /// Counts the program of one program unit with `units`. Their cause is `cause`, except for what
    /// the map itself writes (tombstones and translation pages, which are not below
    /// `logical_units`) and for padding. A page counts for the cause of its first unit that is not
    /// padding; a program unit without units counts for `cause`.
    #[inline(always)]
    pub fn count_program(
        &mut self,
        geometry: &Geometry,
        layout: &Layout,
        cause: Cause,
        logical_units: u32,
        units: &[UnitWrite],
    ) {
        let per_unit = u64::from(layout.pages_per_unit());
        if let ([unit], 1) = (units, layout.units_per_program_unit()) {
            // The most frequent case in simulated drives.
            let cause = cause_of(cause, logical_units, unit);
            self.programs[cause] += per_unit;
            self.units[cause] += 1;
            return;
        }
        self.count_parts(geometry, layout, cause, logical_units, units);
    }

    /// As [`Self::count_program`], for program units of more than one unit, or of none.
    #[inline(never)]
    fn count_parts(
        &mut self,
        geometry: &Geometry,
        layout: &Layout,
        cause: Cause,
        logical_units: u32,
        units: &[UnitWrite],
    ) {
        let per_unit = u64::from(layout.pages_per_unit());
        let pages_per_program_unit = u64::from(geometry.pages_per_program_unit());
        let units_per_program_unit = u64::from(layout.units_per_program_unit());
        if units.is_empty() {
            self.programs[cause] += pages_per_program_unit;
            self.units[cause] += units_per_program_unit;
            return;
        }
        for page in units.chunks(layout.units_per_page() as usize) {
            let mut first = &page[0];
            if matches!(cause, Cause::Merge | Cause::Retire) {
                first = page.iter().find(|unit| unit.lpn != UnitWrite::PAD).unwrap_or(first);
            }
            self.programs[cause_of(cause, logical_units, first)] += per_unit;
            for unit in page {
                self.units[cause_of(cause, logical_units, unit)] += 1;
            }
        }
        self.programs[Cause::Pad] +=
            pages_per_program_unit - u64::from(layout.pages_for(units.len() as u32));
        self.units[Cause::Pad] += units_per_program_unit - units.len() as u64;
    }

    /// Counts `program_units` programs of full program units, all units of which are of `cause`.
    pub fn count_full_program_units(
        &mut self,
        geometry: &Geometry,
        cause: Cause,
        program_units: u32,
    ) {
        self.programs[cause] += u64::from(program_units * geometry.pages_per_program_unit());
        self.units[cause] += u64::from(program_units * geometry.units_per_program_unit());
    }

    /// The units counted so far, if the block of `program_unit` is SLC. [`FlashCounts::count_slc`]
    /// uses them to count the units of its program as SLC units too.
    #[inline(always)]
    pub(crate) fn before_slc(
        &self,
        layout: &Layout,
        program_unit: ProgramUnitId,
    ) -> Option<Counts> {
        let is_slc = layout.slc_blocks() > 0 && layout.is_slc(layout.block_of(program_unit));
        is_slc.then_some(self.units)
    }

    /// Counts the units programmed since [`FlashCounts::before_slc`] as SLC units.
    #[inline]
    pub(crate) fn count_slc(&mut self, before: Option<Counts>) {
        if let Some(before) = before {
            let counted = self.units.since(&before);
            self.slc_units.add(&counted);
        }
    }

    /// The fraction of all programmed units that were programmed in SLC blocks.
    #[must_use]
    pub fn slc_share(&self) -> f64 {
        self.slc_units.total() as f64 / self.units.total().max(1) as f64
    }
}

fn cause_of(program_unit: Cause, logical_units: u32, unit: &UnitWrite) -> Cause {
    match program_unit {
        Cause::Host if unit.lpn >= logical_units => Cause::Map,
        Cause::Merge | Cause::Retire if unit.lpn == UnitWrite::PAD => Cause::Pad,
        _ => program_unit,
    }
}
