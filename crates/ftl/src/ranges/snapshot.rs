//! Ranges at rest as bytes, and back: one after another.

use prism_base::{DecodeError, Decoder, Encoder};
use prism_nand::{BlockId, Geometry};

use super::config::part_of;
use super::{Ranges, RangesConfig};
use crate::layer::Layer;

impl Ranges {
    /// Whether every range is at rest.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.parts.iter().all(|part| part.layer.is_at_rest())
    }

    /// Appends the state of every range, and whose turn it is on each lane.
    ///
    /// # Panics
    /// If one is not at rest.
    pub fn encode(&self, out: &mut Encoder) {
        self.parts.iter().for_each(|part| part.layer.encode(out));
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
        let layers = ranges.map(|range| {
            let part = part_of(&geometry, range);
            Layer::decode(part, range.layer.clone(), from)
        });
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        let turns = from.bytes(geometry.lanes() as usize)?.to_vec();
        if turns.iter().any(|&turn| usize::from(turn) >= layers.len()) {
            return Err(from.wrong("it is the turn of a range that there is not"));
        }
        let seed = from.u64()?;
        Ok(Self { turns, ..Self::of(geometry, config, layers, seed) })
    }

    /// Rows that the flash has to hold in `block`; `None` where that is not known.
    pub(crate) fn rows_expected(&self, block: BlockId) -> Option<u32> {
        let part = self.part(block);
        part.layer.rows_expected(part.block_in(block))
    }
}
