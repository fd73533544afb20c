//! Zones of a drive: rules against a naive model, content of the flash, and reports.

use crate::common::zoned::{self, UNIT, device, drain, request, serve, try_serve};
use prism_base::{Bytes, Nanos, Rng};
use prism_nand::{Cause, Nand};
use prism_ssd::{
    Completion, Drive, DriveSpec, DriveSpecError, HostOp, InitialState, Request, SubmitError,
    ZoneFault, ZoneState, fit,
};
use prism_testkit::seeds;

const ZONE: u64 = zoned::ZONE_UNITS;
const CAPACITY: u64 = zoned::CAPACITY_UNITS;

fn drive() -> Drive {
    let device = device(2);
    let nand = Nand::with_content(device.geometry());
    Drive::with_nand(device, nand, 1).unwrap()
}

fn state(drive: &Drive, zone: u32) -> ZoneState {
    drive.zone_info(zone).unwrap().state
}

fn pointer(drive: &Drive, zone: u32) -> u64 {
    let info = drive.zone_info(zone).unwrap();
    (info.write_pointer - info.start) / UNIT
}

/// Writes `units` at the write pointer of `zone`.
fn append(drive: &mut Drive, zone: u64, units: u64) -> Completion {
    serve(drive, request(HostOp::ZoneAppend, zone * ZONE, units))
}

#[test]
fn a_zone_is_written_in_order_and_read_up_to_its_pointer() {
    let mut drive = drive();
    assert_eq!(state(&drive, 0), ZoneState::Empty);
    serve(&mut drive, request(HostOp::Write, 0, 3));
    assert_eq!((state(&drive, 0), pointer(&drive, 0)), (ZoneState::ImplicitlyOpen, 3));
    let refused = try_serve(&mut drive, request(HostOp::Write, 5, 1));
    let wrong =
        SubmitError::NotAtWritePointer { zone: 0, offset: 5 * UNIT, write_pointer: 3 * UNIT };
    assert_eq!(refused.unwrap_err(), wrong);
    let read = serve(&mut drive, request(HostOp::Read, 0, 5));
    assert_eq!((read.cost.unmapped, read.cost.buffer_hits), (2, 3));
    let placed = append(&mut drive, 0, 2);
    assert_eq!((placed.offset, placed.len), (3 * UNIT, 2 * UNIT));
    assert_eq!(pointer(&drive, 0), 5);
}

/// The capacity is smaller than the size: the rest cannot be written.
#[test]
fn a_zone_ends_at_its_capacity() {
    let mut drive = drive();
    const { assert!(CAPACITY < ZONE) };
    serve(&mut drive, request(HostOp::Write, ZONE, CAPACITY - 1));
    let long = try_serve(&mut drive, request(HostOp::Write, ZONE + CAPACITY - 1, 2));
    let boundary = SubmitError::ZoneBoundary { zone: 1, len: 2 * UNIT, left: UNIT };
    assert_eq!(long.unwrap_err(), boundary);
    serve(&mut drive, request(HostOp::Write, ZONE + CAPACITY - 1, 1));
    assert_eq!(state(&drive, 1), ZoneState::Full);
    let full = try_serve(&mut drive, request(HostOp::Write, ZONE + CAPACITY, 1));
    assert_eq!(full.unwrap_err(), SubmitError::ZoneFull { zone: 1 });
    drain(&mut drive);
    drive.assert_consistent();
    let read = serve(&mut drive, request(HostOp::Read, ZONE, ZONE));
    assert_eq!(u64::from(read.cost.unmapped), ZONE - CAPACITY);
    // A zone written to its end is on flash without padding.
    let counts = drive.flash_counts();
    assert_eq!((counts.units.total(), counts.units[Cause::Host]), (CAPACITY, CAPACITY));
}

#[test]
fn a_reset_empties_a_zone_and_its_block_is_erased_later() {
    let mut drive = drive();
    for zone in 0..3 {
        append(&mut drive, zone, CAPACITY);
    }
    append(&mut drive, 3, 3);
    drain(&mut drive);
    for zone in [0, 3] {
        serve(&mut drive, request(HostOp::ZoneReset, zone * ZONE, 0));
        assert_eq!(
            (state(&drive, zone as u32), pointer(&drive, zone as u32)),
            (ZoneState::Empty, 0)
        );
        let read = serve(&mut drive, request(HostOp::Read, zone * ZONE, CAPACITY));
        assert_eq!(u64::from(read.cost.unmapped), CAPACITY);
    }
    drain(&mut drive);
    drive.assert_consistent();
    // Zone 3 was only in the buffer, so nothing was erased.
    let members = u64::from(drive.device().geometry().dies_per_superblock);
    assert_eq!(drive.engine().nand().erases_total(), members);
    assert_eq!(drive.buffered_units(), 0);
    append(&mut drive, 0, CAPACITY);
    drain(&mut drive);
    drive.assert_consistent();
}

#[test]
fn a_finish_pads_the_rest_and_nothing_else() {
    let mut drive = drive();
    append(&mut drive, 0, 7);
    let empty = serve(&mut drive, request(HostOp::ZoneFinish, 2 * ZONE, 0));
    let part = serve(&mut drive, request(HostOp::ZoneFinish, 0, 0));
    assert!(part.completed.since(part.submitted) <= empty.completed.since(empty.submitted));
    for zone in [0, 2] {
        assert_eq!(state(&drive, zone), ZoneState::Full);
    }
    drive.assert_consistent();
    let counts = drive.flash_counts();
    assert_eq!(counts.units[Cause::Host], 7);
    assert_eq!(counts.units[Cause::Pad], 2 * CAPACITY - 7);
    let read = serve(&mut drive, request(HostOp::Read, 0, CAPACITY));
    assert_eq!(u64::from(read.cost.unmapped), CAPACITY - 7);
    serve(&mut drive, request(HostOp::ZoneReset, 0, 0));
    append(&mut drive, 0, 1);
}

#[test]
fn limits_of_open_and_active_zones_hold() {
    let mut drive = drive();
    // Two may be open and three active; the least recently written zone is closed.
    for zone in 0..3 {
        append(&mut drive, zone, 1);
    }
    let states = [ZoneState::Closed, ZoneState::ImplicitlyOpen, ZoneState::ImplicitlyOpen];
    assert_eq!([0, 1, 2].map(|zone| state(&drive, zone)), states);
    let fourth = try_serve(&mut drive, request(HostOp::Write, 3 * ZONE, 1));
    assert_eq!(fourth.unwrap_err(), SubmitError::TooManyActive { zone: 3, max: 3 });
    for zone in [1, 2] {
        serve(&mut drive, request(HostOp::ZoneOpen, zone * ZONE, 0));
    }
    let third = try_serve(&mut drive, request(HostOp::Write, 1, 1));
    assert_eq!(third.unwrap_err(), SubmitError::TooManyOpen { zone: 0, max: 2 });
    serve(&mut drive, request(HostOp::ZoneClose, ZONE, 0));
    serve(&mut drive, request(HostOp::Write, 1, 1));
    serve(&mut drive, request(HostOp::ZoneReset, ZONE, 0));
    append(&mut drive, 3, 1);
    let zones = drive.zones().unwrap();
    assert_eq!((zones.open(), zones.active()), (2, 3));
}

/// Concurrent appends: each gets the offset after the append submitted before it.
#[test]
fn appends_get_their_offsets_in_order() {
    let mut drive = drive();
    for (tag, units) in [(0, 4), (1, 1), (2, 9), (3, 2)] {
        let append = Request { tag, ..request(HostOp::ZoneAppend, 4 * ZONE, units) };
        drive.submit(append, drive.now()).unwrap();
    }
    let busy = drive.submit(request(HostOp::ZoneReset, 4 * ZONE, 0), drive.now());
    assert_eq!(busy.unwrap_err(), SubmitError::ZoneBusy { zone: 4 });
    let mut places: Vec<_> =
        drain(&mut drive).iter().map(|done| (done.tag, done.offset / UNIT)).collect();
    places.sort_unstable();
    let from = 4 * ZONE;
    assert_eq!(places, [(0, from), (1, from + 4), (2, from + 5), (3, from + 14)]);
}

#[test]
fn illegal_commands_are_refused_with_a_reason() {
    let mut drive = drive();
    let mut check = |op, offset: u64, len: u64, part: &str| {
        let error = drive.submit(Request::new(op, offset, len, 0), drive.now()).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    check(HostOp::Discard, 0, UNIT, "takes no discard");
    check(HostOp::WriteZeroes, 0, UNIT, "takes no write_zeroes");
    check(HostOp::Write, 0, 512, "multiples of 4096");
    check(HostOp::ZoneAppend, UNIT, UNIT, "not the first of zone 0");
    check(HostOp::ZoneClose, 0, 0, "zone 0 is empty, which allows no zone_close");
    check(HostOp::ZoneReset, ZONE * 1000 * UNIT, 0, "beyond the drive");
    let mut other = Drive::new(DriveSpec::preset("femu").unwrap(), 1).unwrap();
    let error = other.submit(Request::new(HostOp::ZoneReset, 0, 0, 0), other.now()).unwrap_err();
    assert_eq!(error, SubmitError::NoZones { op: "zone_reset" });
}

#[test]
fn a_failed_zone_is_read_only_or_offline() {
    let mut drive = drive();
    for zone in 0..2 {
        append(&mut drive, zone, 5);
    }
    let mut out = Vec::new();
    assert!(drive.zone_failed(0, ZoneFault::ReadOnly, &mut out));
    assert!(drive.zone_failed(1, ZoneFault::Offline, &mut out));
    assert!(!drive.zone_failed(1000, ZoneFault::Offline, &mut out));
    drain(&mut drive);
    drive.assert_consistent();
    assert_eq!(drive.buffered_units(), 0);
    assert_eq!((state(&drive, 0), state(&drive, 1)), (ZoneState::ReadOnly, ZoneState::Offline));
    assert_eq!(serve(&mut drive, request(HostOp::Read, 0, 6)).cost.unmapped, 1);
    for op in [HostOp::ZoneReset, HostOp::ZoneFinish, HostOp::ZoneOpen] {
        for zone in 0..2 {
            assert!(try_serve(&mut drive, request(op, zone * ZONE, 0)).is_err(), "{op:?}");
        }
    }
    assert!(try_serve(&mut drive, request(HostOp::Read, ZONE, 1)).is_err());
    assert_eq!(drive.zones().unwrap().active(), 0);
}

#[test]
fn presets_are_valid_and_scale() {
    for name in DriveSpec::zoned_preset_names() {
        let preset = DriveSpec::preset(name).unwrap();
        assert_eq!(preset.name, name);
        let shape = preset.zone_shape().unwrap();
        assert!(shape.capacity <= shape.size);
        let spare = preset.over_provisioning().effective;
        assert!(0.0 < spare && spare < 0.05, "{name}: {spare}");
        for capacity in [1 << 20, 3 << 30, 100 << 30, preset.capacity().0] {
            let scaled = fit(&preset, Bytes(capacity)).unwrap().device;
            let fitted = scaled.zone_shape().unwrap();
            assert!(scaled.capacity().0 >= capacity && fitted.count >= 64, "{name}");
            assert_eq!(scaled.geometry().dies(), preset.geometry().dies(), "{name}");
            assert!(fitted.capacity <= fitted.size && fitted.size < 3 * fitted.capacity);
        }
    }
    let zn540 = DriveSpec::preset("zn540").unwrap().zone_shape().unwrap();
    assert_eq!((zn540.count, zn540.size, zn540.capacity), (904, 2 << 30, 1077 << 20));
    let small = DriveSpec::preset("zns-small").unwrap().zone_shape().unwrap();
    assert_eq!((small.size, small.capacity), (96 << 20, 96 << 20));
}

#[test]
fn initial_states_fill_whole_zones_and_overwrite_none() {
    let prepared = |state| Drive::prepared(device(2), state, 1, |_| true);
    let (mut drive, _) = prepared(InitialState::FilledTo { share: 0.5 }).unwrap().unwrap();
    let zones: Vec<_> = drive.zones().unwrap().report().map(|info| info.state).collect();
    let (full, empty) = zones.split_at(zones.len() / 2);
    assert!(full.iter().all(|&state| state == ZoneState::Full));
    assert!(empty.iter().all(|&state| state == ZoneState::Empty));
    drive.assert_consistent();
    assert_eq!(serve(&mut drive, request(HostOp::Read, 0, 4)).cost.unmapped, 0);
    let overwritten = InitialState::Preconditioned { overwrites: 1.0 };
    for state in [InitialState::Settled, InitialState::Steady, overwritten] {
        assert_eq!(prepared(state).unwrap_err(), DriveSpecError::Overwrites);
    }
}

/// A zone over all dies has their bandwidth, which programs limit if channels are fast.
#[test]
fn a_zone_is_as_fast_as_its_dies() {
    for dies in [1u64, 4] {
        let mut device = device(1);
        device.flash.blocks_per_plane = 12;
        device.flash.channels = dies as u32;
        device.flash.dies_per_channel = 1;
        device.flash.superblock_dies = dies as u32;
        device.ftl.zone_size = Some(Bytes(zoned::ZONE_UNITS * 2 * dies * UNIT));
        device.flash.channel_bandwidth = None;
        device.drive.capacity = Bytes(device.ftl.zone_size.unwrap().0 * 4);
        device.check().unwrap();
        let shape = device.zone_shape().unwrap();
        let mut drive = Drive::new(device.clone(), 1).unwrap();
        let units = shape.capacity / shape.block;
        let begun = drive.now();
        for unit in (0..units).step_by(4) {
            serve(&mut drive, request(HostOp::Write, unit, 4));
        }
        drain(&mut drive);
        let span = drive.now().since(begun);
        let program_units = units / u64::from(device.geometry().units_per_program_unit());
        let program = device.flash.t_program.mean().0;
        let bound = Nanos(program_units * program / dies);
        let ratio = span.0 as f64 / bound.0 as f64;
        assert!((1.0..1.1).contains(&ratio), "{dies} dies: {ratio}");
    }
}

/// Random commands: the drive accepts exactly those that the rules allow.
#[test]
fn random_commands_follow_the_naive_model() {
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "zones.model");
        let mut drive = drive();
        let mut model = zoned::Model::new(&device(2));
        for turn in 0..400 {
            let request = model.draw(&mut rng);
            let expected = model.apply(&request);
            let found = try_serve(&mut drive, request).map(|done| done.offset / UNIT);
            assert_eq!(found.is_ok(), expected.is_ok(), "seed {seed}, turn {turn}: {request:?}");
            match (found, expected) {
                (Ok(place), Ok(Some(expected))) => assert_eq!(place, expected, "seed {seed}"),
                (Err(error), Err(expected)) => {
                    let name = format!("{error:?}");
                    assert!(name.starts_with(expected), "seed {seed}, {turn}: {name}, {expected}");
                }
                _ => {}
            }
            model.compare(&drive);
        }
        drain(&mut drive);
        drive.assert_consistent();
    }
}
