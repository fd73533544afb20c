//! A range as a block device against an array of bytes, in virtual time and on a medium without
//! timing.

use prism_base::{Bytes, Nanos, Rng};
use prism_engine::block::{BlockDevice, Completion, HostOp, Request, Status, SubmitError};
use prism_flash::policy::{Block, Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_nand::{PageTimes, Timing};
use prism_testkit::seeds;

const BEGIN: u64 = 1 << 20;
const CAPACITY: u64 = 1 << 20;
const DEPTH: u32 = 16;

fn policy(timed: bool, mapping: Mapping) -> Policy {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 48,
        pages_per_block: 8,
        page_size: 8192,
        oob_size: 64,
        max_open_blocks: None,
    };
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(60_000)),
        t_program: PageTimes::uniform(Nanos(1_400_000)),
        t_erase: Nanos(5_000_000),
        t_command: Nanos(0),
        bus_bytes_per_second: Some(400_000_000),
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let options = Options { timing: timed.then_some(timing), wear: None };
    let device = Device::format(memory, options).unwrap();
    let share = device.allocate("block", Allocation::new(Bytes(8 << 20), 25)).unwrap();
    let policy = Policy::open(share).unwrap();
    // All blocks, so that the range has a die group on each LUN.
    let over_provisioning = OverProvisioning::Rest;
    let config = RangeConfig { over_provisioning, ..RangeConfig::new(mapping, Cleaning::Greedy) };
    policy.configure(BEGIN, BEGIN + CAPACITY, config).unwrap();
    policy
}

/// Takes completions, and checks what was read.
struct User<'a> {
    device: Block<&'a Policy>,
    bytes: Vec<u8>,
    in_flight: Vec<(Request, Vec<u8>)>,
}

impl User<'_> {
    fn submit(&mut self, request: Request, rng: &mut Rng) {
        let range = request.offset as usize..(request.offset + request.len) as usize;
        let overlaps = |(other, _): &(Request, Vec<u8>)| {
            other.offset < request.offset + request.len && request.offset < other.offset + other.len
        };
        let apart = self.in_flight.iter().any(overlaps);
        if apart || !self.device.can_accept(0) {
            let mut out = Vec::new();
            assert!(self.device.next_completion(&mut out));
            self.complete(&out);
            return;
        }
        let unit = self.device.unit();
        let mut buffer = vec![0xff; if request.op == HostOp::Flush { 0 } else { range.len() }];
        match request.op {
            HostOp::Write => {
                buffer.fill_with(|| rng.below(256) as u8);
                self.bytes[range.clone()].copy_from_slice(&buffer);
            }
            HostOp::WriteZeroes => self.bytes[range.clone()].fill(0),
            HostOp::Discard => {
                let start = request.offset.next_multiple_of(unit) as usize;
                let end = ((request.offset + request.len) / unit * unit) as usize;
                if start < end {
                    self.bytes[start..end].fill(0);
                }
            }
            _ => {}
        }
        let expected = match request.op {
            HostOp::Read => self.bytes[range].to_vec(),
            _ => buffer.clone(),
        };
        self.device.submit_bytes(request, buffer, self.device.now()).unwrap();
        self.in_flight.push((request, expected));
    }

    fn complete(&mut self, done: &[Completion]) {
        for completion in done {
            assert_eq!(completion.status, Status::Done, "{:?}", self.device.error());
            let (tag, bytes) = self.device.take_bytes().expect("every request has a buffer");
            assert_eq!(tag, completion.tag);
            let place = self.in_flight.iter().position(|(request, _)| request.tag == tag);
            let (request, expected) = self.in_flight.swap_remove(place.expect("in flight"));
            assert!(bytes == expected, "the bytes of {request:?}");
        }
        self.device.host_counts().assert_conserved(self.device.in_flight());
    }

    fn finish(&mut self) {
        let mut out = Vec::new();
        while self.device.next_completion(&mut out) {}
        self.complete(&out);
        assert!(self.in_flight.is_empty());
    }
}

fn random_request(rng: &mut Rng, unit: u64, tag: u64) -> Request {
    let op = match rng.below(12) {
        0..5 => HostOp::Write,
        5..9 => HostOp::Read,
        9 => HostOp::Discard,
        10 => HostOp::WriteZeroes,
        _ => HostOp::Flush,
    };
    if op == HostOp::Flush {
        return Request::new(op, 0, 0, tag);
    }
    let first = rng.below(CAPACITY / unit);
    let units = (1 + rng.below(4)).min(CAPACITY / unit - first);
    let (mut start, mut end) = (first * unit, (first + units) * unit);
    if rng.chance(0.3) {
        start += rng.below(unit);
        end = (end - rng.below(unit)).max(start + 1);
    }
    let (fua, preflush) = (rng.chance(0.05), rng.chance(0.05));
    Request { fua, preflush, ..Request::new(op, start, end - start, tag) }
}

#[test]
fn random_requests_agree_with_an_array() {
    for seed in seeds(0..24) {
        let mut rng = Rng::stream(seed, "policy.block");
        let mapping = [Mapping::Page, Mapping::Block][(seed / 2 % 2) as usize];
        let policy = policy(seed % 2 == 0, mapping);
        let device = Block::new(&policy, BEGIN, DEPTH).unwrap();
        let mut user = User { device, bytes: vec![0; CAPACITY as usize], in_flight: Vec::new() };
        for tag in 0..1500 {
            let request = random_request(&mut rng, user.device.unit(), tag);
            user.submit(request, &mut rng);
            if rng.chance(0.1) {
                let mut out = Vec::new();
                let until = user.device.now() + Nanos(rng.below(3_000_000));
                user.device.advance(until, &mut out);
                user.complete(&out);
            }
        }
        user.finish();
        policy.assert_consistent();
        let mut all = vec![0; CAPACITY as usize];
        policy.read(BEGIN, &mut all).unwrap();
        assert!(all == user.bytes, "the content at rest, seed {seed}");
    }
}

#[test]
fn queued_writes_are_in_flight_together() {
    let policy = policy(true, Mapping::Page);
    // The LUNs end what the configuration of the range has begun.
    policy.share().pass(Nanos(1_000_000_000)).unwrap();
    let mut device = Block::new(&policy, BEGIN, DEPTH).unwrap();
    let (page, start) = (8192, device.now());
    for tag in 0..u64::from(DEPTH) {
        let write = Request::new(HostOp::Write, tag * page, page, tag);
        device.submit(write, device.now()).unwrap();
    }
    assert_eq!((device.in_flight(), device.now()), (DEPTH, start), "no submission waits");
    let full = device.submit(Request::new(HostOp::Flush, 0, 0, 0), device.now());
    assert_eq!(full, Err(SubmitError::QueueFull { queue: 0, depth: DEPTH }));
    let mut out = Vec::new();
    while device.next_completion(&mut out) {}
    // Four LUNs take four pages each: the last ones begin after three programs of 1.4 ms.
    let transfer = page * 10 / 4;
    let ends = out.iter().map(|completion| completion.completed.since(start).0);
    let last = ends.max().unwrap();
    assert!((3 * 1_400_000..3 * 1_400_000 + 10 * transfer).contains(&last), "{last} ns");
    let latencies: Vec<_> = out.iter().map(|done| done.completed.since(done.submitted).0).collect();
    assert!(latencies.iter().filter(|&&latency| latency < 1_400_000).count() == 4);
}
