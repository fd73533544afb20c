//! Failures of flash, as reported to the FTL.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::Ftl;
use crate::config::ConfigError;
use crate::page::PageMap;

impl Ftl {
    /// Takes `bad` blocks out of use, before anything was written.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] if the remaining blocks are too few for the logical capacity.
    pub fn set_aside(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError> {
        match self {
            Self::Page(map) => map.set_aside(bad),
            Self::Hybrid(map) => map.set_aside(bad),
            Self::Ranges(map) => map.set_aside(bad),
            Self::Zoned(map) => map.set_aside(bad),
        }
    }

    /// The program of the reserved `program_unit` has failed, or is not attempted because another
    /// program of its block has failed. The block accepts no more program units, its valid data is
    /// moved, and it is retired.
    pub fn program_failed(&mut self, program_unit: ProgramUnitId) {
        match self {
            Self::Page(map) => map.program_failed(program_unit),
            Self::Hybrid(map) => map.program_failed(program_unit),
            Self::Ranges(map) => map.program_failed(program_unit),
            Self::Zoned(map) => map.program_failed(program_unit),
        }
    }

    /// Whether a program of `block` has failed, so that a program unit reserved in it must not be
    /// programmed.
    #[must_use]
    #[inline(never)]
    pub fn has_failed(&self, block: BlockId) -> bool {
        match self {
            Self::Page(map) => map.has_failed(block),
            Self::Hybrid(map) => map.has_failed(block),
            Self::Ranges(map) => map.has_failed(block),
            Self::Zoned(map) => map.has_failed(block),
        }
    }

    /// Whether `program_unit`, whose program has passed, is invalid nevertheless, because its units
    /// are found by their offset and an earlier program unit of its die has failed.
    #[must_use]
    #[inline(never)]
    pub fn is_void(&self, program_unit: ProgramUnitId) -> bool {
        match self {
            Self::Zoned(map) => map.is_void(program_unit),
            _ => false,
        }
    }

    /// Whether the data for `program_unit` is obsolete, so that its units need no other program
    /// unit.
    #[must_use]
    pub fn is_obsolete(&self, program_unit: ProgramUnitId) -> bool {
        match self {
            Self::Zoned(map) => map.is_obsolete(program_unit),
            _ => false,
        }
    }

    /// The erase of `block` has failed on one of its dies: it is retired.
    pub fn erase_failed(&mut self, block: BlockId) {
        match self {
            Self::Page(map) => map.erase_failed(block),
            Self::Hybrid(map) => map.erase_failed(block),
            Self::Ranges(map) => map.erase_failed(block),
            Self::Zoned(map) => map.erase_failed(block),
        }
    }

    /// A block of `die_group` that has failed and can be emptied now. Block-level and hybrid
    /// mapping empty theirs by merges ([`Ftl::pick_victim`]).
    pub fn pick_failed(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.pick_failed(die_group),
            Self::Ranges(map) => map.pick_failed(die_group),
            _ => None,
        }
    }

    /// Whether the FTL accepts no more data.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Page(map) => map.is_read_only(),
            Self::Hybrid(map) => map.is_read_only(),
            Self::Ranges(map) => map.is_read_only(),
            Self::Zoned(map) => map.is_read_only(),
        }
    }

    /// Makes the FTL accept no more data.
    pub fn set_read_only(&mut self) {
        match self {
            Self::Page(map) => map.set_read_only(),
            Self::Hybrid(map) => map.set_read_only(),
            Self::Ranges(map) => map.set_read_only(),
            Self::Zoned(map) => map.set_read_only(),
        }
    }

    /// How many SLC blocks the die group with the fewest can lose before SLC blocks are no longer
    /// written; `None` if there are none.
    #[must_use]
    pub fn slc_spare_blocks(&self) -> Option<u32> {
        self.page().and_then(PageMap::slc_spare_blocks)
    }

    /// How many blocks can be lost before the FTL accepts no more data: on the die group with the
    /// least spare; in block-level and hybrid mapping, whose die groups share their spare, on all
    /// die groups together; with ranges, in the range with the least.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        match self {
            Self::Page(map) => map.spare_blocks(),
            Self::Hybrid(map) => map.spare_blocks(),
            Self::Ranges(map) => map.spare_blocks(),
            Self::Zoned(map) => map.spare_blocks(),
        }
    }
}
