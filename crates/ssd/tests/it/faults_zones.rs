//! Zoned drives with faults, against a model of the host: zones become read only and offline, and
//! every acknowledged unit can be read.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::swarm::one_of;
use crate::common::zone_host::ZoneHost;
use crate::common::zoned::{self, UNIT, ZONE_UNITS};
use prism_base::{Bytes, Rng};
use prism_engine::FaultCounts;
use prism_ssd::spec::FaultSpec;
use prism_ssd::{DriveSpec, ZoneState};
use prism_testkit::{all_seeds, seeds};

/// Zones of the drives.
const ZONES: u64 = 24;

/// A zoned drive whose flash often fails, with some spare blocks.
fn faulty(rng: &mut Rng) -> DriveSpec {
    let members = one_of(rng, &[1, 2, 4]);
    let mut device = zoned::device(members);
    let die_groups = 4 / members;
    let blocks = (ZONES as u32 + 2 + rng.below(20) as u32).div_ceil(die_groups);
    device.flash.blocks_per_plane = blocks;
    device.flash.cache_program = rng.chance(0.4);
    device.drive.capacity = Bytes(ZONES * ZONE_UNITS * UNIT);
    let mut faults = FaultSpec::of_kind("tlc");
    faults.factory_bad = Some(one_of(rng, &[0.0, 0.02]));
    faults.program_failure = Some(one_of(rng, &[0.0, 0.002, 0.01]));
    faults.program_exponent = Some(0.0);
    faults.erase_failure = Some(one_of(rng, &[0.0, 0.01, 0.05]));
    faults.erase_exponent = Some(0.0);
    faults.codeword = Some(Bytes(512));
    faults.correctable_bits = Some(24);
    faults.rber_fresh = Some(one_of(rng, &[1e-9, 3e-3]));
    faults.read_retries = Some(rng.below(3) as u32);
    device.faults = Some(faults);
    device.check().unwrap();
    device
}

/// Events over all simulated drives.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    faults: FaultCounts,
    write_faults: u64,
    read_only: u32,
    offline: u32,
    relocated: u64,
    ended: u32,
    cuts: u32,
}

/// Runs `stretches` stretches of work, each followed by a power cut with probability `cuts`.
fn live(mut host: ZoneHost, stretches: u32, cuts: f64, seed: u64, seen: &mut Seen) {
    let mut rng = Rng::stream(seed, "faults.zones.cuts");
    for _ in 0..stretches {
        let most = one_of(&mut rng, &[10, 400, 3000]);
        for _ in 0..rng.below(most) {
            host.turn();
        }
        if rng.chance(cuts) {
            host = host.cut(seed);
            seen.cuts += 1;
        } else {
            host.come_to_rest();
        }
    }
    host.come_to_rest();
    let health = host.drive.health().unwrap();
    let zones = health.zones.unwrap();
    let report = |state| host.drive.zones().unwrap().report().filter(|z| z.state == state).count();
    assert_eq!(zones.read_only as usize, report(ZoneState::ReadOnly));
    assert_eq!(zones.offline as usize, report(ZoneState::Offline));
    assert!(zones.offline == 0 || health.spare_blocks == 0, "{health:?}");
    seen.faults.add(&host.faults());
    seen.write_faults += host.write_faults;
    seen.read_only += zones.read_only;
    seen.offline += zones.offline;
    seen.relocated += zones.relocated.0 / UNIT;
    seen.ended += u32::from(health.read_only.is_some());
}

fn swarm(count: u64, stretches: u32, cuts: f64) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds(0..count) {
        let mut rng = Rng::stream(seed, "faults.zones");
        let device = faulty(&mut rng);
        let Some(host) = ZoneHost::new(device, seed) else { continue };
        live(host, stretches, cuts, seed, &mut seen);
    }
    println!("{seen:?}");
    seen
}

fn failures(seen: &Seen) -> u64 {
    seen.faults.program_failures + seen.faults.erase_failures
}

/// Zones become read only and offline, some drives become read-only, and acknowledged data can be
/// read.
#[test]
fn random_failures_of_zones_lose_nothing() {
    let seen = swarm(150, 20, 0.0);
    assert!(!all_seeds() || failures(&seen) >= 1000, "{seen:?}");
    assert!(!all_seeds() || seen.read_only >= 400 && seen.offline >= 100, "{seen:?}");
    assert!(!all_seeds() || seen.write_faults >= 200 && seen.relocated >= 1000, "{seen:?}");
}

#[test]
fn random_cuts_of_failing_zones() {
    let seen = swarm(120, 25, 0.9);
    assert!(!all_seeds() || failures(&seen) >= 1000 && seen.cuts >= 2000, "{seen:?}");
}
