//! A drive whose power may be cut at any time, and the content that it guarantees.

use std::rc::Rc;

use prism_base::Rng;
use prism_engine::FaultCounts;
use prism_nand::{BlockId, DieGroupId};
use prism_ssd::spec::WriteCache;
use prism_ssd::{Completion, Drive, DriveSpec, DriveSpecError, HostOp, Request, Status};

use super::pattern;

/// Content of a mapping unit: a version, or `None` if unmapped.
type Content = Option<u64>;

/// Effect of a request in flight on a mapping unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFlight {
    Write,
    Trim,
}

#[derive(Clone)]
struct UnitModel {
    /// All contents since the last cut, that found after it first.
    history: Vec<Content>,
    /// The bytes of each, if the harness checks bytes, and those that a write in flight makes.
    bytes: Vec<Rc<[u8]>>,
    coming: Rc<[u8]>,
    /// The oldest content that recovery may return, as an index.
    promised: usize,
    /// The request in flight for it; no other one is submitted.
    in_flight: Option<InFlight>,
}

impl UnitModel {
    fn found(content: Content, bytes: Rc<[u8]>) -> Self {
        let (history, bytes, coming) = (vec![content], vec![bytes], Rc::default());
        Self { history, bytes, coming, promised: 0, in_flight: None }
    }

    /// A request has taken effect.
    fn push(&mut self, content: Content, bytes: Rc<[u8]>) {
        self.history.push(content);
        self.bytes.push(bytes);
    }

    /// The bytes of what was found after a cut. Contents that were the same version before and
    /// after a request are the same bytes.
    fn bytes_of(&self, content: Content) -> &Rc<[u8]> {
        let place = self.history.iter().rposition(|&other| other == content);
        place.map_or(&self.coming, |place| &self.bytes[place])
    }
}

/// A request in flight; for flushes with the last content of each unit at submission.
struct Submitted {
    request: Request,
    covered: Vec<usize>,
}

pub struct Harness {
    drive: Drive,
    units: Vec<UnitModel>,
    /// Requests in flight by tag.
    requests: Vec<Option<Submitted>>,
    rng: Rng,
    unit: u64,
    /// Share of requests that begin or end inside a mapping unit, and of long ones.
    unaligned: f64,
    long: f64,
    /// Faults before the last cut.
    faults: FaultCounts,
    /// Number of power cuts.
    cuts: u64,
    /// Whether requests have bytes, which are checked.
    checks_bytes: bool,
}

/// The largest mapping unit of which bytes are checked, so that the many cuts of the tests take
/// little longer with them.
const CHECKED_UNIT_MAX: u64 = 1024;

impl Harness {
    pub fn new(device: DriveSpec, seed: u64) -> Self {
        Self::made(device, seed).unwrap()
    }

    /// As `new`, but an error if there are too many factory bad blocks.
    pub fn made(device: DriveSpec, seed: u64) -> Result<Self, DriveSpecError> {
        let nand = device.erased_with_content();
        let mut rng = Rng::stream(seed, "power");
        Ok(Self {
            unit: device.ftl.mapping_unit.0,
            units: vec![
                UnitModel::found(None, Rc::default());
                device.page_config().logical_units as usize
            ],
            checks_bytes: device.ftl.mapping_unit.0 <= CHECKED_UNIT_MAX,
            drive: Drive::with_nand(device, nand, seed)?,
            requests: Vec::new(),
            unaligned: if rng.chance(0.5) { 0.0 } else { rng.unit() },
            long: 0.2 * rng.unit(),
            faults: FaultCounts::default(),
            cuts: 0,
            rng,
        })
    }

    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Number of power cuts of the drive so far, without those of a read-only drive.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Faults so far.
    pub fn faults(&self) -> FaultCounts {
        let mut all = self.faults;
        all.add(&self.drive.flash_counts().faults);
        all
    }

    /// Runs until `operations` more flash operations have begun, or the drive is read-only.
    pub fn run(&mut self, operations: u64) {
        let goal = self.drive.engine().operations() + operations;
        let mut turns = 0;
        while self.drive.engine().operations() < goal && self.drive.read_only().is_none() {
            self.turn();
            turns += 1;
            assert!(turns < 10_000 + 1000 * operations, "no progress: {:?}", self.drive.device());
        }
    }

    /// Writes every mapping unit, some a few times.
    pub fn fill(&mut self) {
        let mut next = 0;
        while next < self.units.len() as u64 {
            let count = (1 + self.rng.below(16)).min(self.units.len() as u64 - next);
            self.finish_all();
            self.submit(HostOp::Write, next * self.unit, count * self.unit);
            next += count;
        }
        self.finish_all();
    }

    fn finish_all(&mut self) {
        let mut steps = 0;
        while self.drive.in_flight() > 0 {
            self.step();
            steps += 1;
            assert!(steps < 100_000, "requests never end: {:?}", self.drive.device());
        }
    }

    /// Runs until the drive is idle, and flushes; then every unit has the content of the last
    /// completed request.
    pub fn come_to_rest(&mut self) {
        self.finish_all();
        self.submit(HostOp::Flush, 0, 0);
        let mut steps = 0;
        while self.drive.next_event().is_some() {
            self.step();
            steps += 1;
            assert!(steps < 100_000, "the drive never becomes idle: {:?}", self.drive.device());
        }
        assert_eq!(self.drive.in_flight(), 0);
        self.drive.assert_consistent();
        for (lpn, unit) in self.units.iter().enumerate() {
            let found = self.drive.version_of(lpn as u32).unwrap();
            assert_eq!(Some(&found), unit.history.last(), "unit {lpn} at rest");
            self.check_bytes(lpn as u32, unit.bytes.last().expect("as many as contents"));
        }
    }

    /// Checks, on an idle drive, that the FTL has not lost track of a block: erased blocks are
    /// free, unless they are bad.
    pub fn assert_no_block_is_lost(&self) {
        let (nand, ftl) = (self.drive.engine().nand(), self.drive.engine().ftl());
        let blocks = (0..nand.geometry().blocks()).map(BlockId);
        let is_erased =
            |&block: &BlockId| nand.program_units_programmed(block) == 0 && !nand.is_bad(block);
        let erased = blocks.filter(|block| is_erased(block) && !nand.is_unstable(*block)).count();
        let free: u32 = (0..nand.geometry().die_groups())
            .map(|die_group| ftl.erased_blocks(DieGroupId(die_group)))
            .sum();
        assert_eq!(free as usize, erased, "{:?}", self.drive.device());
    }

    /// Submits a random request, or processes an event of the drive.
    fn turn(&mut self) {
        let room = self.drive.in_flight() < self.drive.device().drive.queue_depth.min(6);
        if room && (self.rng.chance(0.4) || self.drive.next_event().is_none()) {
            let op = match self.rng.below(20) {
                0..13 => HostOp::Write,
                13..15 => HostOp::Discard,
                15..17 => HostOp::WriteZeroes,
                17 => HostOp::Read,
                _ => HostOp::Flush,
            };
            let (offset, len) = self.range(op);
            self.submit(op, offset, len);
        } else if self.drive.next_event().is_some() {
            self.step();
        }
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        self.drive.step(&mut out);
        for completion in out {
            self.complete(&completion);
        }
    }

    fn range(&mut self, op: HostOp) -> (u64, u64) {
        if op == HostOp::Flush {
            return (0, 0);
        }
        let units = self.units.len() as u64;
        // A few hot units are written and trimmed often.
        let first = if self.rng.chance(0.5) { self.rng.below(20) } else { self.rng.below(units) };
        let most = if self.rng.chance(self.long) { 48 } else { 2 };
        let count = (1 + self.rng.below(most)).min(units - first);
        let (mut start, mut end) = (first * self.unit, (first + count) * self.unit);
        if self.rng.chance(self.unaligned) {
            start += self.rng.below(self.unit);
            end = (end - self.rng.below(self.unit)).max(start + 1);
        }
        (start, end - start)
    }

    /// The effects of `request` by mapping unit.
    fn effects(&self, request: &Request) -> Vec<(usize, InFlight)> {
        let (start, end) = (request.offset, request.offset + request.len);
        let touched = (start / self.unit) as usize..end.div_ceil(self.unit) as usize;
        let device = self.drive.device();
        let effect = |lpn: usize| {
            let begin = lpn as u64 * self.unit;
            let whole = start <= begin && begin + self.unit <= end;
            match request.op {
                HostOp::Write => Some(InFlight::Write),
                HostOp::WriteZeroes if whole && device.unmaps() => Some(InFlight::Trim),
                HostOp::WriteZeroes => Some(InFlight::Write),
                HostOp::Discard => (whole && device.drive.discards).then_some(InFlight::Trim),
                // Zoned drives have a harness of their own.
                _ => None,
            }
        };
        touched.filter_map(|lpn| effect(lpn).map(|does| (lpn, does))).collect()
    }

    fn submit(&mut self, op: HostOp, offset: u64, len: u64) {
        let data = !matches!(op, HostOp::Read | HostOp::Flush);
        let request = Request {
            fua: data && self.rng.chance(0.05),
            preflush: self.rng.chance(0.03),
            queue: self.rng.below(u64::from(self.drive.device().drive.queues)) as u16,
            urgent: self.rng.chance(0.1),
            handle: self.rng.below(4) as u16,
            ..Request::new(op, offset, len, self.requests.len() as u64)
        };
        let mut covered = Vec::new();
        if op == HostOp::Flush || request.preflush {
            covered = self.units.iter().map(|unit| unit.history.len() - 1).collect();
        }
        let effects = self.effects(&request);
        if effects.iter().any(|&(lpn, _)| self.units[lpn].in_flight.is_some()) {
            return;
        }
        let bytes = match op {
            HostOp::Write | HostOp::Read => pattern(request.tag, offset, len),
            _ => Vec::new(),
        };
        for (lpn, does) in effects {
            self.units[lpn].in_flight = Some(does);
            if self.checks_bytes {
                self.units[lpn].coming = self.coming(lpn, does, &request, &bytes);
            }
        }
        if self.checks_bytes {
            self.drive.submit_bytes(request, bytes, self.drive.now()).unwrap();
        } else {
            self.drive.submit(request, self.drive.now()).unwrap();
        }
        self.requests.push(Some(Submitted { request, covered }));
    }

    /// The bytes of unit `lpn` after `request`; empty if they are all zeros.
    fn coming(&self, lpn: usize, does: InFlight, request: &Request, bytes: &[u8]) -> Rc<[u8]> {
        if does == InFlight::Trim {
            return Rc::default();
        }
        let begin = lpn as u64 * self.unit;
        let from = request.offset.max(begin);
        let to = (request.offset + request.len).min(begin + self.unit);
        let before = self.units[lpn].bytes.last().expect("as many as contents");
        let mut unit = vec![0; self.unit as usize];
        unit[..before.len()].copy_from_slice(before);
        let part = &mut unit[(from - begin) as usize..(to - begin) as usize];
        match request.op {
            HostOp::Write => {
                part.copy_from_slice(&bytes[(from - request.offset) as usize..][..part.len()]);
            }
            _ => part.fill(0),
        }
        unit.into()
    }

    /// Checks the bytes that a read of unit `lpn` would return; `expected` is empty for zeros.
    fn check_bytes(&self, lpn: u32, expected: &[u8]) {
        check_bytes(&self.drive, self.checks_bytes, lpn, expected);
    }

    fn complete(&mut self, completion: &Completion) {
        if self.checks_bytes {
            let (tag, _) = self.drive.take_bytes().expect("every request has a buffer");
            assert_eq!(tag, completion.tag);
        }
        let submitted = self.requests[completion.tag as usize].take();
        let Submitted { request, covered } = submitted.expect("a request completes once");
        if completion.status == Status::ReadOnly {
            return self.refused(&request);
        }
        for (unit, last) in self.units.iter_mut().zip(covered) {
            unit.promised = unit.promised.max(last);
        }
        let spec = &self.drive.device().drive;
        let through = spec.write_cache == WriteCache::WriteThrough && request.op != HostOp::Discard;
        let durable = spec.power_loss_protection || through || request.fua;
        for (lpn, does) in self.effects(&request) {
            let now = self.drive.version_of(lpn as u32).unwrap();
            assert_eq!(now.is_none(), does == InFlight::Trim, "{lpn} after {request:?}");
            let bytes = Rc::clone(&self.units[lpn].coming);
            self.check_bytes(lpn as u32, &bytes);
            let unit = &mut self.units[lpn];
            unit.in_flight = None;
            unit.push(now, bytes);
            if durable {
                unit.promised = unit.history.len() - 1;
            }
        }
    }

    /// A read-only drive has refused `request`: both the old and the new content are allowed.
    fn refused(&mut self, request: &Request) {
        assert!(self.drive.read_only().is_some(), "{request:?}");
        for (lpn, does) in self.effects(request) {
            let now = self.drive.version_of(lpn as u32).unwrap();
            let unit = &mut self.units[lpn];
            unit.in_flight = None;
            let last = *unit.history.last().expect("something was found at first");
            let new = if does == InFlight::Trim { now.is_none() } else { now > last };
            assert!(now == last || new, "unit {lpn} after {request:?}");
            let bytes = if now == last { unit.bytes_of(now) } else { &unit.coming };
            let bytes = Rc::clone(bytes);
            unit.push(now, bytes);
        }
    }

    /// Cuts the power many times: mostly after at most `short` operations, sometimes during
    /// cleaning after a long time, and sometimes immediately after recovery. Afterwards the drive
    /// works, and no block is lost, or it is read-only.
    pub fn survive(mut self, cuts: u64, short: u64, seed: u64, rng: &mut Rng) -> Self {
        for _ in 0..cuts {
            let most = match rng.below(10) {
                0..2 => 1,
                2..8 => short,
                _ => 600,
            };
            self.run(rng.below(most));
            self = self.cut(seed);
        }
        self.run(400);
        self.fill();
        self.come_to_rest();
        if self.drive.read_only().is_none() {
            self.assert_no_block_is_lost();
        }
        self
    }

    /// Cuts the power, recovers the drive, and checks every guarantee.
    pub fn cut(self, seed: u64) -> Self {
        let faults = self.faults();
        let was_read_only = self.drive.read_only().is_some();
        let Self { drive, mut units, .. } = self;
        let drive = Drive::recover(drive.power_cut(seed), seed).unwrap();
        let cuts = self.cuts + u64::from(!was_read_only);
        drive.assert_consistent();
        assert!(!was_read_only || drive.read_only().is_some(), "a drive that writes again");
        for (lpn, unit) in units.iter_mut().enumerate() {
            let found = drive.version_of(lpn as u32).unwrap();
            let newest = unit.history.iter().flatten().max().copied().unwrap_or(0);
            let ahead = match (unit.in_flight, found) {
                (Some(InFlight::Write), Some(version)) => version > newest,
                (Some(InFlight::Trim), None) => true,
                _ => false,
            };
            let allowed = &unit.history[unit.promised..];
            assert!(
                allowed.contains(&found) || ahead,
                "unit {lpn}: found {found:?}, allowed {allowed:?}, in flight {:?}, {:?}",
                unit.in_flight,
                drive.device()
            );
            let bytes = Rc::clone(unit.bytes_of(found));
            check_bytes(&drive, self.checks_bytes, lpn as u32, &bytes);
            // The content found is on flash, so that nothing older may be found later.
            *unit = UnitModel::found(found, bytes);
        }
        Self { drive, units, requests: Vec::new(), faults, cuts, ..self }
    }
}

/// Checks the bytes that a read of unit `lpn` would return; `expected` is empty for zeros.
fn check_bytes(drive: &Drive, checks_bytes: bool, lpn: u32, expected: &[u8]) {
    if !checks_bytes {
        return;
    }
    let found = drive.bytes_of(lpn);
    let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    let same = found == expected
        || found.is_empty() && is_zero(expected)
        || expected.is_empty() && is_zero(found);
    assert!(same, "bytes of unit {lpn}: {:?}, {:?}", found.get(..8), expected.get(..8));
}
