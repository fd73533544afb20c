//! The shape of the flash and the addresses in it.
//!
//! A *row* is what one program command writes on a die: one page, or, with multi-plane
//! operation, the page of the same number on every plane. A *block* here is what one
//! erase command clears: one block, or the blocks of the same number on every plane.
//! A *unit* is the mapping unit of the translation layer: rows consist of whole units.
//!
//! Addresses are dense: die-major, then block, row, unit, so that every one is an index
//! into a column. A `u32` of 4 KiB units reaches 8 TiB of raw flash (one bit is left to
//! the translation layer); larger drives take a larger mapping unit.

use prism_base::Bytes;

/// Number of a die (a LUN), channel-major: die `d` sits on channel `d % channels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DieId(pub u32);

/// Number of an erasable block (over all planes it is ganged from) in the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// Number of a row in the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

/// Physical unit number: a mapping unit in the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pun(pub u32);

/// The shape of the flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels (buses).
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Planes that one command works on: 1, or all of them.
    pub planes_ganged: u32,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block on one plane.
    pub pages_per_block: u32,
    /// Size of a page on one plane.
    pub page: Bytes,
    /// Mapping unit: divides the page.
    pub unit: Bytes,
}

/// Why a geometry makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A count is zero or too large.
    #[error("{field} is {value}; it must be between 1 and {max}")]
    Count {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The largest allowed.
        max: u64,
    },
    /// The mapping unit does not divide the page.
    #[error("mapping_unit {unit} does not divide page {page}; choose a divisor of the page")]
    UnitDoesNotDividePage {
        /// The mapping unit.
        unit: Bytes,
        /// The page.
        page: Bytes,
    },
    /// Ganged planes are neither one nor all.
    #[error("planes_ganged is {ganged}; a command works on 1 plane or on all {planes}")]
    Ganged {
        /// The value.
        ganged: u32,
        /// Planes of a die.
        planes: u32,
    },
    /// More units than addresses.
    #[error(
        "the flash has {units} mapping units, more than {max}; choose a larger mapping_unit \
         or less flash"
    )]
    TooLarge {
        /// Units of the device.
        units: u64,
        /// The most that can be addressed.
        max: u64,
    },
}

impl Geometry {
    /// Units that can be addressed: one bit of the 32 belongs to the translation layer,
    /// and one value to "nothing".
    pub const UNITS_MAX: u64 = (1 << 31) - 2;

    /// Checks that the numbers fit together.
    ///
    /// # Errors
    /// [`GeometryError`] names the field and the allowed range.
    pub fn check(&self) -> Result<(), GeometryError> {
        let counts = [
            ("channels", self.channels, 1 << 10),
            ("dies_per_channel", self.dies_per_channel, 1 << 10),
            ("planes", self.planes, 64),
            ("blocks_per_plane", self.blocks_per_plane, 1 << 24),
            ("pages_per_block", self.pages_per_block, u32::from(u16::MAX)),
        ];
        for (field, value, max) in counts {
            if value == 0 || value > max {
                let (value, max) = (u64::from(value), u64::from(max));
                return Err(GeometryError::Count { field, value, max });
            }
        }
        let sizes = [("page", self.page), ("mapping_unit", self.unit)];
        for (field, size) in sizes {
            if size.0 < 512 || size.0 > 1 << 24 {
                return Err(GeometryError::Count { field, value: size.0, max: 1 << 24 });
            }
        }
        if !self.page.0.is_multiple_of(self.unit.0) {
            return Err(GeometryError::UnitDoesNotDividePage { unit: self.unit, page: self.page });
        }
        if self.planes_ganged != 1 && self.planes_ganged != self.planes {
            return Err(GeometryError::Ganged { ganged: self.planes_ganged, planes: self.planes });
        }
        let dies = u128::from(self.channels) * u128::from(self.dies_per_channel);
        let pages_per_die = u128::from(self.planes)
            * u128::from(self.blocks_per_plane)
            * u128::from(self.pages_per_block);
        let units = dies * pages_per_die * u128::from(self.page.0 / self.unit.0);
        if units > u128::from(Self::UNITS_MAX) {
            let units = u64::try_from(units).unwrap_or(u64::MAX);
            return Err(GeometryError::TooLarge { units, max: Self::UNITS_MAX });
        }
        Ok(())
    }

    /// Dies of the device.
    #[must_use]
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Erasable blocks of a die.
    #[must_use]
    pub fn blocks_per_die(&self) -> u32 {
        self.blocks_per_plane * (self.planes / self.planes_ganged)
    }

    /// Erasable blocks of the device.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.dies() * self.blocks_per_die()
    }

    /// Rows of a block.
    #[must_use]
    pub fn rows_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Units of a page on one plane.
    #[must_use]
    pub fn units_per_page(&self) -> u32 {
        (self.page.0 / self.unit.0) as u32
    }

    /// Units of a row.
    #[must_use]
    pub fn units_per_row(&self) -> u32 {
        self.units_per_page() * self.planes_ganged
    }

    /// Units of a block.
    #[must_use]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_row() * self.rows_per_block()
    }

    /// Units of the device.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.units_per_block() * self.blocks()
    }

    /// Raw size of the flash.
    #[must_use]
    pub fn raw(&self) -> Bytes {
        Bytes(u64::from(self.units()) * self.unit.0)
    }

    /// The channel a die sits on.
    #[must_use]
    pub fn channel_of(&self, die: DieId) -> u32 {
        die.0 % self.channels
    }

    /// The die a block sits on.
    #[must_use]
    pub fn die_of(&self, block: BlockId) -> DieId {
        DieId(block.0 / self.blocks_per_die())
    }

    /// The block a row is part of.
    #[must_use]
    pub fn block_of(&self, row: RowId) -> BlockId {
        BlockId(row.0 / self.rows_per_block())
    }

    /// The row a unit is part of.
    #[must_use]
    pub fn row_of(&self, unit: Pun) -> RowId {
        RowId(unit.0 / self.units_per_row())
    }

    /// The first row of a block.
    #[must_use]
    pub fn first_row(&self, block: BlockId) -> RowId {
        RowId(block.0 * self.rows_per_block())
    }

    /// The first unit of a row.
    #[must_use]
    pub fn first_unit(&self, row: RowId) -> Pun {
        Pun(row.0 * self.units_per_row())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn tiny() -> Geometry {
        Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes: 2,
            planes_ganged: 2,
            blocks_per_plane: 8,
            pages_per_block: 4,
            page: Bytes(8192),
            unit: Bytes(4096),
        }
    }

    #[test]
    fn addresses_are_dense() {
        let g = tiny();
        g.check().unwrap();
        assert_eq!((g.units_per_row(), g.units_per_block(), g.units()), (4, 16, 512));
        assert_eq!(g.raw(), Bytes(2 << 20));
        let last = Pun(g.units() - 1);
        assert_eq!(g.block_of(g.row_of(last)), BlockId(g.blocks() - 1));
        assert_eq!(g.die_of(BlockId(g.blocks() - 1)), DieId(3));
    }

    #[test]
    fn nonsense_is_refused() {
        let bad = |change: fn(&mut Geometry)| {
            let mut g = tiny();
            change(&mut g);
            g.check().unwrap_err().to_string()
        };
        assert!(bad(|g| g.channels = 0).contains("channels is 0"));
        assert!(bad(|g| g.unit = Bytes(3000)).contains("does not divide"));
        assert!(bad(|g| g.planes_ganged = 3).contains("planes_ganged is 3"));
        assert!(
            bad(|g| (g.blocks_per_plane, g.pages_per_block) = (1 << 20, 4096))
                .contains("more than 2147483646")
        );
    }
}
