//! Snapshots of an FTL at rest, whatever its mapping. The format: docs/spec/drive-state.md.

use std::io;
use std::ops::RangeInclusive;

use prism_base::Snapshot;
use prism_base::codec::invalid;
use prism_nand::{BlockId, Geometry, Nand, Pun};

use super::{Ftl, FtlConfig};

impl Ftl {
    /// The FTL whose state was saved ([`Snapshot::save_fields`]), over flash of the same shape and
    /// with the same configuration. Whether the flash holds what the FTL expects is checked by
    /// [`Ftl::agrees_with`].
    ///
    /// # Errors
    /// If the bytes end too early or contradict themselves.
    pub fn load(geometry: Geometry, config: FtlConfig, from: &mut &[u8]) -> io::Result<Self> {
        let ftl = Self::new(geometry, config, 0);
        let mut ftl = ftl.map_err(|_| invalid("the configuration does not fit the flash"))?;
        ftl.load_fields(from)?;
        ftl.check().map_err(invalid)?;
        Ok(ftl)
    }

    /// Works out what follows from the fields that were loaded, and refuses contradictions.
    pub(crate) fn check(&mut self) -> Result<(), &'static str> {
        match self {
            Self::Page(map) => map.check(),
            Self::Hybrid(map) => map.check(),
            Self::Ranges(map) => map.check(),
            Self::Zoned(map) => map.check(),
        }
    }

    /// Whether `nand` holds what the FTL expects: so many program units in blocks that may be
    /// written further, and data in each place that the map points to. `units` are the logical
    /// units, translation pages among them. Looks at every block and unit.
    #[must_use]
    pub fn agrees_with(&self, nand: &Nand, units: u32) -> bool {
        let mut blocks = (0..nand.geometry().blocks()).map(BlockId);
        let agrees = |block| {
            let (there, expected) =
                (nand.program_units_programmed(block), self.program_units_expected(block));
            // Where program units may be left out, those of the last members may be.
            let left_out = nand.has_gaps() && there < *expected.start();
            let fits = nand.is_bad(block) || left_out || expected.contains(&there);
            fits && self.knows_erases(block, nand)
        };
        // Where flash does not fail, these counts are enough, and millions of units need no look.
        let enough = matches!(self, Self::Page(_) | Self::Zoned(_)) && !nand.has_faults();
        let holds =
            |lpn| self.lookup(lpn).is_none_or(|at| nand.holds(nand.layout().program_unit_of(at)));
        blocks.all(agrees) && (enough || (0..units).all(holds))
    }

    /// Whether `block` was erased at least as often as the FTL has counted, and neither holds
    /// anything nor takes anything if an erase of it has not ended.
    fn knows_erases(&self, block: BlockId, nand: &Nand) -> bool {
        let (layout, index) = (nand.layout(), block.0 as usize);
        let dies = layout.dies_per_die_group() as usize;
        let members = &nand.erase_counts()[index * dies..(index + 1) * dies];
        if members.iter().any(|&erases| erases < self.erases()[index]) {
            return false;
        }
        let first = layout.first_unit(layout.first_program_unit(block)).0;
        let mut units = (first..first + layout.units_per_block()).map(Pun);
        let may_take =
            || *self.program_units_expected(block).end() < layout.program_units_of(block);
        nand.is_bad(block)
            || !nand.is_unstable(block)
            || !may_take() && units.all(|at| self.live(at).is_none())
    }

    /// How many program units the flash may hold in `block`, if it is not bad.
    pub(crate) fn program_units_expected(&self, block: BlockId) -> RangeInclusive<u32> {
        match self {
            Self::Page(map) => exactly(map.program_units_written(block)),
            Self::Hybrid(map) => map.program_units_expected(block),
            Self::Ranges(map) => map.program_units_expected(block),
            Self::Zoned(map) => map.program_units_expected(block),
        }
    }
}

impl Snapshot for Ftl {
    /// # Panics
    /// If the FTL is not at rest.
    fn save_fields(&self, out: &mut Vec<u8>) {
        assert!(self.is_at_rest(), "only an FTL at rest can be saved");
        match self {
            Self::Page(map) => map.save_fields(out),
            Self::Hybrid(map) => map.save_fields(out),
            Self::Ranges(map) => map.save_fields(out),
            Self::Zoned(map) => map.save_fields(out),
        }
    }

    fn load_fields(&mut self, from: &mut &[u8]) -> io::Result<()> {
        match self {
            Self::Page(map) => map.load_fields(from),
            Self::Hybrid(map) => map.load_fields(from),
            Self::Ranges(map) => map.load_fields(from),
            Self::Zoned(map) => map.load_fields(from),
        }
    }
}

/// So many program units, no more and no less.
pub(crate) fn exactly(program_units: u32) -> RangeInclusive<u32> {
    program_units..=program_units
}
