//! Effects of faults on a zoned drive, each by itself: program failures, erase failures with and
//! without a spare block, and the read-only state.

use crate::common::lab::{faultless, prepared};
use crate::common::zoned::{
    self, CAPACITY_UNITS, UNIT, ZONE_UNITS, ZONES, drain, request, serve, try_serve,
};
use prism_nand::Nand;
use prism_ssd::spec::FaultSpec;
use prism_ssd::{
    Drive, DriveSpec, DriveSpecError, HostOp, InitialState, Status, SubmitError, ZoneState,
};
use prism_testkit::{all_seeds, seeds};

/// The small zoned drive with zones over `members` dies, whose programs and erases fail with these
/// probabilities.
fn ageing(members: u32, program: f64, erase: f64) -> DriveSpec {
    let mut device = zoned::device(members);
    device.faults = Some(FaultSpec {
        program_failure: Some(program),
        erase_failure: Some(erase),
        ..faultless("tlc")
    });
    device
}

fn drive(device: DriveSpec, seed: u64) -> Drive {
    let nand = Nand::with_content(device.geometry());
    Drive::with_nand(device, nand, seed).unwrap()
}

fn state(drive: &Drive, zone: u64) -> ZoneState {
    drive.zone_info(zone as u32).unwrap().state
}

fn fill(drive: &mut Drive, zone: u64) {
    let all = serve(drive, request(HostOp::ZoneAppend, zone * ZONE_UNITS, CAPACITY_UNITS));
    assert_eq!(all.status, Status::Done);
    drain(drive);
}

fn reset(drive: &mut Drive, zone: u64) {
    let done = serve(drive, request(HostOp::ZoneReset, zone * ZONE_UNITS, 0));
    assert_eq!(done.status, Status::Done);
    drain(drive);
}

/// Every erase fails. Of twelve blocks ten are for zones and one is reserved for relocation, so
/// that a spare block replaces the first failed one, and the second failure costs the zone.
#[test]
fn a_failed_erase_costs_a_spare_block_and_then_the_zone() {
    let mut drive = drive(ageing(2, 0.0, 1.0), 1);
    assert_eq!(drive.health().unwrap().spare_blocks, 1);
    fill(&mut drive, 0);
    reset(&mut drive, 0);
    let health = drive.health().unwrap();
    // The block is over two dies, and the erase fails on each.
    assert_eq!((health.bad.failed_erases, drive.flash_counts().faults.erase_failures), (1, 2));
    assert_eq!((health.spare_blocks, state(&drive, 0)), (0, ZoneState::Empty));
    assert_eq!(drive.take_failed_zone(), None);
    fill(&mut drive, 0);
    reset(&mut drive, 0);
    assert_eq!((state(&drive, 0), drive.take_failed_zone()), (ZoneState::Offline, Some(0)));
    let zones = drive.health().unwrap().zones.unwrap();
    assert_eq!((zones.read_only, zones.offline, zones.count), (0, 1, ZONES as u32));
    let refused = try_serve(&mut drive, request(HostOp::ZoneAppend, 0, 1)).unwrap_err();
    assert_eq!(refused, SubmitError::ZoneState { zone: 0, state: "offline", op: "zone_append" });
    assert!(try_serve(&mut drive, request(HostOp::Read, 0, 1)).is_err());
    drive.assert_consistent();
}

/// The same until the last zone is offline: the data of a zone can be read until its reset.
#[test]
fn a_drive_whose_erases_fail_loses_zone_after_zone() {
    let mut drive = drive(ageing(2, 0.0, 1.0), 1);
    for turn in 0..=ZONES {
        let zone = turn.saturating_sub(1);
        assert!(drive.read_only().is_none(), "zone {zone} can still be written");
        fill(&mut drive, zone);
        let read = serve(&mut drive, request(HostOp::Read, zone * ZONE_UNITS, CAPACITY_UNITS));
        assert_eq!((read.status, read.cost.unmapped), (Status::Done, 0));
        reset(&mut drive, zone);
        let offline = drive.health().unwrap().zones.unwrap().offline;
        assert_eq!(u64::from(offline), turn, "zones lost after turn {turn}");
    }
    let read_only = drive.read_only().expect("no zone is left");
    assert_eq!(read_only.written.0, (ZONES + 1) * CAPACITY_UNITS * UNIT);
    drive.assert_consistent();
}

/// A zone is written to its end while exactly one of its programs fails: it becomes read only, and
/// every unit of completed writes can be read, some from a relocation block.
#[test]
fn random_program_failures_leave_zones_that_can_be_read() {
    let mut found = 0;
    for seed in seeds(0..200) {
        let mut drive = drive(ageing(2, 0.03, 0.0), seed);
        let spare = drive.health().unwrap().spare_blocks;
        let (mut acknowledged, mut versions) = (0, Vec::new());
        while acknowledged < CAPACITY_UNITS {
            let Ok(done) = try_serve(&mut drive, request(HostOp::ZoneAppend, 0, 4)) else { break };
            if done.status != Status::Done {
                assert_eq!(done.status, Status::WriteFault);
                break;
            }
            acknowledged += 4;
            versions.extend((acknowledged - 4..acknowledged).map(|unit| {
                drive.version_of(unit as u32).unwrap().expect("the data of a completed write")
            }));
        }
        drain(&mut drive);
        if drive.flash_counts().faults.program_failures != 1 {
            continue;
        }
        found += 1;
        let health = drive.health().unwrap();
        assert_eq!((health.bad.failed_programs, health.spare_blocks), (1, spare - 1));
        let zones = health.zones.unwrap();
        assert_eq!((zones.read_only, zones.offline), (1, 0), "seed {seed}");
        assert_eq!((state(&drive, 0), drive.take_failed_zone()), (ZoneState::ReadOnly, Some(0)));
        assert!(zones.relocated.0 >= UNIT, "the failed program unit is relocated");
        for (unit, version) in (0..).zip(versions) {
            assert_eq!(drive.version_of(unit).unwrap(), Some(version), "seed {seed}, unit {unit}");
        }
        let read = serve(&mut drive, request(HostOp::Read, 0, acknowledged));
        assert_eq!((read.status, read.cost.unmapped, read.cost.buffer_hits), (Status::Done, 0, 0));
        for op in [HostOp::ZoneAppend, HostOp::ZoneReset, HostOp::ZoneFinish, HostOp::ZoneOpen] {
            let units = u64::from(op == HostOp::ZoneAppend);
            let refused = try_serve(&mut drive, request(op, 0, units)).unwrap_err();
            assert!(matches!(refused, SubmitError::ZoneState { zone: 0, .. }), "{refused}");
        }
        drive.assert_consistent();
    }
    assert!(!all_seeds() || found >= 20, "one program has failed in {found} lives");
}

/// Every program fails, of zones and of relocation blocks, and the drive becomes read-only.
/// Acknowledged data stays in the buffer, also over a loss of power.
#[test]
fn data_without_a_relocation_block_stays_in_the_buffer() {
    let mut drive = drive(ageing(2, 1.0, 0.0), 1);
    let first = serve(&mut drive, request(HostOp::ZoneAppend, 0, 9));
    assert_eq!(first.status, Status::Done);
    drain(&mut drive);
    // The block of the zone, and every other block as a relocation block.
    assert_eq!(drive.health().unwrap().bad.failed_programs, 12);
    assert!(drive.read_only().is_some());
    let there = |drive: &Drive| (0..9).all(|unit| drive.version_of(unit).unwrap().is_some());
    assert!(there(&drive));
    // No block is left for any other zone either.
    assert_eq!(drive.health().unwrap().zones.unwrap().offline, ZONES as u32 - 1);
    assert_eq!(serve(&mut drive, request(HostOp::Read, 0, 9)).cost.buffer_hits, 9);
    let drive = Drive::recover(drive.power_cut(1), 1).unwrap();
    assert!(there(&drive) && drive.read_only().is_some());
    drive.assert_consistent();
}

/// Spare blocks replace factory bad blocks, as long as there are any.
#[test]
fn random_factory_bad_blocks_leave_zones_as_large() {
    let with = |share: f64, seed: u64| {
        let mut device = ageing(1, 0.0, 0.0);
        device.flash.blocks_per_plane = 4;
        device.faults.as_mut().unwrap().factory_bad = Some(share);
        Drive::new(device, seed).map(|drive| {
            let zones = *drive.zones().unwrap().shape();
            (zones.count, drive.health().unwrap())
        })
    };
    let mut bad = 0;
    for seed in seeds(0..20) {
        let (zones, health) = match with(0.05, seed) {
            Ok(found) => found,
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("are bad from the factory"), "{message}");
                continue;
            }
        };
        // Of sixteen blocks ten are for zones and one is reserved.
        assert_eq!((zones, health.spare_blocks), (ZONES as u32, 5 - health.bad.factory_bad));
        bad += health.bad.factory_bad;
    }
    assert!(!all_seeds() || bad >= 5, "{bad} are bad");
    let refused = with(0.9, 1).unwrap_err();
    assert!(matches!(refused, DriveSpecError::Ftl(_)), "{refused}");
}

/// Zones of a prepared drive may have failed while it was filled.
#[test]
fn random_failures_while_a_drive_is_prepared() {
    let mut failed = 0;
    for seed in seeds(0..20) {
        let drive = prepared(&ageing(2, 0.01, 0.0), InitialState::Filled, seed);
        drive.assert_consistent();
        let zones = drive.zones().unwrap();
        let counts = [ZoneState::Full, ZoneState::ReadOnly, ZoneState::Offline];
        let counts = counts.map(|state| zones.count(state));
        let ended = drive.read_only().is_some();
        assert!(ended || counts.iter().sum::<u32>() == ZONES as u32, "{counts:?}");
        failed += counts[1];
    }
    assert!(!all_seeds() || failed >= 10, "{failed} zones have failed");
}
