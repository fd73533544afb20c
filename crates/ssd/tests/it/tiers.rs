//! SLC blocks: times to the nanosecond, placement, and costs.

use crate::common::lab::*;
use prism_base::{Bytes, Nanos, Rng};
use prism_ftl::{ConfigError, SteadyError};
use prism_nand::Cause;
use prism_ssd::spec::{Cell, SlcSpec, SlcUsage, WriteCache};
use prism_ssd::{Drive, DriveSpec, DriveSpecError, HostOp, InitialState, Request};

/// A region of the first `units` units.
fn below(units: u64) -> DriveSpec {
    let mut device = tiers(SlcUsage::Region);
    device.slc.as_mut().unwrap().below = Some(Bytes(units * UNIT));
    device.check().unwrap();
    device
}

fn cache() -> DriveSpec {
    let device = tiers(SlcUsage::Cache);
    device.check().unwrap();
    device
}

fn written_through(program: Nanos) -> Nanos {
    FIRMWARE + link(1) + channel(1) + program
}

fn read_from(cells: Nanos) -> Nanos {
    FIRMWARE + cells + channel(1) + link(1)
}

#[test]
fn each_address_has_the_times_of_its_cells() {
    let mut drive = filled(&below(60));
    for unit in [0, 59, 60, 599, 17, 300] {
        let (read_time, program) =
            if unit < 60 { (SLC_READ, SLC_PROGRAM) } else { (READ, PROGRAM) };
        assert_eq!(serve(&mut drive, read(unit)), read_from(read_time), "unit {unit}");
        assert_eq!(serve(&mut drive, write(unit)), written_through(program), "unit {unit}");
        rest(&mut drive, Nanos(1_000_000_000));
    }
    drain(&mut drive);
}

/// Parity takes a program for each page, a unit of the host a single one. So parity falls behind
/// until the region has no room for more program units in flight. The host goes on when the parity
/// has been programmed.
#[test]
fn a_region_that_waits_for_parity_goes_on() {
    let mut device = tiers(SlcUsage::Region);
    let slc = device.slc.as_mut().expect("a drive with a region");
    (slc.blocks, slc.below) = (8, Some(Bytes(10 * UNIT)));
    device.flash.cell = Cell::Tlc;
    device.flash.pages_per_block = 48;
    device.flash.pages_per_program = 3;
    device.flash.dies_per_channel = 2;
    device.flash.superblock_dies = 2;
    device.flash.superblock_parity = true;
    device.check().unwrap();
    let mut drive = empty(&device);
    let latencies = (0..100).map(|number| serve(&mut drive, write(number % 10)));
    let at_once = latencies.filter(|&latency| latency == written_through(SLC_PROGRAM)).count();
    assert!((20..80).contains(&at_once), "{at_once} of 100 writes do not wait for parity");
    drain(&mut drive);
}

/// Three pages per wordline: an SLC program unit takes one program for each page with data, any
/// other program unit one program for all pages.
#[test]
fn an_slc_program_unit_takes_a_program_for_each_page() {
    let mut device = below(40);
    device.flash.cell = Cell::Tlc;
    device.flash.pages_per_block = 48;
    device.flash.pages_per_program = 3;
    let mut drive = empty(&device);
    for units in 1..=3 {
        let in_slc = serve(&mut drive, request(HostOp::Write, 3 * units, units));
        let cells = times(units, SLC_PROGRAM);
        assert_eq!(in_slc, FIRMWARE + link(units) + channel(units) + cells);
        let other = serve(&mut drive, request(HostOp::Write, 100 + 3 * units, units));
        assert_eq!(other, FIRMWARE + link(units) + channel(3) + PROGRAM);
    }
    let counts = drive.flash_counts();
    assert_eq!((counts.slc_units[Cause::Host], counts.slc_units[Cause::Pad]), (6, 3));
    assert_eq!((counts.units[Cause::Host], counts.units[Cause::Pad]), (12, 6));
    assert_eq!(serve(&mut drive, read(10)), read_from(SLC_READ));
    drain(&mut drive);
}

/// Consecutive writes: as many units as the cache holds take the time of SLC, all others that of
/// the other blocks.
#[test]
fn the_cliff_is_at_the_size_of_the_cache() {
    let mut drive = empty(&cache());
    let size = u64::from(SLC_BLOCKS) * 8;
    for unit in 0..3 * size {
        let program = if unit < size { SLC_PROGRAM } else { PROGRAM };
        assert_eq!(serve(&mut drive, write(unit)), written_through(program), "unit {unit}");
    }
    let counts = *drive.flash_counts();
    assert_eq!((counts.slc_units[Cause::Host], counts.slc_overflow), (size, 2 * size));
    assert_eq!((counts.units.total(), counts.units[Cause::Fold]), (3 * size, 0));
    // In idle time the cache is emptied; folded units are programmed in addition to the written
    // ones.
    rest(&mut drive, Nanos(10_000_000_000));
    let counts = *drive.flash_counts();
    assert_eq!((counts.units[Cause::Fold], counts.slc_units.total()), (size, size));
    assert_eq!(counts.units.total(), 4 * size);
    assert_eq!(counts.erases[Cause::Fold], u64::from(SLC_BLOCKS));
    assert_eq!(serve(&mut drive, read(3)), read_from(READ));
    assert_eq!(serve(&mut drive, write(3)), written_through(SLC_PROGRAM));
    assert_eq!(serve(&mut drive, read(3)), read_from(SLC_READ));
    drain(&mut drive);
}

#[test]
fn overwritten_or_trimmed_units_are_not_folded() {
    let mut drive = empty(&cache());
    for unit in [0, 1, 2, 3, 0, 1, 4, 5, 6, 7, 8] {
        serve(&mut drive, write(unit));
    }
    serve(&mut drive, request(HostOp::Discard, 2, 1));
    // The first block holds 2 to 5 and older versions of 0 and 1; the open block is not folded.
    rest(&mut drive, Nanos(1_000_000_000));
    assert_eq!(drive.flash_counts().units[Cause::Fold], 8 - 2 - 1);
    assert_eq!(drive.flash_counts().erases[Cause::Fold], 1);
    drain(&mut drive);
}

/// With a watermark the cache is folded while the host writes.
#[test]
fn a_cache_with_a_watermark_never_overflows_at_a_low_rate() {
    let mut device = cache();
    let slc = device.slc.as_mut().unwrap();
    (slc.fold_when_idle, slc.free_blocks_low, slc.free_blocks_high) = (Some(false), 4, 6);
    let mut drive = empty(&device);
    for unit in 0..600 {
        serve(&mut drive, write(unit));
        rest(&mut drive, Nanos(3_000_000));
    }
    let counts = drive.flash_counts();
    assert_eq!((counts.slc_overflow, counts.slc_units[Cause::Host]), (0, 600));
    let left = 600 - counts.units[Cause::Fold];
    assert!((9 * 8..=13 * 8).contains(&left), "{left} units are still in the cache");
    drain(&mut drive);
}

/// Cleaning copies data to the same kind of block; here only the region has garbage.
#[test]
fn a_region_cleans_itself() {
    let mut drive = filled(&below(70));
    let mut rng = Rng::stream(1, "tiers.region");
    for _ in 0..2000 {
        serve(&mut drive, write(rng.below(70)));
    }
    let counts = *drive.flash_counts();
    assert!(counts.slc_units[Cause::Gc] > 100, "{counts:?}");
    assert_eq!(counts.units, counts.slc_units);
    for unit in 0..70 {
        assert_eq!(serve(&mut drive, read(unit)), read_from(SLC_READ));
    }
    drain(&mut drive);
}

/// More data is written with the handle of the region than the region holds.
#[test]
fn data_that_does_not_fit_a_region_is_stored_elsewhere() {
    let mut device = tiers(SlcUsage::Region);
    device.ftl.placement_handles = 2;
    device.slc.as_mut().unwrap().handle = Some(1);
    let mut drive = empty(&device);
    for unit in 0..400 {
        serve(&mut drive, Request { handle: (unit % 2) as u16, ..write(unit) });
    }
    let counts = drive.flash_counts();
    let (host, overflow) = (counts.slc_units[Cause::Host], counts.slc_overflow);
    // Sixteen blocks without three open or erased ones and a further one, 63/64 of that.
    assert_eq!((host, overflow), (95, 200 - 95));
    for _ in 0..2 {
        // Rewriting units outside the region frees nothing in it.
        serve(&mut drive, Request { handle: 1, ..write(399) });
    }
    assert_eq!(drive.flash_counts().slc_overflow, overflow + 2);
    // Without the handle the data leaves the region.
    for unit in (1..21).step_by(2) {
        serve(&mut drive, write(unit));
    }
    serve(&mut drive, Request { handle: 1, ..write(399) });
    assert_eq!(drive.flash_counts().slc_overflow, overflow + 2);
    drain(&mut drive);
}

#[test]
fn small_writes_are_stored_in_the_region() {
    let mut device = tiers(SlcUsage::Region);
    device.slc.as_mut().unwrap().up_to = Some(Bytes(2 * UNIT));
    let mut drive = empty(&device);
    for (unit, units, in_slc) in [(0, 1, 1), (8, 2, 3), (16, 3, 3), (24, 8, 3), (17, 1, 4)] {
        serve(&mut drive, request(HostOp::Write, unit, units));
        assert_eq!(drive.flash_counts().slc_units[Cause::Host], in_slc, "after {unit}");
    }
    assert_eq!(serve(&mut drive, read(17)), read_from(SLC_READ));
    assert_eq!(serve(&mut drive, read(18)), read_from(READ));
    drain(&mut drive);
}

#[test]
fn a_loaded_snapshot_behaves_as_the_original() {
    for mut device in [below(70), cache()] {
        device.drive.write_cache = WriteCache::WriteBack;
        let mut drive = prepared(&device, InitialState::Preconditioned { overwrites: 3.0 }, 3);
        let bytes = drive.save().unwrap();
        let mut again = Drive::from_saved(device, &bytes).unwrap();
        assert_eq!(again.save().unwrap(), bytes);
        let run = |drive: &mut Drive| {
            let mut rng = Rng::stream(4, "tiers.saved");
            closed_loop(drive, 8, 3000, |_| write(rng.below(600)));
            drain(drive);
            (*drive.flash_counts(), drive.now())
        };
        assert_eq!(run(&mut drive), run(&mut again));
    }
}

#[test]
fn a_prepared_drive_has_had_idle_time() {
    let (drive, prepared) =
        Drive::prepared(cache(), InitialState::Filled, 1, |_| true).unwrap().unwrap();
    let size = u64::from(SLC_BLOCKS) * 8;
    assert_eq!(prepared.counts.units[Cause::Fold], size);
    assert_eq!(prepared.counts.slc_overflow, 600 - size);
    drive.assert_consistent();
    let refused = Drive::prepared(cache(), InitialState::Steady, 1, |_| true).map(|_| ());
    assert_eq!(refused, Err(DriveSpecError::Steady(SteadyError::Slc)));
}

#[test]
fn errors_name_the_field() {
    let check = |device: &DriveSpec, change: fn(&mut DriveSpec), expected: &str| {
        let mut device = device.clone();
        change(&mut device);
        let message = device.check().unwrap_err().to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    };
    fn slc(device: &mut DriveSpec) -> &mut SlcSpec {
        device.slc.as_mut().unwrap()
    }
    let (region, cache) = (below(60), cache());
    for device in [&region, &cache] {
        check(device, |d| d.flash.cell = Cell::Slc, "flash.cell");
        check(device, |d| d.ftl.segment = Some(Bytes(1 << 16)), "ftl.segment");
        check(device, |d| slc(d).endurance = 0, "slc.endurance");
        check(device, |d| slc(d).t_read = Nanos(1 << 40), "slc.t_read");
        check(device, |d| slc(d).t_program = Nanos(1 << 40), "slc.t_program");
        check(device, |d| slc(d).t_erase = Nanos(1 << 40), "slc.t_erase");
        check(device, |d| slc(d).blocks = 0, "0 SLC blocks");
        check(device, |d| slc(d).blocks = 64, "of the 64 blocks of a die group");
        check(device, |d| slc(d).free_blocks_high = 16, "slc.free_blocks_high");
        check(device, |d| d.flash.copy_back = true, "flash.copy_back");
    }
    check(&cache, |d| slc(d).fold_when_idle = None, "slc.fold_when_idle = nothing");
    check(&cache, |d| slc(d).below = Some(Bytes(UNIT)), "slc.below");
    check(&cache, |d| slc(d).handle = Some(1), "slc.handle = 1");
    check(&cache, |d| slc(d).up_to = Some(Bytes(UNIT)), "slc.up_to");
    check(&cache, |d| d.ftl.placement_handles = 2, "ftl.placement_handles");
    check(&cache, |d| d.ftl.free_blocks_critical = 2, "ftl.free_blocks_critical");
    check(&cache, |d| d.ftl.free_blocks_low = 2, "free_blocks_low");
    check(&region, |d| slc(d).fold_when_idle = Some(true), "slc.fold_when_idle = true");
    check(&region, |d| slc(d).below = None, "region with 0 rules");
    check(&region, |d| slc(d).handle = Some(0), "region with 2 rules");
    check(&region, |d| slc(d).below = Some(Bytes(1)), "slc.below");
    check(&region, |d| slc(d).below = Some(Bytes(600 * UNIT)), "slc.below");
    check(&region, |d| slc(d).below = Some(Bytes(120 * UNIT)), "120 units belong in SLC");
    check(&region, |d| slc(d).free_blocks_low = 1, "slc.free_blocks_low");
    check(&region, |d| d.drive.power_loss_protection = false, "power_loss_protection");
    let handle = |d: &mut DriveSpec| (slc(d).below, slc(d).handle) = (None, Some(3));
    check(&region, handle, "slc.handle is 3, but there are 0 placement handles");
}

/// A region of addresses adds its size to the capacity; other uses add nothing.
#[test]
fn capacity_includes_a_region_of_addresses() {
    let most = |mut device: DriveSpec| {
        device.drive.capacity = Bytes(1 << 40);
        match device.check() {
            Err(DriveSpecError::Ftl(ConfigError::NoSpare { usable, .. })) => usable,
            other => panic!("unexpected error: {other:?}"),
        }
    };
    let others = most(cache());
    // A cache needs one more open block for folded units.
    assert_eq!(most(below(60)) - 60, most(below(20)) - 20);
    assert!(most(below(20)) - 20 > others);
    let device = below(60);
    let apart = f64::from(device.logical_units() - 60);
    let spare = device.over_provisioning().effective;
    assert!((device.usable_units() as f64 - 60.0 - apart - spare * apart).abs() < 1e-6);
}
