//! Drives drawn at random: every option of a device file takes part, each run has
//! another mixture, and many are as full as a device file allows.

use prism_base::{Bytes, Nanos, Rng};
use prism_ftl::{ConfigError, Frontiers, VictimPolicy};
use prism_nand::PageTimes;
use prism_ssd::device::{Mapping, WriteCache};
use prism_ssd::{Device, DeviceError};

/// One of `items`, each equally likely.
pub fn one_of<T: Copy>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.below(items.len() as u64) as usize]
}

/// The largest capacity in mapping units that `device` may have; 0 if none.
pub fn most_units(device: &Device) -> u64 {
    let mut huge = device.clone();
    huge.drive.capacity = Bytes(u64::from(device.geometry().units()) * device.ftl.mapping_unit.0);
    match huge.check() {
        Err(DeviceError::Ftl(ConfigError::NoSpare { usable, .. })) => usable,
        // A watermark that does not fit the blocks is refused whatever the capacity.
        Err(DeviceError::Ftl(_)) => 0,
        other => panic!("all of the flash cannot be promised: {other:?}"),
    }
}

/// Any victim policy, with small parameters, that tell on a drive of few blocks.
fn victim(rng: &mut Rng) -> VictimPolicy {
    match one_of(rng, &VictimPolicy::EXAMPLES) {
        VictimPolicy::DChoices { .. } => VictimPolicy::DChoices { d: 1 + rng.below(5) as u32 },
        VictimPolicy::WindowedGreedy { .. } => {
            VictimPolicy::WindowedGreedy { window: 1 + rng.below(8) as u32 }
        }
        other => other,
    }
}

/// A small drive with everything drawn from `rng`.
pub fn device(rng: &mut Rng) -> Device {
    loop {
        let mut device = Device::preset("consumer-nvme").unwrap();
        device.ftl.mapping_unit = Bytes(one_of(rng, &[512, 4096]));
        let (channels, dies) = one_of(rng, &[(1, 1), (1, 2), (2, 1), (1, 3), (3, 1)]);
        device.flash.channels = channels;
        device.flash.dies_per_channel = dies;
        device.flash.planes = 1 + rng.below(2) as u32;
        device.flash.multi_plane = rng.chance(0.5);
        device.flash.blocks_per_plane = 8 + rng.below(12) as u32;
        device.flash.pages_per_block = one_of(rng, &[2, 3, 4, 8, 16]);
        device.flash.page = Bytes(device.ftl.mapping_unit.0 * (1 + rng.below(2)));
        device.flash.t_read = PageTimes::uniform(Nanos(1_000 + rng.below(50_000)));
        device.flash.t_program = PageTimes::uniform(Nanos(1_000 + rng.below(300_000)));
        device.flash.t_erase = Nanos(1_000 + rng.below(3_000_000));
        device.ftl.frontiers = one_of(rng, &[Frontiers::Shared, Frontiers::Separate]);
        device.ftl.victim = victim(rng);
        device.ftl.free_blocks_low = 2 + rng.below(3) as u32;
        device.ftl.free_blocks_high = device.ftl.free_blocks_low + rng.below(3) as u32;
        let row = u64::from(device.geometry().units_per_row()) * device.ftl.mapping_unit.0;
        device.drive.write_buffer = Bytes(row + rng.below(4 * row));
        device.drive.write_cache =
            one_of(rng, &[WriteCache::WriteBack, WriteCache::WriteBack, WriteCache::WriteThrough]);
        device.drive.power_loss_protection = rng.chance(0.4);
        device.drive.firmware_read = Nanos(rng.below(2_000));
        device.drive.firmware_write = Nanos(rng.below(2_000));
        device.drive.queue_depth = one_of(rng, &[1, 2, 6, 32]);
        let most = most_units(&device);
        let units = one_of(rng, &[most, most, most * 9 / 10, most / 2]);
        if units >= 64 {
            device.drive.capacity = Bytes(units * device.ftl.mapping_unit.0);
            device.check().unwrap();
            return device;
        }
    }
}

/// A small drive with a hybrid mapping and everything drawn from `rng`, often as full as its
/// bound allows, and often with a single log block.
pub fn hybrid(rng: &mut Rng) -> Device {
    loop {
        let mut device = device(rng);
        device.ftl.mapping = Mapping::Hybrid;
        device.ftl.victim = VictimPolicy::Fifo;
        device.ftl.frontiers = Frontiers::Separate;
        device.ftl.group_blocks = Some(1 + rng.below(4) as u32);
        device.ftl.group_log_blocks = Some(1 + rng.below(4) as u32);
        device.ftl.log_share = Some(one_of(rng, &[0.01, 0.07, 0.5]));
        device.ftl.free_blocks_low = rng.below(3) as u32;
        device.ftl.free_blocks_high = device.ftl.free_blocks_low + rng.below(2) as u32;
        device.flash.superblock_dies =
            if rng.chance(0.3) { device.flash.channels * device.flash.dies_per_channel } else { 1 };
        device.drive.power_loss_protection = true;
        let row = u64::from(device.geometry().units_per_row()) * device.ftl.mapping_unit.0;
        device.drive.write_buffer = Bytes(row + rng.below(4 * row));
        let most = most_units(&device);
        let units = one_of(rng, &[most, most, most * 9 / 10, most / 2]);
        if units >= 64 {
            device.drive.capacity = Bytes(units * device.ftl.mapping_unit.0);
            device.check().unwrap();
            return device;
        }
    }
}
