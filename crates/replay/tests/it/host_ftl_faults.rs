//! The host FTL on a zoned drive with faults: it moves data out of read-only zones, repeats failed
//! writes, and becomes read-only before cleaning could no longer free zones.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use prism_testkit::{all_seeds, seeds};
use std::collections::BTreeSet;

use prism_base::{Bytes, Rng};
use prism_replay::{HostFtl, HostFtlError, Options, Pace, Passes, ReplayDevice, replay};
use prism_ssd::spec::FaultSpec;
use prism_ssd::{
    BlockDevice, Completion, Drive, DriveSpec, HostOp, InitialState, Request, Status, ZoneState,
};
use prism_trace::{Op, Record, VecSource};
use prism_workload::Silent;

const UNIT: u64 = 4096;
/// Units per zone.
const ZONE: u64 = 64;

/// Zones of 64 units on two dies, with `spare` additional blocks, whose programs and erases fail
/// with these probabilities.
fn device(zones: u64, spare: u32, program: f64, erase: f64) -> DriveSpec {
    let mut device = DriveSpec::preset("zn540").unwrap();
    device.flash.channels = 2;
    device.flash.dies_per_channel = 1;
    device.flash.superblock_dies = 2;
    device.flash.page = Bytes(8192);
    device.flash.pages_per_program = 1;
    device.flash.pages_per_block = 8;
    device.flash.blocks_per_plane = zones as u32 + spare;
    device.ftl.zone_size = Some(Bytes(80 * UNIT));
    device.drive.capacity = Bytes(zones * 80 * UNIT);
    device.drive.write_buffer = Bytes(64 * UNIT);
    let mut faults = FaultSpec::of_kind("tlc");
    faults.factory_bad = Some(0.0);
    faults.program_failure = Some(program);
    faults.erase_failure = Some(erase);
    faults.program_exponent = Some(0.0);
    faults.erase_exponent = Some(0.0);
    device.faults = Some(faults);
    device.check().unwrap();
    device
}

/// A host FTL and the host's view of its content.
struct Host {
    ftl: HostFtl,
    units: u64,
    /// Units with data; those of refused requests may have none.
    held: BTreeSet<u64>,
    open: BTreeSet<u64>,
    requests: Vec<Request>,
    rng: Rng,
    refused: u64,
}

impl Host {
    fn new(device: DriveSpec, units: u64, seed: u64) -> Self {
        let state = HostFtl::drive_state(&device, units * UNIT, InitialState::Empty).unwrap();
        let drive = Drive::prepared(device, state, seed, |_| true).unwrap().unwrap().0;
        Self {
            ftl: HostFtl::new(drive, units * UNIT).unwrap(),
            units,
            held: BTreeSet::new(),
            open: BTreeSet::new(),
            requests: Vec::new(),
            rng: Rng::stream(seed, "host FTL faults"),
            refused: 0,
        }
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        self.ftl.step(&mut out);
        for done in out {
            self.complete(&done);
        }
    }

    fn complete(&mut self, done: &Completion) {
        let request = self.requests[done.tag as usize];
        let units = request.offset / UNIT..(request.offset + request.len) / UNIT;
        match done.status {
            Status::ReadOnly => {
                assert!(self.ftl.read_only().is_some(), "{done:?}");
                self.refused += 1;
                self.open.extend(units);
            }
            Status::Unreadable => {
                let open = units.into_iter().any(|unit| self.open.contains(&unit));
                assert!(done.op == HostOp::Read && open, "{done:?}");
            }
            Status::WriteFault => panic!("the ftl writes again: {done:?}"),
            Status::Done => match request.op {
                HostOp::Write => self.held.extend(units),
                HostOp::Discard => units.for_each(|unit| _ = self.held.remove(&unit)),
                _ => {}
            },
        }
    }

    /// Random requests, of which those that overlap never run at the same time.
    fn run(&mut self, count: u32) {
        let mut busy: Vec<u64> = Vec::new();
        for _ in 0..count {
            let first = self.rng.below(self.units);
            let len = (1 + self.rng.below(20)).min(self.units - first);
            let touched = first..first + len;
            if self.ftl.in_flight() > 5 || touched.clone().any(|unit| busy.contains(&unit)) {
                while self.ftl.in_flight() > 0 {
                    self.step();
                }
                busy.clear();
            }
            let op = match self.rng.below(12) {
                0..8 => HostOp::Write,
                8 => HostOp::Discard,
                9 => HostOp::Flush,
                _ => HostOp::Read,
            };
            let tag = self.requests.len() as u64;
            let request = match op {
                HostOp::Flush => Request::new(op, 0, 0, tag),
                _ => Request::new(op, first * UNIT, len * UNIT, tag),
            };
            self.requests.push(request);
            let now = self.ftl.drive().now();
            self.ftl.submit(request, now).unwrap();
            busy.extend(touched);
        }
        self.rest();
    }

    /// Runs until idle, and checks that every acknowledged unit is mapped and exists on the drive.
    fn rest(&mut self) {
        let mut steps = 0;
        while self.ftl.in_flight() > 0 || self.ftl.drive().next_event().is_some() {
            self.step();
            steps += 1;
            assert!(steps < 1_000_000, "the host FTL never becomes idle");
        }
        self.ftl.assert_consistent();
        for unit in (0..self.units).filter(|unit| !self.open.contains(unit)) {
            let at = self.ftl.lookup(unit as u32);
            assert_eq!(at.is_some(), self.held.contains(&unit), "unit {unit}");
            let Some(at) = at else { continue };
            let drive = self.ftl.drive();
            let there = drive.engine().ftl().lookup((at / UNIT) as u32).is_some();
            assert!(there || drive.buffered_units() > 0, "unit {unit} is gone");
        }
    }

    fn zones(&self, state: ZoneState) -> u32 {
        self.ftl.drive().zones().unwrap().count(state)
    }
}

#[test]
fn random_zone_failures_lose_nothing() {
    let (mut read_only, mut offline, mut ended, mut refused) = (0, 0, 0, 0);
    let mut ftl = prism_replay::HostFtlCounts::default();
    for seed in seeds(0..80) {
        let mut rng = Rng::stream(seed, "host FTL device");
        let program = [0.0, 0.0005, 0.003][rng.below(3) as usize];
        let device = device(24, 2 + rng.below(6) as u32, program, [0.0, 0.01][seed as usize % 2]);
        let mut host = Host::new(device, 700 + rng.below(300), seed);
        for _ in 0..8 {
            host.run(300);
        }
        read_only += host.zones(ZoneState::ReadOnly);
        offline += host.zones(ZoneState::Offline);
        ended += u32::from(host.ftl.read_only().is_some());
        refused += host.refused;
        ftl.add(&host.ftl.counts());
    }
    println!("{read_only} read only, {offline} offline, {ended} ended, {refused} refused: {ftl:?}");
    assert!(
        !all_seeds() || read_only >= 200 && offline >= 10 && ended >= 10,
        "{read_only} {offline}"
    );
    assert!(!all_seeds() || ftl.rewritten >= 500 && ftl.evacuated >= 1000, "{ftl:?}");
    assert!(!all_seeds() || refused >= 1000, "{refused}");
}

/// A zone fails: once enough zones are empty, its data has been moved, and the zone is no longer
/// used.
#[test]
fn data_in_a_failed_zone_is_moved_away() {
    // Of 24 zones 12 hold data; one program of a thousand fails.
    let mut host = Host::new(device(24, 4, 0.001, 0.0), 12 * ZONE, 3);
    host.run(600);
    let failed = host.zones(ZoneState::ReadOnly);
    assert!(failed > 0 && host.ftl.read_only().is_none(), "{failed} zones have failed");
    let size = 80 * UNIT;
    let is_failed = |at: u64| {
        let zone = (at / size) as u32;
        host.ftl.drive().zone_info(zone).unwrap().state == ZoneState::ReadOnly
    };
    let standing = (0..host.units).filter_map(|unit| host.ftl.lookup(unit as u32));
    assert_eq!(standing.filter(|&at| is_failed(at)).count(), 0);
    assert!(host.ftl.counts().evacuated > 0);
}

/// The host FTL becomes read-only while its drive could still write, and reads continue.
#[test]
fn it_becomes_read_only_before_cleaning_fails() {
    let mut host = Host::new(device(24, 2, 0.01, 0.0), 12 * ZONE, 1);
    let mut stretches = 0;
    while host.ftl.read_only().is_none() {
        host.run(100);
        stretches += 1;
        assert!(stretches < 200, "the host FTL never becomes read-only");
    }
    let read_only = host.ftl.read_only().unwrap();
    assert!(read_only.written.0 > 12 * ZONE * UNIT && host.refused > 0);
    // 12 zones of data need 12.2 with the least spare, and 5 more: the seventh failure of 24 zones
    // is the last, and buffered data may make some more fail.
    let left = 24 - host.zones(ZoneState::ReadOnly) - host.zones(ZoneState::Offline);
    assert!((13..=17).contains(&left), "{left}");
    host.run(200);
    let ended = host.ftl.read_only().unwrap();
    assert_eq!(ended, read_only);
}

/// A copy that cannot be read loses only its uncorrectable units: reads of them fail until they are
/// completely rewritten or discarded.
#[test]
fn units_that_a_copy_cannot_read_are_lost() {
    let mut device = device(24, 2, 0.0, 0.0);
    let faults = device.faults.as_mut().unwrap();
    // About one unit in ten is uncorrectable, mostly in upper pages.
    faults.codeword = Some(Bytes(512));
    faults.correctable_bits = Some(24);
    faults.rber_fresh = Some(3e-3);
    faults.read_retries = Some(0);
    let units = 14 * ZONE;
    let drive = Drive::new(device, 2).unwrap();
    let mut ftl = HostFtl::new(drive, units * UNIT).unwrap();
    let serve = |ftl: &mut HostFtl, op: HostOp, offset: u64, len: u64| {
        let now = ftl.drive().now();
        ftl.submit(Request::new(op, offset, len, 0), now).unwrap();
        let mut done = Vec::new();
        while done.is_empty() {
            ftl.step(&mut done);
        }
        done[0]
    };
    let mut rng = Rng::stream(2, "lost units");
    for unit in (0..units).chain((0..4 * units).map(|_| rng.below(units))) {
        assert_eq!(serve(&mut ftl, HostOp::Write, unit * UNIT, UNIT).status, Status::Done);
    }
    let counts = ftl.counts();
    // What is lost is not read from flash; other reads may fail there.
    let is_lost = |unit: &u64| {
        let read = serve(&mut ftl, HostOp::Read, unit * UNIT, UNIT);
        read.status == Status::Unreadable && read.cost.flash_reads == 0
    };
    let gone: Vec<u64> = (0..units).filter(is_lost).collect();
    let lost = gone.len();
    println!("{lost} units are lost: {counts:?}");
    assert!(lost >= 10 && lost as u64 <= counts.lost, "{lost} {counts:?}");
    assert!(counts.lost < counts.copied / 5, "readable units are not lost");
    let [first, second] = [gone[0], gone[1]];
    // Writing a part of the unit is not enough.
    serve(&mut ftl, HostOp::Write, first * UNIT, UNIT / 2);
    assert_eq!(serve(&mut ftl, HostOp::Read, first * UNIT, UNIT).status, Status::Unreadable);
    serve(&mut ftl, HostOp::Write, first * UNIT, UNIT);
    assert_eq!(serve(&mut ftl, HostOp::Read, first * UNIT, UNIT).status, Status::Done);
    serve(&mut ftl, HostOp::Discard, second * UNIT, UNIT);
    assert_eq!(serve(&mut ftl, HostOp::Read, second * UNIT, UNIT).status, Status::Done);
    ftl.assert_consistent();
}

/// A host FTL starts on a drive whose zones have failed while it was filled, or reports that too
/// few are left.
#[test]
fn it_starts_on_the_zones_that_are_left() {
    let filled = |program: f64, units: u64| {
        let device = device(24, 4, program, 0.0);
        let state = HostFtl::drive_state(&device, units * UNIT, InitialState::Filled).unwrap();
        let drive = Drive::prepared(device, state, 5, |_| true).unwrap().unwrap().0;
        let zones = drive.zones().unwrap();
        let failed = zones.count(ZoneState::ReadOnly) + zones.count(ZoneState::Offline);
        (failed, HostFtl::new(drive, units * UNIT))
    };
    let (failed, ftl) = filled(0.01, 12 * ZONE);
    let ftl = ftl.unwrap();
    let left = f64::from(24 - 4 - failed);
    assert!(failed > 0, "nothing has failed");
    assert!((ftl.over_provisioning() - (left / 12.0 - 1.0)).abs() < 1e-9, "{failed}");
    ftl.assert_consistent();
    let (failed, ftl) = filled(0.05, 19 * ZONE);
    assert!(failed > 0 && matches!(ftl, Err(HostFtlError::TooSmall { .. })), "{failed}");
}

/// Replays a trace until the drive is read-only, and repeats that.
#[test]
fn a_trace_is_replayed_until_nothing_can_be_written() {
    let write = |i: u64| {
        let unit = Rng::stream(i, "places").below(700);
        Record::new(Op::Write, i as i64 * 1000, unit * UNIT, UNIT)
    };
    let run = || {
        let device = device(24, 3, 0.001, 0.002);
        let drive = Drive::new(device, 7).unwrap();
        let mut ftl = HostFtl::new(drive, 700 * UNIT).unwrap();
        let mut source = VecSource::new((0..3000).map(write).collect());
        let options = Options { pace: Pace::Closed { depth: 8 }, passes: Passes::UntilReadOnly };
        let outcome = replay(&mut ftl, &mut source, &options, &mut Silent).unwrap();
        (outcome.rounds, ftl.counts(), ftl.read_only())
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    assert!(first.2.is_some() && first.1.rewritten + first.1.evacuated > 0, "{first:?}");
}
