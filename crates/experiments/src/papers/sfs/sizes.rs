//! Random writes by size: the size at which they become as fast as sequential ones.

use prism_base::{Bytes, Rng};
use prism_ftl::{Frontiers, VictimPolicy};
use prism_nand::Cause;
use prism_ssd::spec::Mapping;
use prism_ssd::{DriveSpec, HostOp, InitialState, Request};

use super::Bench;
use crate::drives::{prepared, preset};
use crate::load::closed_loop;
use crate::scale::Scale;

named_enum! {
    /// The drives of the paper.
    pub enum Ssd {
        /// SLC, SATA.
        H = "SSD-H",
        /// MLC, SATA.
        M = "SSD-M",
        /// MLC, USB.
        L = "SSD-L",
    }
}

impl Ssd {
    /// The preset that models it.
    #[must_use]
    pub fn preset(self) -> &'static str {
        match self {
            Self::H => "sfs-slc",
            Self::M => "sfs-mlc",
            Self::L => "sfs-usb",
        }
    }

    /// Megabytes a second in the paper: sequential writes, and random writes of 4 KB.
    #[must_use]
    pub fn published(self) -> (f64, f64) {
        match self {
            Self::H => (170.0, 5.3),
            Self::M => (87.0, 0.6),
            Self::L => (38.0, 0.002),
        }
    }
}

named_enum! {
    /// The mapping of a drive.
    pub enum Map {
        /// Page-level mapping.
        Page = "page",
        /// N/K: block-level mapping with log blocks that the logical blocks of a group share.
        Groups = "N/K",
        /// FAST: block-level mapping with log blocks that all logical blocks share, and one for
        /// sequential runs.
        Fast = "FAST",
        /// BAST: block-level mapping with log blocks that belong to one logical block each.
        Bast = "BAST",
    }
}

impl Map {
    /// The mappings of the paper's simulations, and N/K.
    pub const SEGMENTS: [Self; 3] = [Self::Fast, Self::Groups, Self::Page];
}

/// The measurements of random writes of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeRow {
    /// The drive.
    pub ssd: Ssd,
    /// The mapping.
    pub map: Map,
    /// The size of a block of all dies, which block-level mappings erase together.
    pub erase_block: Bytes,
    /// Size of each write, at a random multiple of it.
    pub size: Bytes,
    /// Bytes a second.
    pub rate: f64,
    /// Bytes a second of sequential writes of a block each.
    pub sequential: f64,
    /// Units programmed per unit that the host wrote.
    pub write_amplification: f64,
}

impl SizeRow {
    /// The rate over the sequential rate.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.rate / self.sequential
    }
}

/// N and K: the logical blocks of a group, and the maximum of its log blocks. There are fewer
/// groups than log blocks, so that random writes do not close log blocks before they are full.
pub const GROUP: (u32, u32) = (32, 8);
/// Maximal share of log blocks among all blocks: about half of the spare flash, our assumption.
const LOG_SHARE: f64 = 0.05;
/// Writes in flight: the paper uses NCQ.
const DEPTH: u32 = 4;
/// Writes before the measurement, and again during it, if each write merges a block.
const MERGED_WRITES: u64 = 800;

/// Every size on `ssd` with `map`.
pub(super) fn rows(bench: Bench, ssd: Ssd, map: Map) -> Vec<SizeRow> {
    let device = device(bench, ssd, map);
    let erase_block = erase_block(&device);
    let sequential = run(bench, &device, erase_block, Order::Sequential).0;
    sizes(erase_block)
        .into_iter()
        .map(|size| {
            let (rate, write_amplification) = run(bench, &device, size, Order::Random);
            SizeRow { ssd, map, erase_block, size, rate, sequential, write_amplification }
        })
        .collect()
}

/// The preset with `map` and fewer blocks, and the same share of spare flash.
fn device(bench: Bench, ssd: Ssd, map: Map) -> DriveSpec {
    let mut device = preset(ssd.preset());
    let blocks = match bench.scale {
        Scale::Full => 256,
        Scale::Quarter => 96,
    };
    let full = u64::from(device.flash.blocks_per_plane);
    let capacity = device.drive.capacity.0 / full * u64::from(blocks);
    device.flash.blocks_per_plane = blocks;
    // The capacity is a multiple of the erase block. If a fill ended inside one, the log of that
    // group would stay shifted against its logical blocks and would always need full merges.
    let block = erase_block(&device).0;
    device.drive.capacity = Bytes(capacity / block * block);
    if map == Map::Page {
        return device;
    }
    device.flash.superblock_dies = device.flash.channels * device.flash.dies_per_channel;
    device.drive.power_loss_protection = true;
    let ftl = &mut device.ftl;
    (ftl.frontiers, ftl.log_share) = (Frontiers::Separate, Some(LOG_SHARE));
    (ftl.free_blocks_low, ftl.free_blocks_high) = (0, 0);
    (ftl.mapping, ftl.victim) = match map {
        Map::Bast => (Mapping::Bast, VictimPolicy::Lru),
        Map::Fast => (Mapping::Fast, VictimPolicy::Fifo),
        Map::Page | Map::Groups => (Mapping::Hybrid, VictimPolicy::Fifo),
    };
    if map == Map::Groups {
        (ftl.group_blocks, ftl.group_log_blocks) = (Some(GROUP.0), Some(GROUP.1));
    }
    device
}

/// The bytes of a block of every die.
fn erase_block(device: &DriveSpec) -> Bytes {
    let geometry = device.geometry();
    Bytes(u64::from(geometry.units_per_block() * geometry.die_groups()) * geometry.unit.0)
}

/// The sizes of writes: powers of four from a page up to well below a block, then fractions and
/// multiples of a block.
fn sizes(block: Bytes) -> Vec<Bytes> {
    let small = (0..).map(|power| 4096 << (2 * power)).take_while(|&size| size < block.0 / 6);
    let parts = [block.0 / 4, block.0 / 2, block.0, 2 * block.0, 4 * block.0];
    small.chain(parts).map(Bytes).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Sequential,
    Random,
}

/// Bytes a second and write amplification of writes of `size`, after as many writes as use up the
/// spare flash or the log. With page-level mapping the drive starts in the steady state of small
/// random writes; with block-level mappings, or if whole blocks are written, it starts after a
/// sequential fill.
fn run(bench: Bench, device: &DriveSpec, size: Bytes, order: Order) -> (f64, f64) {
    // After a sequential fill, writes of whole erase blocks stay aligned to blocks. After other
    // writes a drive with page-level mapping begins each of them inside a block, for good.
    let whole = size.0.is_multiple_of(erase_block(device).0);
    let state = match (device.ftl.mapping, order) {
        (Mapping::Page, Order::Random) if !whole => InitialState::Steady,
        _ => InitialState::Filled,
    };
    let mut drive = prepared(device.clone(), state, bench.seed);
    let places = device.capacity().0 / size.0;
    let mut rng = Rng::stream(bench.seed, "sfs.sizes");
    let mut turn = 0;
    let mut next = |_| {
        let place = if order == Order::Random { rng.below(places) } else { turn % places };
        turn += 1;
        Request::new(HostOp::Write, place * size.0, size.0, 0)
    };
    let writes = writes(device, size);
    closed_loop(&mut drive, DEPTH, writes, &mut next);
    let before = *drive.flash_counts();
    let tally = closed_loop(&mut drive, DEPTH, writes, &mut next);
    let flash = drive.flash_counts().since(&before);
    let amplification = flash.units.total() as f64 / flash.units[Cause::Host] as f64;
    (tally.rate(), amplification)
}

/// The number of writes before the measurement, and again during it: the capacity with page-level
/// mapping, one and a half times the log if log blocks are merged when they are full.
fn writes(device: &DriveSpec, size: Bytes) -> u64 {
    let unit = device.ftl.mapping_unit;
    let units = match device.ftl.mapping {
        Mapping::Page | Mapping::Dftl | Mapping::Zns => u64::from(device.logical_units()),
        Mapping::Block | Mapping::Bast => MERGED_WRITES,
        Mapping::Fast | Mapping::Hybrid => {
            (1.5 * LOG_SHARE * f64::from(device.geometry().units())) as u64
        }
    };
    (units / size.0.div_ceil(unit.0)).max(4 * u64::from(DEPTH))
}
