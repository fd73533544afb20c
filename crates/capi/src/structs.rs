//! The structures and numbers that cross the FFI boundary.
//!
//! A structure that may grow begins with its size. All are made of numbers without gaps, so
//! that every pattern of bits is a value; what a number may be is checked where it is used.

/// The version of this header, which `prism_version` says of the library.
pub const PRISM_VERSION_MAJOR: u32 = 0;
/// The version of this header, its second number.
pub const PRISM_VERSION_MINOR: u32 = 1;
/// The version of this header, its third number.
pub const PRISM_VERSION_PATCH: u32 = 0;

/// Any number: of blocks that may be partly written, where there is no limit.
pub const PRISM_ANY: u32 = u32::MAX;
/// All flash that is left of a share, as over-provisioning of a range.
pub const PRISM_REST: u32 = u32::MAX;
/// Room for counts by cause; those without a cause are 0.
pub const PRISM_CAUSES_MAX: usize = 16;
/// Types of pages at most, each with its times.
pub const PRISM_PAGE_TYPES_MAX: usize = 8;

/// Whether what was done is durable at once.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_cache {
    /// It is, as cells are.
    PRISM_CACHE_NONE = 0,
    /// After the next sync or flush.
    PRISM_CACHE_VOLATILE = 1,
}

/// Why a flash operation was done: the place of its count in `prism_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_cause {
    /// The application asked for it.
    PRISM_CAUSE_HOST = 0,
    /// Cleaning (garbage collection).
    PRISM_CAUSE_GC = 1,
    /// Wear levelling.
    PRISM_CAUSE_WEAR = 2,
    /// Tables: of the monitor, and of what was trimmed.
    PRISM_CAUSE_MAP = 3,
    /// Merges of mappings by block.
    PRISM_CAUSE_MERGE = 4,
    /// Refresh of data that ages.
    PRISM_CAUSE_SCRUB = 5,
    /// Parity.
    PRISM_CAUSE_PARITY = 6,
    /// Filling up what had to be programmed before it was full.
    PRISM_CAUSE_PAD = 7,
    /// Completing a unit of which a part was written.
    PRISM_CAUSE_RMW = 8,
    /// Moves out of a write cache.
    PRISM_CAUSE_FOLD = 9,
    /// Moving what is valid out of a block that has failed.
    PRISM_CAUSE_RETIRE = 10,
}

/// How addresses of a range are mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_mapping {
    /// By unit: any order of writing, the largest map.
    PRISM_MAP_PAGE = 0,
    /// By block: for whole blocks that are written in order.
    PRISM_MAP_BLOCK = 1,
    /// By block, with log blocks for each group of blocks.
    PRISM_MAP_HYBRID = 2,
}

/// Which block of a range is cleaned.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_cleaning {
    /// The one that holds the least valid data.
    PRISM_CLEAN_GREEDY = 0,
    /// The one that was filled first.
    PRISM_CLEAN_FIFO = 1,
    /// The one whose garbage is worth most for its age.
    PRISM_CLEAN_COST_BENEFIT = 2,
    /// The one in which nothing has changed for longest.
    PRISM_CLEAN_LRU = 3,
}

/// How long data is expected to live; each has the placement handle of its number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_lifetime {
    /// Nothing is known.
    PRISM_LIFE_UNKNOWN = 0,
    /// It is overwritten or deleted soon.
    PRISM_LIFE_SHORT = 1,
    /// In between.
    PRISM_LIFE_MEDIUM = 2,
    /// It stays for long.
    PRISM_LIFE_LONG = 3,
    /// It is never changed.
    PRISM_LIFE_EXTREME = 4,
}

/// The shape of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_geometry {
    /// sizeof(prism_geometry).
    pub size: usize,
    /// Channels (buses).
    pub channels: u32,
    /// LUNs (dies) on each channel.
    pub luns_per_channel: u32,
    /// Blocks of a LUN.
    pub blocks_per_lun: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Out-of-band bytes that come with each page; 0 on zoned devices.
    pub oob_size: u32,
    /// Blocks that may be partly written at once; 0 for any number.
    pub max_open_blocks: u32,
    /// 0.
    pub reserved: u32,
}

/// How long operations take in virtual time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_timing {
    /// sizeof(prism_timing).
    pub size: usize,
    /// Nanoseconds from the array to the page register, for each type of page, lowest first.
    pub t_read_ns: [u64; PRISM_PAGE_TYPES_MAX],
    /// Nanoseconds from the page register to the array, for each type of page.
    pub t_program_ns: [u64; PRISM_PAGE_TYPES_MAX],
    /// How many types of pages there are: 1 for one time for all.
    pub page_types: u64,
    /// Nanoseconds of an erase.
    pub t_erase_ns: u64,
    /// Nanoseconds of a command on the channel, before each operation.
    pub t_command_ns: u64,
    /// Bandwidth of a channel; 0 for one that is infinitely fast.
    pub bus_bytes_per_second: u64,
}

/// When LUNs change places to level wear.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_wear_policy {
    /// sizeof(prism_wear_policy).
    pub size: usize,
    /// They do if the mean erase counts of two LUNs differ by more than this...
    pub min_gap: u64,
    /// ... and by more than this part of the device's mean.
    pub delta: f64,
    /// Erases for levelling, as a part of all erases, at most.
    pub budget: f64,
}

/// How a device is run. Nothing of it is kept on flash.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_options {
    /// sizeof(prism_options).
    pub size: usize,
    /// The times of a device with virtual time; NULL for one without.
    pub timing: *const prism_timing,
    /// When LUNs change places by themselves; NULL for never.
    pub wear: *const prism_wear_policy,
}

/// What a share is to be.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_allocation {
    /// sizeof(prism_allocation).
    pub size: usize,
    /// Bytes for the application.
    pub capacity: u64,
    /// The most bytes a second that go in and out; 0 for no limit.
    pub bandwidth: u64,
    /// Over-provisioning in percent of the capacity.
    pub over_provisioning: u32,
    /// Blocks that may be partly written at once, where the device limits them; 0 for a part of
    /// the device's limit as large as the share.
    pub open_blocks: u32,
}

/// The shape of a share. It is not rectangular: `prism_share_channel` says how many LUNs each
/// channel has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_share_geometry {
    /// sizeof(prism_share_geometry).
    pub size: usize,
    /// Bytes of all LUNs but those of the reserve.
    pub capacity: u64,
    /// Channels on which the share has LUNs.
    pub channels: u32,
    /// LUNs, those of the reserve included.
    pub luns: u32,
    /// LUNs of the reserve (over-provisioning).
    pub ops_luns: u32,
    /// Blocks of a LUN.
    pub blocks_per_lun: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Out-of-band bytes of a page.
    pub oob_size: u32,
    /// Blocks that may be partly written at once; `PRISM_ANY` for any number.
    pub max_open_blocks: u32,
}

/// A share as the monitor lists it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_share_info {
    /// sizeof(prism_share_info).
    pub size: usize,
    /// Its LUNs.
    pub luns: u32,
    /// How many of them are over-provisioning.
    pub ops_luns: u32,
    /// 1 if an application is attached to it, else 0.
    pub attached: u32,
    /// 0.
    pub reserved: u32,
}

/// What was done on flash, by cause: `programs[PRISM_CAUSE_GC]`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_counts {
    /// sizeof(prism_counts).
    pub size: usize,
    /// Pages read.
    pub reads: [u64; PRISM_CAUSES_MAX],
    /// Pages programmed.
    pub programs: [u64; PRISM_CAUSES_MAX],
    /// Blocks erased.
    pub erases: [u64; PRISM_CAUSES_MAX],
}

/// How evenly the LUNs of a device are worn.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_wear_report {
    /// sizeof(prism_wear_report).
    pub size: usize,
    /// The highest mean erase count of a LUN.
    pub max: f64,
    /// The mean over the device.
    pub mean: f64,
    /// The lowest mean erase count of a LUN.
    pub min: f64,
    /// Pairs of LUNs that have changed places since the device was formatted.
    pub exchanges: u64,
    /// Erases that levelling has cost since then, at most.
    pub erases: u64,
}

/// How a range of the policy level is managed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_range_config {
    /// sizeof(prism_range_config).
    pub size: usize,
    /// One of `prism_mapping`.
    pub mapping: u32,
    /// One of `prism_cleaning`.
    pub cleaning: u32,
    /// Logical blocks of a group (N), with `PRISM_MAP_HYBRID`; else 0.
    pub group_blocks: u32,
    /// Log blocks of a group at most (K), with `PRISM_MAP_HYBRID`; else 0.
    pub group_log_blocks: u32,
    /// Spare flash in percent of the range, or `PRISM_REST`. The paper has 25.
    pub over_provisioning: u32,
    /// Placement handles: kinds of data that are kept in different blocks; 0 counts as 1.
    pub handles: u32,
    /// Blocks that may be partly written at once; 0 for what fits.
    pub open_blocks: u32,
    /// 0.
    pub reserved: u32,
}

/// A range as it is listed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_range_info {
    /// sizeof(prism_range_info).
    pub size: usize,
    /// Its first address.
    pub begin: u64,
    /// The address after its last.
    pub end: u64,
    /// Bytes that are written in it.
    pub mapped: u64,
    /// Blocks of the share that it is made of.
    pub blocks: u32,
    /// Blocks that are written side by side, as data of one kind.
    pub die_groups: u32,
    /// One of `prism_mapping`.
    pub mapping: u32,
    /// One of `prism_cleaning`.
    pub cleaning: u32,
    /// As in `prism_range_config`.
    pub group_blocks: u32,
    /// As in `prism_range_config`.
    pub group_log_blocks: u32,
    /// As in `prism_range_config`.
    pub over_provisioning: u32,
    /// As in `prism_range_config`.
    pub handles: u32,
    /// As in `prism_range_config`.
    pub open_blocks: u32,
    /// 0.
    pub reserved: u32,
}

/// A container: a named part of a range.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_container_info {
    /// sizeof(prism_container_info).
    pub size: usize,
    /// Its first address in the share.
    pub begin: u64,
    /// The address after its last.
    pub end: u64,
    /// One of `prism_lifetime`.
    pub lifetime: u64,
}

/// What an application says of an object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_attributes {
    /// sizeof(prism_attributes).
    pub size: usize,
    /// 1 if its reads and writes go before others, else 0.
    pub priority: u32,
    /// 1 if it cannot be written, truncated or deleted, else 0.
    pub read_only: u32,
    /// 1 if it will not be changed for long, else 0.
    pub cold: u32,
    /// One of `prism_lifetime`.
    pub lifetime: u32,
}

/// What a store of keys and values holds, and what it has cost since it was opened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_kv_info {
    /// sizeof(prism_kv_info).
    pub size: usize,
    /// Keys that have a value.
    pub records: u64,
    /// Bytes of these keys and values.
    pub live_bytes: u64,
    /// Bytes that they are charged, with headers and deletions.
    pub charged_bytes: u64,
    /// The most bytes that records can be charged.
    pub capacity_bytes: u64,
    /// Bytes of keys and values set, and of keys deleted.
    pub written_bytes: u64,
    /// Pages programmed, for whatever reason.
    pub programs: u64,
    /// Bytes programmed over bytes written; 0 before the first.
    pub write_amplification: f64,
}

/// A page of a share; where a block is meant, `page` is not looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_address {
    /// The channel, of those the share has LUNs on.
    pub channel: u32,
    /// The LUN, of those the share has on the channel.
    pub lun: u32,
    /// The block of the LUN.
    pub block: u32,
    /// The page of the block.
    pub page: u32,
}

/// A queued command that is done.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_completion {
    /// sizeof(prism_completion).
    pub size: usize,
    /// What it was submitted with.
    pub tag: u64,
    /// When it was done: nanoseconds of virtual time.
    pub end_ns: u64,
    /// Bytes that a read has put into the buffer; 0 for other commands.
    pub length: u64,
    /// How it went: a `prism_status`.
    pub status: i32,
    /// 0.
    pub reserved: u32,
}

/// What was handed out at the function level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_allocated {
    /// sizeof(prism_allocated).
    pub size: usize,
    /// Where it is.
    pub at: prism_address,
    /// How many more there are in the channel without a wait, in the unit asked for, those of
    /// the reserve not counted. 0 says that this was the last one.
    pub free_left: u32,
    /// Blocks of the channel that wait for their erase.
    pub erasing: u32,
}

/// What levelling has done, and how worn the blocks of a share are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_wear_level {
    /// sizeof(prism_wear_level).
    pub size: usize,
    /// The mean of the erase counts.
    pub mean: f64,
    /// Their variance.
    pub variance: f64,
    /// The highest.
    pub max: u32,
    /// The lowest.
    pub min: u32,
}

/// Two blocks whose data levelling has exchanged; their addresses name what they named.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_pair {
    /// What stood on a worn block, and went to a fresh one.
    pub hot: prism_address,
    /// What rested, and went to the worn block.
    pub cold: prism_address,
}

sized!(
    prism_geometry,
    prism_timing,
    prism_wear_policy,
    prism_options,
    prism_allocation,
    prism_share_geometry,
    prism_share_info,
    prism_counts,
    prism_wear_report,
    prism_range_config,
    prism_range_info,
    prism_container_info,
    prism_attributes,
    prism_kv_info,
    prism_completion,
    prism_allocated,
    prism_wear_level,
);
