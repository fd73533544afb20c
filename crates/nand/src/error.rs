//! Errors of flash operations.

use crate::geometry::{BlockId, ProgramUnitId, Pun};

/// An operation that flash does not allow, or a page that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NandError {
    /// Program units of a block are programmed in order, each once between two erases.
    #[error(
        "program unit {program_unit:?} was programmed out of order; program unit {expected:?} is \
         next in its block"
    )]
    OutOfOrderProgram {
        /// The requested program unit.
        program_unit: ProgramUnitId,
        /// The next program unit of its block.
        expected: ProgramUnitId,
    },
    /// The block is full; it must be erased first.
    #[error("program unit {program_unit:?} was programmed in a full block; erase it first")]
    ProgramFull {
        /// The requested program unit.
        program_unit: ProgramUnitId,
    },
    /// A power cut interrupted the last erase; the block must be erased again.
    #[error("{block:?} was not erased completely; erase it again before programming")]
    UnstableErase {
        /// The block.
        block: BlockId,
    },
    /// The unit was not programmed since the last erase of its block.
    #[error("{unit:?} was read but never programmed since the last erase")]
    ReadErased {
        /// The unit.
        unit: Pun,
    },
    /// A power cut interrupted the program of this program unit; its data is not readable.
    #[error("{unit:?} cannot be corrected: its program was interrupted")]
    Uncorrectable {
        /// The unit.
        unit: Pun,
    },
    /// The address does not exist.
    #[error("address {address} is outside the device")]
    OutOfRange {
        /// The address.
        address: u64,
    },
}
