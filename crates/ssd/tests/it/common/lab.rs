//! A drive whose times are all known, and functions to load it.

use prism_base::{Bytes, Nanos};
use prism_nand::PageTimes;
use prism_nand::timing::transfer_time;
use prism_ssd::spec::{Cell, FaultSpec, SlcSpec, SlcUsage, WriteCache};
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, InitialState, Request, SubmitError};

pub const UNIT: u64 = 4096;
pub const READ: Nanos = Nanos(50_000);
pub const PROGRAM: Nanos = Nanos(600_000);
pub const ERASE: Nanos = Nanos(3_000_000);
pub const FIRMWARE: Nanos = Nanos(1_000);
const CHANNEL: u64 = 400_000_000;
const LINK: u64 = 2_000_000_000;

/// One channel, one die, one plane, pages of one unit, 64 blocks of 16 pages; writes complete on
/// flash.
pub fn lab() -> DriveSpec {
    let mut device = DriveSpec::preset("wiscsim").unwrap();
    device.name = "lab".into();
    device.flash.channels = 1;
    device.flash.dies_per_channel = 1;
    device.flash.blocks_per_plane = 64;
    device.flash.pages_per_block = 16;
    device.flash.page = Bytes(UNIT);
    device.flash.t_read = PageTimes::uniform(READ);
    device.flash.t_program = PageTimes::uniform(PROGRAM);
    device.flash.t_erase = ERASE;
    device.flash.channel_bandwidth = Some(CHANNEL);
    device.ftl.mapping_unit = Bytes(UNIT);
    device.drive.capacity = Bytes(600 * UNIT);
    device.drive.firmware_read = FIRMWARE;
    device.drive.firmware_write = FIRMWARE;
    device.drive.link_bandwidth = Some(LINK);
    device.drive.write_buffer = Bytes(64 * UNIT);
    device.drive.write_cache = WriteCache::WriteThrough;
    device
}

pub const SLC_READ: Nanos = Nanos(20_000);
pub const SLC_PROGRAM: Nanos = Nanos(150_000);
/// SLC blocks, of 8 units each.
pub const SLC_BLOCKS: u32 = 16;

/// The drive of [`lab`] with MLC and some SLC blocks.
pub fn tiers(usage: SlcUsage) -> DriveSpec {
    let mut device = lab();
    device.flash.cell = Cell::Mlc;
    device.ftl.free_blocks_low = 4;
    device.ftl.free_blocks_high = 4;
    device.ftl.free_blocks_critical = 3;
    device.drive.power_loss_protection = true;
    let cache = usage == SlcUsage::Cache;
    device.slc = Some(SlcSpec {
        blocks: SLC_BLOCKS,
        usage,
        below: None,
        handle: None,
        up_to: None,
        fold_when_idle: cache.then_some(true),
        free_blocks_low: if cache { 0 } else { 2 },
        free_blocks_high: if cache { 0 } else { 2 },
        t_read: SLC_READ,
        t_program: SLC_PROGRAM,
        t_erase: Nanos(1_000_000),
        endurance: 100,
    });
    device
}

/// Cells of `kind` in which nothing fails.
pub fn faultless(kind: &str) -> FaultSpec {
    let never = Some(0.0);
    FaultSpec {
        factory_bad: never,
        program_failure: never,
        program_exponent: never,
        erase_failure: never,
        erase_exponent: never,
        rber_fresh: never,
        rber_wear: never,
        rber_year: never,
        ..FaultSpec::of_kind(kind)
    }
}

/// Transfer time of `units` units over the channel of [`lab`].
pub fn channel(units: u64) -> Nanos {
    transfer_time(Bytes(units * UNIT), CHANNEL)
}

/// Transfer time of `units` units over the link of [`lab`].
pub fn link(units: u64) -> Nanos {
    transfer_time(Bytes(units * UNIT), LINK)
}

/// `count` times `time`.
pub fn times(count: u64, time: Nanos) -> Nanos {
    Nanos(count * time.0)
}

pub fn request(op: HostOp, unit: u64, units: u64) -> Request {
    Request::new(op, unit * UNIT, units * UNIT, 0)
}

pub fn read(unit: u64) -> Request {
    request(HostOp::Read, unit, 1)
}

pub fn write(unit: u64) -> Request {
    request(HostOp::Write, unit, 1)
}

pub fn urgent(request: Request) -> Request {
    Request { urgent: true, ..request }
}

pub fn empty(device: &DriveSpec) -> Drive {
    Drive::new(device.clone(), 1).unwrap()
}

pub fn filled(device: &DriveSpec) -> Drive {
    prepared(device, InitialState::Filled, 1)
}

pub fn prepared(device: &DriveSpec, state: InitialState, seed: u64) -> Drive {
    Drive::prepared(device.clone(), state, seed, |_| true).unwrap().unwrap().0
}

/// Submits `request` now and runs until it completes.
pub fn try_serve(drive: &mut Drive, request: Request) -> Result<Completion, SubmitError> {
    let mut done = Vec::new();
    drive.submit(request, drive.now())?;
    while done.is_empty() {
        drive.step(&mut done);
    }
    assert_eq!(done.len(), 1, "one request at a time");
    Ok(done[0])
}

/// As [`try_serve`], for a request of one unit.
pub fn one(drive: &mut Drive, op: HostOp, unit: u64) -> Completion {
    try_serve(drive, request(op, unit, 1)).unwrap()
}

/// As [`try_serve`]; returns the latency.
pub fn serve(drive: &mut Drive, request: Request) -> Nanos {
    let done = try_serve(drive, request).unwrap();
    done.completed.since(done.submitted)
}

/// Runs until the drive is idle. Returns the completions.
pub fn drain(drive: &mut Drive) -> Vec<Completion> {
    let mut done = Vec::new();
    while drive.next_event().is_some() {
        drive.step(&mut done);
    }
    drive.assert_consistent();
    done
}

/// Advances the time by `time`. Returns the completions.
pub fn rest(drive: &mut Drive, time: Nanos) -> Vec<Completion> {
    let mut done = Vec::new();
    drive.advance(drive.now() + time, &mut done);
    done
}

/// Keeps `depth` requests in flight until `count` have completed. Returns the time that took.
pub fn closed_loop(
    drive: &mut Drive,
    depth: u32,
    count: u64,
    mut next: impl FnMut(u64) -> Request,
) -> Nanos {
    let start = drive.now();
    let (mut submitted, mut completed) = (0, 0);
    let mut done = Vec::new();
    while completed < count {
        while submitted < count && drive.in_flight() < depth {
            drive.submit(next(submitted), drive.now()).unwrap();
            submitted += 1;
        }
        drive.step(&mut done);
        completed += done.len() as u64;
        done.clear();
    }
    drive.assert_conserved();
    drive.now().since(start)
}

/// Requests per second.
pub fn rate(count: u64, span: Nanos) -> f64 {
    count as f64 / span.as_secs_f64()
}

/// Checks that `rate` is at most `bound`, and close to it.
pub fn assert_bound(rate: f64, bound: f64, slack: f64) {
    let share = rate / bound;
    assert!((1.0 - slack..1.0 + 1e-9).contains(&share), "{rate} of {bound}: {share}");
}
