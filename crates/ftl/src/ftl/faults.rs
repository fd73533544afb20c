//! Failures of flash, as reported to the FTL.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::{Ftl, delegate};
use crate::config::ConfigError;

impl Ftl {
    delegate! {
        /// Takes `bad` blocks out of use, before anything was written.
        ///
        /// # Errors
        /// [`ConfigError::BadBlocks`] if the remaining blocks are too few for the logical capacity.
        (&mut self).set_aside(bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError>;
        /// The program of the reserved `program_unit` has failed, or is not attempted because
        /// another program of its block has failed. The block accepts no more program units, its
        /// valid data is moved, and it is retired.
        (&mut self).program_failed(program_unit: ProgramUnitId) -> ();
        /// The erase of `block` has failed on one of its dies: it is retired.
        (&mut self).erase_failed(block: BlockId) -> ();
        /// Whether the FTL accepts no more data.
        #[must_use]
        (&self).is_read_only() -> bool;
        /// Makes the FTL accept no more data.
        (&mut self).set_read_only() -> ();
        /// How many blocks can be lost before the FTL accepts no more data: on the die group with
        /// the least spare; in block-level and hybrid mapping, whose die groups share their spare,
        /// on all die groups together; with ranges, in the range with the least.
        #[must_use]
        (&self).spare_blocks() -> u32;
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
        self.zoned().is_some_and(|map| map.is_void(program_unit))
    }

    /// Whether the data for `program_unit` is obsolete, so that its units need no other program
    /// unit.
    #[must_use]
    pub fn is_obsolete(&self, program_unit: ProgramUnitId) -> bool {
        self.zoned().is_some_and(|map| map.is_obsolete(program_unit))
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
}
