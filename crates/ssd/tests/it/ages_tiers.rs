//! Effects of faults on a drive with SLC and other blocks, each by itself: SLC blocks fail
//! separately, and the drive works without them or becomes read-only.

use crate::common::lab::*;
use prism_base::{Bytes, Nanos};
use prism_nand::Cause;
use prism_ssd::spec::{FaultSpec, SlcUsage};
use prism_ssd::{DriveSpec, HostOp, Status};

/// The drive with SLC and other blocks; `change` sets the faults of the SLC blocks.
fn ageing(usage: SlcUsage, change: impl FnOnce(&mut FaultSpec)) -> DriveSpec {
    let mut device = tiers(usage);
    let mut slc = faultless("slc");
    change(&mut slc);
    device.faults = Some(FaultSpec { slc: Some(Box::new(slc)), ..faultless("mlc") });
    device
}

/// Every program of an SLC block fails: the first write tries each block of the cache once, and
/// then the drive has no cache left.
#[test]
fn a_cache_that_fails_is_gone_and_the_drive_goes_on() {
    let device = ageing(SlcUsage::Cache, |slc| slc.program_failure = Some(1.0));
    let mut drive = empty(&device);
    let blocks = u64::from(SLC_BLOCKS);
    assert_eq!(drive.health().unwrap().slc.unwrap().spare_blocks, SLC_BLOCKS - 1);
    let spare = drive.health().unwrap().spare_blocks;
    let straight = FIRMWARE + link(1) + channel(1) + PROGRAM;
    let tries = times(blocks, channel(1) + SLC_PROGRAM);
    assert_eq!(serve(&mut drive, write(0)), straight + tries);
    for unit in 1..100 {
        assert_eq!(serve(&mut drive, write(unit)), straight, "unit {unit}");
    }
    let (health, counts) = (drive.health().unwrap(), *drive.flash_counts());
    let slc = health.slc.unwrap();
    assert_eq!((slc.bad.failed_programs, slc.spare_blocks), (SLC_BLOCKS, 0));
    assert_eq!((health.read_only, health.spare_blocks), (None, spare));
    assert_eq!(counts.faults.program_failures, blocks);
    // Every unit that was written bypassed the cache.
    assert_eq!((counts.slc_overflow, counts.units[Cause::Host]), (100, 100 + blocks));
    // Eight SLC pages each.
    assert_eq!(health.retired, Bytes(blocks * 8 * UNIT));
    drain(&mut drive);
}

/// The same in a region of addresses: before the rest can no longer be cleaned, the drive becomes
/// read-only.
#[test]
fn a_region_with_addresses_of_its_own_ends_the_drive() {
    let mut device = ageing(SlcUsage::Region, |slc| slc.program_failure = Some(1.0));
    device.slc.as_mut().unwrap().below = Some(Bytes(40 * UNIT));
    let mut drive = empty(&device);
    let spare = drive.health().unwrap().slc.unwrap().spare_blocks;
    assert!(spare > 0 && spare < SLC_BLOCKS, "{spare}");
    assert_eq!(one(&mut drive, HostOp::Write, 50).status, Status::Done, "not in the region");
    assert_eq!(one(&mut drive, HostOp::Write, 3).status, Status::ReadOnly);
    let health = drive.health().unwrap();
    assert_eq!(health.slc.unwrap().bad.failed_programs, spare + 1);
    assert_eq!(one(&mut drive, HostOp::Write, 50).status, Status::ReadOnly);
    assert_eq!(one(&mut drive, HostOp::Read, 50).status, Status::Done);
    drive.assert_consistent();
}

/// If a region for small writes fails, they are stored like all others.
#[test]
fn a_region_by_rule_ends_and_the_drive_goes_on() {
    let mut device = ageing(SlcUsage::Region, |slc| slc.program_failure = Some(1.0));
    device.slc.as_mut().unwrap().up_to = Some(Bytes(UNIT));
    let mut drive = empty(&device);
    for unit in 0..50 {
        assert_eq!(one(&mut drive, HostOp::Write, unit).status, Status::Done);
    }
    let health = drive.health().unwrap();
    assert_eq!((health.read_only, health.slc.unwrap().spare_blocks), (None, 0));
    assert_eq!(drive.flash_counts().slc_overflow, 50);
    drain(&mut drive);
}

/// Some erases of SLC blocks fail: the size of fast bursts shrinks with the cache, until all writes
/// have the time of the other blocks. Nothing is lost.
#[test]
fn a_cache_wears_out_block_by_block() {
    let device = ageing(SlcUsage::Cache, |slc| slc.erase_failure = Some(0.2));
    let mut drive = empty(&device);
    let fast = FIRMWARE + link(1) + channel(1) + SLC_PROGRAM;
    let mut sizes = vec![u64::from(SLC_BLOCKS) * 8];
    for burst in 0..60 {
        let mut quick = 0;
        for unit in 0..150 {
            quick += u64::from(serve(&mut drive, write((burst * 37 + unit) % 600)) == fast);
        }
        rest(&mut drive, Nanos(10_000_000_000));
        let left = u64::from(drive.health().unwrap().slc.unwrap().bad.failed_erases);
        assert!(quick <= *sizes.last().unwrap(), "a burst of {quick} fast writes");
        sizes.push((u64::from(SLC_BLOCKS) - left) * 8);
    }
    let health = drive.health().unwrap();
    assert_eq!((health.slc.unwrap().bad.failed_erases, sizes[60]), (SLC_BLOCKS, 0));
    assert!(sizes.is_sorted_by(|a, b| a >= b) && health.read_only.is_none(), "{sizes:?}");
    assert_eq!(serve(&mut drive, write(5)), FIRMWARE + link(1) + channel(1) + PROGRAM);
    assert_eq!(drive.engine().ftl().mapped(), 600);
    drain(&mut drive);
}

/// The other blocks fail: with too few of them the drive becomes read-only, however good the cache
/// is.
#[test]
fn the_other_blocks_end_the_drive() {
    let mut device = ageing(SlcUsage::Cache, |_| {});
    device.faults.as_mut().unwrap().erase_failure = Some(0.05);
    let mut drive = empty(&device);
    let mut written = 0;
    while one(&mut drive, HostOp::Write, written * 7 % 600).status == Status::Done {
        written += 1;
        assert!(written < 200_000, "the drive never becomes read-only");
    }
    let health = drive.health().unwrap();
    assert_eq!((health.spare_blocks, health.slc.unwrap().bad.failed_erases), (0, 0));
    assert!(health.read_only.is_some());
    for unit in 0..written.min(600) {
        assert_eq!(one(&mut drive, HostOp::Read, unit * 7 % 600).status, Status::Done);
    }
    drive.assert_consistent();
}

/// Without `[faults.slc]`, SLC blocks have the kind `slc` and the relative wear of the others.
#[test]
fn slc_blocks_age_as_their_kind_does() {
    let mut device = tiers(SlcUsage::Cache);
    let mut faults = FaultSpec::of_kind("mlc");
    faults.wear = device.flash.endurance / 4;
    device.faults = Some(faults);
    let (main, slc) = (device.fault_model().unwrap(), device.slc_fault_model().unwrap());
    let endurance = device.slc.as_ref().unwrap().endurance;
    assert_eq!((slc.endurance, slc.wear), (endurance, endurance / 4));
    assert!((slc.wear_of(0) - main.wear_of(0)).abs() < 0.01, "as much of both is used up");
    assert!(slc.program.at_endurance < main.program.at_endurance);
    assert_eq!(tiers(SlcUsage::Cache).slc_fault_model(), None);
}
