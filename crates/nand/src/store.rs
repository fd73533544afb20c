//! What the flash holds, for those who need more than counts.
//!
//! A simulation of a trace needs no content: the array then keeps two small columns a
//! block and nothing a page. The library, and every test of durability, keeps what was
//! programmed: the out-of-band tag and version of each unit, and its bytes if it has
//! any.

use crate::geometry::ProgramUnitId;

/// What a unit is, in its out-of-band bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitTag {
    /// Data of this logical unit.
    Data(u32),
    /// A record of trimmed ranges; the ranges are its payload.
    Tombstone,
    /// Filler.
    Pad,
}

/// A unit as it stands in the flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUnit {
    /// What it is.
    pub tag: UnitTag,
    /// The version the host's write had; copies keep it.
    pub version: u64,
    /// Its bytes, where there are any.
    pub payload: Option<Box<[u8]>>,
}

/// Where a program unit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramUnitState {
    /// Erased, or programmed to its end.
    Settled,
    /// Its program has begun and not ended: torn if power goes now.
    InFlight,
    /// Power went amid its program, or amid a later one of its wordline.
    Torn,
}

/// The content of the device: one slot a unit.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) units: Vec<Option<StoredUnit>>,
    pub(crate) states: Vec<ProgramUnitState>,
    /// Number of the program that wrote each program unit, growing over the device's life.
    pub(crate) sequences: Vec<u64>,
}

impl Store {
    /// Whether `program_unit` cannot be read, now or any more.
    pub(crate) fn is_torn(&self, program_unit: ProgramUnitId) -> bool {
        self.states[program_unit.0 as usize] != ProgramUnitState::Settled
    }
}
