//! Ranges at rest as bytes, and back: one after another.

use std::ops::RangeInclusive;

use prism_base::{DecodeError, Decoder, Encoder};
use prism_nand::{BlockId, Geometry};

use super::config::part_of;
use super::{Ranges, RangesConfig};
use crate::ftl::Ftl;

impl Ranges {
    /// Whether every range is at rest.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.parts.iter().all(|part| part.ftl.is_at_rest())
    }

    /// Appends the state of every range, and whose turn it is on each die group.
    ///
    /// # Panics
    /// If one is not at rest.
    pub fn encode(&self, out: &mut Encoder) {
        self.parts.iter().for_each(|part| part.ftl.encode(out));
        out.column_u8(&self.turns);
        out.u64(self.seed);
    }

    /// The ranges that [`Ranges::encode`] wrote, over flash of the same shape and with the same
    /// configuration, which have been checked.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no state of such ranges.
    pub fn decode(
        geometry: Geometry,
        config: RangesConfig,
        from: &mut Decoder<'_>,
    ) -> Result<Self, DecodeError> {
        let ranges = config.ranges.iter();
        let ftls = ranges.map(|range| {
            let part = part_of(&geometry, range);
            Ftl::decode(part, range.ftl.clone(), from)
        });
        let ftls = ftls.collect::<Result<Vec<_>, _>>()?;
        let turns = from.bytes(geometry.die_groups() as usize)?.to_vec();
        if turns.iter().any(|&turn| usize::from(turn) >= ftls.len()) {
            return Err(from.wrong("it is the turn of a range that there is not"));
        }
        let seed = from.u64()?;
        Ok(Self { turns, ..Self::of(geometry, config, ftls, seed) })
    }

    /// How many program units the flash may hold in `block`.
    pub(crate) fn program_units_expected(&self, block: BlockId) -> RangeInclusive<u32> {
        let part = self.part(block);
        part.ftl.program_units_expected(part.block_in(block))
    }
}
