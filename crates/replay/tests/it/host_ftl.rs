//! The host FTL on a zoned drive: its content against a naive model, its copies, and its errors.

use prism_testkit::seeds;
use std::collections::BTreeSet;

use prism_base::{Bytes, Rng};
use prism_replay::{
    HostFtl, HostFtlError, Options, Pace, Passes, ReplayDevice, SteadyState, ZoneRuleCheck, replay,
};
use prism_ssd::{BlockDevice, Completion, Drive, DriveSpec, HostOp, InitialState, Request, fit};
use prism_trace::{Op, Record, VecSource};
use prism_workload::Silent;

const UNIT: u64 = 4096;

/// Zones of 64 units on two dies.
fn device(zones: u64) -> DriveSpec {
    let mut device = DriveSpec::preset("zn540").unwrap();
    device.flash.channels = 2;
    device.flash.dies_per_channel = 1;
    device.flash.superblock_dies = 2;
    device.flash.page = Bytes(8192);
    device.flash.pages_per_program = 1;
    device.flash.pages_per_block = 8;
    device.flash.blocks_per_plane = zones as u32 + 2;
    device.ftl.zone_size = Some(Bytes(80 * UNIT));
    device.drive.capacity = Bytes(zones * 80 * UNIT);
    device.drive.write_buffer = Bytes(64 * UNIT);
    device.check().unwrap();
    device
}

fn ftl(zones: u64, units: u64, state: InitialState) -> HostFtl {
    let device = device(zones);
    let state = HostFtl::drive_state(&device, units * UNIT, state).unwrap();
    let drive = Drive::prepared(device, state, 1, |_| true).unwrap().unwrap().0;
    HostFtl::new(drive, units * UNIT).unwrap()
}

fn drain(ftl: &mut HostFtl) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut steps = 0;
    while ftl.in_flight() > 0 || ftl.drive().next_event().is_some() {
        ftl.step(&mut done);
        steps += 1;
        assert!(steps < 1_000_000, "the host FTL never becomes idle");
    }
    done
}

/// Concurrent random requests: units are mapped if they were written and not discarded, and every
/// mapped unit can be read.
#[test]
fn random_requests_leave_what_was_written() {
    for seed in seeds(0..12) {
        let mut rng = Rng::stream(seed, "host FTL");
        let units = 650 + rng.below(100);
        let mut ftl = ftl(16, units, InitialState::Filled);
        let mut held: BTreeSet<u64> = (0..units).collect();
        let mut done = Vec::new();
        let aligned = rng.chance(0.5);
        for tag in 0..1500 {
            let first = rng.below(units);
            let count = (1 + rng.below(20)).min(units - first);
            let (mut from, mut to) = (first * UNIT, (first + count) * UNIT);
            if !aligned && rng.chance(0.5) {
                from += 512 * rng.below(8);
                to = (to - 512 * rng.below(8)).max(from + 512);
            }
            let op = match rng.below(10) {
                0..6 => HostOp::Write,
                6 => HostOp::Discard,
                7 => HostOp::WriteZeroes,
                8 => HostOp::Flush,
                _ => HostOp::Read,
            };
            let len = if op == HostOp::Flush { 0 } else { to - from };
            while ftl.in_flight() > 6 {
                ftl.step(&mut done);
            }
            let now = ftl.drive().now();
            ftl.submit(Request::new(op, from, len, tag), now).unwrap();
            let (touched, whole) = (from / UNIT..to.div_ceil(UNIT), from.div_ceil(UNIT)..to / UNIT);
            match op {
                HostOp::Write => held.extend(touched),
                HostOp::Discard => whole.for_each(|unit| _ = held.remove(&unit)),
                HostOp::WriteZeroes => {
                    whole.clone().for_each(|unit| _ = held.remove(&unit));
                    held.extend(touched.filter(|unit| !whole.contains(unit)));
                }
                _ => {}
            }
            // The order of overlapping requests in flight is undefined.
            if op != HostOp::Read {
                drain(&mut ftl);
            }
        }
        drain(&mut ftl);
        ftl.assert_consistent();
        for unit in 0..units {
            let at = ftl.lookup(unit as u32);
            assert_eq!(at.is_some(), held.contains(&unit), "seed {seed}, unit {unit}");
            if let Some(at) = at {
                let drive = ftl.drive();
                let lpn = (at / UNIT) as u32;
                let mapped = drive.engine().ftl().lookup(lpn).is_some();
                assert!(mapped || drive.buffered_units() > 0, "seed {seed}, unit {unit} is gone");
            }
        }
        assert!(ftl.counts().cleaned > 0 && ftl.counts().copied > 0, "{:?}", ftl.counts());
        assert_eq!(aligned, ftl.counts().completed == 0);
    }
}

/// Concurrent random writes of single units, `times` the capacity.
fn overwrite(ftl: &mut HostFtl, times: u64) -> f64 {
    let mut rng = Rng::stream(7, "overwrites");
    let units = ftl.units();
    let mut done = Vec::new();
    let mut before = ftl.counts();
    for i in 0..2 * times * units {
        if i == times * units {
            before = ftl.counts();
        }
        while ftl.in_flight() >= 8 {
            ftl.step(&mut done);
        }
        let write = Request::new(HostOp::Write, rng.below(units) * UNIT, UNIT, 0);
        let now = ftl.drive().now();
        ftl.submit(write, now).unwrap();
    }
    drain(ftl);
    ftl.assert_consistent();
    ftl.counts().since(&before).write_amplification().unwrap()
}

#[test]
fn less_spare_means_more_copies_and_sequential_writes_none() {
    let mut last = 1.0;
    for units in [1600, 2000, 2400] {
        let mut ftl = ftl(48, units, InitialState::Filled);
        let amplification = overwrite(&mut ftl, 3);
        assert!(amplification > last + 0.1, "{units}: {amplification} after {last}");
        last = amplification;
        // The drive writes only what the host writes.
        let drive = ftl.drive();
        let programmed = drive.flash_counts().units.total() + u64::from(drive.buffered_units());
        assert_eq!(programmed, ftl.counts().written + ftl.counts().copied);
    }
    let mut ftl = ftl(48, 2400, InitialState::Filled);
    let mut done = Vec::new();
    for i in 0..3 * 2400 {
        let now = ftl.drive().now();
        ftl.submit(Request::new(HostOp::Write, i % 2400 * UNIT, UNIT, 0), now).unwrap();
        while ftl.in_flight() > 4 {
            ftl.step(&mut done);
        }
    }
    assert_eq!(ftl.counts().copied, 0);
}

/// A discarded unit is not copied.
#[test]
fn discards_inform_the_cleaner() {
    let copied = |discards: bool| {
        let mut ftl = ftl(48, 2600, InitialState::Filled);
        if discards {
            let now = ftl.drive().now();
            ftl.submit(Request::new(HostOp::Discard, 0, 1300 * UNIT, 0), now).unwrap();
            drain(&mut ftl);
            assert_eq!(ftl.counts().discarded, 1300);
        }
        let mut rng = Rng::stream(3, "upper half");
        let mut done = Vec::new();
        for _ in 0..5000 {
            let unit = 1300 + rng.below(1300);
            let now = ftl.drive().now();
            ftl.submit(Request::new(HostOp::Write, unit * UNIT, UNIT, 0), now).unwrap();
            while ftl.in_flight() > 4 {
                ftl.step(&mut done);
            }
        }
        ftl.counts().copied
    };
    let (informed, not) = (copied(true), copied(false));
    assert!(2 * informed < not, "{informed} {not}");
}

#[test]
fn a_trace_replays_to_a_steady_state_and_the_same_twice() {
    let records: Vec<_> = (0..4000)
        .map(|i| {
            let unit = Rng::stream(i, "places").below(2200);
            Record::new(Op::Write, i as i64 * 1000, unit * UNIT, UNIT)
        })
        .collect();
    let run = || {
        let mut ftl = ftl(48, 2200, InitialState::Filled);
        let mut source = VecSource::new(records.clone());
        let options = Options { pace: Pace::Closed { depth: 8 }, passes: Passes::Steady };
        let outcome = replay(&mut ftl, &mut source, &options, &mut Silent).unwrap();
        (outcome, ftl.counts())
    };
    let ((first, counts), (second, again)) = (run(), run());
    assert_eq!(first.steady, SteadyState::Reached);
    assert_eq!((first.rounds, counts), (second.rounds, again));
    let measured = first.host_ftl.unwrap();
    assert_eq!(measured.written, 4000 * u64::from(first.measured.passes));
    let host = measured.write_amplification().unwrap();
    // The drive's write amplification, by units programmed, equals that of the host.
    let drive = first.measured.write_amplification().unwrap();
    assert!((host / drive - 1.0).abs() < 0.02, "{host} {drive}");
}

#[test]
fn a_host_ftl_that_does_not_fit_is_refused() {
    let made = |zones: u64, units: u64, state: InitialState| {
        let drive = Drive::prepared(device(zones), state, 1, |_| true).unwrap().unwrap().0;
        HostFtl::new(drive, units * UNIT).map(|ftl| ftl.units())
    };
    assert_eq!(made(16, 756, InitialState::Empty), Ok(756));
    let refused = made(16, 13 * 64, InitialState::Empty).unwrap_err();
    assert_eq!(refused, HostFtlError::TooSmall { units: 13 * 64, most: 756 });
    let plain = Drive::new(DriveSpec::preset("femu").unwrap(), 1).unwrap();
    assert_eq!(HostFtl::new(plain, 1 << 20).unwrap_err(), HostFtlError::NoZones);
    let state = HostFtl::drive_state(&device(16), 1 << 20, InitialState::Settled);
    assert_eq!(state, None);
    // The default size of the drive is large enough, and not larger than needed.
    let preset = DriveSpec::preset("zn540").unwrap();
    for bytes in [1u64 << 20, 10 << 30, 300 << 30] {
        let addresses = HostFtl::addresses_for(&preset, bytes).unwrap();
        let fitted = fit(&preset, Bytes(addresses)).unwrap().device;
        let drive = Drive::new(fitted, 1).unwrap();
        let ftl = HostFtl::new(drive, bytes).unwrap();
        assert!(ftl.over_provisioning() >= 0.1, "{bytes}: {}", ftl.over_provisioning());
        assert!(bytes < 10 << 30 || ftl.over_provisioning() < 0.4, "{}", ftl.over_provisioning());
    }
    // On a drive that is too large, the host FTL uses only a part of the zones.
    let units = 9 * 64;
    let state = HostFtl::drive_state(&device(48), units * UNIT, InitialState::Filled).unwrap();
    let drive = Drive::prepared(device(48), state, 1, |_| true).unwrap().unwrap().0;
    let mut ftl = HostFtl::fitted(drive, units * UNIT).unwrap();
    assert!((ftl.over_provisioning() - 2.0 / 9.0).abs() < 1e-9, "{}", ftl.over_provisioning());
    assert!(overwrite(&mut ftl, 3) > 2.0);
}

#[test]
fn writes_that_a_zoned_drive_refuses_are_counted() {
    let shape = device(4).zone_shape().unwrap();
    let write = |unit: u64, units: u64| Record::new(Op::Write, 0, unit * UNIT, units * UNIT);
    let mut source = VecSource::new(vec![
        write(0, 4),
        write(4, 4),
        write(4, 4),
        write(9, 1),
        Record::new(Op::Write, 0, 8 * UNIT, 512),
        Record::new(Op::Read, 0, 0, UNIT),
        write(8, 60),
        write(80, 64),
        write(80, 1),
        write(1000, 1),
    ]);
    let found = ZoneRuleCheck::of(&mut source, shape).unwrap();
    let expected = ZoneRuleCheck {
        writes: 9,
        taken: 3,
        not_at_write_pointer: 2,
        unaligned: 1,
        beyond_zone: 3,
        limits: 0,
    };
    assert_eq!((found, found.failed()), (expected, 6));
}

#[test]
fn buffers_come_back_in_the_order_of_completions() {
    let mut ftl = ftl(16, 700, InitialState::Filled);
    for tag in 0..4 {
        let op = if tag % 2 == 0 { HostOp::Write } else { HostOp::Read };
        let request = Request::new(op, tag * 4096, 4096, tag);
        ftl.submit_bytes(request, vec![7; 4096], ftl.now()).unwrap();
    }
    let mut done = Vec::new();
    while ftl.next_completion(&mut done) {}
    assert_eq!(done.len(), 4);
    for completion in done {
        // The drive keeps no content.
        let byte = if completion.op == HostOp::Read { 0 } else { 7 };
        assert_eq!(ftl.take_bytes(), Some((completion.tag, vec![byte; 4096])));
    }
    assert_eq!(ftl.take_bytes(), None);
}
