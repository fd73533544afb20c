//! A drive that was saved and loaded is the drive.

use prism_base::{Bytes, Rng};
use prism_ftl::{Frontiers, VictimPolicy};

use super::*;
use crate::request::{Completion, HostOp, Request};
use crate::spec::{FaultSpec, Mapping};
use crate::state::InitialState;

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
    let prepared = Drive::prepared(device.clone(), state, 7, |_, _| true);
    prepared.unwrap().expect("nobody gives up").0
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

fn damage(name: &str, device: &DriveSpec, bytes: &[u8]) {
    let load = |bytes: &[u8]| Drive::from_saved(device.clone(), bytes).map(|_| ());
    load(bytes).unwrap();
    let mut rng = Rng::stream(4, "damage");
    for len in (0..40).chain((0..100).map(|_| rng.below(bytes.len() as u64) as usize)) {
        let error = load(&bytes[..len]).unwrap_err();
        assert!(matches!(error, SnapshotError::Foreign | SnapshotError::Checksum), "{error}");
    }
    let mut rng = Rng::stream(5, "damage");
    for turn in 0..600 {
        let mut damaged = bytes.to_vec();
        // What follows the map is short and says most.
        let from = if turn % 2 == 0 { 0 } else { bytes.len().saturating_sub(4000) };
        let place = from + rng.below((bytes.len() - from) as u64) as usize;
        damaged[place] ^= 1 << rng.below(8);
        assert!(load(&damaged).is_err(), "{name}: a flipped bit at {place}");
        // With the checksum made good again, the content itself has to be checked.
        let content = damaged.len() - CHECKSUM_BYTES;
        let sum = checksum(&damaged[..content]);
        damaged[content..].copy_from_slice(&sum.to_le_bytes());
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

/// The head of docs/spec/drive-state.md is what is written.
#[test]
fn the_document_tells_the_truth() {
    const DOCUMENT: &str = include_str!("../../../../docs/spec/drive-state.md");
    let device = device(|_| {});
    let bytes = prepared(&device, InitialState::Filled).save().unwrap();
    assert!(DOCUMENT.contains(&format!("`{}`", String::from_utf8_lossy(MAGIC))));
    assert!(DOCUMENT.contains(&format!("version, {VERSION}")));
    assert_eq!((&bytes[..8], bytes[8]), (&MAGIC[..], VERSION as u8));
    // The sizes that the document gives, added up.
    let geometry = device.geometry();
    let (die_groups, blocks) = (u64::from(geometry.die_groups()), u64::from(geometry.blocks()));
    let page_config = device.page_config();
    let free: u64 = {
        let drive = Drive::from_saved(device.clone(), &bytes).unwrap();
        let ftl = drive.engine().ftl();
        (0..geometry.die_groups())
            .map(|l| u64::from(ftl.free_blocks(prism_nand::DieGroupId(l))))
            .sum()
    };
    let open = {
        let drive = Drive::from_saved(device.clone(), &bytes).unwrap();
        let ftl = drive.engine().ftl();
        let die_groups = (0..geometry.die_groups()).map(prism_nand::DieGroupId);
        die_groups.filter(|&die_group| ftl.next_program_unit(die_group, 0, 0).is_some()).count()
            as u64
    };
    let head = 12 + 4 + describe(&device).len() as u64 + 8;
    let nand = (4 + 2 * blocks) + (4 + 4 * blocks) + 3 * 4 + 24;
    let map = (4 + 4 * u64::from(page_config.logical_units)) + 4;
    let columns = (4 + 4 * blocks) + (4 + 2 * blocks) + 2 * 4;
    let frontiers = u64::from(page_config.frontier_count());
    let sealed = blocks - free - open;
    let die_group = (4 + 8 * frontiers + 4 + 12 + 8) * die_groups + 4 * free + (4 + 8 + 8) * sealed;
    let turns = (4 + 4 * die_groups) + (4 + die_groups) + 4 + 8;
    let buffer = 4 + 4;
    assert_eq!(
        bytes.len() as u64,
        head + nand + map + columns + die_group + 32 + turns + buffer + 8
    );
}
