//! The structures and numbers that cross the FFI boundary.
//!
//! A structure that may grow begins with its size. All consist of numbers without padding, so that
//! every bit pattern is valid; the range of a number is checked where it is used.

use crate::buffer::prism_buffer;

/// The version of this header; `prism_version` returns that of the library.
pub const PRISM_VERSION_MAJOR: u32 = 0;
/// The version of this header, its second number.
pub const PRISM_VERSION_MINOR: u32 = 1;
/// The version of this header, its third number.
pub const PRISM_VERSION_PATCH: u32 = 0;

/// No limit of partly written blocks.
pub const PRISM_ANY: u32 = u32::MAX;
/// All flash that is left of a share, as over-provisioning of a range.
pub const PRISM_REST: u32 = u32::MAX;
/// Length of arrays of counts by cause; entries without a cause are 0.
pub const PRISM_CAUSES_MAX: usize = 16;
/// Limit of page types, each with its times.
pub const PRISM_PAGE_TYPES_MAX: usize = 8;

/// Whether operations are durable at once.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_cache {
    /// Operations are durable at once, as on flash.
    PRISM_CACHE_NONE = 0,
    /// Operations are durable after the next sync or flush.
    PRISM_CACHE_VOLATILE = 1,
}

/// The cause of a flash operation, the index of its count in `prism_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_cause {
    /// A request of the application.
    PRISM_CAUSE_HOST = 0,
    /// Cleaning (garbage collection).
    PRISM_CAUSE_GC = 1,
    /// Wear levelling.
    PRISM_CAUSE_WEAR = 2,
    /// Tables of the monitor and of trims.
    PRISM_CAUSE_MAP = 3,
    /// Merges of block-level mappings.
    PRISM_CAUSE_MERGE = 4,
    /// Refresh of aged data.
    PRISM_CAUSE_SCRUB = 5,
    /// Parity.
    PRISM_CAUSE_PARITY = 6,
    /// Padding of a program unit that had to be programmed before it was full.
    PRISM_CAUSE_PAD = 7,
    /// Read-modify-write of a partly written unit.
    PRISM_CAUSE_RMW = 8,
    /// Moves from a write cache.
    PRISM_CAUSE_FOLD = 9,
    /// Moves of valid data from a failed block.
    PRISM_CAUSE_RETIRE = 10,
}

/// How pages of a file are read and written.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_engine {
    /// By io_uring and direct I/O where the system has both and pages are multiples of 4 KiB, else
    /// portably.
    PRISM_ENGINE_BEST = 0,
    /// By io_uring and direct I/O, or not at all.
    PRISM_ENGINE_URING = 1,
    /// By plain reads and writes through the page cache.
    PRISM_ENGINE_PORTABLE = 2,
}

/// How addresses of a range are mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_mapping {
    /// Page-level mapping, in units: for writes in any order; the largest map.
    PRISM_MAP_PAGE = 0,
    /// Block-level mapping: for whole blocks that are written in order.
    PRISM_MAP_BLOCK = 1,
    /// Block-level mapping with log blocks for each group of blocks.
    PRISM_MAP_HYBRID = 2,
}

/// How the block of a range to be cleaned is chosen.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_cleaning {
    /// The block with the least valid data.
    PRISM_CLEAN_GREEDY = 0,
    /// The block that was filled first.
    PRISM_CLEAN_FIFO = 1,
    /// The block with the best ratio of benefit to cost, weighted by age.
    PRISM_CLEAN_COST_BENEFIT = 2,
    /// The block that has not changed for longest.
    PRISM_CLEAN_LRU = 3,
}

/// How long data is expected to live; each has the placement handle of its number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_lifetime {
    /// Unknown.
    PRISM_LIFE_UNKNOWN = 0,
    /// Overwritten or deleted soon.
    PRISM_LIFE_SHORT = 1,
    /// Between short and long.
    PRISM_LIFE_MEDIUM = 2,
    /// Not changed for long.
    PRISM_LIFE_LONG = 3,
    /// Never changed.
    PRISM_LIFE_EXTREME = 4,
}

/// The geometry of a device.
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
    /// Out-of-band bytes of each page; 0 on zoned devices.
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
    /// Number of page types: 1 if all pages have the same times.
    pub page_types: u64,
    /// Nanoseconds of an erase.
    pub t_erase_ns: u64,
    /// Nanoseconds of a command on the channel, before each operation.
    pub t_command_ns: u64,
    /// Bandwidth of a channel; 0 for one that is infinitely fast.
    pub bus_bytes_per_second: u64,
}

/// When LUNs are exchanged to level wear.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_wear_policy {
    /// sizeof(prism_wear_policy).
    pub size: usize,
    /// LUNs are exchanged if their mean erase counts differ by more than this...
    pub min_gap: u64,
    /// ... and by more than this fraction of the device's mean.
    pub delta: f64,
    /// Upper limit of erases for levelling, as a fraction of all erases.
    pub budget: f64,
}

/// Options of a session with a device; none is stored on flash.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_options {
    /// sizeof(prism_options).
    pub size: usize,
    /// The times of a device with virtual time; NULL for one without.
    pub timing: *const prism_timing,
    /// When LUNs are exchanged automatically; NULL for never.
    pub wear: *const prism_wear_policy,
}

/// How a file is opened or made. All zero means the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_file_settings {
    /// sizeof(prism_file_settings).
    pub size: usize,
    /// One of `prism_engine`.
    pub engine: u32,
    /// Limit of writes in flight of each of the four writers for blocking calls: at most 1024; 0
    /// for 64. Each takes a page of memory. Queues have a depth of their own.
    pub depth: u32,
    /// 1 to open the file for reading only, which several processes can do at once; else 0.
    pub read_only: u32,
    /// 1 to write zeros to the whole file when it is made: it takes its space on disk at once, and
    /// syncs become faster. 0 for a sparse file. Opening ignores it.
    pub preallocate: u32,
}

/// The size and the limits of a new share.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_allocation {
    /// sizeof(prism_allocation).
    pub size: usize,
    /// Bytes for the application.
    pub capacity: u64,
    /// Limit of reads and writes together, in bytes/s; 0 for no limit.
    pub bandwidth: u64,
    /// Over-provisioning in percent of the capacity.
    pub over_provisioning: u32,
    /// Blocks that may be partly written at once, where the device limits them; 0 for a part of the
    /// limit in proportion to the share's LUNs.
    pub open_blocks: u32,
}

/// The geometry of a share. Channels can have different numbers of LUNs, which
/// `prism_share_channel` returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_share_geometry {
    /// sizeof(prism_share_geometry).
    pub size: usize,
    /// Bytes of all LUNs except over-provisioning.
    pub capacity: u64,
    /// Channels on which the share has LUNs.
    pub channels: u32,
    /// LUNs, including over-provisioning.
    pub luns: u32,
    /// LUNs of over-provisioning.
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

/// A share, as listed by `prism_device_share`.
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

/// Operations on flash, by cause: `programs[PRISM_CAUSE_GC]`.
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
    /// Pairs of LUNs exchanged since the device was formatted.
    pub exchanges: u64,
    /// Erases that levelling has cost since then, at most.
    pub erases: u64,
}

/// The configuration of a range of the policy level.
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
    /// Upper limit of log blocks of a group (K), with `PRISM_MAP_HYBRID`; else 0.
    pub group_log_blocks: u32,
    /// Over-provisioning in percent of the range, or `PRISM_REST`. The paper has 25.
    pub over_provisioning: u32,
    /// Placement handles: kinds of data that are written to different blocks; 0 counts as 1.
    pub handles: u32,
    /// Blocks that may be partly written at once; 0 for a default.
    pub open_blocks: u32,
    /// 0.
    pub reserved: u32,
}

/// A range, as listed by `prism_policy_range`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_range_info {
    /// sizeof(prism_range_info).
    pub size: usize,
    /// Its first address.
    pub begin: u64,
    /// The address after its last.
    pub end: u64,
    /// Bytes of its mapped units.
    pub mapped: u64,
    /// Blocks of the share that it owns.
    pub blocks: u32,
    /// Blocks that are written in parallel for data of one kind.
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

/// The attributes of an object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_attributes {
    /// sizeof(prism_attributes).
    pub size: usize,
    /// 1 if its reads and writes have priority, else 0.
    pub priority: u32,
    /// 1 if it cannot be written, truncated or deleted, else 0.
    pub read_only: u32,
    /// 1 if it will not be changed for long, else 0.
    pub cold: u32,
    /// One of `prism_lifetime`.
    pub lifetime: u32,
}

/// Content of a key-value store, and its operations since it was opened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_kv_info {
    /// sizeof(prism_kv_info).
    pub size: usize,
    /// Keys that have a value.
    pub records: u64,
    /// Bytes of these keys and values.
    pub live_bytes: u64,
    /// Bytes that they are charged, including headers and tombstones.
    pub charged_bytes: u64,
    /// The limit of bytes charged.
    pub capacity_bytes: u64,
    /// Bytes of keys and values set, and of keys deleted.
    pub written_bytes: u64,
    /// Pages programmed, for any cause.
    pub programs: u64,
    /// Bytes programmed divided by bytes written; 0 before the first.
    pub write_amplification: f64,
}

/// A page of a share; calls on a block ignore `page`.
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

/// The completion of a queued command.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_completion {
    /// sizeof(prism_completion).
    pub size: usize,
    /// The tag with which the command was submitted.
    pub tag: u64,
    /// The end of the command, in nanoseconds of virtual time.
    pub end_ns: u64,
    /// Bytes that a read has written to the buffer; 0 for other commands.
    pub length: u64,
    /// The result, a `prism_status`.
    pub status: i32,
    /// 0.
    pub reserved: u32,
    /// The buffer of the command, which is the caller's again; NULL if it had none.
    pub buffer: *mut prism_buffer,
}

/// The result of an allocation at the function level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_allocated {
    /// sizeof(prism_allocated).
    pub size: usize,
    /// Its address.
    pub at: prism_address,
    /// How many more of the same unit the channel has without a wait, excluding over-provisioning.
    /// 0 if this was the last one.
    pub free_left: u32,
    /// Trimmed blocks of the channel that are not erased yet.
    pub erasing: u32,
}

/// A block that is allocated at the function level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_owned_block {
    /// Its first page.
    pub at: prism_address,
    /// The word of its owner, as passed to `prism_function_allocate_for`; 0 if it has none.
    pub owner: u64,
    /// The page that is to be written next.
    pub written: u32,
    /// 0.
    pub reserved: u32,
}

/// The result of levelling, and the wear of the blocks of a share.
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

/// Two blocks whose data levelling has moved; their addresses still refer to the same data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct prism_pair {
    /// The block whose data moved from a worn block to a fresh one.
    pub hot: prism_address,
    /// The block whose cold data moved to the worn block.
    pub cold: prism_address,
}

sized!(
    prism_geometry,
    prism_timing,
    prism_wear_policy,
    prism_options,
    prism_file_settings,
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
    prism_allocated,
    prism_wear_level,
);
sized!(prism_completion from std::mem::offset_of!(prism_completion, buffer));
