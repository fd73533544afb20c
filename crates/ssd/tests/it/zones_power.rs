//! Power cuts of a zoned drive at any time: the recovered write pointer is at the first gap, no
//! acknowledged data lies beyond it, and the data before it is what was written.

use crate::common::zone_host::ZoneHost;
use crate::common::zoned::{self, ZONE_UNITS, ZONES, device, request};
use prism_base::Rng;
use prism_ftl::{Ftl, FtlConfig};
use prism_ssd::{Drive, HostOp, ZoneFault, ZoneState};
use prism_testkit::{all_seeds, seeds};

/// A host on a drive whose flash does not fail.
fn host(members: u32, seed: u64) -> ZoneHost {
    ZoneHost::new(device(members), seed).expect("no block is bad")
}

/// 120 drives with 40 cuts each, some soon after each other and some after long work: 4,800 cuts,
/// as TESTING.md states.
#[test]
fn random_cuts_in_one_life() {
    let mut cuts = 0;
    for seed in seeds(0..120) {
        let mut host = host([1, 2, 4][seed as usize % 3], seed);
        let mut rng = Rng::stream(seed, "zones.cuts");
        for _ in 0..40 {
            let turns = if rng.chance(0.3) { rng.below(8) } else { rng.below(400) };
            for _ in 0..turns {
                host.turn();
            }
            host = host.cut(seed);
            cuts += 1;
        }
        host.come_to_rest();
    }
    assert!(!all_seeds() || cuts == 4_800, "{cuts} cuts");
}

/// A scan of the flash alone finds the data of the drive up to the first gap, and no data of a
/// reset zone whose erase has ended.
#[test]
fn random_zones_are_found_by_a_scan() {
    for seed in seeds(0..60) {
        let mut host = host([1, 2, 4][seed as usize % 3], seed);
        for _ in 0..600 {
            host.turn();
        }
        host.come_to_rest();
        let map = host.drive.engine().ftl().zoned().unwrap();
        let config = FtlConfig::Zoned(map.config().clone());
        let nand = host.drive.engine().nand();
        let (found, _) = Ftl::recover(&mut { nand }, config, 1, &[]).unwrap();
        found.assert_consistent();
        let found = found.zoned().unwrap();
        for zone in 0..ZONES as u32 {
            assert_eq!(found.written(zone), map.written(zone), "seed {seed}, zone {zone}");
            for unit in 0..ZONE_UNITS as u32 {
                let lpn = zone * ZONE_UNITS as u32 + unit;
                assert_eq!(found.lookup(lpn), map.lookup(lpn), "seed {seed}, unit {lpn}");
            }
        }
    }
}

/// Failed zones and their readable data survive a loss of power.
#[test]
fn failed_zones_stay_failed() {
    for turns in [0, 5, 30, 200] {
        let mut drive = host(2, 9).drive;
        let mut out = Vec::new();
        for zone in 0..2 {
            let append = request(HostOp::ZoneAppend, zone * ZONE_UNITS, 7);
            drive.submit(append, drive.now()).unwrap();
        }
        drive.zone_failed(0, ZoneFault::ReadOnly, &mut out);
        drive.zone_failed(1, ZoneFault::Offline, &mut out);
        for _ in 0..turns {
            if drive.next_event().is_some() {
                drive.step(&mut out);
            }
        }
        let kept = if out.iter().any(|done| done.offset == 0) { 7 } else { 0 };
        let mut drive = Drive::recover(drive.power_cut(1), 1).unwrap();
        zoned::drain(&mut drive);
        let state = |zone| drive.zone_info(zone).unwrap().state;
        assert_eq!((state(0), state(1)), (ZoneState::ReadOnly, ZoneState::Offline));
        let there = |unit: u64| drive.version_of(unit as u32).unwrap().is_some();
        assert!((0..kept).all(there));
        assert!(!(ZONE_UNITS..2 * ZONE_UNITS).any(there));
        assert_eq!(drive.buffered_units(), 0);
    }
}
