//! What an FTL is told of flash that fails.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::Ftl;
use crate::config::ConfigError;
use crate::page::PageMap;

impl Ftl {
    /// Takes `bad` blocks out of use, before anything was written.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] if the rest is too little for what the host sees.
    pub fn set_aside(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError> {
        match self {
            Self::Page(map) => map.set_aside(bad),
            Self::Hybrid(map) => map.set_aside(bad),
            Self::Ranges(map) => map.set_aside(bad),
            Self::Zoned(map) => map.set_aside(bad),
        }
    }

    /// The program of `program_unit`, which was reserved, has failed or will not be made, because
    /// another of its block has failed: its units are not there. The block takes no more
    /// program units, what is valid in it is moved, and it is retired.
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

    /// Whether `program_unit`, whose program has passed, counts for nothing, because its place says
    /// which units it holds and an earlier program unit of its die has failed meanwhile.
    #[must_use]
    #[inline(never)]
    pub fn is_void(&self, program_unit: ProgramUnitId) -> bool {
        match self {
            Self::Zoned(map) => map.is_void(program_unit),
            _ => false,
        }
    }

    /// Whether nobody wants any more what was to stand on `program_unit`, so that its units need
    /// no other program unit.
    #[must_use]
    pub fn is_forgotten(&self, program_unit: ProgramUnitId) -> bool {
        match self {
            Self::Zoned(map) => map.is_forgotten(program_unit),
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

    /// A block of `die_group` that has failed and can be emptied now. Mappings by block empty
    /// theirs by merges ([`Ftl::pick_victim`]).
    pub fn pick_failed(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.pick_failed(die_group),
            Self::Ranges(map) => map.pick_failed(die_group),
            _ => None,
        }
    }

    /// Whether the FTL takes no more data.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Page(map) => map.is_read_only(),
            Self::Hybrid(map) => map.is_read_only(),
            Self::Ranges(map) => map.is_read_only(),
            Self::Zoned(map) => map.is_read_only(),
        }
    }

    /// From now on the FTL takes no more data.
    pub fn set_read_only(&mut self) {
        match self {
            Self::Page(map) => map.set_read_only(),
            Self::Hybrid(map) => map.set_read_only(),
            Self::Ranges(map) => map.set_read_only(),
            Self::Zoned(map) => map.set_read_only(),
        }
    }

    /// How many more SLC blocks the die group with fewest can lose before they are no
    /// longer written to; `None` if there are none.
    #[must_use]
    pub fn slc_spare_blocks(&self) -> Option<u32> {
        self.page().and_then(PageMap::slc_spare_blocks)
    }

    /// How many more blocks the die group with the least spare can lose before the FTL takes no
    /// more data; of mappings by block, whose die groups share their spare, all die groups
    /// together; of ranges, the one with the least.
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
