//! A drive, a naive model of its content, and random requests to both.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use prism_base::{Rng, SimTime};
use prism_nand::Cause;
use prism_ssd::spec::Mapping;
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, Request, SubmitError};

use super::pattern;

/// Frequencies of the kinds of requests; random for every run, so that some runs have nearly a
/// single kind.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    ops: [u64; 5],
    /// Share of requests that begin or end inside a mapping unit.
    unaligned: f64,
    /// Share of requests to a few hot units.
    hot: f64,
    /// Share of long requests.
    long: f64,
    /// Share of iterations in which simulated time passes before the next request.
    pause: f64,
}

impl Weights {
    /// Random weights; that of writes is never 0.
    pub fn drawn(rng: &mut Rng) -> Self {
        let mut ops = [0; 5];
        for weight in &mut ops {
            *weight = if rng.chance(0.3) { 0 } else { 1 + rng.below(10) };
        }
        ops[HostOp::Write as usize] += 5;
        Self {
            ops,
            unaligned: if rng.chance(0.5) { 0.0 } else { rng.unit() },
            hot: rng.unit(),
            long: 0.3 * rng.unit(),
            pause: rng.unit(),
        }
    }

    fn op(&self, rng: &mut Rng) -> HostOp {
        let mut at = rng.below(self.ops.iter().sum());
        for op in HostOp::COMMON {
            let weight = self.ops[op as usize];
            if at < weight {
                return op;
            }
            at -= weight;
        }
        unreachable!("below the sum of the weights")
    }
}

/// Requests in flight at a mapping unit.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    reads: u32,
    writes: u32,
    trims: u32,
}

/// Sums over the costs and sizes of completed requests.
#[derive(Debug, Default)]
struct Sums {
    submitted: u64,
    completed: u64,
    written: u64,
    read: u64,
    host_reads: u64,
    rmw_reads: u64,
    units_written: u64,
}

/// A drive and its expected content.
pub struct Model {
    drive: Drive,
    /// Version of the last completed write; no entry for unmapped units.
    content: HashMap<u32, u64>,
    busy: HashMap<u32, Busy>,
    requests: Vec<Option<Request>>,
    weights: Weights,
    rng: Rng,
    sums: Sums,
    unit: u64,
    units: u32,
    /// Units were trimmed, so that buffered ones may never reach the flash.
    trimmed: bool,
    /// The bytes of all units, as if all submitted requests were complete.
    bytes: Vec<u8>,
    /// Units to which two writes in flight wrote the same bytes, in an order that is not known.
    ambiguous: HashSet<u32>,
}

impl Model {
    /// An empty drive.
    pub fn new(device: DriveSpec, weights: Weights, seed: u64) -> Self {
        let nand = device.erased_with_content();
        Self {
            unit: device.ftl.mapping_unit.0,
            units: device.page_config().logical_units,
            bytes: vec![0; device.capacity().0 as usize],
            ambiguous: HashSet::new(),
            drive: Drive::with_nand(device, nand, seed).unwrap(),
            content: HashMap::new(),
            busy: HashMap::new(),
            requests: Vec::new(),
            weights,
            rng: Rng::stream(seed, "model.requests"),
            sums: Sums::default(),
            trimmed: false,
        }
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Writes every mapping unit once, in requests of random length.
    pub fn fill(&mut self) {
        let mut next = 0;
        while next < self.units {
            let count = (1 + self.rng.below(16) as u32).min(self.units - next);
            let offset = u64::from(next) * self.unit;
            self.submit(HostOp::Write, offset, u64::from(count) * self.unit);
            next += count;
        }
        self.quiesce();
    }

    /// Submits `count` random requests at random times.
    pub fn run(&mut self, count: u32) {
        for _ in 0..count {
            if self.rng.chance(self.weights.pause) {
                let until = SimTime(self.drive.now().0 + self.rng.below(2_000_000));
                let mut out = Vec::new();
                self.drive.advance(until, &mut out);
                self.complete(&out);
            }
            let op = self.weights.op(&mut self.rng);
            let (offset, len) = self.range(op);
            self.submit(op, offset, len);
        }
    }

    fn range(&mut self, op: HostOp) -> (u64, u64) {
        if op == HostOp::Flush {
            return (0, 0);
        }
        let near = self.rng.chance(self.weights.hot);
        let first = self.rng.below(if near {
            u64::from(self.units.min(16))
        } else {
            u64::from(self.units)
        });
        let most = if self.rng.chance(self.weights.long) { 64 } else { 4 };
        let count = (1 + self.rng.below(most)).min(u64::from(self.units) - first);
        let (mut start, mut end) = (first * self.unit, (first + count) * self.unit);
        if self.rng.chance(self.weights.unaligned) {
            start += self.rng.below(self.unit);
            end = (end - self.rng.below(self.unit)).max(start + 1);
        }
        (start, end - start)
    }

    /// Mapping units that the request touches, and those that it unmaps.
    fn touched(&self, request: &Request) -> (std::ops::Range<u32>, std::ops::Range<u32>) {
        let end = request.offset + request.len;
        let all = (request.offset / self.unit) as u32..end.div_ceil(self.unit) as u32;
        let whole = request.offset.div_ceil(self.unit) as u32..(end / self.unit) as u32;
        let whole = if whole.is_empty() { 0..0 } else { whole };
        match request.op {
            HostOp::Read | HostOp::Write => (all, 0..0),
            HostOp::WriteZeroes if self.drive.device().unmaps() => (all, whole),
            HostOp::WriteZeroes => (all, 0..0),
            HostOp::Discard if !self.drive.device().drive.discards => (0..0, 0..0),
            HostOp::Discard => (whole.clone(), whole),
            _ => (0..0, 0..0),
        }
    }

    /// Submits a request, unless its order with one in flight would be undefined.
    fn submit(&mut self, op: HostOp, offset: u64, len: u64) {
        let request = Request {
            fua: self.rng.chance(0.05),
            preflush: self.rng.chance(0.03),
            queue: self.rng.below(u64::from(self.drive.device().drive.queues)) as u16,
            urgent: self.rng.chance(0.1),
            handle: self.rng.below(4) as u16,
            ..Request::new(op, offset, len, self.requests.len() as u64)
        };
        let (all, unmapped) = self.touched(&request);
        for lpn in all.clone() {
            let busy = self.busy.get(&lpn).copied().unwrap_or_default();
            let clash = match op {
                HostOp::Read => busy.writes + busy.trims,
                // Concurrent writes of a unit may take effect in any order.
                HostOp::Write if !unmapped.contains(&lpn) => busy.reads + busy.trims,
                _ => busy.reads + busy.writes + busy.trims,
            };
            if clash > 0 {
                return;
            }
        }
        while !self.drive.can_accept(request.queue) {
            let refused = self.drive.submit(request, self.drive.now());
            assert!(matches!(refused, Err(SubmitError::QueueFull { .. })));
            self.step();
        }
        self.submit_bytes(request, &unmapped);
        for lpn in all {
            let busy = self.busy.entry(lpn).or_default();
            match op {
                HostOp::Read => busy.reads += 1,
                _ if unmapped.contains(&lpn) => busy.trims += 1,
                _ => busy.writes += 1,
            }
        }
        self.trimmed |= !unmapped.is_empty();
        self.sums.submitted += 1;
        self.requests.push(Some(request));
    }

    /// Submits a request with its bytes, and notes what it will have written.
    fn submit_bytes(&mut self, request: Request, unmapped: &Range<u32>) {
        let Request { op, offset, len, tag, .. } = request;
        let bytes = match op {
            HostOp::Read => vec![0xff; len as usize],
            HostOp::Write => pattern(tag, offset, len),
            _ => Vec::new(),
        };
        let range = offset as usize..(offset + len) as usize;
        match op {
            HostOp::Write => {
                let other = self.requests.iter().flatten().filter(|other| {
                    let overlaps = other.offset < offset + len && offset < other.offset + other.len;
                    matches!(other.op, HostOp::Write | HostOp::WriteZeroes) && overlaps
                });
                let clashing: Vec<u32> = other.flat_map(|other| self.touched(other).0).collect();
                for lpn in self.touched(&request).0 {
                    let begin = u64::from(lpn) * self.unit;
                    if clashing.contains(&lpn) {
                        self.ambiguous.insert(lpn);
                    } else if offset <= begin && begin + self.unit <= offset + len {
                        self.ambiguous.remove(&lpn);
                    }
                }
                self.bytes[range].copy_from_slice(&bytes);
            }
            HostOp::WriteZeroes => self.bytes[range].fill(0),
            HostOp::Discard => {
                let unit = self.unit as usize;
                self.bytes[unmapped.start as usize * unit..unmapped.end as usize * unit].fill(0);
            }
            _ => {}
        }
        self.ambiguous.retain(|lpn| !unmapped.contains(lpn));
        self.drive.submit_bytes(request, bytes, self.drive.now()).unwrap();
    }

    /// Checks the bytes of `len` bytes from `offset` on.
    fn check_bytes(&self, offset: u64, found: &[u8], what: &str) {
        if self.bytes[offset as usize..].starts_with(found) {
            return;
        }
        for (at, (&found, &expected)) in
            (offset..).zip(found.iter().zip(&self.bytes[offset as usize..]))
        {
            let lpn = (at / self.unit) as u32;
            let known = found == expected || self.ambiguous.contains(&lpn);
            assert!(known, "byte {at} of unit {lpn}, {what}: {found:#x}, not {expected:#x}");
        }
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        self.drive.step(&mut out);
        self.complete(&out);
    }

    fn complete(&mut self, done: &[Completion]) {
        for completion in done {
            let request = self.requests[completion.tag as usize].take();
            let request = request.expect("a request completes once");
            assert_eq!((completion.op, completion.len), (request.op, request.len));
            self.sums.completed += 1;
            let (tag, bytes) = self.drive.take_bytes().expect("every request has a buffer");
            assert_eq!(tag, completion.tag);
            if request.op == HostOp::Read {
                self.check_bytes(request.offset, &bytes, "read");
            }
            self.account(completion);
            let (all, unmapped) = self.touched(&request);
            if request.op == HostOp::Read {
                self.check_read(completion, all.clone());
            }
            for lpn in all {
                let busy = self.busy.get_mut(&lpn).expect("it was in flight");
                if request.op == HostOp::Read {
                    busy.reads -= 1;
                    continue;
                }
                let found = self.drive.version_of(lpn).unwrap();
                if unmapped.contains(&lpn) {
                    busy.trims -= 1;
                    assert_eq!(found, None, "unit {lpn} after {request:?}");
                    self.content.remove(&lpn);
                } else {
                    busy.writes -= 1;
                    let version = found.unwrap_or_else(|| panic!("unit {lpn} lost: {request:?}"));
                    let old = self.content.insert(lpn, version);
                    // The first of two concurrent writes to complete may find the version of the
                    // other.
                    assert!(old <= Some(version), "unit {lpn} went from {old:?} to {version}");
                }
            }
        }
    }

    fn account(&mut self, completion: &Completion) {
        let (sums, cost) = (&mut self.sums, &completion.cost);
        match completion.op {
            HostOp::Read => {
                sums.read += completion.len;
                sums.host_reads += u64::from(cost.flash_reads);
            }
            HostOp::Write => {
                sums.written += completion.len;
                sums.rmw_reads += u64::from(cost.flash_reads);
            }
            _ => sums.rmw_reads += u64::from(cost.flash_reads),
        }
        sums.units_written += u64::from(cost.units_written);
    }

    /// Mapped units are read from the buffer or from flash, unmapped ones cost nothing.
    fn check_read(&self, completion: &Completion, units: std::ops::Range<u32>) {
        let mapped = units.clone().filter(|lpn| self.content.contains_key(lpn)).count() as u32;
        let cost = &completion.cost;
        assert_eq!(cost.unmapped, units.len() as u32 - mapped, "{completion:?}");
        let from_flash = mapped - cost.buffer_hits;
        let device = self.drive.device();
        let a_page = device.geometry().units_per_level();
        let pages_of_unit = device.ftl.mapping_unit.0.div_ceil(device.flash.page.0) as u32;
        let pages = from_flash.div_ceil(a_page)..=from_flash * pages_of_unit;
        assert!(pages.contains(&cost.flash_reads), "{completion:?}: {pages:?}");
        assert_eq!(cost.units_written, 0);
    }

    /// Runs until the drive is idle, then compares all units.
    pub fn quiesce(&mut self) {
        let mut steps = 0;
        while self.drive.next_event().is_some() {
            self.step();
            steps += 1;
            assert!(steps < 200_000, "the drive never becomes idle: {:?}", self.drive.device());
        }
        assert_eq!(
            self.drive.in_flight(),
            0,
            "a request never completes: {:?}",
            self.drive.device()
        );
        assert_eq!(self.sums.submitted, self.sums.completed);
        self.drive.assert_consistent();
        let zeros = vec![0; self.unit as usize];
        for lpn in 0..self.units {
            let found = self.drive.version_of(lpn).unwrap();
            assert_eq!(found, self.content.get(&lpn).copied(), "unit {lpn} at rest");
            let bytes = Some(self.drive.bytes_of(lpn)).filter(|bytes| !bytes.is_empty());
            self.check_bytes(u64::from(lpn) * self.unit, bytes.unwrap_or(&zeros), "at rest");
        }
        self.check_sums();
    }

    fn check_sums(&self) {
        let (sums, host, flash) = (&self.sums, self.drive.host_counts(), self.drive.flash_counts());
        assert_eq!((host.bytes_written, host.bytes_read), (sums.written, sums.read));
        assert_eq!(flash.reads[Cause::Host], sums.host_reads);
        let device = self.drive.device();
        if device.drive.merge_wait.0 == 0 {
            assert_eq!(flash.reads[Cause::Rmw], sums.rmw_reads);
        }
        let nand = self.drive.engine().nand();
        let ganged = u64::from(nand.geometry().planes_ganged);
        let pages_per_program_unit = u64::from(nand.geometry().pages_per_program_unit());
        assert_eq!(
            flash.programs.total(),
            nand.program_units_programmed_total() * pages_per_program_unit
        );
        assert_eq!(flash.erases.total(), nand.erases_total() * ganged);
        let programmed = flash.units[Cause::Host] + u64::from(self.drive.buffered_units());
        if self.trimmed || device.ftl.mapping == Mapping::Dftl {
            assert!(flash.units[Cause::Host] <= sums.units_written);
        } else {
            assert_eq!(programmed, sums.units_written);
            assert_eq!(flash.units[Cause::Map], 0);
        }
    }
}
