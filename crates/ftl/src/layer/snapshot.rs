//! A layer at rest as bytes, and back, whatever its mapping.

use prism_base::{DecodeError, Decoder, Encoder};
use prism_nand::{BlockId, Geometry, Nand};

use super::{Layer, LayerConfig};
use crate::hybrid::Hybrid;
use crate::pagemap::PageMap;
use crate::ranges::Ranges;
use crate::zoned::Zoned;

impl Layer {
    /// Whether nothing is under way or promised: no program, no trim, no step of a cleaning or
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

    /// Appends the state of the layer. Counts are no part of it.
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

    /// The layer that [`Layer::encode`] wrote, over flash of the same shape and with the same
    /// configuration, which have been checked. Whether the flash holds what the layer thinks,
    /// says [`Layer::stands_on`].
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no state of such a layer.
    pub fn decode(
        geometry: Geometry,
        config: LayerConfig,
        from: &mut Decoder<'_>,
    ) -> Result<Self, DecodeError> {
        Ok(match config {
            LayerConfig::Page(config) => Self::Page(PageMap::decode(geometry, config, from)?),
            LayerConfig::Hybrid(config) => Self::Hybrid(Hybrid::decode(geometry, config, from)?),
            LayerConfig::Ranges(config) => Self::Ranges(Ranges::decode(geometry, config, from)?),
            LayerConfig::Zoned(config) => Self::Zoned(Zoned::decode(geometry, config, from)?),
        })
    }

    /// Whether `nand` holds what the layer thinks: so many rows in blocks that may be written
    /// further, and in each place that the map points to what was programmed there. `units` are
    /// the logical units, translation pages among them. Looks at every block and unit.
    #[must_use]
    pub fn stands_on(&self, nand: &Nand, units: u32) -> bool {
        let blocks = (0..nand.geometry().blocks()).map(BlockId);
        let expected = |block| match nand.is_bad(block) {
            true => None,
            false => self.rows_expected(block),
        };
        // Where rows may be left out, those of the last members may be.
        let fits = |rows, there| rows == there || nand.has_gaps() && there < rows;
        let agrees =
            |block| expected(block).is_none_or(|rows| fits(rows, nand.rows_programmed(block)));
        // Of a map by unit on flash that does not fail, its columns have told.
        let told = matches!(self, Self::Page(_)) && !nand.has_faults();
        let holds = |lpn| self.lookup(lpn).is_none_or(|at| nand.holds(nand.layout().row_of(at)));
        blocks.into_iter().all(agrees) && (told || (0..units).all(holds))
    }

    /// Rows that the flash has to hold in `block`, if it is not bad; `None` where that is not
    /// known.
    pub(crate) fn rows_expected(&self, block: BlockId) -> Option<u32> {
        match self {
            Self::Page(map) => Some(map.rows_written(block)),
            Self::Hybrid(map) => map.rows_expected(block),
            Self::Ranges(map) => map.rows_expected(block),
            Self::Zoned(map) => map.rows_expected(block),
        }
    }
}
