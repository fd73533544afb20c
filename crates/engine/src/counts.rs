//! Flash operations by cause.

use prism_ftl::UnitWrite;
use prism_nand::{Cause, Counts, Geometry};

/// What was done to the flash, by cause. Reads and programs are counted in pages of one
/// plane, erases in blocks of one plane, so that figures compare with data sheets
/// whether or not planes are ganged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounts {
    /// Pages read.
    pub reads: Counts,
    /// Pages programmed.
    pub programs: Counts,
    /// Blocks erased.
    pub erases: Counts,
    /// Mapping units programmed; a page's units may have several causes (its padding).
    pub units: Counts,
}

impl FlashCounts {
    /// Counts the program of one row with `units`, all of `cause` but for tombstones the
    /// host's trims make. A page counts for the cause of its first unit.
    pub fn count_program(&mut self, geometry: &Geometry, cause: Cause, units: &[UnitWrite]) {
        let per_page = geometry.units_per_page() as usize;
        for page in units.chunks(per_page) {
            self.programs[cause_of(cause, &page[0])] += 1;
            for unit in page {
                self.units[cause_of(cause, unit)] += 1;
            }
        }
        let pages = units.len().div_ceil(per_page) as u64;
        self.programs[Cause::Pad] += u64::from(geometry.planes_ganged) - pages;
        self.units[Cause::Pad] += u64::from(geometry.units_per_row()) - units.len() as u64;
    }

    /// Adds what `other` counted.
    pub fn add(&mut self, other: &Self) {
        self.reads.add(&other.reads);
        self.programs.add(&other.programs);
        self.erases.add(&other.erases);
        self.units.add(&other.units);
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.since(&earlier.reads),
            programs: self.programs.since(&earlier.programs),
            erases: self.erases.since(&earlier.erases),
            units: self.units.since(&earlier.units),
        }
    }
}

fn cause_of(row: Cause, unit: &UnitWrite) -> Cause {
    if row == Cause::Host && unit.lpn == UnitWrite::TOMBSTONE { Cause::Map } else { row }
}
