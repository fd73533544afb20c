//! Zoned drives with faults, against a model of the host: zones become read only and offline, and
//! every acknowledged unit can be read.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::swarm::one_of;
use crate::common::zoned::{self, CAPACITY_UNITS, UNIT, ZONE_UNITS, request};
use prism_base::{Bytes, Rng};
use prism_engine::FaultCounts;
use prism_nand::Nand;
use prism_ssd::spec::FaultSpec;
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, Request, Status, ZoneState};
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

/// The host's view of a zone. Units are counted from its start.
#[derive(Clone, Debug, Default)]
struct Zone {
    /// Version of each unit whose write has completed.
    acknowledged: Vec<u64>,
    /// Units submitted.
    submitted: u64,
    /// A reset or finish is in flight.
    managed: Option<HostOp>,
    /// A write or command failed because the zone is read only.
    faulted: bool,
}

struct Host {
    drive: Drive,
    zones: Vec<Zone>,
    requests: u64,
    rng: Rng,
    /// Faults before the last loss of power.
    faults: FaultCounts,
    write_faults: u64,
}

impl Host {
    /// `None` if there are too many factory bad blocks.
    fn new(device: DriveSpec, seed: u64) -> Option<Self> {
        let nand = Nand::with_content(device.geometry());
        Some(Self {
            drive: Drive::with_nand(device, nand, seed).ok()?,
            zones: vec![Zone::default(); ZONES as usize],
            requests: 0,
            rng: Rng::stream(seed, "faults.zones.host"),
            faults: FaultCounts::default(),
            write_faults: 0,
        })
    }

    fn state(&self, zone: usize) -> ZoneState {
        self.drive.zone_info(zone as u32).unwrap().state
    }

    /// A partly written zone if there is one, or any.
    fn choose_zone(&mut self) -> usize {
        let started = |zone: &usize| {
            let known = &self.zones[*zone];
            self.state(*zone).is_active() && known.submitted < CAPACITY_UNITS
        };
        let started: Vec<usize> = (0..self.zones.len()).filter(started).collect();
        if !started.is_empty() && self.rng.chance(0.85) {
            return one_of(&mut self.rng, &started);
        }
        self.rng.below(ZONES) as usize
    }

    /// Submits a random request, or processes an event of the drive.
    fn turn(&mut self) {
        let idle = self.drive.next_event().is_none();
        if !idle && (self.drive.in_flight() >= 8 || self.rng.chance(0.5)) {
            return self.step();
        }
        let zone = self.choose_zone();
        let full = self.state(zone) == ZoneState::Full;
        let op = match self.rng.below(40) {
            _ if full && self.rng.chance(0.5) => HostOp::ZoneReset,
            0..14 => HostOp::Write,
            14..32 => HostOp::ZoneAppend,
            32 => HostOp::ZoneFinish,
            33 => HostOp::ZoneReset,
            34 => HostOp::ZoneOpen,
            35 => HostOp::ZoneClose,
            36 => HostOp::Flush,
            _ => HostOp::Read,
        };
        let start = zone as u64 * ZONE_UNITS;
        let (at, units) = match op {
            HostOp::Write => (start + self.zones[zone].submitted, 1 + self.rng.below(12)),
            HostOp::ZoneAppend => (start, 1 + self.rng.below(12)),
            HostOp::Read => (start, 1 + self.rng.below(60)),
            HostOp::Flush => (0, 0),
            _ => (start, 0),
        };
        self.submit(zone, request(op, at, units));
    }

    fn submit(&mut self, zone: usize, request: Request) {
        let request = Request { tag: self.requests, ..request };
        let failed = matches!(self.state(zone), ZoneState::ReadOnly | ZoneState::Offline);
        let taken = self.drive.submit(request, self.drive.now()).is_ok();
        let changes = !matches!(request.op, HostOp::Read | HostOp::Flush);
        assert!(!(taken && failed && changes), "a failed zone takes {request:?}");
        if !taken {
            return;
        }
        self.requests += 1;
        let known = &mut self.zones[zone];
        match request.op {
            HostOp::Write | HostOp::ZoneAppend => known.submitted += request.len / UNIT,
            HostOp::ZoneReset | HostOp::ZoneFinish => known.managed = Some(request.op),
            _ => {}
        }
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        self.drive.step(&mut out);
        for done in out {
            self.complete(&done);
        }
    }

    fn complete(&mut self, done: &Completion) {
        let zone = (done.offset / UNIT / ZONE_UNITS) as usize;
        let state = self.state(zone);
        let known = &mut self.zones[zone];
        match done.status {
            Status::Done => {}
            Status::Unreadable => return assert_eq!(done.op, HostOp::Read, "{done:?}"),
            Status::ReadOnly => {
                assert!(self.drive.read_only().is_some(), "{done:?}");
                return known.faulted = true;
            }
            Status::WriteFault => {
                assert!(matches!(state, ZoneState::ReadOnly | ZoneState::Offline), "{done:?}");
                self.write_faults += 1;
                return known.faulted = true;
            }
        }
        match done.op {
            HostOp::Write | HostOp::ZoneAppend => {
                assert!(!known.faulted, "a write completed after an earlier one failed: {done:?}");
                let first = done.offset / UNIT;
                let at = first - zone as u64 * ZONE_UNITS;
                assert_eq!(at, known.acknowledged.len() as u64, "writes end in order");
                for unit in first..first + done.len / UNIT {
                    let version = self.drive.version_of(unit as u32).unwrap();
                    known.acknowledged.push(version.expect("the unit was written"));
                }
            }
            HostOp::ZoneReset => *known = Zone::default(),
            HostOp::ZoneFinish => known.managed = None,
            _ => {}
        }
    }

    /// Checks that acknowledged data can be read, and that zones with data are not offline.
    fn check(&self) {
        self.drive.assert_consistent();
        for (number, zone) in self.zones.iter().enumerate() {
            let first = number as u64 * ZONE_UNITS;
            for (unit, &version) in (first..).zip(&zone.acknowledged) {
                let found = self.drive.version_of(unit as u32).unwrap();
                assert_eq!(found, Some(version), "zone {number}, unit {unit}: {zone:?}");
            }
            let lost = self.state(number) == ZoneState::Offline;
            assert!(!lost || zone.acknowledged.is_empty(), "zone {number} was not empty");
        }
    }

    fn come_to_rest(&mut self) {
        let mut steps = 0;
        while self.drive.next_event().is_some() {
            self.step();
            steps += 1;
            assert!(steps < 100_000, "the drive never becomes idle");
        }
        assert_eq!(self.drive.in_flight(), 0, "requests never complete");
        self.check();
        for (number, zone) in self.zones.iter().enumerate() {
            let all = zone.acknowledged.len() as u64 == zone.submitted;
            assert!(all || zone.faulted, "zone {number}: {zone:?}");
            let broken = self.state(number) == ZoneState::ReadOnly;
            let has_rest = self.drive.read_only().is_none() && broken;
            let buffered = |unit: u64| {
                let at = self.drive.engine().ftl().lookup(unit as u32);
                at.is_none()
            };
            let first = number as u64 * ZONE_UNITS;
            let units = first..first + zone.acknowledged.len() as u64;
            assert!(!has_rest || !units.into_iter().any(buffered), "zone {number} is on flash");
        }
    }

    /// Cuts the power, recovers the drive, and checks every guarantee.
    fn cut(mut self, seed: u64) -> Self {
        self.faults.add(&self.drive.flash_counts().faults);
        self.drive = Drive::recover(self.drive.power_cut(seed), seed).unwrap();
        for number in 0..self.zones.len() {
            let (state, first) = (self.state(number), number as u64 * ZONE_UNITS);
            let at = |unit: u64| self.drive.version_of((first + unit) as u32).unwrap();
            let there = (0..ZONE_UNITS).take_while(|&unit| at(unit).is_some()).count() as u64;
            let versions: Vec<u64> = (0..there).map(|unit| at(unit).unwrap_or(0)).collect();
            let known = &mut self.zones[number];
            let lost = matches!(state, ZoneState::Empty | ZoneState::Offline);
            if known.managed == Some(HostOp::ZoneReset) && lost {
                *known = Zone::default();
            }
            let acknowledged = known.acknowledged.len();
            assert!(
                there >= acknowledged as u64 && there <= known.submitted,
                "zone {number} is {state:?}: {there} {known:?}"
            );
            assert_eq!(versions[..acknowledged], known.acknowledged, "zone {number}");
            let faulted = matches!(state, ZoneState::ReadOnly | ZoneState::Offline);
            let submitted = there;
            *known = Zone { acknowledged: versions, submitted, managed: None, faulted };
        }
        self.check();
        self
    }
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
fn live(host: Host, stretches: u32, cuts: f64, seed: u64, seen: &mut Seen) {
    let mut rng = Rng::stream(seed, "faults.zones.cuts");
    let mut host = host;
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
    host.faults.add(&host.drive.flash_counts().faults);
    seen.faults.add(&host.faults);
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
        let Some(host) = Host::new(device, seed) else { continue };
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
