//! Everything that can go wrong, with what to do about it.

use prism_ftl::ConfigError;

use crate::medium::{GeometryError, MediumError};

/// Why a call was refused or failed. A refused call has changed nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlashError {
    /// A geometry makes no sense.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The device failed, or has no power.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A mapping does not fit the flash it was given.
    #[error(transparent)]
    Mapping(#[from] ConfigError),
    /// An address is outside of what the caller owns.
    #[error("{what} {value} is outside of the share, which has {count}")]
    OutOfRange {
        /// What kind of number.
        what: &'static str,
        /// Its value.
        value: u64,
        /// How many there are.
        count: u64,
    },
    /// A length or an address is no multiple of what it has to be.
    #[error("{what} {value} is no multiple of {unit} bytes; align it, or use a higher level")]
    Unaligned {
        /// What kind of number.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What it has to be a multiple of.
        unit: u64,
    },
    /// Nothing was written there since the last erase.
    #[error("page {page} of block {block} holds nothing: write it before you read it")]
    Unwritten {
        /// The block.
        block: u32,
        /// The page.
        page: u32,
    },
    /// A loss of power interrupted what was written there.
    #[error("page {page} of block {block} cannot be read: its program or erase was interrupted")]
    Torn {
        /// The block.
        block: u32,
        /// The page.
        page: u32,
    },
    /// Pages of a block are written in order.
    #[error("page {page} was written out of order: page {expected} is next in its block")]
    OutOfOrder {
        /// The page asked for.
        page: u32,
        /// The page that is next.
        expected: u32,
    },
    /// The block takes nothing more.
    #[error("block {block} is not erased: erase it before you write page {page}")]
    NotErased {
        /// The block.
        block: u32,
        /// The page asked for.
        page: u32,
    },
    /// Too many blocks are partly written.
    #[error("{max} blocks of the share are partly written, which is the most: fill or finish one")]
    TooManyOpen {
        /// The most.
        max: u32,
    },
    /// A LUN has no spare block left for one that failed.
    #[error("LUN {lun} has no spare block left: copy what it holds and replace the device")]
    WornOut {
        /// The LUN, as the device counts.
        lun: u32,
    },
    /// The device has not so many free LUNs.
    #[error("{asked} LUNs were asked for and {free} are free: ask for less or release a share")]
    NoLuns {
        /// LUNs asked for.
        asked: u32,
        /// LUNs that are free.
        free: u32,
    },
    /// A share of that name exists.
    #[error("a share named {name:?} exists: attach to it, or choose another name")]
    ShareExists {
        /// The name.
        name: String,
    },
    /// No share has that name.
    #[error("there is no share named {name:?}: allocate it first")]
    NoShare {
        /// The name.
        name: String,
    },
    /// The share is attached already.
    #[error("the share {name:?} is in use: drop its other handle first")]
    InUse {
        /// The name.
        name: String,
    },
    /// The share was released, or its device taken away.
    #[error("the share was released or its device closed: attach again")]
    Released,
    /// LUNs that hold data cannot be given back.
    #[error("{luns} LUNs cannot be given back: {free} hold nothing; erase their blocks first")]
    ShrinkBelowUse {
        /// LUNs to be given back.
        luns: u32,
        /// LUNs that hold nothing.
        free: u32,
    },
    /// The share was set up for another use.
    #[error("the share is set up for {found}; {wanted} needs a share of its own")]
    WrongLevel {
        /// What it is.
        found: &'static str,
        /// What was asked.
        wanted: &'static str,
    },
    /// There is no room.
    #[error("no space: {what}")]
    NoSpace {
        /// What is needed, and what helps.
        what: String,
    },
    /// It was given back already, or never handed out.
    #[error("{what} {number} is not allocated: it was trimmed before, or never handed out")]
    NotAllocated {
        /// What kind of thing.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// The reserve asked for is in use.
    #[error("{blocks} blocks cannot be reserved: trim {must_free} blocks first")]
    OverProvisioning {
        /// Blocks that were to be reserved.
        blocks: u32,
        /// Blocks that have to be trimmed before.
        must_free: u32,
    },
    /// A range holds data or overlaps another.
    #[error("{what}")]
    Busy {
        /// What, and what to do.
        what: String,
    },
    /// Something that exists or does not.
    #[error("{what}")]
    Invalid {
        /// What is wrong, and what to do.
        what: String,
    },
    /// The device keeps no time.
    #[error("the device was opened without timing: open it with Timing to limit bandwidth")]
    NoClock,
    /// The device holds something else, or nothing.
    #[error("this is no formatted device: {what}; format it if you can lose what it holds")]
    NotFormatted {
        /// What was found.
        what: String,
    },
    /// The monitor's own tables could not be written.
    #[error("the tables of the device cannot be kept: {what}")]
    Tables {
        /// What happened.
        what: String,
    },
}

/// What every call returns.
pub type Result<T, E = FlashError> = std::result::Result<T, E>;
