//! What was promised durable is there after power was cut, wherever it was cut.
//!
//! The model keeps, for each logical unit, what has happened to it and since when that
//! is promised. A drive may come back with anything newer than the promise, never with
//! anything older, and never with another unit's data.

mod common;

use common::tiny;
use prism_base::Rng;
use prism_nand::Nand;
use prism_ssd::{Completion, Device, Drive, HostOp, Request};

const UNITS: u64 = 700;

/// What may be found at a logical unit: `None` is nothing.
type Content = Option<u64>;

#[derive(Clone, Default)]
struct UnitModel {
    /// Every content since the last cut, the one found then first.
    history: Vec<Content>,
    /// Which of these is promised: nothing older may be found.
    promised: usize,
    /// A request on it is under way; the unit is left alone until it is done.
    busy: bool,
    /// The request under way is a trim.
    trimming: bool,
}

struct Harness {
    drive: Drive,
    units: Vec<UnitModel>,
    /// By tag: the request, and for flushes the last content of each unit when it was
    /// submitted.
    requests: Vec<Option<(Request, Vec<usize>)>>,
    rng: Rng,
    protected: bool,
}

impl Harness {
    fn new(seed: u64, protected: bool) -> Self {
        let device = tiny(24, UNITS, protected);
        let nand = Nand::with_content(device.geometry());
        Self {
            drive: Drive::with_nand(device, nand, seed).unwrap(),
            units: vec![UnitModel { history: vec![None], ..UnitModel::default() }; UNITS as usize],
            requests: Vec::new(),
            rng: Rng::stream(seed, "power"),
            protected,
        }
    }

    /// Submits a random request, or lets the drive take a step.
    fn turn(&mut self) {
        let room = self.drive.in_flight() < 6;
        if room && (self.rng.chance(0.4) || self.drive.next_event().is_none()) {
            self.submit();
        } else if self.drive.next_event().is_some() {
            let mut out = Vec::new();
            self.drive.step(&mut out);
            for completion in out {
                self.complete(&completion);
            }
        }
    }

    fn submit(&mut self) {
        let op = match self.rng.below(20) {
            0..13 => HostOp::Write,
            13..16 => HostOp::Discard,
            16 => HostOp::WriteZeroes,
            17 => HostOp::Read,
            _ => HostOp::Flush,
        };
        // A few hot units are written and trimmed again and again.
        let hot = self.rng.chance(0.5);
        let first = self.rng.below(if hot { 20 } else { UNITS - 8 });
        let most = if self.rng.chance(0.1) { 8 } else { 2 };
        let count = 1 + self.rng.below(most);
        let span = first as usize..(first + count) as usize;
        let request = Request {
            op,
            offset: first * 4096,
            len: if op == HostOp::Flush { 0 } else { count * 4096 },
            fua: op == HostOp::Write && self.rng.chance(0.05),
            preflush: op == HostOp::Write && self.rng.chance(0.03),
            tag: self.requests.len() as u64,
        };
        let mut covered = Vec::new();
        if op == HostOp::Flush || request.preflush {
            covered = self.units.iter().map(|unit| unit.history.len() - 1).collect();
        }
        if matches!(op, HostOp::Write | HostOp::Discard | HostOp::WriteZeroes) {
            if self.units[span.clone()].iter().any(|unit| unit.busy) {
                return;
            }
            for unit in &mut self.units[span] {
                unit.busy = true;
                unit.trimming = op != HostOp::Write;
            }
        }
        self.drive.submit(request, self.drive.now()).unwrap();
        self.requests.push(Some((request, covered)));
    }

    fn complete(&mut self, completion: &Completion) {
        let (request, covered) = self.requests[completion.tag as usize].take().unwrap();
        let first = (request.offset / 4096) as usize;
        let span = first..first + (request.len / 4096) as usize;
        for (unit, last) in self.units.iter_mut().zip(covered) {
            unit.promised = unit.promised.max(last);
        }
        if !matches!(request.op, HostOp::Write | HostOp::Discard | HostOp::WriteZeroes) {
            return;
        }
        for lpn in span {
            let now = self.drive.version_of(lpn as u32).unwrap();
            assert_eq!(now.is_none(), request.op != HostOp::Write, "{lpn} after {:?}", request.op);
            let unit = &mut self.units[lpn];
            unit.busy = false;
            unit.history.push(now);
            if self.protected || request.fua {
                unit.promised = unit.history.len() - 1;
            }
        }
    }

    /// Cuts the power, brings the drive back, and checks every promise.
    fn cut(self, seed: u64) -> Self {
        let Self { drive, mut units, rng, protected, .. } = self;
        let drive = Drive::recover(drive.power_cut(), seed).unwrap();
        drive.assert_consistent();
        for (lpn, unit) in units.iter_mut().enumerate() {
            let found = drive.version_of(lpn as u32).unwrap();
            let newest = unit.history.iter().flatten().max().copied().unwrap_or(0);
            let under_way = unit.busy
                && match found {
                    Some(version) => !unit.trimming && version > newest,
                    None => unit.trimming,
                };
            let allowed = &unit.history[unit.promised..];
            assert!(
                allowed.contains(&found) || under_way,
                "unit {lpn}: found {found:?}, allowed {allowed:?}, busy {}",
                unit.busy
            );
            // What was found is on flash, so it is the floor from now on.
            *unit = UnitModel { history: vec![found], ..UnitModel::default() };
        }
        Self { drive, units, requests: Vec::new(), rng, protected }
    }
}

fn device_operations(drive: &Drive) -> u64 {
    drive.engine().operations()
}

/// Runs until `operations` flash operations have begun in this life, then cuts.
fn run_and_cut(mut harness: Harness, operations: u64, seed: u64) -> Harness {
    let goal = device_operations(&harness.drive) + operations;
    let mut turns = 0;
    while device_operations(&harness.drive) < goal {
        harness.turn();
        turns += 1;
        assert!(turns < 100_000 + 1000 * operations, "the drive makes no progress");
    }
    harness.cut(seed)
}

#[test]
fn one_cut_after_every_operation() {
    for protected in [false, true] {
        for operations in 1..400 {
            run_and_cut(Harness::new(11, protected), operations, 11);
        }
    }
}

#[test]
fn many_cuts_in_one_life() {
    for protected in [false, true] {
        for seed in 0..20 {
            println!("seed {seed}, protected {protected}");
            let mut harness = Harness::new(seed, protected);
            for _ in 0..120 {
                // Mostly close together, at times long enough for cleaning to be in full
                // swing.
                let far = harness.rng.chance(0.2);
                let operations = 1 + harness.rng.below(if far { 900 } else { 25 });
                harness = run_and_cut(harness, operations, seed);
            }
        }
    }
}

#[test]
fn a_device_description_survives() {
    let device: Device = tiny(24, UNITS, true);
    let nand = Nand::with_content(device.geometry());
    let drive = Drive::with_nand(device.clone(), nand, 1).unwrap();
    assert_eq!(*Drive::recover(drive.power_cut(), 1).unwrap().device(), device);
}
