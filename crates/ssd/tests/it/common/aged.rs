//! A naive model of the content of a drive with faults, and random fault specifications.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use std::collections::HashMap;

use prism_base::{Bytes, Rng};
use prism_engine::FaultCounts;
use prism_ssd::spec::FaultSpec;
use prism_ssd::{Completion, Drive, DriveHealth, DriveSpec, HostOp, Request, Status};
use prism_testkit::seeds;

use super::swarm;

/// Cells that often fail, at any wear.
pub fn often(rng: &mut Rng) -> FaultSpec {
    let mut faults = FaultSpec::of_kind("tlc");
    let often = swarm::one_of(rng, &[0.0, 0.001, 0.004]);
    faults.factory_bad = Some(swarm::one_of(rng, &[0.0, 0.02]));
    faults.program_failure = Some(often * rng.unit());
    faults.program_exponent = Some(0.0);
    faults.erase_failure = Some(swarm::one_of(rng, &[0.0, 0.004, 0.02]));
    faults.erase_exponent = Some(0.0);
    // About as many errors as ECC corrects in a codeword of 512 bytes; then one in some hundred
    // units cannot be corrected.
    faults.codeword = Some(Bytes(512));
    faults.correctable_bits = Some(24);
    faults.rber_fresh = Some(swarm::one_of(rng, &[1e-9, 3e-3, 5e-3]));
    faults.read_retries = Some(rng.below(4) as u32);
    faults.retry_factor = Some(0.8);
    faults
}

/// The model of a mapping unit.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    /// Version of the last completed write; `None` if the unit is unmapped.
    version: Option<u64>,
    /// A read has reported it lost since.
    lost: bool,
    busy: bool,
}

pub struct Model {
    pub drive: Drive,
    units: Vec<Unit>,
    /// Requests by tag, with the units that were lost when a read began.
    requests: HashMap<u64, (Request, Vec<u32>)>,
    next_tag: u64,
    unit: u64,
    rng: Rng,
    /// Faults before the last loss of power.
    faults: FaultCounts,
    pub refused: u64,
}

impl Model {
    pub fn new(device: DriveSpec, seed: u64) -> Option<Self> {
        let nand = device.erased_with_content();
        let units = vec![Unit::default(); device.page_config().logical_units as usize];
        let unit = device.ftl.mapping_unit.0;
        // The drive may have too many factory bad blocks.
        let drive = Drive::with_nand(device, nand, seed).ok()?;
        Some(Self {
            drive,
            units,
            requests: HashMap::new(),
            next_tag: 0,
            unit,
            rng: Rng::stream(seed, "faults.requests"),
            faults: FaultCounts::default(),
            refused: 0,
        })
    }

    /// Writes everything once.
    pub fn fill(&mut self) {
        let mut next = 0;
        while next < self.units.len() as u64 {
            let count = (1 + self.rng.below(16)).min(self.units.len() as u64 - next);
            self.submit(HostOp::Write, next * self.unit, count * self.unit);
            next += count;
        }
    }

    pub fn run(&mut self, requests: u32) {
        for _ in 0..requests {
            let op = match self.rng.below(20) {
                0..11 => HostOp::Write,
                11..17 => HostOp::Read,
                17 => HostOp::Discard,
                18 => HostOp::WriteZeroes,
                _ => HostOp::Flush,
            };
            let units = self.units.len() as u64;
            let first = self.rng.below(units);
            let count = (1 + self.rng.below(8)).min(units - first);
            let (mut start, mut end) = (first * self.unit, (first + count) * self.unit);
            if self.rng.chance(0.2) {
                start += self.rng.below(self.unit);
                end = (end - self.rng.below(self.unit)).max(start + 1);
            }
            if op == HostOp::Flush {
                (start, end) = (0, 0);
            }
            self.submit(op, start, end - start);
        }
    }

    fn touched(&self, request: &Request) -> std::ops::Range<usize> {
        let end = request.offset + request.len;
        (request.offset / self.unit) as usize..end.div_ceil(self.unit) as usize
    }

    fn submit(&mut self, op: HostOp, offset: u64, len: u64) {
        let request = Request {
            fua: self.rng.chance(0.05),
            preflush: self.rng.chance(0.03),
            handle: self.rng.below(4) as u16,
            ..Request::new(op, offset, len, self.next_tag)
        };
        let touched = self.touched(&request);
        if self.units[touched.clone()].iter().any(|unit| unit.busy) {
            return;
        }
        while !self.drive.can_accept(0) {
            self.step();
        }
        let lost = touched.clone().map(|lpn| lpn as u32).filter(|&lpn| self.drive.is_lost(lpn));
        let lost = lost.collect();
        self.units[touched].iter_mut().for_each(|unit| unit.busy = true);
        self.drive.submit(request, self.drive.now()).unwrap();
        self.requests.insert(self.next_tag, (request, lost));
        self.next_tag += 1;
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        self.drive.step(&mut out);
        for completion in &out {
            self.complete(completion);
        }
    }

    fn complete(&mut self, done: &Completion) {
        let (request, lost) = self.requests.remove(&done.tag).expect("completes once");
        let touched = self.touched(&request);
        self.units[touched.clone()].iter_mut().for_each(|unit| unit.busy = false);
        if done.status == Status::ReadOnly {
            assert!(self.drive.read_only().is_some(), "{done:?}");
            self.refused += 1;
        }
        match (request.op, done.status) {
            (HostOp::Read, status) => {
                assert!(lost.is_empty() || status != Status::Done, "{lost:?} was lost: {done:?}");
                assert!(status == Status::ReadOnly || self.intact(&touched), "{request:?}");
            }
            (_, Status::Unreadable) => panic!("{request:?} is no read: {done:?}"),
            (HostOp::Flush, _) => {}
            (_, status) => self.written(&request, touched, status),
        }
    }

    /// Whether no unit is lost.
    fn intact(&self, units: &std::ops::Range<usize>) -> bool {
        let found = |lpn: usize| self.drive.version_of(lpn as u32).unwrap();
        units.clone().all(|lpn| found(lpn) == self.units[lpn].version)
    }

    fn written(&mut self, request: &Request, touched: std::ops::Range<usize>, status: Status) {
        for lpn in touched {
            let begin = lpn as u64 * self.unit;
            let end = begin + self.unit;
            let whole = request.offset <= begin && end <= request.offset + request.len;
            let found = self.drive.version_of(lpn as u32).unwrap();
            let unit = &mut self.units[lpn];
            let device = self.drive.device();
            let (trims, changes) = match request.op {
                HostOp::Discard => (whole && device.drive.discards, whole && device.drive.discards),
                HostOp::WriteZeroes => (whole && device.unmaps(), true),
                _ => (false, true),
            };
            if status == Status::Done && changes {
                assert_eq!(found.is_none(), trims, "unit {lpn} after {request:?}");
                assert!(trims || found > unit.version, "unit {lpn} after {request:?}");
                // The rest of a partly written unit may be lost, and cleaning may have moved the
                // unit before the request completed.
                let lost = self.drive.is_lost(lpn as u32);
                *unit = Unit { version: found, lost, busy: false };
            } else {
                // Refused: both the old and the new content are allowed.
                let right = found >= unit.version || trims;
                assert!(right && (changes || found == unit.version), "unit {lpn}: {request:?}");
                *unit = Unit { version: found, lost: self.drive.is_lost(lpn as u32), busy: false };
            }
        }
    }

    /// Runs until the drive is idle, then compares all units.
    pub fn quiesce(&mut self) {
        let mut steps = 0;
        while self.drive.next_event().is_some() {
            self.step();
            steps += 1;
            assert!(steps < 500_000, "the drive never becomes idle: {:?}", self.drive.device());
        }
        assert!(self.requests.is_empty(), "requests never complete: {:?}", self.drive.device());
        self.drive.assert_consistent();
        self.compare();
    }

    fn compare(&mut self) {
        assert!(self.intact(&(0..self.units.len())), "{:?}", self.drive.device());
        for (lpn, unit) in self.units.iter_mut().enumerate() {
            let lost = self.drive.is_lost(lpn as u32);
            assert!(lost || !unit.lost, "unit {lpn} was lost and now is not");
            unit.lost = lost;
        }
    }

    /// Cuts the power of a drive with power-loss protection, which keeps all acknowledged data.
    pub fn cut(mut self, seed: u64) -> Self {
        let was_read_only = self.drive.read_only().is_some();
        self.faults.add(&self.drive.flash_counts().faults);
        self.drive = Drive::recover(self.drive.power_cut(seed), seed).unwrap();
        self.drive.assert_consistent();
        assert!(!was_read_only || self.drive.read_only().is_some(), "writes again");
        let requests = std::mem::take(&mut self.requests);
        for (request, _) in requests.into_values() {
            let touched = self.touched(&request);
            self.units[touched.clone()].iter_mut().for_each(|unit| unit.busy = false);
            if !matches!(request.op, HostOp::Read | HostOp::Flush) {
                self.written(&request, touched, Status::ReadOnly);
            }
        }
        // Of two copies recovery may take one that is not marked as lost; reading it fails as
        // before.
        self.units.iter_mut().for_each(|unit| unit.lost = false);
        self.compare();
        self
    }

    pub fn faults(&self) -> FaultCounts {
        let mut all = self.faults;
        all.add(&self.drive.flash_counts().faults);
        all
    }
}

/// Faults and events over all simulated drives.
#[derive(Debug, Default)]
pub struct Met {
    pub faults: FaultCounts,
    /// Drives that became read-only, requests that were refused, and losses of power.
    pub read_only: u32,
    pub refused: u64,
    pub cuts: u32,
}

impl Met {
    pub fn injected(&self) -> u64 {
        let all = self.faults;
        let failures = all.program_failures + all.erase_failures;
        failures + all.retried_units + all.rebuilt_units + all.unreadable_units + all.lost_units
    }
}

/// Simulates random drives, one for each seed: filled, then written, read, trimmed and flushed,
/// with some losses of power if they are protected. `seen` gets the health at the end.
pub fn lives(
    count: u64,
    label: &str,
    draw: impl Fn(&mut Rng) -> DriveSpec,
    mut seen: impl FnMut(&DriveHealth),
) -> Met {
    let mut met = Met::default();
    for seed in seeds(0..count) {
        let mut rng = Rng::stream(seed, label);
        let device = draw(&mut rng);
        let protected = device.drive.power_loss_protection;
        let Some(mut model) = Model::new(device, seed) else { continue };
        model.fill();
        for _ in 0..3 {
            model.run(500);
            if protected && rng.chance(0.5) {
                model = model.cut(seed);
                met.cuts += 1;
            }
            model.quiesce();
        }
        let health = model.drive.health().unwrap();
        assert!(health.read_only.is_none() || health.spare_blocks == 0, "{health:?}");
        met.faults.add(&model.faults());
        met.read_only += u32::from(health.read_only.is_some());
        met.refused += model.refused;
        seen(&health);
    }
    println!("{met:?}");
    met
}
