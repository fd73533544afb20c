//! Snapshots of ranges at rest: the FTL of each, one after another.

use std::ops::RangeInclusive;

use prism_base::snapshot_fields;
use prism_nand::BlockId;

use super::{Part, Ranges};

snapshot_fields!(Part { parts: ftl; });

snapshot_fields!(Ranges { parts: parts; columns: turns; values: seed; });

impl Ranges {
    /// Whether every range is at rest.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.parts.iter().all(|part| part.ftl.is_at_rest())
    }

    /// Works out what follows from the fields that were loaded, and refuses contradictions.
    pub(crate) fn check(&mut self) -> Result<(), &'static str> {
        self.parts.iter_mut().try_for_each(|part| part.ftl.check())?;
        self.gather_erases();
        match self.turns.iter().all(|&turn| usize::from(turn) < self.parts.len()) {
            true => Ok(()),
            false => Err("it is the turn of a range that there is not"),
        }
    }

    /// How many program units the flash may hold in `block`.
    pub(crate) fn program_units_expected(&self, block: BlockId) -> RangeInclusive<u32> {
        let part = self.part(block);
        part.ftl.program_units_expected(part.block_in(block))
    }
}
