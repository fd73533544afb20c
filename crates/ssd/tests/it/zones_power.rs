//! Power cuts of a zoned drive at any time: the recovered write pointer is at the first gap, no
//! acknowledged data lies beyond it, and the data before it is what was written.

use crate::common::zoned::{self, CAPACITY_UNITS, UNIT, ZONE_UNITS, ZONES, device, request};
use prism_base::Rng;
use prism_ftl::{Ftl, FtlConfig};
use prism_nand::Nand;
use prism_ssd::{Completion, Drive, HostOp, Request, ZoneFault, ZoneState};
use prism_testkit::{all_seeds, seeds};

/// The host's view of a zone. Units are counted from its start.
#[derive(Clone, Debug, Default)]
struct Zone {
    /// Version of each unit whose write has completed.
    acknowledged: Vec<u64>,
    /// Units submitted.
    submitted: u64,
    /// A reset or finish is in flight.
    managed: Option<HostOp>,
    finished: bool,
}

struct Host {
    drive: Drive,
    zones: Vec<Zone>,
    requests: Vec<Request>,
    rng: Rng,
}

impl Host {
    fn new(members: u32, seed: u64) -> Self {
        let device = device(members);
        let nand = Nand::with_content(device.geometry());
        Self {
            drive: Drive::with_nand(device, nand, seed).unwrap(),
            zones: vec![Zone::default(); ZONES as usize],
            requests: Vec::new(),
            rng: Rng::stream(seed, "zones.power"),
        }
    }

    /// Submits a random request, or processes an event of the drive.
    fn turn(&mut self) {
        let idle = self.drive.next_event().is_none();
        if idle || self.drive.in_flight() < 8 && self.rng.chance(0.5) {
            let zone = self.rng.below(5);
            let op = match self.rng.below(20) {
                0..6 => HostOp::Write,
                6..15 => HostOp::ZoneAppend,
                15 => HostOp::ZoneFinish,
                16 => HostOp::ZoneReset,
                17 => HostOp::ZoneClose,
                18 => HostOp::Flush,
                _ => HostOp::Read,
            };
            let start = zone * ZONE_UNITS;
            let (at, units) = match op {
                HostOp::Write => {
                    (start + self.zones[zone as usize].submitted, 1 + self.rng.below(12))
                }
                HostOp::ZoneAppend => (start, 1 + self.rng.below(12)),
                HostOp::Read => (start, 1 + self.rng.below(60)),
                HostOp::Flush => (0, 0),
                _ => (start, 0),
            };
            self.submit(zone as usize, request(op, at, units));
        } else {
            self.step();
        }
    }

    fn submit(&mut self, zone: usize, request: Request) {
        let request = Request { tag: self.requests.len() as u64, ..request };
        if self.drive.submit(request, self.drive.now()).is_err() {
            return;
        }
        self.requests.push(request);
        let known = &mut self.zones[zone];
        match request.op {
            HostOp::Write | HostOp::ZoneAppend => known.submitted += request.len / UNIT,
            HostOp::ZoneReset | HostOp::ZoneFinish => known.managed = Some(request.op),
            _ => {}
        }
    }

    fn step(&mut self) {
        if self.drive.next_event().is_none() {
            return;
        }
        let mut out = Vec::new();
        self.drive.step(&mut out);
        for done in out {
            self.complete(&done);
        }
    }

    fn complete(&mut self, done: &Completion) {
        let zone = (done.offset / UNIT / ZONE_UNITS) as usize;
        let known = &mut self.zones[zone];
        match done.op {
            HostOp::Write | HostOp::ZoneAppend => {
                let first = done.offset / UNIT;
                let units = first..first + done.len / UNIT;
                let at = first - zone as u64 * ZONE_UNITS;
                assert_eq!(at, known.acknowledged.len() as u64, "writes end in order");
                if self.drive.zone_info(zone as u32).unwrap().state == ZoneState::Offline {
                    return;
                }
                for unit in units {
                    let version = self.drive.version_of(unit as u32).unwrap();
                    known.acknowledged.push(version.expect("the unit was written"));
                }
            }
            HostOp::ZoneReset => *known = Zone::default(),
            HostOp::ZoneFinish => (known.managed, known.finished) = (None, true),
            _ => {}
        }
    }

    /// Cuts the power, recovers the drive, and checks every guarantee.
    fn cut(mut self, seed: u64) -> Self {
        self.drive = Drive::recover(self.drive.power_cut(seed), seed).unwrap();
        self.requests.clear();
        self.drive.assert_consistent();
        for number in 0..ZONES {
            let first = number * ZONE_UNITS;
            let at = |unit: u64| self.drive.version_of((first + unit) as u32).unwrap();
            let there = (0..ZONE_UNITS).take_while(|&unit| at(unit).is_some()).count() as u64;
            let behind = (there..ZONE_UNITS).find(|&unit| at(unit).is_some());
            assert_eq!(behind, None, "zone {number}: data beyond its gap at {there}");
            let info = self.drive.zone_info(number as u32).unwrap();
            let known = &mut self.zones[number as usize];
            let empty = info.state == ZoneState::Empty;
            let reset = known.managed == Some(HostOp::ZoneReset) && empty;
            if reset {
                *known = Zone::default();
            }
            let acknowledged = known.acknowledged.len() as u64;
            assert!(
                (acknowledged..=known.submitted).contains(&there),
                "{number}: {there} {known:?}"
            );
            for (unit, &version) in known.acknowledged.iter().enumerate() {
                assert_eq!(at(unit as u64), Some(version), "zone {number}, unit {unit}");
            }
            let full = info.state == ZoneState::Full;
            let finishing = known.finished || known.managed == Some(HostOp::ZoneFinish);
            assert!(!known.finished || full, "zone {number} was finished: {info:?}");
            assert!(!full || finishing || there == CAPACITY_UNITS, "{number}: {info:?}");
            if !full {
                assert_eq!((info.write_pointer - info.start) / UNIT, there);
                assert_eq!(info.state == ZoneState::Empty, there == 0);
                assert!(!info.state.is_open(), "open zones are closed after recovery");
            }
            let versions = (0..there).map(|unit| at(unit).unwrap_or(0)).collect();
            *known =
                Zone { acknowledged: versions, submitted: there, managed: None, finished: full };
        }
        self
    }

    /// Runs until the drive is idle, and compares it with the acknowledged data.
    fn come_to_rest(&mut self) {
        let mut steps = 0;
        while self.drive.next_event().is_some() {
            self.step();
            steps += 1;
            assert!(steps < 100_000, "the drive never becomes idle");
        }
        assert_eq!(self.drive.in_flight(), 0);
        self.drive.assert_consistent();
        for (number, zone) in self.zones.iter().enumerate() {
            assert_eq!(zone.acknowledged.len() as u64, zone.submitted, "zone {number}");
        }
    }
}

/// 120 drives with 40 cuts each, some soon after each other and some after long work: 4,800 cuts,
/// as TESTING.md states.
#[test]
fn random_cuts_in_one_life() {
    let mut cuts = 0;
    for seed in seeds(0..120) {
        let mut host = Host::new([1, 2, 4][seed as usize % 3], seed);
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
        let mut host = Host::new([1, 2, 4][seed as usize % 3], seed);
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
        let mut host = Host::new(2, 9);
        host.submit(0, request(HostOp::ZoneAppend, 0, 7));
        host.submit(1, request(HostOp::ZoneAppend, ZONE_UNITS, 7));
        let mut out = Vec::new();
        host.drive.zone_failed(0, ZoneFault::ReadOnly, &mut out);
        host.drive.zone_failed(1, ZoneFault::Offline, &mut out);
        for _ in 0..turns {
            host.step();
        }
        let kept = host.zones[0].acknowledged.len();
        let mut drive = Drive::recover(host.drive.power_cut(1), 1).unwrap();
        zoned::finish_all(&mut drive);
        drive.assert_consistent();
        let state = |zone| drive.zone_info(zone).unwrap().state;
        assert_eq!((state(0), state(1)), (ZoneState::ReadOnly, ZoneState::Offline));
        let there = |unit: u64| drive.version_of(unit as u32).unwrap().is_some();
        assert!((0..kept as u64).all(there));
        assert!(!(ZONE_UNITS..2 * ZONE_UNITS).any(there));
        assert_eq!(drive.buffered_units(), 0);
    }
}
