//! What recovery asks of flash after a loss of power, and what it learns beside the map.

use prism_nand::{BlockId, Geometry, Nand, ProgramUnitId, Pun, UnitTag};

use crate::plan::TrimRange;

/// A unit that recovery can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedUnit {
    /// Its place in the program unit.
    pub place: u32,
    /// What it is.
    pub tag: UnitTag,
    /// Its version, if it is data; copies have that of their source.
    pub version: u64,
    /// The trims of a tombstone.
    pub trims: Vec<TrimRange>,
}

/// Flash after a loss of power. Nothing is written to it.
pub trait FlashScan {
    /// The shape.
    fn geometry(&self) -> &Geometry;

    /// Erases of `block`; of a superblock, of the member erased most.
    fn erases(&self, block: BlockId) -> u32;

    /// Whether nothing was programmed in `block` since its last erase, which was complete.
    fn is_erased(&self, block: BlockId) -> bool;

    /// Whether an erase of `block` was interrupted. What can still be read there was given
    /// up before.
    fn is_unstable(&self, block: BlockId) -> bool;

    /// Whether `block` is bad, from the factory or grown: what it holds is moved, and it is
    /// not used again.
    fn is_bad(&self, _block: BlockId) -> bool {
        false
    }

    /// Adds to `found`, which is empty, what can be read of `program_unit`, and returns the place
    /// of its program in the order of all programs; 0 if nothing can be read. Padding need not be
    /// listed.
    fn program_unit(&mut self, program_unit: ProgramUnitId, found: &mut Vec<ScannedUnit>) -> u64;
}

impl FlashScan for &Nand {
    fn geometry(&self) -> &Geometry {
        Nand::geometry(self)
    }

    fn erases(&self, block: BlockId) -> u32 {
        let dies = self.layout().dies_per_die_group() as usize;
        let first = block.0 as usize * dies;
        let members = self.erase_counts()[first..first + dies].iter();
        *members.max().expect("a block has members")
    }

    fn is_erased(&self, block: BlockId) -> bool {
        self.program_units_programmed(block) == 0 && !Nand::is_unstable(self, block)
    }

    fn is_unstable(&self, block: BlockId) -> bool {
        Nand::is_unstable(self, block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        Nand::is_bad(self, block)
    }

    fn program_unit(&mut self, program_unit: ProgramUnitId, found: &mut Vec<ScannedUnit>) -> u64 {
        let first = self.layout().first_unit(program_unit).0;
        for place in 0..self.layout().units_per_program_unit() {
            // What is erased, torn or half erased holds nothing.
            let Ok(Some(unit)) = self.read(Pun(first + place)) else { continue };
            let trims = match unit.tag {
                UnitTag::Tombstone => TrimRange::decode_all(unit.payload.as_deref().unwrap_or(&[])),
                UnitTag::Data(_) | UnitTag::Pad => Vec::new(),
            };
            found.push(ScannedUnit { place, tag: unit.tag, version: unit.version, trims });
        }
        if found.is_empty() { 0 } else { self.sequence(program_unit) }
    }
}

/// What recovery learns beside the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The highest version of anything found, trims included; 0 if nothing was.
    pub newest_version: u64,
    /// The highest place in the order of programs; 0 if nothing was found.
    pub newest_sequence: u64,
}

/// Calls `apply` for each unit and version of `trims`; returns the highest version of these
/// and `newest`.
pub(crate) fn trim_best(
    trims: &[TrimRange],
    mut newest: u64,
    mut apply: impl FnMut(u32, u64),
) -> u64 {
    for range in trims {
        newest = newest.max(range.version);
        for lpn in range.start..range.start.saturating_add(range.count) {
            apply(lpn, range.version);
        }
    }
    newest
}
