//! The geometry of the flash and its addresses.
//!
//! A *level* is what one read command fetches from a die: one page, or, with multi-plane
//! operations, the page of the same number on every plane. A *program unit* is what one program
//! command writes: one level, or, with one-shot programming, all levels (lower, middle and upper
//! page) of a wordline. A *block* is what is erased together: a block of one die (of one plane, or
//! of the same number on every plane), or, with superblocks, one block of each die of a *die
//! group*. The program units of a superblock are striped over its dies: program unit r is on die r
//! mod k of the die group. A *unit* is the mapping unit of the FTL; a level consists of whole
//! units.
//!
//! Addresses are dense and nest as die group, block, program unit, unit, so that each is an index
//! into an array. A `u32` of 4 KiB units reaches 8 TiB of raw flash (the FTL uses one bit); larger
//! drives need a larger mapping unit.

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::Bytes;

/// Number of a die (a LUN): die `d` is on channel `d % channels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DieId(pub u32);

/// Number of a die group: the dies that share superblocks, or a single die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DieGroupId(pub u32);

/// Number of a block in the whole device. Ganged planes and the dies of a superblock share one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct BlockId(pub u32);

/// Number of a program unit in the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramUnitId(pub u32);

/// Physical unit number: a mapping unit in the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pun(pub u32);

/// SLC blocks on flash of which the other blocks have more bits per cell.
///
/// They are the first blocks of every die group. They use the same addresses: a program unit of an
/// SLC block has as many units as any other but occupies as many wordlines as a program unit has
/// levels, and each of them is programmed by itself. The block therefore has fewer program units,
/// and its last addresses are unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slc {
    /// SLC blocks per die group.
    pub blocks: u32,
    /// Bits per cell of the other blocks.
    pub bits: u32,
}

/// The geometry of the flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels (buses).
    pub channels: u32,
    /// Dies per channel.
    pub dies_per_channel: u32,
    /// Planes per die.
    pub planes: u32,
    /// Planes that one command works on: 1, or all of them.
    pub planes_ganged: u32,
    /// Blocks per plane.
    pub blocks_per_plane: u32,
    /// Pages per block of one plane.
    pub pages_per_block: u32,
    /// Pages per plane that one program command writes: 1, or all of a wordline.
    pub pages_per_program: u32,
    /// Dies whose blocks of the same number make a superblock; 1 for none.
    pub dies_per_superblock: u32,
    /// Whether the last program unit of every stripe over the dies of a superblock is parity.
    pub parity: bool,
    /// Size of a page on one plane.
    pub page: Bytes,
    /// Mapping unit: divides a level (a page times the ganged planes).
    pub unit: Bytes,
    /// SLC blocks, if there are any.
    pub slc: Option<Slc>,
}

/// Why a geometry is invalid.
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
    /// The mapping unit neither divides the page nor consists of whole pages of ganged planes.
    #[error(
        "mapping_unit {unit} does not fit page {page}: choose a divisor of the page, or a \
         multiple of it that divides the {ganged} pages written together"
    )]
    UnitDoesNotFitPage {
        /// The mapping unit.
        unit: Bytes,
        /// The page.
        page: Bytes,
        /// Planes that one command works on.
        ganged: u32,
    },
    /// One count must divide another.
    #[error("{field} is {value}; it must divide {of}, which is {total}")]
    DoesNotDivide {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// The count that it has to divide.
        of: &'static str,
        /// The value of that count.
        total: u32,
    },
    /// Parity needs at least two dies.
    #[error("superblock_parity needs superblocks of at least two dies (superblock_dies)")]
    ParityAlone,
    /// The planes ganged are neither one nor all.
    #[error("planes_ganged is {ganged}; a command works on 1 plane or on all {planes}")]
    Ganged {
        /// The value.
        ganged: u32,
        /// Planes of a die.
        planes: u32,
    },
    /// No block or every block is SLC, or an SLC block has no program unit.
    #[error(
        "{blocks} SLC blocks do not fit: of the {of} blocks of a die group, at least one and not \
         all must be SLC, and a block needs at least {bits} program units per die"
    )]
    Slc {
        /// SLC blocks per die group.
        blocks: u32,
        /// Blocks per die group.
        of: u32,
        /// Bits per cell of the other blocks.
        bits: u32,
    },
    /// The flash has more units than addresses.
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
    /// One die with one plane and one block of one page of 4 KiB, which is also the mapping unit:
    /// other geometries name what differs from it.
    pub const SMALLEST: Self = Self {
        channels: 1,
        dies_per_channel: 1,
        planes: 1,
        planes_ganged: 1,
        blocks_per_plane: 1,
        pages_per_block: 1,
        pages_per_program: 1,
        dies_per_superblock: 1,
        parity: false,
        page: Bytes(4096),
        unit: Bytes(4096),
        slc: None,
    };

    /// Units that can be addressed: the FTL uses one of the 32 bits, and one value for "none".
    pub const UNITS_MAX: u64 = (1 << 31) - 2;

    /// Checks that the values are in range and consistent.
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
        self.check_unit()?;
        let dies = self.channels.saturating_mul(self.dies_per_channel);
        let divides = [
            ("pages_per_program", self.pages_per_program, "pages_per_block", self.pages_per_block),
            ("superblock_dies", self.dies_per_superblock, "the number of dies", dies),
        ];
        for (field, value, of, total) in divides {
            if value == 0 || !total.is_multiple_of(value) {
                return Err(GeometryError::DoesNotDivide { field, value, of, total });
            }
        }
        if self.parity && self.dies_per_superblock < 2 {
            return Err(GeometryError::ParityAlone);
        }
        if self.pages_per_program > Self::LEVELS_MAX {
            let (field, value) = ("pages_per_program", u64::from(self.pages_per_program));
            let max = u64::from(Self::LEVELS_MAX);
            return Err(GeometryError::Count { field, value, max });
        }
        if self.planes_ganged != 1 && self.planes_ganged != self.planes {
            return Err(GeometryError::Ganged { ganged: self.planes_ganged, planes: self.planes });
        }
        if let Some(Slc { blocks, bits }) = self.slc {
            let of = self.blocks_per_die_group();
            if blocks == 0 || blocks >= of || bits < 2 || bits > self.program_units_per_die() {
                return Err(GeometryError::Slc { blocks, of, bits });
            }
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

    fn check_unit(&self) -> Result<(), GeometryError> {
        let level = self.page.0 * u64::from(self.planes_ganged.max(1));
        let (unit, page, ganged) = (self.unit, self.page, self.planes_ganged);
        let fits = page.0.is_multiple_of(unit.0)
            || unit.0.is_multiple_of(page.0) && level.is_multiple_of(unit.0);
        if fits { Ok(()) } else { Err(GeometryError::UnitDoesNotFitPage { unit, page, ganged }) }
    }

    /// The most pages per plane that one command programs.
    pub const LEVELS_MAX: u32 = 8;

    /// Dies of the device.
    #[must_use]
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Die groups of the device.
    #[must_use]
    pub fn die_groups(&self) -> u32 {
        self.dies() / self.dies_per_superblock
    }

    /// Blocks of a die group. Each of its dies has the same number.
    #[must_use]
    pub fn blocks_per_die_group(&self) -> u32 {
        self.blocks_per_plane * (self.planes / self.planes_ganged)
    }

    /// Blocks of the device; a superblock counts once.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.die_groups() * self.blocks_per_die_group()
    }

    /// Program units of a block on one of its dies.
    #[must_use]
    pub fn program_units_per_die(&self) -> u32 {
        self.pages_per_block / self.pages_per_program
    }

    /// Program units of a block, parity included.
    #[must_use]
    pub fn program_units_per_block(&self) -> u32 {
        self.program_units_per_die() * self.dies_per_superblock
    }

    /// Program units of a block that hold data.
    #[must_use]
    pub fn data_program_units_per_block(&self) -> u32 {
        self.program_units_per_die() * (self.dies_per_superblock - u32::from(self.parity))
    }

    /// Units per level.
    #[must_use]
    pub fn units_per_level(&self) -> u32 {
        (self.page.0 * u64::from(self.planes_ganged) / self.unit.0) as u32
    }

    /// Units per program unit.
    #[must_use]
    pub fn units_per_program_unit(&self) -> u32 {
        self.units_per_level() * self.pages_per_program
    }

    /// Unit addresses of a block, including those of parity.
    #[must_use]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_program_unit() * self.program_units_per_block()
    }

    /// Units of a block that hold data.
    #[must_use]
    pub fn data_units_per_block(&self) -> u32 {
        self.units_per_program_unit() * self.data_program_units_per_block()
    }

    /// SLC blocks per die group.
    #[must_use]
    pub fn slc_blocks_per_die_group(&self) -> u32 {
        self.slc.map_or(0, |slc| slc.blocks)
    }

    /// Blocks per die group that are not SLC.
    #[must_use]
    pub fn main_blocks_per_die_group(&self) -> u32 {
        self.blocks_per_die_group().saturating_sub(self.slc_blocks_per_die_group())
    }

    /// Program units of an SLC block, parity included; 0 if there are none.
    #[must_use]
    pub fn slc_program_units_per_block(&self) -> u32 {
        self.slc.map_or(0, |slc| self.program_units_per_die() / slc.bits * self.dies_per_superblock)
    }

    /// Units of an SLC block that hold data; 0 if there are none.
    #[must_use]
    pub fn slc_data_units_per_block(&self) -> u32 {
        let data = self.dies_per_superblock - u32::from(self.parity);
        self.slc_program_units_per_block() / self.dies_per_superblock
            * data
            * self.units_per_program_unit()
    }

    /// Unit addresses of the device, including those of parity.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.units_per_block() * self.blocks()
    }

    /// Pages that one program command writes, over all planes and levels.
    #[must_use]
    pub fn pages_per_program_unit(&self) -> u32 {
        self.planes_ganged * self.pages_per_program
    }

    /// Bytes that one program command writes.
    #[must_use]
    pub fn program_unit_bytes(&self) -> Bytes {
        Bytes(self.page.0 * u64::from(self.pages_per_program_unit()))
    }

    /// Raw capacity of the flash.
    #[must_use]
    pub fn raw(&self) -> Bytes {
        let less = self.units_per_block()
            - self.slc_program_units_per_block() * self.units_per_program_unit();
        let fewer =
            u64::from(self.die_groups() * self.slc_blocks_per_die_group()) * u64::from(less);
        Bytes((u64::from(self.units()) - fewer) * self.unit.0)
    }

    /// Raw capacity of the SLC blocks.
    #[must_use]
    pub fn slc_raw(&self) -> Bytes {
        let program_units = u64::from(self.die_groups() * self.slc_blocks_per_die_group())
            * u64::from(self.slc_program_units_per_block());
        Bytes(program_units * self.program_unit_bytes().0)
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
            ..Geometry::SMALLEST
        }
    }

    #[test]
    fn invalid_geometries_are_refused() {
        let bad = |change: fn(&mut Geometry)| {
            let mut g = tiny();
            change(&mut g);
            g.check().unwrap_err().to_string()
        };
        assert!(bad(|g| g.channels = 0).contains("channels is 0"));
        assert!(bad(|g| g.unit = Bytes(3000)).contains("does not fit"));
        assert!(bad(|g| g.pages_per_program = 3).contains("pages_per_program is 3"));
        assert!(bad(|g| g.dies_per_superblock = 3).contains("superblock_dies is 3"));
        assert!(bad(|g| g.parity = true).contains("at least two dies"));
        assert!(bad(|g| g.planes_ganged = 3).contains("planes_ganged is 3"));
        for (blocks, bits) in [(0, 2), (8, 2), (1, 1), (1, 5)] {
            let slc = Some(Slc { blocks, bits });
            assert!(Geometry { slc, ..tiny() }.check().is_err(), "{slc:?}");
        }
        assert!(
            bad(|g| (g.blocks_per_plane, g.pages_per_block) = (1 << 20, 4096))
                .contains("more than 2147483646")
        );
    }

    #[test]
    fn slc_blocks_hold_a_fraction() {
        let one = tiny();
        let mixed = Geometry { slc: Some(Slc { blocks: 3, bits: 2 }), ..tiny() };
        assert_eq!((mixed.slc_program_units_per_block(), mixed.units()), (2, one.units()));
        // Four dies of eight blocks of four program units of 16 KiB; three of them lose two
        // program units.
        assert_eq!(one.raw().0 - mixed.raw().0, 4 * 3 * 2 * 16384);
        assert_eq!((one.slc_raw(), mixed.slc_raw()), (Bytes(0), Bytes(4 * 3 * 2 * 16384)));
        let wide = Geometry { dies_per_superblock: 4, parity: true, ..mixed };
        assert_eq!((wide.slc_program_units_per_block(), wide.slc_data_units_per_block()), (8, 24));
    }
}
