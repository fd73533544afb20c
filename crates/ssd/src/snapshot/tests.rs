//! A drive that was saved and loaded is the drive.

use std::collections::BTreeMap;

use prism_base::{Bytes, Rng};
use prism_ftl::{Frontiers, VictimPolicy};

use super::*;
use crate::spec::{FaultSpec, Mapping};
use crate::state::InitialState;
use prism_engine::block::{Completion, HostOp, Request};

const CHECKSUM_BYTES: usize = 8;

fn device(change: impl FnOnce(&mut DriveSpec)) -> DriveSpec {
    let mut device = DriveSpec::preset("femu").unwrap();
    device.flash.channels = 2;
    device.flash.dies_per_channel = 2;
    device.flash.planes = 1;
    device.flash.blocks_per_plane = 40;
    device.flash.pages_per_block = 32;
    device.flash.page = Bytes(4096);
    device.drive.write_buffer = Bytes(1 << 20);
    device.drive.write_cache = crate::spec::WriteCache::WriteBack;
    device.drive.power_loss_protection = true;
    device.drive.capacity = Bytes(12 << 20);
    change(&mut device);
    device.check().unwrap();
    device
}

fn map_on_flash() -> DriveSpec {
    device(|d| {
        d.ftl.mapping = Mapping::Dftl;
        d.ftl.map_cache = Some(Bytes(4096));
    })
}

/// What is saved from: every policy that chooses at random or looks at ages, and every layout.
fn devices() -> Vec<(&'static str, DriveSpec)> {
    vec![
        ("plain", device(|_| {})),
        ("random victims", device(|d| d.ftl.victim = VictimPolicy::Random)),
        ("d-choices", device(|d| d.ftl.victim = VictimPolicy::DChoices { d: 3 })),
        ("fifo", device(|d| d.ftl.victim = VictimPolicy::Fifo)),
        (
            "cost-benefit",
            device(|d| {
                d.ftl.victim = VictimPolicy::from_name("cost-benefit").unwrap();
                d.ftl.frontiers = Frontiers::Separate;
            }),
        ),
        (
            "parity",
            device(|d| {
                d.flash.superblock_dies = 4;
                d.flash.superblock_parity = true;
                d.drive.capacity = Bytes(9 << 20);
            }),
        ),
        ("unprotected", device(|d| d.drive.power_loss_protection = false)),
        ("segments", device(|d| d.ftl.segment = Some(Bytes(6 << 20)))),
        ("map on flash", map_on_flash()),
        (
            "wear",
            device(|d| {
                d.ftl.wear_least_worn_first = true;
                d.ftl.wear_move_behind_mean = Some(4);
            }),
        ),
    ]
}

/// Random requests at queue depth 16, then a flush; every completion in order.
fn work(drive: &mut Drive, requests: u64, seed: u64) -> Vec<Completion> {
    let mut rng = Rng::stream(seed, "snapshot.work");
    let capacity = drive.device().capacity().0;
    let mut done = Vec::new();
    for tag in 0..requests {
        while drive.in_flight() >= 16 {
            drive.step(&mut done);
        }
        let op = match rng.below(10) {
            0..6 => HostOp::Write,
            6..9 => HostOp::Read,
            _ => HostOp::Discard,
        };
        let len = 4096 * (1 + rng.below(8));
        let offset = rng.below((capacity - len) / 512) * 512;
        drive.submit(Request::new(op, offset, len, tag), drive.now()).unwrap();
    }
    drive.submit(Request::new(HostOp::Flush, 0, 0, requests), drive.now()).unwrap();
    while drive.next_event().is_some() {
        drive.step(&mut done);
    }
    drive.assert_consistent();
    done
}

fn prepared(device: &DriveSpec, state: InitialState) -> Drive {
    let prepared = Drive::prepared(device.clone(), state, 7, |_| true);
    prepared.unwrap().expect("the preparation is not interrupted").0
}

#[test]
fn a_loaded_drive_goes_on_as_the_one_that_was_saved() {
    for (name, device) in devices() {
        let states = [InitialState::Empty, InitialState::Preconditioned { overwrites: 2.0 }];
        for state in states {
            let mut drive = prepared(&device, state);
            let bytes = drive.save().unwrap();
            let mut loaded = Drive::from_saved(device.clone(), &bytes).unwrap();
            loaded.assert_consistent();
            assert!(loaded.save().unwrap() == bytes, "{name}: the same state again");
            for seed in 0..3 {
                let (one, other) = (work(&mut drive, 3000, seed), work(&mut loaded, 3000, seed));
                assert_eq!(one, other, "{name}: seed {seed}");
            }
            assert_eq!(drive.flash_counts(), loaded.flash_counts());
            assert!(drive.save().unwrap() == loaded.save().unwrap(), "{name}");
        }
    }
}

#[test]
fn a_drive_that_is_not_at_rest_is_not_saved() {
    let device = device(|d| {
        d.flash.pages_per_program = 2;
        d.drive.power_loss_protection = false;
    });
    let mut drive = prepared(&device, InitialState::Filled);
    let refused = |drive: &Drive| drive.save().map(|_| ()).unwrap_err().to_string();
    let mut done = Vec::new();
    let mut serve = |drive: &mut Drive, op, len| {
        drive.submit(Request::new(op, 0, len, 1), drive.now()).unwrap();
        assert!(refused(drive).contains("let it finish"), "{}", refused(drive));
        drive.come_to_rest(&mut done);
    };
    // Waits for the other half of its program unit, which is a state.
    serve(&mut drive, HostOp::Write, 4096);
    assert_eq!((drive.save().is_ok(), drive.buffered_units()), (true, 1));
    // A trim whose tombstone is still to come is none.
    serve(&mut drive, HostOp::Discard, 4096);
    assert!(refused(&drive).contains("send a flush"), "{}", refused(&drive));
    serve(&mut drive, HostOp::Flush, 0);
    drive.save().unwrap();
}

#[test]
fn another_device_is_refused_by_field() {
    let bytes = prepared(&device(|_| {}), InitialState::Filled).save().unwrap();
    let other = device(|d| d.ftl.victim = VictimPolicy::Fifo);
    let message = Drive::from_saved(other, &bytes).unwrap_err().to_string();
    assert!(message.contains("its ftl.victim is Greedy, here it is Fifo"), "{message}");
    let renamed = device(|d| d.name = "renamed".into());
    assert!(Drive::from_saved(renamed, &bytes).is_ok());
}

/// Drives with something of everything that a state has: one for each kind of FTL, with a map
/// cache, a buffer, and flash that fails.
fn kinds() -> Vec<(&'static str, DriveSpec)> {
    let by_block = |mapping| {
        device(|d| {
            d.ftl.mapping = mapping;
            d.ftl.victim = VictimPolicy::Fifo;
            d.ftl.frontiers = Frontiers::Separate;
            d.ftl.log_share = Some(0.2);
            (d.ftl.free_blocks_low, d.ftl.free_blocks_high) = (0, 0);
            if mapping == Mapping::Hybrid {
                (d.ftl.group_blocks, d.ftl.group_log_blocks) = (Some(4), Some(2));
            }
            d.faults = Some(failing());
        })
    };
    let mut zoned = DriveSpec::preset("zns-small").unwrap();
    (zoned.flash.channels, zoned.flash.dies_per_channel) = (2, 2);
    zoned.flash.superblock_dies = 2;
    zoned.flash.blocks_per_plane = 12;
    zoned.faults = Some(failing());
    let zone = zoned.geometry().units_per_block();
    zoned.ftl.zone_size = Some(Bytes(u64::from(zone) * zoned.ftl.mapping_unit.0));
    zoned.drive.capacity = Bytes(6 * u64::from(zone) * zoned.ftl.mapping_unit.0);
    zoned.check().unwrap();
    vec![
        ("unprotected", device(|d| d.drive.power_loss_protection = false)),
        ("failing", device(|d| d.faults = Some(failing()))),
        ("lru", device(|d| d.ftl.victim = VictimPolicy::Lru)),
        ("map on flash", map_on_flash()),
        ("block", by_block(Mapping::Block)),
        ("fast", by_block(Mapping::Fast)),
        ("data groups", by_block(Mapping::Hybrid)),
        ("zoned", zoned),
    ]
}

/// Programs and erases that fail now and then.
fn failing() -> FaultSpec {
    let mut faults = FaultSpec::of_kind("tlc");
    faults.factory_bad = Some(0.01);
    (faults.program_failure, faults.program_exponent) = (Some(2e-4), Some(0.0));
    (faults.erase_failure, faults.erase_exponent) = (Some(1e-3), Some(0.0));
    faults
}

#[test]
fn damaged_bytes_are_refused_and_never_panic() {
    for (name, device) in kinds() {
        let mut drive = prepared(&device, InitialState::FilledTo { share: 0.6 });
        if device.is_zoned() {
            let zone = drive.zones().unwrap().shape().size;
            let write = Request::new(HostOp::Write, 5 * zone, 3 * 4096, 1);
            drive.submit(write, drive.now()).unwrap();
            drive.come_to_rest(&mut Vec::new());
        } else {
            work(&mut drive, 3000, 3);
        }
        damage(name, &device, &drive.save().unwrap());
    }
}

/// `bytes` with a flipped bit, a number at a limit, or a part missing; half of the changes are near
/// the end, since what follows the map is short and says most.
fn change(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let from = if rng.chance(0.5) { 0 } else { bytes.len().saturating_sub(4000) };
    let place = from + rng.below((bytes.len() - 12 - from) as u64) as usize;
    let mut changed = bytes.to_vec();
    match rng.below(3) {
        0 => changed[place] ^= 1 << rng.below(8),
        1 => {
            let limits = [0, 1, 1 << 31, u32::MAX - 1, u32::MAX].map(u32::to_le_bytes);
            let limit = limits[rng.below(5) as usize];
            changed[place..place + 4].copy_from_slice(&limit);
        }
        _ => drop(changed.drain(place..place + 1 + rng.below(4) as usize)),
    }
    if changed == bytes { change(bytes, rng) } else { changed }
}

fn damage(name: &str, device: &DriveSpec, bytes: &[u8]) {
    let load = |bytes: &[u8]| Drive::from_saved(device.clone(), bytes).map(|_| ());
    load(bytes).unwrap();
    let mut rng = Rng::stream(4, "damage");
    for len in (0..40).chain((0..100).map(|_| rng.below(bytes.len() as u64) as usize)) {
        let error = load(&bytes[..len]).unwrap_err();
        assert!(matches!(error, SnapshotError::Foreign | SnapshotError::Checksum), "{error}");
    }
    let mut rng = Rng::stream(5, "damage");
    for _ in 0..600 {
        let mut damaged = change(bytes, &mut rng);
        assert!(load(&damaged).is_err(), "{name}: without a checksum that matches");
        // With one that matches, the content itself has to be checked.
        damaged.truncate(damaged.len() - CHECKSUM_BYTES);
        save(&checksum(&damaged), &mut damaged);
        if let Ok(loaded) = Drive::from_saved(device.clone(), &damaged) {
            loaded.assert_consistent();
        }
    }
    for other in [1, VERSION as u8 + 1] {
        let mut of_other = bytes.to_vec();
        of_other[8] = other;
        assert_eq!(load(&of_other).unwrap_err(), SnapshotError::Version { found: other.into() });
    }
}

/// The parts of a snapshot by the tables of docs/spec/drive-state.md, for a drive of four die
/// groups.
type Flash = (Vec<[u16; 2]>, Vec<u32>, Vec<u16>, [u64; 3]);
type BlocksOfKind = (Vec<u32>, Vec<u64>, Vec<u64>, u64, Vec<u32>);
type DieGroup = ([BlocksOfKind; 2], Vec<Option<[u32; 2]>>, Vec<u32>);
type Tombstones = BTreeMap<u32, Vec<(u32, u32, u64)>>;
type PageMap = (Vec<u32>, [DieGroup; 4], Vec<u32>, Vec<u16>, Tombstones, Vec<u32>, [u64; 4]);
type Cleaning = ([[bool; 4]; 4], Vec<u32>, bool, bool);
type Host = (u64, u32, Vec<(u32, u32, u64, bool)>, Vec<u32>);

#[test]
fn the_document_describes_the_bytes() {
    const DOCUMENT: &str = include_str!("../../../../docs/spec/drive-state.md");
    let device = device(|d| d.drive.power_loss_protection = false);
    let mut drive = prepared(&device, InitialState::Filled);
    work(&mut drive, 3000, 3);
    let bytes = drive.save().unwrap();
    assert!(DOCUMENT.contains(&format!("`{}`", String::from_utf8_lossy(MAGIC))));
    assert!(DOCUMENT.contains(&format!("version, {VERSION}")));
    let mut from = &bytes[..];
    let (magic, version, text): ([u8; 8], u32, String) = load(&mut from).unwrap();
    assert_eq!((&magic, version, text), (MAGIC, VERSION, describe(&device)));
    let [next_version, age]: [u64; 2] = load(&mut from).unwrap();
    assert_eq!((next_version, age), (drive.next_version, 0));
    let (cells, erases, left_out, totals): Flash = load(&mut from).unwrap();
    let blocks = device.geometry().blocks() as usize;
    assert_eq!((cells.len(), erases.len(), left_out.len()), (blocks, blocks, 0));
    assert_eq!(totals[2], erases.iter().map(|&erases| u64::from(erases)).sum::<u64>());
    let (map, die_groups, erases, frontiers, tombstones, failed, _): PageMap =
        load(&mut from).unwrap();
    let page_config = device.page_config();
    assert_eq!(map.len() as u32, page_config.logical_units);
    assert_eq!((erases.len(), frontiers.len(), failed.len()), (blocks, blocks, 0));
    assert!(!tombstones.is_empty(), "trims have left tombstones");
    for ([main, slc], open, _) in die_groups {
        assert_eq!(open.len() as u32, page_config.frontier_count());
        let open = open.iter().flatten().count();
        assert_eq!(4 * (main.0.len() + open + main.4.len()), blocks);
        assert_eq!((main.1.len(), main.2.len(), slc), (blocks / 4, blocks / 4, Default::default()));
    }
    let (cleaners, _, _, _): Cleaning = load(&mut from).unwrap();
    assert_eq!(cleaners.len() as u32, device.geometry().die_groups());
    let (_, _, buffered, _): Host = load(&mut from).unwrap();
    assert_eq!(buffered.len() as u32, drive.buffered_units());
    assert_eq!(load::<u64>(&mut from).unwrap(), checksum(&bytes[..bytes.len() - CHECKSUM_BYTES]));
    assert!(from.is_empty());
}
