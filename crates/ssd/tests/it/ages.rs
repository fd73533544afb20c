//! Effects of faults on a drive, each by itself: read retries, recovery with parity, lost units,
//! and the read-only state.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::lab::{
    self, FIRMWARE, READ, UNIT, channel, faultless, filled, lab, link, one, request, serve, times,
    try_serve,
};
use prism_base::{Bytes, Nanos};
use prism_nand::{Cause, Nand};
use prism_ssd::spec::{FaultSpec, WriteCache};
use prism_ssd::{Drive, DriveSpec, HostOp, Request, Status};

/// The drive of [`lab`] with a fault model in which nothing fails.
fn ageing() -> DriveSpec {
    let mut device = lab();
    device.faults = Some(FaultSpec { page_factors: Some(vec![1.0]), ..faultless("tlc") });
    device
}

fn spec(device: &mut DriveSpec) -> &mut FaultSpec {
    device.faults.as_mut().expect("it ages")
}

#[test]
fn a_retry_takes_the_time_of_a_cell_read() {
    let once = FIRMWARE.0 + READ.0 + channel(1).0 + link(1).0;
    let latency = |rber: f64, retries: u32| {
        let mut device = ageing();
        spec(&mut device).rber_fresh = Some(rber);
        spec(&mut device).read_retries = Some(retries);
        let mut drive = filled(&device);
        let latency = serve(&mut drive, lab::read(7));
        (latency, *drive.flash_counts())
    };
    let (clean, counts) = latency(0.0, 5);
    assert_eq!((clean, counts.faults.read_retries), (Nanos(once), 0));
    // With an error in one bit in ten all five retries fail.
    let (hopeless, counts) = latency(0.1, 5);
    assert_eq!(hopeless, Nanos(once) + times(5, READ));
    let faults = counts.faults;
    assert_eq!((faults.read_retries, faults.unreadable_units), (5, 1));
    assert_eq!(counts.reads[Cause::Host], 1, "retries are no reads of their own");
    // 72 of 8192 bits are corrected; 1 % is 82, 0.7 % is 57.
    let (better, counts) = latency(0.01, 5);
    assert_eq!(better, Nanos(once) + times(1, READ));
    assert_eq!((counts.faults.read_retries, counts.faults.unreadable_units), (1, 0));
}

#[test]
fn unreadable_units_fail_reads_until_rewritten() {
    let mut device = ageing();
    spec(&mut device).rber_year = Some(0.2);
    spec(&mut device).rber_year_wear_exponent = Some(0.0);
    spec(&mut device).retention = Nanos(365 * 86_400 * 1_000_000_000);
    let mut drive = filled(&device);
    assert_eq!(one(&mut drive, HostOp::Read, 3).status, Status::Unreadable);
    // Cleaning moves unreadable units as lost ones: every fourth unit is never rewritten.
    for unit in (0..4000).map(|turn| turn * 7 % 600).filter(|unit| unit % 4 > 0) {
        assert_eq!(one(&mut drive, HostOp::Write, unit).status, Status::Done);
    }
    let lost = (0..600).filter(|&lpn| drive.is_lost(lpn)).count();
    let counted = drive.flash_counts().faults.lost_units;
    assert!(lost > 20 && lost as u64 <= counted, "{lost} of {counted} lost");
    let victim = (0..600).find(|&lpn| drive.is_lost(lpn)).expect("something was moved");
    let at = u64::from(victim);
    assert_eq!(one(&mut drive, HostOp::Read, at).status, Status::Unreadable);
    // Writing a part of the unit is not enough.
    let half = Request { len: UNIT / 2, ..request(HostOp::Write, at, 1) };
    assert_eq!(try_serve(&mut drive, half).unwrap().status, Status::Done);
    assert_eq!(one(&mut drive, HostOp::Read, at).status, Status::Unreadable);
    one(&mut drive, HostOp::Write, at);
    assert_eq!(one(&mut drive, HostOp::Read, at).status, Status::Done);
    assert!(!drive.is_lost(victim));
    let other = (0..600).find(|&lpn| drive.is_lost(lpn)).expect("more was lost");
    one(&mut drive, HostOp::Discard, u64::from(other));
    assert_eq!(one(&mut drive, HostOp::Read, u64::from(other)).status, Status::Done);
    drive.assert_consistent();
}

#[test]
fn parity_rebuilds_a_lost_unit_of_one_die() {
    let mut device = ageing();
    device.flash.channels = 4;
    device.flash.superblock_dies = 4;
    device.flash.superblock_parity = true;
    device.drive.capacity = Bytes(1200 * UNIT);
    // A few units in a hundred cannot be corrected.
    spec(&mut device).rber_fresh = Some(0.0066);
    spec(&mut device).read_retries = Some(0);
    let mut drive = filled(&device);
    let (mut clean, mut rebuilt, mut unreadable) = (0, 0, 0);
    let once = FIRMWARE.0 + READ.0 + channel(1).0 + link(1).0;
    for unit in 0..1200 {
        let before = *drive.flash_counts();
        let done = one(&mut drive, HostOp::Read, unit);
        let counts = drive.flash_counts().since(&before);
        let latency = done.completed.since(done.submitted);
        let faults = counts.faults;
        match (done.status, faults.rebuilt_units) {
            (Status::Done, 0) => {
                clean += 1;
                assert_eq!((latency, counts.reads[Cause::Parity]), (Nanos(once), 0));
            }
            (Status::Done, 1) => {
                rebuilt += 1;
                // The other three dies read in parallel, each over its own channel.
                assert_eq!((latency, counts.reads[Cause::Parity]), (Nanos(once), 3));
                assert_eq!(counts.reads[Cause::Host], 1);
            }
            (Status::Unreadable, 0) => unreadable += 1,
            other => panic!("unit {unit}: {other:?}"),
        }
    }
    println!("{clean} clean, {rebuilt} rebuilt, {unreadable} unreadable");
    // Two units of a stripe of four are lost far less often than one.
    assert!(rebuilt > 15 && unreadable * 5 < rebuilt && clean > 1100);
}

#[test]
fn a_worn_out_drive_is_read_only_and_keeps_its_data() {
    let mut device = ageing();
    device.drive.write_cache = WriteCache::WriteBack;
    device.drive.capacity = Bytes(400 * UNIT);
    spec(&mut device).erase_failure = Some(0.02);
    let nand = Nand::with_content(device.geometry());
    let mut drive = Drive::with_nand(device.clone(), nand, 3).unwrap();
    let spare_at_first = drive.health().unwrap().spare_blocks;
    assert!(spare_at_first > 3, "{spare_at_first}");
    let mut versions = vec![None; 400];
    let mut written = 0;
    let refused = loop {
        let unit = (written * 7) % 400;
        let done = one(&mut drive, HostOp::Write, unit);
        if done.status != Status::Done {
            break done;
        }
        versions[unit as usize] = drive.version_of(unit as u32).unwrap();
        written += 1;
        assert!(written < 100_000, "the drive never becomes read-only");
    };
    assert_eq!(refused.status, Status::ReadOnly);
    let health = drive.health().unwrap();
    let read_only = health.read_only.expect("writes were refused");
    assert_eq!(read_only.written, Bytes(written * UNIT));
    assert!(read_only.since <= refused.completed);
    assert_eq!(health.spare_blocks, 0);
    let grown = health.bad.failed_erases;
    assert_eq!(health.retired, Bytes(u64::from(grown) * 16 * UNIT));
    assert!(grown > spare_at_first, "{grown} grown bad, {spare_at_first} in spare");
    for op in [HostOp::Discard, HostOp::WriteZeroes] {
        assert_eq!(one(&mut drive, op, 0).status, Status::ReadOnly);
    }
    // Buffered units are never written to flash any more.
    let durable = drive.buffered_units() == 0;
    let flushed = one(&mut drive, HostOp::Flush, 0).status;
    assert_eq!(flushed == Status::Done, durable, "{flushed:?}");
    for unit in 0..400 {
        assert_eq!(one(&mut drive, HostOp::Read, unit).status, Status::Done);
        let found = drive.version_of(unit as u32).unwrap();
        assert!(found >= versions[unit as usize], "unit {unit}");
    }
    let counts = drive.host_counts();
    assert_eq!((counts.bytes_written, counts.bytes_read), (written * UNIT, 400 * UNIT));
    assert!(counts.failed >= 3);
    drive.assert_consistent();
}

#[test]
fn more_spare_lasts_longer_and_a_seed_repeats() {
    let life = |capacity: u64, seed: u64| {
        let mut device = ageing();
        device.drive.capacity = Bytes(capacity * UNIT);
        spec(&mut device).program_failure = Some(0.002);
        let mut drive = Drive::new(device, seed).unwrap();
        let mut unit = 0;
        while one(&mut drive, HostOp::Write, unit % capacity).status == Status::Done {
            unit += 1;
        }
        (drive.read_only().unwrap(), *drive.flash_counts())
    };
    assert_eq!(life(400, 1), life(400, 1));
    let lives: Vec<_> = [600, 450, 300].map(|units| life(units, 2).0.written).into();
    assert!(lives.is_sorted() && lives[0] < lives[2], "{lives:?}");
}

#[test]
fn a_drive_with_too_many_bad_blocks_is_refused() {
    let mut device = ageing();
    spec(&mut device).factory_bad = Some(0.5);
    let message = Drive::new(device, 1).unwrap_err().to_string();
    assert!(message.contains("are bad from the factory"), "{message}");
}
