//! The interface of the recovery scan after a loss of power, and its results besides the map.

use prism_nand::{BlockId, Geometry, Nand, ProgramUnitId, Pun, UnitTag};

use crate::plan::TrimRange;

/// A readable unit found by recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedUnit {
    /// Its index in the program unit.
    pub place: u32,
    /// Its type.
    pub tag: UnitTag,
    /// Its version, if it is data; copies have the version of their source.
    pub version: u64,
    /// The trims of a tombstone.
    pub trims: Vec<TrimRange>,
}

/// Flash after a loss of power. Nothing is written to it.
pub trait FlashScan {
    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// Erases of `block`; for a superblock, of the member erased most.
    fn erases(&self, block: BlockId) -> u32;

    /// Whether nothing was programmed in `block` since its last erase, which was complete.
    fn is_erased(&self, block: BlockId) -> bool;

    /// Whether an erase of `block` was interrupted. Data that is still readable there is obsolete.
    fn is_unstable(&self, block: BlockId) -> bool;

    /// Whether `block` is bad, from the factory or grown: its valid data is moved, and it is not
    /// used again.
    fn is_bad(&self, _block: BlockId) -> bool {
        false
    }

    /// Adds the readable units of `program_unit` to `found`, which is empty, and returns the
    /// sequence number of its program; 0 if no unit can be read. Padding may be omitted.
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
            // Erased, torn and half-erased units have no content.
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

/// Results of recovery besides the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The highest version found, including trims; 0 if there is none.
    pub newest_version: u64,
    /// The highest sequence number of a program found; 0 if there is none.
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
