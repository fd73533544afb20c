//! A drive that is loaded from a snapshot behaves exactly as the original: random drives of every
//! mapping, with and without faults, are saved several times. Every completion and every sum has to
//! be the same.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::aged;
use crate::common::failing;
use crate::common::swarm::{self, Kind, one_of};
use crate::common::zoned;
use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_engine::FlashCounts;
use prism_ftl::MergeCounts;
use prism_ssd::spec::{Mapping, SlcUsage};
use prism_ssd::{
    Completion, Drive, DriveSpec, HostOp, InitialState, MapCounts, Request, SnapshotError, Status,
};
use prism_testkit::{all_seeds, seeds};

/// The results of a stretch of work, with times relative to its begin.
#[derive(Debug, PartialEq)]
struct WorkResult {
    done: Vec<Completion>,
    refused: u64,
    flash: FlashCounts,
    merges: Option<MergeCounts>,
    map: Option<MapCounts>,
    read_only: bool,
}

/// Events over all simulated drives.
#[derive(Debug, Default)]
struct Seen {
    saved: u32,
    buffered: u32,
    read_only: u32,
    faults: u64,
    lost: u64,
}

/// A random request; on a zoned drive, for a partly written zone if there is one.
fn draw(drive: &Drive, rng: &mut Rng, tag: u64) -> Request {
    let device = drive.device();
    let unit = device.ftl.mapping_unit.0;
    let mut request = match drive.zones() {
        Some(zones) => draw_zoned(zones, rng),
        None => {
            let op = match rng.below(20) {
                0..11 => HostOp::Write,
                11..17 => HostOp::Read,
                17 => HostOp::Discard,
                18 => HostOp::WriteZeroes,
                _ => HostOp::Flush,
            };
            let capacity = device.capacity().0;
            let len = if rng.chance(0.8) { unit * (1 + rng.below(5)) } else { 512 };
            let len = len.min(capacity);
            let grain = if rng.chance(0.9) { unit } else { 512 };
            let offset = rng.below((capacity - len) / grain + 1) * grain;
            let is_flush = op == HostOp::Flush;
            if is_flush { Request::new(op, 0, 0, 0) } else { Request::new(op, offset, len, 0) }
        }
    };
    request.tag = tag;
    request.queue = rng.below(u64::from(device.drive.queues)) as u16;
    request.urgent = rng.chance(0.1);
    request.fua = rng.chance(0.05);
    request.preflush = rng.chance(0.02);
    request.handle = rng.below(u64::from(device.ftl.placement_handles.max(1))) as u16;
    request
}

fn draw_zoned(zones: &prism_ssd::zones::Zones, rng: &mut Rng) -> Request {
    let shape = *zones.shape();
    let begun: Vec<_> = zones.report().filter(|info| info.state.is_active()).collect();
    let info = match begun.is_empty() || rng.chance(0.2) {
        true => zones.info(rng.below(u64::from(shape.count)) as u32),
        false => begun[rng.below(begun.len() as u64) as usize],
    };
    let len = shape.block * (1 + rng.below(9));
    let (op, offset, len) = match rng.below(20) {
        0..8 => (HostOp::Write, info.write_pointer, len),
        8..13 => (HostOp::ZoneAppend, info.start, len),
        13..16 => (HostOp::Read, info.start, len),
        16 => (HostOp::ZoneFinish, info.start, 0),
        17 => (HostOp::ZoneReset, info.start, 0),
        18 => (HostOp::ZoneOpen, info.start, 0),
        _ => (HostOp::ZoneClose, info.start, 0),
    };
    Request::new(op, offset, len, 0)
}

/// Keeps some requests in flight, with pauses, then flushes and runs until the drive is idle.
fn work(drive: &mut Drive, requests: u64, seed: u64) -> WorkResult {
    let mut rng = Rng::stream(seed, "saved.work");
    let begun = drive.now();
    let flash = *drive.flash_counts();
    let (merges, map) = (drive.merge_counts(), drive.map_counts().copied());
    let (mut done, mut refused) = (Vec::new(), 0);
    let rest = |drive: &mut Drive, done: &mut Vec<Completion>| {
        while drive.next_event().is_some() {
            drive.step(done);
        }
    };
    for tag in 0..requests {
        while drive.in_flight() >= 12 || drive.next_event().is_some() && rng.chance(0.4) {
            drive.step(&mut done);
        }
        if rng.chance(0.01) {
            rest(drive, &mut done);
            let later = drive.now() + Nanos(rng.below(10_000_000));
            drive.advance(later, &mut done);
        }
        let request = draw(drive, &mut rng, tag);
        refused += u64::from(drive.submit(request, drive.now()).is_err());
    }
    rest(drive, &mut done);
    drive.submit(Request::new(HostOp::Flush, 0, 0, requests), drive.now()).unwrap();
    drive.come_to_rest(&mut done);
    drive.assert_consistent();
    let since = |at: SimTime| SimTime(at.0 - begun.0);
    for one in &mut done {
        (one.submitted, one.completed) = (since(one.submitted), since(one.completed));
    }
    WorkResult {
        done,
        refused,
        flash: drive.flash_counts().since(&flash),
        merges: drive.merge_counts().map(|now| now.since(&merges.unwrap_or_default())),
        map: drive.map_counts().map(|now| now.since(&map.unwrap_or_default())),
        read_only: drive.read_only().is_some(),
    }
}

/// Saves a drive after each stretch of work, and continues with it and with the loaded drive.
fn live(device: &DriveSpec, seed: u64, seen: &mut Seen) {
    let mut rng = Rng::stream(seed, "saved.life");
    let states = [
        InitialState::Empty,
        InitialState::FilledTo { share: 0.7 },
        InitialState::Filled,
        InitialState::Preconditioned { overwrites: 1.0 },
    ];
    let most = if device.is_zoned() { 3 } else { 4 };
    let state = one_of(&mut rng, &states[..most]);
    // The drive may have too many factory bad blocks.
    let Ok(prepared) = Drive::prepared(device.clone(), state, seed, |_| true) else { return };
    let mut drive = prepared.expect("the preparation is not cancelled").0;
    assert!(drive.next_event().is_none(), "a drive that was prepared has rested");
    for stretch in 0..4 {
        if drive.read_only().is_some() {
            assert_eq!(drive.save(), Err(SnapshotError::ReadOnly));
            seen.read_only += 1;
            return;
        }
        let bytes = drive.save().unwrap();
        let mut loaded = Drive::from_saved(device.clone(), &bytes).unwrap();
        loaded.assert_consistent();
        assert!(loaded.save().unwrap() == bytes, "the same state again");
        seen.saved += 1;
        seen.buffered += u32::from(drive.buffered_units() > 0);
        let requests = 100 + rng.below(500);
        let (one, other) = (work(&mut drive, requests, seed ^ stretch), {
            work(&mut loaded, requests, seed ^ stretch)
        });
        if let Some(place) = one.done.iter().zip(&other.done).position(|(a, b)| a != b) {
            panic!("stretch {stretch}: {:?}, loaded {:?}", one.done[place], other.done[place]);
        }
        assert_eq!(one, other, "stretch {stretch}");
        let faults = one.flash.faults;
        seen.faults += faults.program_failures + faults.erase_failures + faults.read_retries;
        seen.lost += faults.unreadable_units;
        if rng.chance(0.5) {
            drive = loaded;
        }
    }
    assert!(drive.save().is_ok() == drive.read_only().is_none(), "the end");
}

/// Random drives, half of them with faults.
fn lives(count: u64, draw: impl Fn(&mut Rng) -> DriveSpec) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds(0..count) {
        let mut rng = Rng::stream(seed, "saved.device");
        let device = match seed % 2 {
            0 => draw(&mut rng),
            _ => failing::device(&mut rng, &draw),
        };
        live(&device, seed, &mut seen);
    }
    println!("{seen:?}");
    assert!(!all_seeds() || u64::from(seen.saved) >= 2 * count, "{seen:?}");
    assert!(!all_seeds() || seen.faults > 0, "{seen:?}");
    seen
}

#[test]
fn random_drives() {
    let seen = lives(120, swarm::device);
    assert!(!all_seeds() || seen.lost > 0 && seen.buffered > 0, "{seen:?}");
}

#[test]
fn random_maps_on_flash() {
    lives(60, |rng| Kind::Dftl.draw(rng));
}

#[test]
fn random_block_mapping() {
    lives(60, |rng| Kind::ByBlock(Mapping::Block).draw(rng));
}

#[test]
fn random_bast() {
    lives(60, |rng| Kind::ByBlock(Mapping::Bast).draw(rng));
}

#[test]
fn random_fast() {
    lives(60, |rng| Kind::ByBlock(Mapping::Fast).draw(rng));
}

#[test]
fn random_data_groups() {
    lives(60, |rng| Kind::ByBlock(Mapping::Hybrid).draw(rng));
}

#[test]
fn random_ranges() {
    lives(60, |rng| Kind::Ranges.draw(rng));
}

#[test]
fn random_slc_blocks() {
    lives(60, |rng| {
        let usage = one_of(rng, &[SlcUsage::Region, SlcUsage::Cache]);
        swarm::tiers(rng, usage)
    });
}

#[test]
fn random_zones() {
    let mut seen = Seen::default();
    for seed in seeds(0..80) {
        let mut rng = Rng::stream(seed, "saved.device");
        let mut device = zoned::device(one_of(&mut rng, &[1, 2, 4]));
        if seed % 2 == 1 {
            device.faults = Some(aged::often(&mut rng));
            device.flash.blocks_per_plane += 2 + rng.below(4) as u32;
            device.drive.capacity = Bytes(8 * zoned::ZONE_UNITS * zoned::UNIT);
            device.check().unwrap();
        }
        live(&device, seed, &mut seen);
    }
    println!("zones: {seen:?}");
    assert!(
        !all_seeds() || seen.saved >= 200 && seen.buffered > 50 && seen.faults > 20,
        "{seen:?}"
    );
}

/// Units in the buffer of a protected drive, which a flush does not program.
#[test]
fn units_that_wait_for_a_program_unit_are_saved() {
    let mut device = zoned::device(2);
    device.drive.write_buffer = Bytes(20 * zoned::UNIT);
    let mut drive = Drive::new(device.clone(), 1).unwrap();
    let done = zoned::serve(&mut drive, zoned::request(HostOp::Write, 0, 3));
    assert_eq!((done.status, drive.buffered_units()), (Status::Done, 3));
    let mut loaded = Drive::from_saved(device, &drive.save().unwrap()).unwrap();
    assert_eq!(loaded.buffered_units(), 3);
    assert_eq!(loaded.zone_info(0).unwrap(), drive.zone_info(0).unwrap());
    zoned::serve(&mut loaded, zoned::request(HostOp::Write, 3, 5));
    zoned::drain(&mut loaded);
    assert_eq!((loaded.buffered_units(), loaded.engine().ftl().mapped()), (0, 8));
}
