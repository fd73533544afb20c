//! Why a configuration of an FTL cannot work, and how much spare flash it leaves.

use crate::victim::VictimPolicy;

/// How much more flash there is than the host sees, as (T - U) / U.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverProvisioning {
    /// With T all of the flash.
    pub nominal: f64,
    /// With T what can hold data in steady state: without open blocks, without the erased
    /// blocks that cleaning keeps, without parity and translation pages. Theory is about
    /// this one.
    pub effective: f64,
}

/// Why a configuration cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The host sees more than the flash can hold beside what cleaning needs.
    #[error(
        "the drive promises {logical} units, but the flash can hold at most {usable} beside \
         open and reserved blocks; lower capacity or add blocks"
    )]
    NoSpare {
        /// Logical units.
        logical: u64,
        /// The most that would work.
        usable: u64,
    },
    /// More streams than a die group has blocks for.
    #[error(
        "{streams} streams keep {streams} blocks open on each die group of {blocks}; use larger \
         segments or fewer handles"
    )]
    Streams {
        /// Streams of host data.
        streams: u32,
        /// Blocks of a die group.
        blocks: u32,
    },
    /// More data groups than the write buffer has streams.
    #[error(
        "{groups} data groups are more than {max}; use more blocks a group (group_blocks), or \
         larger blocks (superblock_dies), or mapping \"fast\", which has one group"
    )]
    Groups {
        /// Data groups.
        groups: u32,
        /// The most.
        max: u32,
    },
    /// Ranges that do not make a drive.
    #[error(
        "{ranges} ranges with {needed} blocks of each plane, where a drive has {blocks}; give at \
         least one and at most {most} ranges, none inside another, which together have all blocks"
    )]
    Ranges {
        /// How many.
        ranges: usize,
        /// The most.
        most: usize,
        /// Blocks of a plane that they have together.
        needed: u64,
        /// Blocks of a plane.
        blocks: u32,
    },
    /// A program unit holds several units, which a map by offsets cannot fill one by one.
    #[error(
        "a program unit holds {units} mapping units, but here each unit has a program unit of \
         its own at its offset; set ftl.mapping_unit to what one program writes (page times \
         ganged planes, with pages_per_program 1), or use mapping \"hybrid\" or \"bast\""
    )]
    WholeProgramUnits {
        /// Units of a program unit.
        units: u32,
    },
    /// Parity would stand between the units of a logical block.
    #[error(
        "superblock_parity does not combine with mappings by block, where the place of a \
         unit in its block says which it is"
    )]
    BlockParity,
    /// A zone holds more than it has addresses.
    #[error(
        "a zone holds {capacity} units and has {size} addresses; use a larger zone_size or \
         smaller blocks"
    )]
    ZoneSize {
        /// Units from one zone to the next.
        size: u32,
        /// Units of a block, which is what a zone holds.
        capacity: u32,
    },
    /// Zones need a block each, and a stream of the write buffer.
    #[error(
        "{zones} zones on {blocks} blocks; there are at least 1 and at most {max}, one a block"
    )]
    Zones {
        /// Zones.
        zones: u32,
        /// Blocks of the device.
        blocks: u32,
        /// The most.
        max: u32,
    },
    /// What stands on the flash cannot come from an FTL of this configuration.
    #[error(
        "block {block} cannot come from this FTL: {why}; recover it with the configuration \
         it was written with, or erase the flash"
    )]
    Foreign {
        /// The block.
        block: u32,
        /// What contradicts.
        why: &'static str,
    },
    /// Mappings by blocks choose in fewer ways.
    #[error(
        "{victim} does not combine with mappings by block; use fifo, greedy, lru or cost-benefit"
    )]
    MergeChoice {
        /// The policy.
        victim: VictimPolicy,
    },
    /// The flash has no SLC blocks that could be used.
    #[error("the flash has no SLC blocks; give slc.blocks")]
    SlcMissing,
    /// Nobody says what SLC blocks are for.
    #[error("{blocks} blocks of each die group have SLC, and nothing says what for")]
    SlcUnused {
        /// Such blocks.
        blocks: u32,
    },
    /// Streams would be mixed.
    #[error("{what} do not combine with this use of SLC blocks (slc.use)")]
    SlcStreams {
        /// What makes the streams.
        what: &'static str,
    },
    /// The rule names a handle that the drive has not.
    #[error(
        "slc.handle is {handle}, but there are {handles} placement handles from 0 on; give \
         ftl.placement_handles"
    )]
    SlcHandle {
        /// The handle.
        handle: u32,
        /// Handles there are.
        handles: u32,
    },
    /// More is to live in the region than fits.
    #[error(
        "{units} units are to live in SLC blocks, which hold at most {usable} \
         beside open and reserved blocks; lower slc.below or give more slc.blocks"
    )]
    SlcRegion {
        /// Units by the rule.
        units: u64,
        /// The most that would work.
        usable: u64,
    },
    /// The blocks that are not bad are too few.
    #[error(
        "of {blocks} blocks {bad} are bad from the factory, and the others are too few for the \
         capacity; lower it, add blocks, or let fewer be bad"
    )]
    BadBlocks {
        /// Bad blocks.
        bad: u32,
        /// All blocks.
        blocks: u32,
    },
    /// A watermark makes no sense.
    #[error("{field} is {value}; it must be between {min} and {max}")]
    Watermark {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// Least allowed.
        min: u32,
        /// Most allowed.
        max: u32,
    },
}
