//! Random drives, over every option of a device file; many have the largest capacity that a device
//! file allows.

use prism_base::{Bytes, Nanos, Rng};
use prism_engine::{ChannelArbitration, CleaningMode, ReadTransfer, Scheduler};
use prism_ftl::{ConfigError, Frontiers, VictimPolicy};
use prism_nand::PageTimes;
use prism_ssd::spec::{
    Cell, MapLoad, Mapping, RangeSpec, SlcSpec, SlcUsage, SuspendSpec, WriteCache,
};
use prism_ssd::{DriveSpec, DriveSpecError};

/// One of `items`, each equally likely.
pub fn one_of<T: Copy>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.below(items.len() as u64) as usize]
}

/// The largest valid capacity of `device` in mapping units; 0 if there is none.
pub fn most_units(device: &DriveSpec) -> u64 {
    let mut huge = device.clone();
    huge.drive.capacity = Bytes(u64::from(device.geometry().units()) * device.ftl.mapping_unit.0);
    match huge.check() {
        Err(DriveSpecError::Ftl(ConfigError::NoSpare { usable, .. })) => usable,
        // A watermark that does not fit the blocks is invalid at any capacity.
        Err(DriveSpecError::Ftl(_) | DriveSpecError::Geometry(_)) => 0,
        other => panic!("unexpected error: {other:?}"),
    }
}

/// Any victim policy, with parameters small enough to matter on a drive of few blocks.
fn victim(rng: &mut Rng) -> VictimPolicy {
    match one_of(rng, &VictimPolicy::EXAMPLES) {
        VictimPolicy::DChoices { .. } => VictimPolicy::DChoices { d: 1 + rng.below(5) as u32 },
        VictimPolicy::WindowedGreedy { .. } => {
            VictimPolicy::WindowedGreedy { window: 1 + rng.below(8) as u32 }
        }
        other => other,
    }
}

/// A small drive with random options.
pub fn device(rng: &mut Rng) -> DriveSpec {
    loop {
        let mut device = DriveSpec::preset("consumer-nvme").unwrap();
        device.ftl.mapping_unit = Bytes(one_of(rng, &[512, 4096]));
        let (channels, dies) = one_of(rng, &[(1, 1), (1, 2), (2, 1), (1, 3), (3, 1)]);
        device.flash.channels = channels;
        device.flash.dies_per_channel = dies;
        device.flash.planes = 1 + rng.below(2) as u32;
        device.flash.multi_plane = rng.chance(0.5);
        device.flash.blocks_per_plane = 8 + rng.below(12) as u32;
        device.flash.pages_per_block = one_of(rng, &[2, 3, 4, 8, 16]);
        device.flash.pages_per_program = 1;
        device.flash.page = Bytes(device.ftl.mapping_unit.0 * (1 + rng.below(2)));
        if device.flash.multi_plane && rng.chance(0.2) {
            // A mapping unit over all planes.
            device.ftl.mapping_unit = device.flash.page;
            device.ftl.mapping_unit.0 *= u64::from(device.flash.planes);
        }
        draw_flash(&mut device, rng);
        device.flash.t_erase = Nanos(1_000 + rng.below(3_000_000));
        device.ftl.frontiers = one_of(rng, &Frontiers::ALL);
        device.ftl.victim = victim(rng);
        device.ftl.free_blocks_low = 2 + rng.below(3) as u32;
        device.ftl.free_blocks_high = device.ftl.free_blocks_low + rng.below(3) as u32;
        draw_ftl(&mut device, rng);
        let program_unit = device.geometry().program_unit_bytes().0;
        let beyond_least = rng.below(4 * program_unit);
        device.drive.write_cache =
            one_of(rng, &[WriteCache::WriteBack, WriteCache::WriteBack, WriteCache::WriteThrough]);
        device.drive.power_loss_protection = rng.chance(0.4);
        device.drive.write_buffer = Bytes(device.write_buffer_min().0 + beyond_least);
        device.drive.firmware_read = Nanos(rng.below(2_000));
        device.drive.firmware_write = Nanos(rng.below(2_000));
        device.drive.queue_depth = one_of(rng, &[1, 2, 6, 32]);
        draw_drive(&mut device, rng);
        let most = most_units(&device);
        let units = one_of(rng, &[most, most, most * 9 / 10, most / 2]);
        device.drive.capacity = Bytes(units * device.ftl.mapping_unit.0);
        if device.ftl.placement_handles == 0 && rng.chance(0.2) {
            // Segments keep blocks open, possibly more than such a drive can spare.
            let segment = units / (1 + rng.below(3)) + 1;
            device.ftl.segment = Some(Bytes(segment * device.ftl.mapping_unit.0));
            if device.check().is_err() {
                device.ftl.segment = None;
            }
        }
        if units >= 64 {
            device.check().unwrap();
            return device;
        }
    }
}

/// Kinds of FTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One stream, the map in memory.
    Page,
    /// The map on flash.
    Dftl,
    /// Streams by address.
    Segments,
    /// Streams by placement handle.
    Handles,
    /// A block-level or hybrid mapping.
    ByBlock(Mapping),
    /// Address ranges with mappings of their own.
    Ranges,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Page,
        Self::Dftl,
        Self::Segments,
        Self::Handles,
        Self::ByBlock(Mapping::Hybrid),
        Self::ByBlock(Mapping::Block),
        Self::ByBlock(Mapping::Bast),
        Self::ByBlock(Mapping::Fast),
        Self::Ranges,
    ];

    /// A small drive of this kind with random other options.
    pub fn draw(self, rng: &mut Rng) -> DriveSpec {
        loop {
            let device = match self {
                Self::ByBlock(mapping) => mapped_by(mapping, rng),
                Self::Ranges => by_block(rng),
                _ => device(rng),
            };
            let ftl = &device.ftl;
            let is = match self {
                Self::ByBlock(_) => device.ranges.is_empty(),
                Self::Ranges => !device.ranges.is_empty(),
                Self::Dftl => ftl.mapping == Mapping::Dftl,
                Self::Segments => ftl.segment.is_some(),
                Self::Handles => ftl.placement_handles > 1,
                _ => ftl.mapping == Mapping::Page && ftl.segment.is_none(),
            };
            if is {
                return device;
            }
        }
    }
}

/// Block-level and hybrid mappings.
pub const BY_BLOCK: [Mapping; 4] = [Mapping::Hybrid, Mapping::Bast, Mapping::Block, Mapping::Fast];

/// A small drive with a random block-level or hybrid mapping and random other options, often with
/// the largest capacity, and often with a single log block.
pub fn by_block(rng: &mut Rng) -> DriveSpec {
    let mapping = one_of(rng, &BY_BLOCK);
    mapped_by(mapping, rng)
}

/// The same, with the given mapping.
pub fn mapped_by(mapping: Mapping, rng: &mut Rng) -> DriveSpec {
    loop {
        let mut device = device(rng);
        device.ftl.mapping = mapping;
        device.ftl.segment = None;
        device.ftl.map_cache = None;
        device.ftl.map_load = MapLoad::Entry;
        device.ftl.placement_handles = 0;
        device.ftl.wear_least_worn_first = false;
        device.ftl.wear_move_behind_mean = None;
        device.ftl.wear_victims_above_mean = None;
        device.flash.copy_back = false;
        device.flash.superblock_parity = false;
        device.ftl.victim = VictimPolicy::Fifo;
        device.ftl.frontiers = Frontiers::Separate;
        if device.ftl.mapping == Mapping::Hybrid {
            device.ftl.group_blocks = Some(1 + rng.below(4) as u32);
            device.ftl.group_log_blocks = Some(1 + rng.below(4) as u32);
        }
        if matches!(device.ftl.mapping, Mapping::Block | Mapping::Fast) {
            set_single_unit_program_units(&mut device, rng);
        }
        device.ftl.log_share = Some(one_of(rng, &[0.01, 0.07, 0.5]));
        device.ftl.free_blocks_low = rng.below(3) as u32;
        device.ftl.free_blocks_high = device.ftl.free_blocks_low + rng.below(2) as u32;
        device.drive.power_loss_protection = rng.chance(0.3);
        device.drive.discards = device.drive.power_loss_protection;
        if mapping == Mapping::Block && !device.drive.power_loss_protection {
            device.flash.cell = Cell::Slc;
        }
        let program_unit =
            u64::from(device.geometry().units_per_program_unit()) * device.ftl.mapping_unit.0;
        device.drive.write_buffer =
            Bytes(device.write_buffer_min().0 + rng.below(4 * program_unit));
        let most = most_units(&device);
        let units = one_of(rng, &[most, most, most * 9 / 10, most / 2]);
        if units >= 64 {
            device.drive.capacity = Bytes(units * device.ftl.mapping_unit.0);
            device.check().unwrap();
            let mixed = with_ranges(device.clone(), rng);
            return if rng.chance(0.3) && mixed.check().is_ok() { mixed } else { device };
        }
    }
}

/// The same drive with another mapping for its first addresses, or for all but the last.
fn with_ranges(mut device: DriveSpec, rng: &mut Rng) -> DriveSpec {
    let all = [Mapping::Page, Mapping::Page, Mapping::Block, Mapping::Bast, Mapping::Fast];
    let mut share = one_of(rng, &[0.3, 0.5]);
    for _ in 0..1 + rng.below(2) {
        let mapping = one_of(rng, &all);
        let by_unit = (mapping == Mapping::Page).then_some(2 + rng.below(2) as u32);
        device.ranges.push(RangeSpec {
            share,
            flash_share: Some(share * one_of(rng, &[0.9, 1.0, 1.1])),
            mapping,
            victim: None,
            free_blocks_low: by_unit,
            free_blocks_high: by_unit,
            group_blocks: None,
            group_log_blocks: None,
            log_share: (mapping != Mapping::Page).then_some(0.3),
        });
        share /= 2.0;
    }
    device.ftl.free_blocks_idle = 0;
    device.drive.capacity.0 = device.drive.capacity.0 * 7 / 10;
    device
}

/// Sets program units of one unit, for mappings that write units at fixed offsets, and cells of
/// which some allow pages to be left out.
fn set_single_unit_program_units(device: &mut DriveSpec, rng: &mut Rng) {
    let flash = &mut device.flash;
    flash.pages_per_program = 1;
    device.ftl.mapping_unit = flash.page;
    if flash.multi_plane {
        device.ftl.mapping_unit.0 *= u64::from(flash.planes);
    }
    if rng.chance(0.5) {
        flash.cell = Cell::Slc;
        flash.program_gaps = true;
    }
}

/// A small drive with SLC blocks for `usage` and random other options.
pub fn tiers(rng: &mut Rng, usage: SlcUsage) -> DriveSpec {
    loop {
        let mut device = device(rng);
        device.ftl.mapping = Mapping::Page;
        device.ftl.map_cache = None;
        device.ftl.segment = None;
        device.flash.copy_back = false;
        device.flash.cell = one_of(rng, &[Cell::Mlc, Cell::Tlc, Cell::Qlc]);
        device.flash.pages_per_block = one_of(rng, &[12, 16, 24]);
        device.flash.pages_per_program =
            one_of(rng, &[1, device.flash.cell.bits()]).max(u32::from(rng.chance(0.1)));
        if device.flash.pages_per_program > 1 {
            device.flash.pages_per_block = 24 * one_of(rng, &[1, 2]);
            device.flash.t_program = PageTimes::uniform(Nanos(1_000 + rng.below(300_000)));
        }
        let cache = usage == SlcUsage::Cache;
        let low = if cache { rng.below(3) as u32 } else { 2 + rng.below(2) as u32 };
        let high = low + rng.below(2) as u32;
        let slc = SlcSpec {
            blocks: high + 1 + rng.below(6) as u32 + if cache { 0 } else { 4 },
            usage,
            below: None,
            handle: None,
            up_to: None,
            fold_when_idle: cache.then(|| rng.chance(0.7)),
            free_blocks_low: low,
            free_blocks_high: high,
            t_read: Nanos(500 + rng.below(20_000)),
            t_program: Nanos(500 + rng.below(50_000)),
            t_erase: Nanos(1_000 + rng.below(1_000_000)),
            endurance: 1,
        };
        device.flash.blocks_per_plane += slc.blocks;
        device.slc = Some(slc);
        if cache {
            device.ftl.placement_handles = 0;
            device.ftl.free_blocks_low += 1;
            device.ftl.free_blocks_high += 1;
            device.ftl.free_blocks_critical = 3;
            device.ftl.idle_after = Nanos(rng.below(1_000_000));
        }
        let program_unit = device.geometry().program_unit_bytes().0;
        device.drive.write_buffer =
            Bytes(device.write_buffer_min().0 + rng.below(4 * program_unit));
        if !cache {
            draw_rule(&mut device, rng);
        }
        let most = most_units(&device);
        let units = one_of(rng, &[most, most, most * 9 / 10, most / 2]);
        device.drive.capacity = Bytes(units * device.ftl.mapping_unit.0);
        if units >= 64 && device.check().is_ok() {
            return device;
        }
    }
}

/// A random rule of a region, often as large as the region can hold.
fn draw_rule(device: &mut DriveSpec, rng: &mut Rng) {
    let unit = device.ftl.mapping_unit.0;
    let handles = device.ftl.placement_handles;
    let room = device.geometry().slc_raw().0 / unit;
    let slc = device.slc.as_mut().expect("a drive with a region");
    match rng.below(3) {
        0 if handles > 0 => slc.handle = Some(rng.below(u64::from(handles)) as u32),
        1 => slc.up_to = Some(Bytes(unit * (1 + rng.below(3)))),
        _ => {
            device.drive.power_loss_protection = true;
            slc.below = Some(Bytes(unit * (1 + rng.below(room.max(2)))));
            for _ in 0..64 {
                match device.check() {
                    Err(DriveSpecError::Ftl(ConfigError::SlcRegion { usable: 1.., .. })) => {
                        let below = device.slc.as_mut().and_then(|slc| slc.below.as_mut());
                        let below = below.expect("it was just set");
                        below.0 = (below.0 * 9 / 10).max(unit);
                    }
                    _ => break,
                }
            }
        }
    }
}

fn draw_flash(device: &mut DriveSpec, rng: &mut Rng) {
    let flash = &mut device.flash;
    let dies = flash.channels * flash.dies_per_channel;
    flash.superblock_dies = one_of(rng, &[1, 1, dies]);
    flash.superblock_parity = flash.superblock_dies > 1 && rng.chance(0.5);
    if rng.chance(0.3) {
        let all = [2, 3, 4].into_iter().find(|&n| flash.pages_per_block.is_multiple_of(n));
        flash.pages_per_program = all.unwrap_or(1);
    }
    flash.cell = one_of(rng, &Cell::ALL);
    let types = 1 + rng.below(4);
    let times: Vec<_> = (0..types).map(|_| Nanos(1_000 + rng.below(50_000))).collect();
    flash.t_read = PageTimes::by_type(&times).unwrap();
    let types = if flash.pages_per_program == 1 { types } else { 1 };
    let times: Vec<_> = (0..types).map(|_| Nanos(1_000 + rng.below(300_000))).collect();
    flash.t_program = PageTimes::by_type(&times).unwrap();
    flash.t_command = Nanos(rng.below(300));
    flash.cache_read = rng.chance(0.4);
    flash.cache_program = rng.chance(0.4);
    let alone = !flash.multi_plane && flash.pages_per_program == 1;
    flash.copy_back = alone && flash.page == device.ftl.mapping_unit && rng.chance(0.5);
    device.drive.scheduler = one_of(rng, &Scheduler::ALL);
    if matches!(device.drive.scheduler, Scheduler::ReadFirst | Scheduler::Priority) {
        let what = [SuspendSpec::None, SuspendSpec::Program, SuspendSpec::Erase, SuspendSpec::Both];
        flash.suspend = one_of(rng, &what);
        flash.t_suspend = Nanos(rng.below(20_000));
    }
    let overlaps = flash.cache_read || flash.cache_program;
    let known = !overlaps && device.drive.scheduler != Scheduler::ShortestWait;
    let [commands, fifo, data] = ChannelArbitration::ALL;
    flash.channel_arbitration = one_of(rng, &[commands, fifo, if known { data } else { fifo }]);
    flash.read_transfer = one_of(rng, &ReadTransfer::ALL);
}

fn draw_ftl(device: &mut DriveSpec, rng: &mut Rng) {
    let ftl = &mut device.ftl;
    ftl.free_blocks_critical = 2 + rng.below(2) as u32;
    ftl.cleaning = one_of(rng, &CleaningMode::ALL);
    if rng.chance(0.3) {
        ftl.free_blocks_idle = ftl.free_blocks_high + rng.below(3) as u32;
        ftl.idle_after = Nanos(rng.below(1_000_000));
    }
    ftl.placement_handles = one_of(rng, &[0, 0, 1, 2, 3]);
    if rng.chance(0.3) {
        ftl.mapping = Mapping::Dftl;
        ftl.map_cache = Some(Bytes(512 + rng.below(1024)));
        ftl.map_load = one_of(rng, &[MapLoad::Entry, MapLoad::Page]);
    }
    ftl.wear_least_worn_first = rng.chance(0.5);
    ftl.wear_move_behind_mean = rng.chance(0.3).then(|| 1 + rng.below(4) as u32);
    ftl.wear_victims_above_mean = rng.chance(0.3).then(|| rng.below(3) as u32);
}

fn draw_drive(device: &mut DriveSpec, rng: &mut Rng) {
    let drive = &mut device.drive;
    drive.queues = 1 + rng.below(3) as u32;
    if rng.chance(0.5) {
        drive.queue_weights = (0..drive.queues).map(|_| 1 + rng.below(3) as u32).collect();
    }
    drive.in_service = one_of(rng, &[0, 0, 1, 2, 5]);
    drive.firmware_cores = one_of(rng, &[0, 0, 1, 2]);
    drive.merge_wait = Nanos(one_of(rng, &[0, 0, 100_000, 3_000_000]));
}
