//! The errors of the library, each with its remedy.

use prism_ftl::ConfigError;

use crate::address::Address;
use crate::medium::{GeometryError, MediumError};

/// Why a call was refused or failed. A refused call has changed nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlashError {
    /// A field of a geometry is out of range.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The device failed or has no power.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The configuration of an FTL does not fit the flash that it was given.
    #[error(transparent)]
    Mapping(#[from] ConfigError),
    /// There is no channel, LUN, block or page of this number.
    #[error("{what} {value} is out of range: there are {count}, counted from 0")]
    OutOfRange {
        /// What is numbered: "channel", "LUN", "block", "page".
        what: &'static str,
        /// The number.
        value: u64,
        /// How many there are; numbers below it are possible.
        count: u64,
    },
    /// An access goes past the end of the page, range or container in which it begins.
    #[error("the access ends at byte {end}; the {within} ends at {limit}")]
    PastEnd {
        /// What the access begins in: "page", "range", "container".
        within: &'static str,
        /// The address after the last byte of the access.
        end: u64,
        /// The address after the last byte of what it begins in, which an access may end at.
        limit: u64,
    },
    /// No range of the policy level has the address.
    #[error("no range has the address {address}: configure one")]
    NoRange {
        /// The address.
        address: u64,
    },
    /// A call has more out-of-band bytes than a page.
    #[error("{bytes} out-of-band bytes are too many: a page has {most}")]
    TooLong {
        /// The out-of-band bytes of the call.
        bytes: u64,
        /// The out-of-band bytes of a page that the caller may use.
        most: u64,
    },
    /// A length or an address is not a multiple of the unit it has to be aligned to.
    #[error("{what} {value} is no multiple of {unit} bytes; align it, or use a higher level")]
    Unaligned {
        /// What kind of number.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What it has to be a multiple of.
        unit: u64,
    },
    /// The page was not written since the last erase.
    #[error("{at} holds nothing: write it before you read it")]
    Unwritten {
        /// The page.
        at: Address,
    },
    /// A power failure interrupted the program or erase of the page.
    #[error("{at} cannot be read: its program or erase was interrupted")]
    Torn {
        /// The page.
        at: Address,
    },
    /// The content of the page is not what was written.
    #[error("{at} is damaged; restore it from a copy, or erase the block")]
    Damaged {
        /// The page.
        at: Address,
    },
    /// Pages of a block are written in order.
    #[error("page {page} was written out of order: page {expected} is next in its block")]
    OutOfOrder {
        /// The page to be written.
        page: u32,
        /// The page that is next.
        expected: u32,
    },
    /// The block is full or closed.
    #[error("{at} cannot be written: erase the block first")]
    NotErased {
        /// The page to be written.
        at: Address,
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
    /// The device has fewer free LUNs than requested.
    #[error("{asked} LUNs were asked for and {free} are free: ask for less or release a share")]
    NoLuns {
        /// LUNs requested.
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
    /// The share was released, or its device closed.
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
    /// The share holds data of another level.
    #[error("the share is set up for {found}; {wanted} needs a share of its own")]
    WrongLevel {
        /// What it is.
        found: &'static str,
        /// What was asked.
        wanted: &'static str,
    },
    /// There is no space left.
    #[error("no space: {what}")]
    NoSpace {
        /// What is needed, and what helps.
        what: String,
    },
    /// A channel has no erased block left.
    #[error(
        "channel {channel} has no erased block left, and {waiting} trimmed ones have commands in \
         flight: take their completions, trim some blocks, or take another channel"
    )]
    ChannelFull {
        /// The channel of the share.
        channel: u32,
        /// Trimmed blocks of it whose erase waits for commands in flight.
        waiting: u32,
    },
    /// All blocks but those of the reserve are allocated.
    #[error("all blocks but the reserve of {reserve} are allocated: trim some, or reserve less")]
    OnlyReserve {
        /// Blocks of the reserve.
        reserve: u32,
    },
    /// The block or page was trimmed before, or never allocated.
    #[error("{what} {number} is not allocated: it was trimmed before, or never allocated")]
    NotAllocated {
        /// What kind of thing.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// Blocks requested as over-provisioning are in use.
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
    /// A request that is invalid, or not possible in the present state.
    #[error("{what}")]
    Invalid {
        /// What is wrong, and what to do.
        what: String,
    },
    /// The device has no timing.
    #[error(
        "the device was opened without timing: bandwidth limits and real time need the times of a \
         drive; open it with timing"
    )]
    NoClock,
    /// The device was not formatted by this library, or not with this geometry.
    #[error("this is no formatted device: {what}; format it if you can lose what it holds")]
    NotFormatted {
        /// What was found.
        what: String,
    },
    /// A page of the monitor's own tables is damaged, and has no whole copy.
    #[error(
        "page {page} of block {block}, which has tables of the device, is damaged, and there is no \
         whole copy; restore the device from a copy"
    )]
    TablesDamaged {
        /// The block of the device.
        block: u32,
        /// The page in it.
        page: u32,
    },
    /// The monitor's own tables could not be written.
    #[error("the tables of the device cannot be kept: {what}")]
    Tables {
        /// What happened.
        what: String,
    },
}

/// The result of the calls of this crate.
pub type Result<T, E = FlashError> = std::result::Result<T, E>;
