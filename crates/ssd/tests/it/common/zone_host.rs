//! A host that uses a zoned drive at random, and a model of its zones: what each of them must hold
//! while the drive works, while its flash fails, and after a loss of power.

use prism_base::Rng;
use prism_engine::FaultCounts;
use prism_nand::Nand;
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, Request, Status, ZoneState};

use super::swarm::one_of;
use super::zoned::{CAPACITY_UNITS, UNIT, ZONE_UNITS, request};

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
    /// A write or command failed because the zone is read only.
    faulted: bool,
}

pub struct ZoneHost {
    pub drive: Drive,
    /// Its flash fails; else zones must not.
    fails: bool,
    zones: Vec<Zone>,
    requests: u64,
    rng: Rng,
    /// Faults before the last loss of power.
    faults: FaultCounts,
    pub write_faults: u64,
}

impl ZoneHost {
    /// `None` if there are too many factory bad blocks.
    pub fn new(device: DriveSpec, seed: u64) -> Option<Self> {
        let nand = Nand::with_content(device.geometry());
        let zones = device.zone_shape().expect("a zoned drive").count;
        let fails = device.faults.is_some();
        Some(Self {
            fails,
            drive: Drive::with_nand(device, nand, seed).ok()?,
            zones: vec![Zone::default(); zones as usize],
            requests: 0,
            rng: Rng::stream(seed, "zones.host"),
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
        self.rng.below(self.zones.len() as u64) as usize
    }

    /// Submits a random request, or processes an event of the drive.
    pub fn turn(&mut self) {
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
        assert!(self.fails || done.status == Status::Done, "flash that does not fail: {done:?}");
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
            HostOp::ZoneFinish => (known.managed, known.finished) = (None, true),
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

    /// Runs until the drive is idle, and compares it with the acknowledged data.
    pub fn come_to_rest(&mut self) {
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
    pub fn cut(mut self, seed: u64) -> Self {
        self.faults = self.faults();
        self.drive = Drive::recover(self.drive.power_cut(seed), seed).unwrap();
        for number in 0..self.zones.len() {
            self.zones[number] = self.recovered(number);
        }
        self.check();
        self
    }

    /// Compares a recovered zone with what the host knew. Returns what it knows now.
    fn recovered(&self, number: usize) -> Zone {
        let first = number as u64 * ZONE_UNITS;
        let at = |unit: u64| self.drive.version_of((first + unit) as u32).unwrap();
        let there = (0..ZONE_UNITS).take_while(|&unit| at(unit).is_some()).count() as u64;
        let versions: Vec<u64> = (0..there).map(|unit| at(unit).unwrap_or(0)).collect();
        let info = self.drive.zone_info(number as u32).unwrap();
        let (is_empty, is_full) = (info.state == ZoneState::Empty, info.state == ZoneState::Full);
        let failed = matches!(info.state, ZoneState::ReadOnly | ZoneState::Offline);
        assert!(self.fails || !failed, "flash that does not fail, zone {number}: {info:?}");
        let mut known = self.zones[number].clone();
        let lost = is_empty || info.state == ZoneState::Offline;
        if known.managed == Some(HostOp::ZoneReset) && lost {
            known = Zone::default();
        }
        let acknowledged = known.acknowledged.len();
        let possible = acknowledged as u64..=known.submitted;
        assert!(possible.contains(&there), "zone {number}: {info:?} {there} {known:?}");
        assert_eq!(versions[..acknowledged], known.acknowledged, "zone {number}");
        if !failed {
            let behind = (there..ZONE_UNITS).find(|&unit| at(unit).is_some());
            assert_eq!(behind, None, "zone {number}: data beyond its gap at {there}");
            let finishing = known.finished || known.managed == Some(HostOp::ZoneFinish);
            assert!(!known.finished || is_full, "zone {number} was finished: {info:?}");
            assert!(!is_full || finishing || there == CAPACITY_UNITS, "{number}: {info:?}");
        }
        if !failed && !is_full {
            assert_eq!((info.write_pointer - info.start) / UNIT, there);
            assert_eq!(is_empty, there == 0);
            assert!(!info.state.is_open(), "open zones are closed after recovery");
        }
        Zone {
            acknowledged: versions,
            submitted: there,
            managed: None,
            finished: is_full,
            faulted: failed,
        }
    }

    /// Faults since the beginning.
    pub fn faults(&self) -> FaultCounts {
        let mut all = self.faults;
        all.add(&self.drive.flash_counts().faults);
        all
    }
}
