//! The sections of a device file.

use prism_base::{Bytes, Nanos};
use prism_engine::{ChannelArbitration, CleaningMode, ReadTransfer, Scheduler};
use prism_ftl::{Frontiers, VictimPolicy};
use prism_nand::PageTimes;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::quantity;

/// `[flash]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Kind of the cells: slc, mlc, tlc, qlc. With several bits per cell and pages programmed one
    /// by one, a loss of power may destroy earlier pages of a wordline.
    pub cell: Cell,
    /// Buses; packages that share a bus (a gang) are one channel.
    pub channels: u32,
    /// Dies per channel.
    pub dies_per_channel: u32,
    /// Planes per die.
    pub planes: u32,
    /// Whether one command works on all planes of a die.
    pub multi_plane: bool,
    /// Blocks per plane.
    pub blocks_per_plane: u32,
    /// Pages per block.
    pub pages_per_block: u32,
    /// Pages per plane that one program writes: 1, or all pages of a wordline.
    #[serde(default = "one")]
    pub pages_per_program: u32,
    /// Whether pages of a block may be left out, as long as they are programmed in ascending order
    /// (SLC).
    #[serde(default)]
    pub program_gaps: bool,
    /// Size of a page of one plane.
    #[serde(deserialize_with = "quantity::bytes")]
    pub page: Bytes,
    /// tR, for all pages or by type.
    #[serde(deserialize_with = "quantity::page_times")]
    pub t_read: PageTimes,
    /// tPROG of a program unit, for all pages or by type.
    #[serde(deserialize_with = "quantity::page_times")]
    pub t_program: PageTimes,
    /// tBERS.
    #[serde(deserialize_with = "quantity::nanos")]
    pub t_erase: Nanos,
    /// Command and address cycles of each operation, on the channel.
    #[serde(default, deserialize_with = "quantity::nanos")]
    pub t_command: Nanos,
    /// Which of several uses that wait for a channel begins first.
    #[serde(default, deserialize_with = "quantity::named")]
    pub channel_arbitration: ChannelArbitration,
    /// What the read of a part of a mapping unit transfers over the channel.
    #[serde(default, deserialize_with = "quantity::named")]
    pub read_transfer: ReadTransfer,
    /// Bytes per second of a channel; `None` is infinite.
    #[serde(deserialize_with = "quantity::rate")]
    pub channel_bandwidth: Option<u64>,
    /// Cache read: the next read of a die begins while the data of the last one is transferred.
    #[serde(default)]
    pub cache_read: bool,
    /// Cache program: the data of the next program is transferred while a die programs.
    #[serde(default)]
    pub cache_program: bool,
    /// Copies within a plane do not cross the channel.
    #[serde(default)]
    pub copy_back: bool,
    /// Operations that are suspended for reads.
    #[serde(default)]
    pub suspend: SuspendSpec,
    /// Time to suspend an operation.
    #[serde(default, deserialize_with = "quantity::nanos")]
    pub t_suspend: Nanos,
    /// Dies whose blocks make a superblock; 1 for none.
    #[serde(default = "one")]
    pub superblock_dies: u32,
    /// Whether one program unit of each stripe over a superblock is parity.
    #[serde(default)]
    pub superblock_parity: bool,
    /// Rated program/erase cycles of a block.
    pub endurance: u32,
}

fn one() -> u32 {
    1
}

prism_base::named_enum! {
    /// Kinds of cells, fewest bits first, with their names in reports.
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Cell {
        /// One.
        Slc = "SLC",
        /// Two.
        Mlc = "MLC",
        /// Three.
        Tlc = "TLC",
        /// Four.
        Qlc = "QLC",
    }
}

impl Cell {
    /// Bits per cell.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::Slc => 1,
            Self::Mlc => 2,
            Self::Tlc => 3,
            Self::Qlc => 4,
        }
    }
}

/// Operations that are suspended for reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SuspendSpec {
    /// Nothing.
    #[default]
    None,
    /// Programs.
    Program,
    /// Erases.
    Erase,
    /// Both.
    Both,
}

/// `[ftl]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FtlSpec {
    /// The mapping.
    pub mapping: Mapping,
    /// Size of a mapping unit; it may differ from the page.
    #[serde(deserialize_with = "quantity::bytes")]
    pub mapping_unit: Bytes,
    /// `shared`, `separate` or `per-stream`.
    #[serde(deserialize_with = "quantity::named")]
    pub frontiers: Frontiers,
    /// Victim policy, in the form of [`VictimPolicy::from_name`].
    #[serde(deserialize_with = "victim")]
    pub victim: VictimPolicy,
    /// Cleaning of a die group (a die, or the dies of a superblock) starts below this many
    /// erased blocks.
    pub free_blocks_low: u32,
    /// Cleaning of a die group stops at this many.
    pub free_blocks_high: u32,
    /// Below this many, cleaning yields to no request.
    #[serde(default = "two")]
    pub free_blocks_critical: u32,
    /// In idle time cleaning goes on until this many; 0 for no cleaning in idle time.
    #[serde(default)]
    pub free_blocks_idle: u32,
    /// Time without requests after which idle time begins.
    #[serde(default = "ten_ms", deserialize_with = "quantity::nanos")]
    pub idle_after: Nanos,
    /// When cleaning may run above the critical watermark.
    #[serde(default = "foreground", deserialize_with = "quantity::named")]
    pub cleaning: CleaningMode,
    /// Placement handles that writes may name; 0 for none.
    #[serde(default)]
    pub placement_handles: u32,
    /// Bytes of addresses that share open blocks, for a segmented FTL.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub segment: Option<Bytes>,
    /// Memory for cached map entries of 8 bytes, for `dftl`.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub map_cache: Option<Bytes>,
    /// N: logical blocks of a data group, for `hybrid`.
    pub group_blocks: Option<u32>,
    /// K: the most log blocks of a data group, for `hybrid`.
    pub group_log_blocks: Option<u32>,
    /// Share of all blocks that may be log blocks, for block-level and hybrid mappings.
    pub log_share: Option<f64>,
    /// Bytes from the start of one zone to the next, for `zns`; its capacity is one block.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub zone_size: Option<Bytes>,
    /// Most zones that may be open, for `zns`; 0 for no limit.
    pub max_open_zones: Option<u32>,
    /// Most zones that may be active (open or closed), for `zns`; 0 for no limit.
    pub max_active_zones: Option<u32>,
    /// Whether a miss loads one entry or the whole translation page, for `dftl`.
    #[serde(default)]
    pub map_load: MapLoad,
    /// Dynamic wear levelling: the least worn erased block is opened.
    #[serde(default)]
    pub wear_least_worn_first: bool,
    /// Static wear levelling: the data of blocks this many erases below the mean of their die group
    /// is moved.
    pub wear_move_behind_mean: Option<u32>,
    /// Blocks this many erases above the mean of their die group are skipped as victims.
    pub wear_victims_above_mean: Option<u32>,
}

fn two() -> u32 {
    2
}

fn ten_ms() -> Nanos {
    Nanos(10_000_000)
}

fn foreground() -> CleaningMode {
    CleaningMode::Foreground
}

prism_base::named_enum! {
    /// Mappings, with their names in device files.
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Mapping {
        /// Page-level mapping, the whole map in memory.
        Page = "page",
        /// Block-level mapping: a rewritten logical block is copied to another block.
        Block = "block",
        /// Hybrid mapping with log blocks that belong to one logical block each (Kim and others,
        /// IEEE TCE 2002).
        Bast = "bast",
        /// Hybrid mapping with log blocks that all logical blocks share, and one for sequential
        /// writes (Lee and others, ACM TECS 2007).
        Fast = "fast",
        /// Hybrid mapping with log blocks that N logical blocks share (N/K, SAST).
        Hybrid = "hybrid",
        /// Page-level mapping, the map on flash and a part of it cached (Gupta, Kim, Urgaonkar,
        /// ASPLOS'09).
        Dftl = "dftl",
        /// Zone mapping: zones that the host writes in order and resets, each one block.
        Zns = "zns",
    }
}

impl Mapping {
    /// Whether this is a block-level or hybrid mapping, which needs merges.
    #[must_use]
    pub fn is_by_block(self) -> bool {
        matches!(self, Self::Block | Self::Bast | Self::Fast | Self::Hybrid)
    }
}

/// What a miss in the map cache loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapLoad {
    /// The missing entry, as in DFTL.
    #[default]
    Entry,
    /// All entries of its translation page; the others are the first to be evicted.
    Page,
}

pub(super) fn opt_victim<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<VictimPolicy>, D::Error> {
    victim(deserializer).map(Some)
}

fn victim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VictimPolicy, D::Error> {
    VictimPolicy::from_name(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// `[drive]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Bytes that the host may address; rounded down to whole mapping units.
    #[serde(deserialize_with = "quantity::bytes")]
    pub capacity: Bytes,
    /// Firmware time of a read or of a command without data.
    #[serde(deserialize_with = "quantity::nanos")]
    pub firmware_read: Nanos,
    /// Firmware time of a write.
    #[serde(deserialize_with = "quantity::nanos")]
    pub firmware_write: Nanos,
    /// Commands that firmware processes at once; 0 for no limit.
    #[serde(default)]
    pub firmware_cores: u32,
    /// Bytes per second of the host link; `None` is infinite.
    #[serde(deserialize_with = "quantity::rate")]
    pub link_bandwidth: Option<u64>,
    /// Whether the link transfers in both directions at once.
    #[serde(default)]
    pub link_duplex: Duplex,
    /// Commands that may be outstanding per queue.
    pub queue_depth: u32,
    /// Submission queues.
    #[serde(default = "one")]
    pub queues: u32,
    /// Weights of the queues in round-robin arbitration: commands fetched per turn; empty for one
    /// each.
    #[serde(default)]
    pub queue_weights: Vec<u32>,
    /// Commands in service at once, others wait in their queues; 0 for no limit.
    #[serde(default)]
    pub in_service: u32,
    /// Order of commands and flash operations.
    #[serde(default = "fcfs", deserialize_with = "quantity::named")]
    pub scheduler: Scheduler,
    /// Whether discards unmap units (informed cleaning) or are ignored.
    #[serde(default = "yes")]
    pub discards: bool,
    /// Size of the write buffer.
    #[serde(deserialize_with = "quantity::bytes")]
    pub write_buffer: Bytes,
    /// Whether a write completes in the buffer or on flash.
    pub write_cache: WriteCache,
    /// How long a partly written unit waits in the buffer for the host to write the rest, before
    /// the rest is read from flash; zero for no wait.
    #[serde(default, deserialize_with = "quantity::nanos")]
    pub merge_wait: Nanos,
    /// Whether the buffer and the map survive a loss of power.
    pub power_loss_protection: bool,
}

fn fcfs() -> Scheduler {
    Scheduler::Fcfs
}

fn yes() -> bool {
    true
}

/// Whether a link transfers in both directions at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// It does, as PCIe.
    #[default]
    Full,
    /// It transfers data in one direction at a time, as SATA.
    Half,
}

/// When a write completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Once its data is in the buffer.
    WriteBack,
    /// Once its data is on flash.
    WriteThrough,
}

/// `[datasheet]`: the manufacturer's figures, as far as given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datasheet {
    /// 4 KiB at queue depth 1.
    #[serde(default, deserialize_with = "quantity::opt_nanos")]
    pub random_read_latency: Option<Nanos>,
    /// 4 KiB at queue depth 1.
    #[serde(default, deserialize_with = "quantity::opt_nanos")]
    pub random_write_latency: Option<Nanos>,
    /// 4 KiB, deep queue.
    pub random_read_iops: Option<u64>,
    /// 4 KiB, deep queue, steady state.
    pub random_write_iops: Option<u64>,
    /// Bytes per second.
    #[serde(default, deserialize_with = "quantity::rate")]
    pub sequential_read: Option<u64>,
    /// Bytes per second.
    #[serde(default, deserialize_with = "quantity::rate")]
    pub sequential_write: Option<u64>,
}
