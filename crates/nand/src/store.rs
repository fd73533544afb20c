//! The content of the flash, for users that need more than counts.
//!
//! The simulation of a trace needs no content: the array then keeps two small numbers per block and
//! none per page. The library, and every test of durability, keeps what was programmed: the
//! out-of-band tag and version of each unit, and its payload if there is one.

use crate::geometry::ProgramUnitId;

/// The type of a unit, from its out-of-band bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitTag {
    /// Data of this logical unit.
    Data(u32),
    /// A record of trimmed ranges; the ranges are its payload.
    Tombstone,
    /// Filler.
    Pad,
}

/// A unit as stored in the flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUnit {
    /// Its type.
    pub tag: UnitTag,
    /// The version of the host's write; copies keep it.
    pub version: u64,
    /// Its payload, if there is one.
    pub payload: Option<Box<[u8]>>,
}

/// The state of a program unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramUnitState {
    /// Erased, or programmed completely.
    Settled,
    /// Its program has begun and not ended; a loss of power now makes it torn.
    InFlight,
    /// Power was lost during its program or a later one of its wordline.
    Torn,
}

/// The content of the device, one entry per unit.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) units: Vec<Option<StoredUnit>>,
    pub(crate) states: Vec<ProgramUnitState>,
    /// The sequence number of the program that wrote each program unit.
    pub(crate) sequences: Vec<u64>,
}

impl Store {
    /// Whether `program_unit` is in flight or torn.
    pub(crate) fn is_torn(&self, program_unit: ProgramUnitId) -> bool {
        self.states[program_unit.0 as usize] != ProgramUnitState::Settled
    }
}
