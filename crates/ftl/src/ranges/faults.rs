//! Failures of flash with ranges: each range handles its own blocks, and the drive becomes
//! read-only with the first range that does.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::Ranges;
use crate::config::ConfigError;

impl Ranges {
    /// Takes `bad` blocks out of use, before anything was written.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] of the first range that has too few good blocks.
    pub fn set_aside(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError> {
        let mut by_range = vec![Vec::new(); self.parts.len()];
        for block in bad {
            let owner = self.owner(block);
            by_range[owner].push(self.parts[owner].block_in(block));
        }
        let mut parts = self.parts.iter_mut().zip(by_range);
        parts.try_for_each(|(part, bad)| part.ftl.set_aside(bad.into_iter()))
    }

    /// The program of the reserved `program_unit` has failed or is not attempted.
    pub fn program_failed(&mut self, program_unit: ProgramUnitId) {
        let part = self.part_mut(self.layout.block_of(program_unit));
        let program_unit = part.program_unit_in(program_unit);
        part.ftl.program_failed(program_unit);
    }

    /// Whether a program of `block` has failed.
    #[must_use]
    pub fn has_failed(&self, block: BlockId) -> bool {
        let part = self.part(block);
        part.ftl.has_failed(part.block_in(block))
    }

    /// The erase of `block` has failed.
    pub fn erase_failed(&mut self, block: BlockId) {
        let part = self.part_mut(block);
        let block = part.block_in(block);
        part.ftl.erase_failed(block);
    }

    /// A block of `die_group` that has failed and can be emptied now.
    pub fn pick_failed(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        self.parts.iter_mut().find_map(|part| {
            let block = part.ftl.pick_failed(die_group)?;
            Some(part.block_out(block))
        })
    }

    /// Whether one of the ranges accepts no more data.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.parts.iter().any(|part| part.ftl.is_read_only())
    }

    /// Makes all ranges accept no more data.
    pub fn set_read_only(&mut self) {
        self.parts.iter_mut().for_each(|part| part.ftl.set_read_only());
    }

    /// How many blocks the range with the least spare can lose.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        self.parts.iter().map(|part| part.ftl.spare_blocks()).min().unwrap_or(0)
    }
}
