//! Addresses of one geometry, with everything that is asked often worked out once.

use prism_base::Divisor;

use crate::geometry::{BlockId, DieId, Geometry, LaneId, Pun, RowId};

/// How addresses nest in a checked [`Geometry`]. All methods are a multiplication or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    units_per_row: Divisor,
    units_per_level: Divisor,
    /// Units of a page, at least one.
    units_per_page: Divisor,
    /// Pages of a unit, at least one.
    pages_per_unit: u32,
    units_per_block: Divisor,
    rows_per_block: Divisor,
    blocks_per_lane: Divisor,
    rows_per_lane: Divisor,
    dies_per_superblock: Divisor,
    channels: Divisor,
    parity: bool,
    /// Blocks of a lane with one bit a cell, and the rows of such a block.
    slc_blocks: u32,
    slc_rows: u32,
}

impl Layout {
    /// The addresses of `geometry`.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            units_per_row: Divisor::new(geometry.units_per_row()),
            units_per_level: Divisor::new(geometry.units_per_level()),
            units_per_page: Divisor::new((geometry.page.0 / geometry.unit.0).max(1) as u32),
            pages_per_unit: geometry.unit.0.div_ceil(geometry.page.0) as u32,
            units_per_block: Divisor::new(geometry.units_per_block()),
            rows_per_block: Divisor::new(geometry.rows_per_block()),
            blocks_per_lane: Divisor::new(geometry.blocks_per_lane()),
            rows_per_lane: Divisor::new(geometry.blocks_per_lane() * geometry.rows_per_block()),
            dies_per_superblock: Divisor::new(geometry.dies_per_superblock),
            channels: Divisor::new(geometry.channels),
            parity: geometry.parity,
            slc_blocks: geometry.slc_blocks_per_lane(),
            slc_rows: geometry.slc_rows_per_block(),
        }
    }

    /// Units of a row.
    #[must_use]
    #[inline]
    pub fn units_per_row(&self) -> u32 {
        self.units_per_row.get()
    }

    /// Addresses of units in a block.
    #[must_use]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block.get()
    }

    /// Blocks of each lane with one bit a cell: its first ones.
    #[must_use]
    #[inline]
    pub fn slc_blocks(&self) -> u32 {
        self.slc_blocks
    }

    /// Whether the cells of `block` hold one bit each, while others hold more.
    #[must_use]
    #[inline]
    pub fn is_slc(&self, block: BlockId) -> bool {
        self.slc_blocks > 0 && self.blocks_per_lane.split(block.0).1 < self.slc_blocks
    }

    /// Rows of `block` that can be programmed, parity included.
    #[must_use]
    #[inline]
    pub fn rows_of(&self, block: BlockId) -> u32 {
        if self.is_slc(block) { self.slc_rows } else { self.rows_per_block.get() }
    }

    /// Addresses of rows of a block, parity included; all of them can be programmed unless
    /// the block has one bit a cell ([`Layout::rows_of`]).
    #[must_use]
    pub fn rows_per_block(&self) -> u32 {
        self.rows_per_block.get()
    }

    /// Blocks of a lane.
    #[must_use]
    pub fn blocks_per_lane(&self) -> u32 {
        self.blocks_per_lane.get()
    }

    /// Dies of a lane.
    #[must_use]
    #[inline]
    pub fn dies_per_lane(&self) -> u32 {
        self.dies_per_superblock.get()
    }

    /// The lane a block belongs to.
    #[must_use]
    #[inline]
    pub fn lane_of(&self, block: BlockId) -> LaneId {
        LaneId(self.blocks_per_lane.divide(block.0))
    }

    /// The lane of a block and the block's place in it.
    #[must_use]
    pub fn split_block(&self, block: BlockId) -> (LaneId, usize) {
        let (lane, place) = self.blocks_per_lane.split(block.0);
        (LaneId(lane), place as usize)
    }

    /// The block a row is part of.
    #[must_use]
    #[inline]
    pub fn block_of(&self, row: RowId) -> BlockId {
        BlockId(self.rows_per_block.divide(row.0))
    }

    /// The block a unit is part of.
    #[must_use]
    #[inline]
    pub fn block_of_unit(&self, unit: Pun) -> BlockId {
        BlockId(self.units_per_block.divide(unit.0))
    }

    /// The row a unit is part of.
    #[must_use]
    #[inline]
    pub fn row_of(&self, unit: Pun) -> RowId {
        RowId(self.units_per_row.divide(unit.0))
    }

    /// The first row of a block.
    #[must_use]
    #[inline]
    pub fn first_row(&self, block: BlockId) -> RowId {
        RowId(block.0 * self.rows_per_block())
    }

    /// The first unit of a row.
    #[must_use]
    #[inline]
    pub fn first_unit(&self, row: RowId) -> Pun {
        Pun(row.0 * self.units_per_row())
    }

    /// The die a row stands on, and the row's number in its block on that die.
    #[must_use]
    #[inline]
    pub fn place_of(&self, row: RowId) -> (DieId, u32) {
        let (block, in_block) = self.rows_per_block.split(row.0);
        let lane = self.blocks_per_lane.divide(block);
        let (on_die, member) = self.dies_per_superblock.split(in_block);
        (DieId(lane * self.dies_per_lane() + member), on_die)
    }

    /// The die a row stands on.
    #[must_use]
    #[inline]
    pub fn die_of(&self, row: RowId) -> DieId {
        if self.dies_per_lane() == 1 {
            return DieId(self.rows_per_lane.divide(row.0));
        }
        self.place_of(row).0
    }

    /// The dies of a lane.
    pub fn dies_of(&self, lane: LaneId) -> impl Iterator<Item = DieId> + use<> {
        let first = lane.0 * self.dies_per_lane();
        (first..first + self.dies_per_lane()).map(DieId)
    }

    /// The channel a die sits on.
    #[must_use]
    #[inline]
    pub fn channel_of(&self, die: DieId) -> u32 {
        self.channels.split(die.0).1
    }

    /// Whether a row holds parity: the last of each stripe, where there is parity.
    #[must_use]
    pub fn is_parity(&self, row: RowId) -> bool {
        self.parity && self.dies_per_superblock.split(row.0).1 + 1 == self.dies_per_lane()
    }

    /// The level of its row that a unit stands in, and the pages (one a plane) that hold
    /// it, as bits.
    #[must_use]
    #[inline]
    pub fn pages_of(&self, unit: Pun) -> (u32, u64) {
        let (_, level, pages) = self.row_and_pages_of(unit);
        (level, pages)
    }

    /// The row a unit is part of, and the same of it.
    #[must_use]
    #[inline]
    pub fn row_and_pages_of(&self, unit: Pun) -> (RowId, u32, u64) {
        let (row, in_row) = self.units_per_row.split(unit.0);
        let (level, in_level) = self.units_per_level.split(in_row);
        let pages = if self.pages_per_unit > 1 {
            (u64::MAX >> (64 - self.pages_per_unit)) << (in_level * self.pages_per_unit)
        } else {
            1 << self.units_per_page.divide(in_level)
        };
        (RowId(row), level, pages)
    }

    /// Levels of a row that its first `units` units stand on; all of them for none, which
    /// is how a row of parity looks.
    #[must_use]
    pub fn levels_for(&self, units: u32) -> u32 {
        let units = if units == 0 { self.units_per_row() } else { units };
        units.div_ceil(self.units_per_level.get())
    }

    /// Pages that `units` units from the beginning of a row on take.
    #[must_use]
    pub fn pages_for(&self, units: u32) -> u32 {
        if self.pages_per_unit > 1 {
            units * self.pages_per_unit
        } else {
            units.div_ceil(self.units_per_page.get())
        }
    }

    /// Units that share a page; 1 if a unit is a page or more.
    #[must_use]
    pub fn units_per_page(&self) -> u32 {
        self.units_per_page.get()
    }

    /// Pages of a unit; 1 if a page is a unit or more.
    #[must_use]
    #[inline]
    pub fn pages_per_unit(&self) -> u32 {
        self.pages_per_unit
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;

    use super::*;

    fn tlc() -> Geometry {
        Geometry {
            channels: 2,
            dies_per_channel: 3,
            planes: 2,
            planes_ganged: 2,
            blocks_per_plane: 8,
            pages_per_block: 12,
            pages_per_program: 3,
            dies_per_superblock: 3,
            parity: true,
            page: Bytes(8192),
            unit: Bytes(4096),
            slc: None,
        }
    }

    #[test]
    fn addresses_nest_and_are_dense() {
        let geometry = tlc();
        geometry.check().unwrap();
        let layout = Layout::new(&geometry);
        assert_eq!((geometry.units_per_row(), geometry.rows_per_block()), (12, 12));
        assert_eq!((geometry.lanes(), geometry.blocks()), (2, 16));
        assert_eq!(geometry.raw(), Bytes(2 * 3 * 2 * 8 * 12 * 8192));
        assert_eq!(geometry.data_units_per_block() * 3, geometry.units_per_block() * 2);
        let mut rows_on_die = [0; 6];
        for row in 0..geometry.blocks() * geometry.rows_per_block() {
            let row = RowId(row);
            let (die, on_die) = layout.place_of(row);
            let lane = layout.lane_of(layout.block_of(row));
            assert!(layout.dies_of(lane).any(|d| d == die));
            assert_eq!(rows_on_die[die.0 as usize] % geometry.rows_per_die(), on_die);
            rows_on_die[die.0 as usize] += 1;
            assert_eq!(layout.is_parity(row), die.0 % 3 == 2);
            let first = layout.first_unit(row);
            assert_eq!(layout.row_of(Pun(first.0 + 11)), row);
            assert_eq!(layout.block_of_unit(first), layout.block_of(row));
        }
        assert_eq!(rows_on_die, [8 * 4; 6]);
    }

    #[test]
    fn units_lie_on_levels_and_planes() {
        let layout = Layout::new(&tlc());
        let of = |unit: u32| layout.pages_of(Pun(12 + unit));
        assert_eq!([of(0), of(1), of(2), of(3)], [(0, 1), (0, 1), (0, 2), (0, 2)]);
        assert_eq!((of(4), of(11)), ((1, 1), (2, 2)));
        assert_eq!([1, 2, 3].map(|units| layout.pages_for(units)), [1, 1, 2]);
        let large = Layout::new(&Geometry { unit: Bytes(16384), ..tlc() });
        assert_eq!(large.pages_of(Pun(4)), (1, 3));
        assert_eq!((large.pages_for(2), large.pages_per_unit()), (4, 2));
    }
}
