//! Address arithmetic of a geometry, with the divisors computed once.

use prism_base::Divisor;

use crate::geometry::{BlockId, DieGroupId, DieId, Geometry, ProgramUnitId, Pun};

/// How addresses nest in a checked [`Geometry`]. Each method costs a multiplication or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    units_per_program_unit: Divisor,
    units_per_level: Divisor,
    /// Units per page, at least one.
    units_per_page: Divisor,
    /// Pages per unit, at least one.
    pages_per_unit: u32,
    units_per_block: Divisor,
    program_units_per_block: Divisor,
    blocks_per_die_group: Divisor,
    program_units_per_die_group: Divisor,
    dies_per_superblock: Divisor,
    channels: Divisor,
    parity: bool,
    /// SLC blocks per die group, and the program units of each.
    slc_blocks: u32,
    slc_program_units: u32,
}

impl Layout {
    /// The layout of `geometry`.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            units_per_program_unit: Divisor::new(geometry.units_per_program_unit()),
            units_per_level: Divisor::new(geometry.units_per_level()),
            units_per_page: Divisor::new((geometry.page.0 / geometry.unit.0).max(1) as u32),
            pages_per_unit: geometry.unit.0.div_ceil(geometry.page.0) as u32,
            units_per_block: Divisor::new(geometry.units_per_block()),
            program_units_per_block: Divisor::new(geometry.program_units_per_block()),
            blocks_per_die_group: Divisor::new(geometry.blocks_per_die_group()),
            program_units_per_die_group: Divisor::new(
                geometry.blocks_per_die_group() * geometry.program_units_per_block(),
            ),
            dies_per_superblock: Divisor::new(geometry.dies_per_superblock),
            channels: Divisor::new(geometry.channels),
            parity: geometry.parity,
            slc_blocks: geometry.slc_blocks_per_die_group(),
            slc_program_units: geometry.slc_program_units_per_block(),
        }
    }

    /// Units per program unit.
    #[must_use]
    #[inline]
    pub fn units_per_program_unit(&self) -> u32 {
        self.units_per_program_unit.get()
    }

    /// Unit addresses of a block.
    #[must_use]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block.get()
    }

    /// SLC blocks per die group: its first ones.
    #[must_use]
    #[inline]
    pub fn slc_blocks(&self) -> u32 {
        self.slc_blocks
    }

    /// Whether `block` is one of the SLC blocks.
    #[must_use]
    #[inline]
    pub fn is_slc(&self, block: BlockId) -> bool {
        self.slc_blocks > 0 && self.blocks_per_die_group.split(block.0).1 < self.slc_blocks
    }

    /// Program units of `block` that can be programmed, parity included.
    #[must_use]
    #[inline]
    pub fn program_units_of(&self, block: BlockId) -> u32 {
        if self.is_slc(block) { self.slc_program_units } else { self.program_units_per_block.get() }
    }

    /// Program unit addresses of a block, parity included. All of them can be programmed unless the
    /// block is SLC ([`Layout::program_units_of`]).
    #[must_use]
    pub fn program_units_per_block(&self) -> u32 {
        self.program_units_per_block.get()
    }

    /// Blocks per die group.
    #[must_use]
    pub fn blocks_per_die_group(&self) -> u32 {
        self.blocks_per_die_group.get()
    }

    /// Dies per die group.
    #[must_use]
    #[inline]
    pub fn dies_per_die_group(&self) -> u32 {
        self.dies_per_superblock.get()
    }

    /// The die group a block belongs to.
    #[must_use]
    #[inline]
    pub fn die_group_of(&self, block: BlockId) -> DieGroupId {
        DieGroupId(self.blocks_per_die_group.divide(block.0))
    }

    /// The die group of a block and the block's number in it.
    #[must_use]
    pub fn split_block(&self, block: BlockId) -> (DieGroupId, usize) {
        let (die_group, place) = self.blocks_per_die_group.split(block.0);
        (DieGroupId(die_group), place as usize)
    }

    /// The block a program unit is part of.
    #[must_use]
    #[inline]
    pub fn block_of(&self, program_unit: ProgramUnitId) -> BlockId {
        BlockId(self.program_units_per_block.divide(program_unit.0))
    }

    /// The block a unit is part of.
    #[must_use]
    #[inline]
    pub fn block_of_unit(&self, unit: Pun) -> BlockId {
        BlockId(self.units_per_block.divide(unit.0))
    }

    /// The program unit a unit is part of.
    #[must_use]
    #[inline]
    pub fn program_unit_of(&self, unit: Pun) -> ProgramUnitId {
        ProgramUnitId(self.units_per_program_unit.divide(unit.0))
    }

    /// The first program unit of a block.
    #[must_use]
    #[inline]
    pub fn first_program_unit(&self, block: BlockId) -> ProgramUnitId {
        ProgramUnitId(block.0 * self.program_units_per_block())
    }

    /// The first unit of a program unit.
    #[must_use]
    #[inline]
    pub fn first_unit(&self, program_unit: ProgramUnitId) -> Pun {
        Pun(program_unit.0 * self.units_per_program_unit())
    }

    /// The die of a program unit, and the number of the program unit within its block on that die.
    #[must_use]
    #[inline]
    pub fn place_of(&self, program_unit: ProgramUnitId) -> (DieId, u32) {
        let (block, in_block) = self.program_units_per_block.split(program_unit.0);
        let die_group = self.blocks_per_die_group.divide(block);
        let (on_die, member) = self.dies_per_superblock.split(in_block);
        (DieId(die_group * self.dies_per_die_group() + member), on_die)
    }

    /// The die of a program unit.
    #[must_use]
    #[inline]
    pub fn die_of(&self, program_unit: ProgramUnitId) -> DieId {
        if self.dies_per_die_group() == 1 {
            return DieId(self.program_units_per_die_group.divide(program_unit.0));
        }
        self.place_of(program_unit).0
    }

    /// The dies of a die group.
    pub fn dies_of(&self, die_group: DieGroupId) -> impl Iterator<Item = DieId> + use<> {
        let first = die_group.0 * self.dies_per_die_group();
        (first..first + self.dies_per_die_group()).map(DieId)
    }

    /// The channel of a die.
    #[must_use]
    #[inline]
    pub fn channel_of(&self, die: DieId) -> u32 {
        self.channels.split(die.0).1
    }

    /// Whether a program unit holds parity: the last of each stripe, where there is parity.
    #[must_use]
    pub fn is_parity(&self, program_unit: ProgramUnitId) -> bool {
        self.parity
            && self.dies_per_superblock.split(program_unit.0).1 + 1 == self.dies_per_die_group()
    }

    /// The level of its program unit that holds a unit, and the pages that hold it, as a bitmap of
    /// planes.
    #[must_use]
    #[inline]
    pub fn pages_of(&self, unit: Pun) -> (u32, u64) {
        let (_, level, pages) = self.program_unit_and_pages_of(unit);
        (level, pages)
    }

    /// The program unit of a unit, and the level and pages as from [`Layout::pages_of`].
    #[must_use]
    #[inline]
    pub fn program_unit_and_pages_of(&self, unit: Pun) -> (ProgramUnitId, u32, u64) {
        let (program_unit, in_program_unit) = self.units_per_program_unit.split(unit.0);
        let (level, in_level) = self.units_per_level.split(in_program_unit);
        let pages = if self.pages_per_unit > 1 {
            (u64::MAX >> (64 - self.pages_per_unit)) << (in_level * self.pages_per_unit)
        } else {
            1 << self.units_per_page.divide(in_level)
        };
        (ProgramUnitId(program_unit), level, pages)
    }

    /// Levels of a program unit that its first `units` units occupy; all levels for 0, which is how
    /// a program unit of parity is described.
    #[must_use]
    pub fn levels_for(&self, units: u32) -> u32 {
        let units = if units == 0 { self.units_per_program_unit() } else { units };
        units.div_ceil(self.units_per_level.get())
    }

    /// Pages that the first `units` units of a program unit occupy.
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
        assert_eq!(
            (geometry.units_per_program_unit(), geometry.program_units_per_block()),
            (12, 12)
        );
        assert_eq!((geometry.die_groups(), geometry.blocks()), (2, 16));
        assert_eq!(geometry.raw(), Bytes(2 * 3 * 2 * 8 * 12 * 8192));
        assert_eq!(geometry.data_units_per_block() * 3, geometry.units_per_block() * 2);
        let mut program_units_on_die = [0; 6];
        for program_unit in 0..geometry.blocks() * geometry.program_units_per_block() {
            let program_unit = ProgramUnitId(program_unit);
            let (die, on_die) = layout.place_of(program_unit);
            let die_group = layout.die_group_of(layout.block_of(program_unit));
            assert!(layout.dies_of(die_group).any(|d| d == die));
            assert_eq!(
                program_units_on_die[die.0 as usize] % geometry.program_units_per_die(),
                on_die
            );
            program_units_on_die[die.0 as usize] += 1;
            assert_eq!(layout.is_parity(program_unit), die.0 % 3 == 2);
            let first = layout.first_unit(program_unit);
            assert_eq!(layout.program_unit_of(Pun(first.0 + 11)), program_unit);
            assert_eq!(layout.block_of_unit(first), layout.block_of(program_unit));
        }
        assert_eq!(program_units_on_die, [8 * 4; 6]);
    }

    #[test]
    fn units_are_on_levels_and_planes() {
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
