//! An FTL at rest as bytes, and back, whatever its mapping.

use std::ops::RangeInclusive;

use prism_base::{DecodeError, Decoder, Encoder};
use prism_nand::{BlockId, Geometry, Nand};

use super::{Ftl, FtlConfig};
use crate::hybrid::Hybrid;
use crate::page::PageMap;
use crate::ranges::Ranges;
use crate::zoned::Zoned;

impl Ftl {
    /// Whether nothing is in flight or promised: no program, no trim, no step of a cleaning or
    /// merge.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        match self {
            Self::Page(map) => map.is_at_rest(),
            Self::Hybrid(map) => map.is_at_rest(),
            Self::Ranges(map) => map.is_at_rest(),
            Self::Zoned(map) => map.is_at_rest(),
        }
    }

    /// Appends the state of the FTL. Counts are no part of it.
    ///
    /// # Panics
    /// If it is not at rest.
    pub fn encode(&self, out: &mut Encoder) {
        match self {
            Self::Page(map) => map.encode(out),
            Self::Hybrid(map) => map.encode(out),
            Self::Ranges(map) => map.encode(out),
            Self::Zoned(map) => map.encode(out),
        }
    }

    /// The FTL that [`Ftl::encode`] wrote, over flash of the same shape and with the same
    /// configuration, which have been checked. Whether the flash holds what the FTL thinks,
    /// says [`Ftl::stands_on`].
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no state of such an FTL.
    pub fn decode(
        geometry: Geometry,
        config: FtlConfig,
        from: &mut Decoder<'_>,
    ) -> Result<Self, DecodeError> {
        Ok(match config {
            FtlConfig::Page(config) => Self::Page(PageMap::decode(geometry, config, from)?),
            FtlConfig::Hybrid(config) => Self::Hybrid(Hybrid::decode(geometry, config, from)?),
            FtlConfig::Ranges(config) => Self::Ranges(Ranges::decode(geometry, config, from)?),
            FtlConfig::Zoned(config) => Self::Zoned(Zoned::decode(geometry, config, from)?),
        })
    }

    /// Whether `nand` holds what the FTL thinks: so many program units in blocks that may be
    /// written further, and in each place that the map points to what was programmed there.
    /// `units` are the logical units, translation pages among them. Looks at every block and
    /// unit.
    #[must_use]
    pub fn stands_on(&self, nand: &Nand, units: u32) -> bool {
        let mut blocks = (0..nand.geometry().blocks()).map(BlockId);
        let agrees = |block| {
            let (there, expected) =
                (nand.program_units_programmed(block), self.program_units_expected(block));
            // Where program units may be left out, those of the last members may be.
            let left_out = nand.has_gaps() && there < *expected.start();
            nand.is_bad(block) || left_out || expected.contains(&there)
        };
        // Where flash does not fail, these have told, and millions of units need no look.
        let told = matches!(self, Self::Page(_) | Self::Zoned(_)) && !nand.has_faults();
        let holds =
            |lpn| self.lookup(lpn).is_none_or(|at| nand.holds(nand.layout().program_unit_of(at)));
        blocks.all(agrees) && (told || (0..units).all(holds))
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

/// So many program units, no more and no less.
pub(crate) fn exactly(program_units: u32) -> RangeInclusive<u32> {
    program_units..=program_units
}
