//! Latencies at queue depth 1 equal their closed forms to the nanosecond.

use std::collections::BTreeSet;

use crate::common::lab::{filled, request, rest, serve};
use crate::common::tiny;
use prism_base::{Bytes, Nanos, SimTime};
use prism_nand::timing::transfer_time;
use prism_ssd::spec::{Cell, SlcUsage, WriteCache};
use prism_ssd::{Drive, DriveSpec, HostOp, Request};

/// Mean and maximum latency of `requests`, one at a time.
fn run(drive: &mut Drive, requests: impl IntoIterator<Item = Request>) -> (f64, Nanos) {
    let (mut sum, mut count, mut max) = (0, 0u64, Nanos::ZERO);
    for request in requests {
        let latency = serve(drive, request);
        // Background work ends first, so that the drive is idle at the next request.
        rest(drive, Nanos(1_000_000_000));
        sum += latency.0;
        count += 1;
        max = max.max(latency);
    }
    drive.assert_consistent();
    (sum as f64 / count as f64, max)
}

/// The set of latencies, one request at a time.
fn latencies(drive: &mut Drive, requests: impl Iterator<Item = Request>) -> BTreeSet<Nanos> {
    requests.map(|request| run(drive, [request]).1).collect()
}

fn check(device: &DriveSpec, requests: Vec<Request>, expected: Nanos) {
    let (mean, max) = run(&mut filled(device), requests);
    assert_eq!((mean, max), (expected.0 as f64, expected), "{}", device.name);
}

#[test]
fn reads_are_firmware_cell_bus_and_link() {
    for name in DriveSpec::preset_names() {
        let preset = DriveSpec::preset(name).unwrap();
        let device = prism_ssd::fit(&preset, Bytes(64 << 20)).unwrap().device;
        let (f, d) = (&device.flash, &device.drive);
        let part = 4096.min(device.ftl.mapping_unit.0);
        // The die transfers whole mapping units, or only the requested pages of a unit of several
        // pages; the link transfers the requested bytes.
        let unit = device.ftl.mapping_unit;
        let leaves = if unit > f.page { f.page } else { unit };
        let over = |bytes, rate: Option<u64>| rate.map_or(Nanos(0), |r| transfer_time(bytes, r));
        let around = d.firmware_read
            + over(leaves, f.channel_bandwidth)
            + over(Bytes(part), d.link_bandwidth);
        // After idle time a cache is empty; a region is not.
        let slc = device.slc.iter().filter(|slc| slc.usage == SlcUsage::Region);
        let times = f.t_read.all().iter().copied().chain(slc.map(|slc| slc.t_read));
        let expected: Vec<_> = times.map(|time| around + time).collect();
        let units = device.capacity().0 / part;
        let reads = (0..400).map(|i| Request::new(HostOp::Read, i * 37 % units * part, part, i));
        let seen = latencies(&mut filled(&device), reads);
        assert_eq!(
            seen,
            BTreeSet::from_iter(expected),
            "{name}: one latency for each type of page"
        );
    }
}

#[test]
fn cached_writes_are_link_and_firmware() {
    let device = tiny(64, 1500, true);
    let d = &device.drive;
    let expected = d.firmware_write + transfer_time(Bytes(4096), d.link_bandwidth.unwrap());
    let writes = (0..2000).map(|i| request(HostOp::Write, i * 7 % 1500, 1)).collect();
    check(&device, writes, expected);
}

/// The time of the programs that make a program unit of a new wordline durable: its own and,
/// without protection, those of the padding of the wordline.
fn wordline(device: &DriveSpec) -> Nanos {
    let flash = &device.flash;
    let program_unit = transfer_time(Bytes(2 * 8192), flash.channel_bandwidth.unwrap());
    let program_units = 0..device.program_units_per_wordline();
    Nanos(program_units.map(|page| (program_unit + flash.t_program.of(page)).0).sum())
}

#[test]
fn written_through_adds_bus_and_programs_of_the_wordline() {
    for (cell, program_units) in [(Cell::Slc, 1), (Cell::Mlc, 2), (Cell::Qlc, 4)] {
        let mut device = tiny(64, 1500, false);
        device.drive.write_cache = WriteCache::WriteThrough;
        device.flash.cell = cell;
        assert_eq!(device.program_units_per_wordline(), program_units);
        let d = &device.drive;
        let expected = d.firmware_write
            + transfer_time(Bytes(4096), d.link_bandwidth.unwrap())
            + wordline(&device);
        let writes: Vec<_> = (0..300).map(|i| request(HostOp::Write, i * 7 % 1500, 1)).collect();
        // On an empty drive each write begins a wordline.
        let (mean, max) = run(&mut Drive::new(device.clone(), 1).unwrap(), writes);
        assert_eq!((mean, max), (expected.0 as f64, expected));
    }
}

#[test]
fn a_flush_is_a_padded_wordline_or_nothing() {
    let cases = [(Cell::Slc, 3), (Cell::Mlc, 7), (Cell::Qlc, 15)];
    for (protected, (cell, padding)) in
        [true, false].into_iter().flat_map(|p| cases.map(|c| (p, c)))
    {
        let mut device = tiny(64, 1500, protected);
        device.flash.cell = cell;
        let mut drive = Drive::new(device.clone(), 1).unwrap();
        let mut out = Vec::new();
        drive.submit(request(HostOp::Write, 3, 1), SimTime::ZERO).unwrap();
        drive.advance(SimTime(1_000_000), &mut out);
        drive.submit(Request { len: 0, ..request(HostOp::Flush, 0, 0) }, drive.now()).unwrap();
        drive.advance(SimTime(100_000_000), &mut out);
        let flush = out[1].completed.since(out[1].submitted);
        let firmware = device.drive.firmware_read;
        let expected = if protected { firmware } else { firmware + wordline(&device) };
        assert_eq!(flush, expected);
        let pads = drive.flash_counts().units[prism_nand::Cause::Pad];
        assert_eq!(pads, if protected { 0 } else { padding });
    }
}
