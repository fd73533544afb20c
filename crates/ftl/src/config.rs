//! Errors of FTL configurations, and over-provisioning.

use crate::victim::VictimPolicy;

/// Over-provisioning as (T - U) / U, with U the units that the host sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverProvisioning {
    /// With T all of the flash.
    pub nominal: f64,
    /// With T the flash that can hold data in steady state, without open blocks, the erased blocks
    /// that cleaning keeps, parity and translation pages. This is the one used in theory.
    pub effective: f64,
}

/// The text of [`ConfigError::NoSpare`].
fn no_spare(logical: u64, usable: u64) -> String {
    if logical == 0 {
        return "the drive has no logical unit: capacity is less than a mapping unit; raise it"
            .into();
    }
    format!(
        "the drive has {logical} logical units, but the flash can hold at most {usable} besides \
         open and reserved blocks; lower capacity or add blocks"
    )
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The host sees more than the flash can hold in addition to what cleaning needs.
    #[error("{}", no_spare(*logical, *usable))]
    NoSpare {
        /// Logical units.
        logical: u64,
        /// The most that would work.
        usable: u64,
    },
    /// A die group has too few blocks for the streams.
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
        "{groups} data groups are more than {max}; use more blocks per group (group_blocks), or \
         larger blocks (superblock_dies), or mapping \"fast\", which has one group"
    )]
    Groups {
        /// Data groups.
        groups: u32,
        /// The most.
        max: u32,
    },
    /// The ranges do not divide the drive.
    #[error(
        "{ranges} ranges with {needed} blocks of each plane, where a drive has {blocks}; give at \
         least one and at most {most} ranges, none inside another, which together have all blocks"
    )]
    Ranges {
        /// Number of ranges.
        ranges: usize,
        /// The most ranges.
        most: usize,
        /// Blocks per plane of all ranges together.
        needed: u64,
        /// Blocks per plane of the drive.
        blocks: u32,
    },
    /// A program unit holds several units, and block-level mapping cannot fill it unit by unit.
    #[error(
        "a program unit holds {units} mapping units, but here each unit has a program unit of \
         its own at its offset; set ftl.mapping_unit to what one program writes (page times \
         ganged planes, with pages_per_program 1), or use mapping \"hybrid\" or \"bast\""
    )]
    WholeProgramUnits {
        /// Units per program unit.
        units: u32,
    },
    /// Parity would be between the units of a logical block.
    #[error(
        "superblock_parity does not combine with block-level, hybrid and zone mapping, where the \
         offset of a unit in its block determines its logical address"
    )]
    BlockParity,
    /// A zone's capacity exceeds its size.
    #[error(
        "a zone has a capacity of {capacity} units and a size of {size}; use a larger zone_size or \
         smaller blocks"
    )]
    ZoneSize {
        /// Units from the start of a zone to that of the next.
        size: u32,
        /// Units of a block, the capacity of a zone.
        capacity: u32,
    },
    /// Each zone needs a block, and a stream of the write buffer.
    #[error("{zones} zones on {blocks} blocks; choose 1 to {max}, one per block")]
    Zones {
        /// Zones.
        zones: u32,
        /// Blocks of the device.
        blocks: u32,
        /// The most.
        max: u32,
    },
    /// The content of the flash cannot have been written by an FTL of this configuration.
    #[error(
        "block {block} cannot come from this FTL: {why}; recover it with the configuration \
         it was written with, or erase the flash"
    )]
    Foreign {
        /// The block.
        block: u32,
        /// What contradicts the configuration.
        why: &'static str,
    },
    /// Block-level and hybrid mapping do not support this victim policy.
    #[error(
        "{victim} does not combine with block-level and hybrid mapping; use fifo, greedy, lru or \
         cost-benefit"
    )]
    MergeChoice {
        /// The policy.
        victim: VictimPolicy,
    },
    /// The flash has no SLC blocks.
    #[error("the flash has no SLC blocks; give slc.blocks")]
    SlcMissing,
    /// The configuration gives SLC blocks no use.
    #[error("{blocks} blocks of each die group are SLC but have no use; give slc.use")]
    SlcUnused {
        /// SLC blocks per die group.
        blocks: u32,
    },
    /// The streams would be mixed in SLC blocks.
    #[error("{what} do not combine with this use of SLC blocks (slc.use)")]
    SlcStreams {
        /// The option that makes the streams.
        what: &'static str,
    },
    /// The rule names a placement handle that the drive does not have.
    #[error(
        "slc.handle is {handle}, but there are {handles} placement handles from 0 on; give \
         ftl.placement_handles"
    )]
    SlcHandle {
        /// The handle.
        handle: u32,
        /// Placement handles of the drive.
        handles: u32,
    },
    /// The SLC region is too small for the data that the rule assigns to it.
    #[error(
        "{units} units belong in SLC blocks, which hold at most {usable} \
         besides open and reserved blocks; lower slc.below or give more slc.blocks"
    )]
    SlcRegion {
        /// Units that the rule assigns to SLC blocks.
        units: u64,
        /// The most that would work.
        usable: u64,
    },
    /// Too few blocks are good.
    #[error(
        "of {blocks} blocks {bad} are bad from the factory, and the others are too few for the \
         capacity; lower it, add blocks, or lower the share of bad blocks"
    )]
    BadBlocks {
        /// Bad blocks.
        bad: u32,
        /// All blocks.
        blocks: u32,
    },
    /// A watermark is out of range.
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
