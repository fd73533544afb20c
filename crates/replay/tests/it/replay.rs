//! Whole replays on small drives, with generated traces.

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_nand::Cause;
use prism_replay::{Options, Pace, Passes, ReplayError, ReplayResult, SteadyState, replay};
use prism_ssd::spec::Mapping;
use prism_ssd::{Drive, DriveSpec, HostOp, InitialState, SubmitError, fit};
use prism_trace::{Op, OptTime, Record, VecSource};
use prism_workload::{Finished, Observer, Progress, Silent};

const UNIT: u64 = 4096;

fn device(mib: u64) -> DriveSpec {
    fit(&DriveSpec::preset("dc-tlc").unwrap(), Bytes(mib << 20)).unwrap().device
}

fn drive(mib: u64, state: InitialState) -> Drive {
    Drive::prepared(device(mib), state, 1, |_| true).unwrap().unwrap().0
}

fn run(drive: &mut Drive, records: Vec<Record>, pace: Pace, passes: Passes) -> ReplayResult {
    let mut source = VecSource::new(records);
    replay(drive, &mut source, &Options { pace, passes }, &mut Silent).unwrap()
}

/// `count` random writes of one unit over `units`, 10 us apart.
fn random_writes(count: u64, units: u64) -> Vec<Record> {
    let mut rng = Rng::stream(9, "test.writes");
    (0..count)
        .map(|i| Record::new(Op::Write, i as i64 * 10_000, rng.below(units) * UNIT, UNIT))
        .collect()
}

const OPEN: Pace = Pace::Open { speed: 1.0 };

#[test]
fn every_request_is_completed_in_every_pass() {
    let mut records = random_writes(500, 2000);
    for (i, record) in records.iter_mut().enumerate() {
        record.op = Op::ALL[i % 5];
    }
    let flushes = records.iter().filter(|r| r.op == Op::Flush).count() as u64;
    for pace in [OPEN, Pace::Open { speed: 100.0 }, Pace::Closed { depth: 7 }] {
        let mut drive = drive(16, InitialState::Filled);
        let outcome = run(&mut drive, records.clone(), pace, Passes::Fixed(3));
        let m = &outcome.measured;
        assert_eq!(m.passes, 3);
        assert_eq!(m.requests, 3 * (500 - flushes));
        assert_eq!(m.latency_of(HostOp::Flush).count(), 3 * flushes);
        assert_eq!(drive.in_flight(), 0);
        assert_eq!(outcome.single_pass.requests, 500 - flushes);
        assert_eq!(outcome.steady, SteadyState::NotTested);
        if let Pace::Closed { depth } = pace {
            assert_eq!(m.in_flight_max, depth);
        }
    }
}

#[test]
fn an_open_loop_keeps_the_times_and_a_closed_one_the_depth() {
    let records: Vec<_> =
        (0..10).map(|i| Record::new(Op::Read, 5_000_000 + i * 1_000_000, 0, UNIT)).collect();
    let latency = {
        let mut drive = drive(16, InitialState::Filled);
        run(&mut drive, records.clone(), OPEN, Passes::Fixed(1))
            .measured
            .latency_of(HostOp::Read)
            .max()
    };
    let span = |pace| {
        let mut drive = drive(16, InitialState::Filled);
        run(&mut drive, records.clone(), pace, Passes::Fixed(1)).measured.simulated
    };
    assert_eq!(span(OPEN), Nanos(9_000_000 + latency.0));
    assert_eq!(span(Pace::Open { speed: 10.0 }), Nanos(900_000 + latency.0));
    assert_eq!(span(Pace::Closed { depth: 1 }), Nanos(10 * latency.0));
}

#[test]
fn dependent_requests_keep_their_think_time() {
    // In the trace: A takes 1 ms; B comes 2 ms after A completes and takes 3 ms; C comes while B is
    // in flight, 2.5 ms after A completes; D comes 1 ms after B and C.
    let mut records = Vec::new();
    let ms = |x: f64| (x * 1e6) as i64;
    for (issue, complete) in [(0.0, 1.0), (3.0, 6.0), (3.5, 5.0), (7.0, 8.0)] {
        let mut record = Record::new(Op::Read, ms(issue), 0, UNIT);
        record.complete = OptTime::at(ms(complete));
        records.push(record);
    }
    let mut drive = drive(16, InitialState::Filled);
    let start = drive.now();
    #[derive(Default)]
    struct Arrivals(Vec<(SimTime, SimTime)>);
    impl Observer for Arrivals {
        fn finished(&mut self, f: &Finished) {
            self.0.push((f.arrival, f.completion.completed));
        }
        fn in_flight(&mut self, _: SimTime, _: u32) {}
        fn keep_going(&mut self, _: Progress) -> bool {
            true
        }
    }
    let mut seen = Arrivals::default();
    let options = Options { pace: Pace::Dependent { speed: 1.0 }, passes: Passes::Fixed(1) };
    replay(&mut drive, &mut VecSource::new(records), &options, &mut seen).unwrap();
    let [a, b, c, d] = seen.0[..] else { panic!("four requests") };
    assert_eq!(a.0, start);
    assert_eq!(b.0, a.1 + Nanos(2_000_000));
    assert_eq!(c.0, a.1 + Nanos(2_500_000));
    // The last completion before D in the trace is B's.
    assert_eq!(d.0, b.1 + Nanos(1_000_000));
}

#[test]
fn random_writes_reach_a_steady_state_near_theory() {
    let mut drive = drive(64, InitialState::Filled);
    let units = drive.device().capacity().0 / UNIT;
    let outcome =
        run(&mut drive, random_writes(4000, units), Pace::Closed { depth: 16 }, Passes::Steady);
    assert_eq!(outcome.steady, SteadyState::Reached);
    let steady = outcome.measured.write_amplification().unwrap();
    let single = outcome.single_pass.write_amplification().unwrap();
    // A few thousand addresses are a hot set on a full drive, so the uniform closed form does not
    // apply; but cleaning must happen.
    assert!(steady > 1.1 && steady > single, "{steady} after {single}");
    assert!(outcome.warm_up_passes > 5);
    assert!(prism_replay::steady::is_steady(&outcome.rounds));
    assert_eq!(outcome.measured.passes, outcome.passes_per_round);
}

/// A drive with a map cache writes the map to flash, and these writes count.
#[test]
fn writes_of_a_cached_map_count_as_write_amplification() {
    let mut device = device(1024);
    device.ftl.mapping = Mapping::Dftl;
    device.ftl.map_cache = Some(Bytes(8 << 10));
    let prepared = Drive::prepared(device, InitialState::Filled, 1, |_| true);
    let mut drive = prepared.unwrap().unwrap().0;
    let pace = Pace::Closed { depth: 8 };
    let outcome = run(&mut drive, random_writes(5000, 250_000), pace, Passes::Fixed(1));
    let m = &outcome.measured;
    let all: u64 = Cause::ALL.iter().map(|&cause| m.flash.units[cause]).sum();
    let map = m.flash.units[Cause::Map];
    assert!(map > 500, "{map} units of the map were written");
    assert_eq!(m.flash_bytes, all * UNIT);
    assert_eq!(m.write_amplification(), Some(all as f64 / 5000.0));
}

/// Zeroes that are written as data are part of what the host writes.
#[test]
fn written_zeroes_count_where_the_drive_does_not_unmap_them() {
    let zeroes = |preset: &str, protected: bool| {
        let mut full = DriveSpec::preset(preset).unwrap();
        full.drive.power_loss_protection = protected;
        full.drive.discards = protected;
        let device = fit(&full, Bytes(64 << 20)).unwrap().device;
        let prepared = Drive::prepared(device, InitialState::Filled, 1, |_| true);
        let mut drive = prepared.unwrap().unwrap().0;
        let block = 1 << 20;
        let zero = |i: u64| Record::new(Op::WriteZeroes, 1000 * i as i64, i % 32 * block, block);
        let outcome = run(&mut drive, (0..256).map(zero).collect(), OPEN, Passes::Fixed(1));
        (outcome.measured.written(), outcome.measured.write_amplification())
    };
    assert_eq!(zeroes("dc-tlc", true), (0, None));
    let (written, amplification) = zeroes("bast-2007", false);
    assert_eq!(written, 256 << 20);
    assert!((0.9..4.0).contains(&amplification.unwrap()), "{amplification:?}");
}

#[test]
fn the_same_replay_twice_is_the_same() {
    let figures = || {
        let mut drive = drive(32, InitialState::Preconditioned { overwrites: 0.5 });
        let outcome = run(&mut drive, random_writes(3000, 5000), OPEN, Passes::Steady);
        format!("{:?} {:?}", outcome.rounds, outcome.measured)
    };
    assert_eq!(figures(), figures());
}

#[test]
fn a_search_ends_before_the_clock_does() {
    // One write in five years.
    let search = |len| {
        let at = [0, 5 * 365 * 86_400 * 1_000_000_000];
        let records = at.map(|at| Record::new(Op::Write, at, 0, len)).to_vec();
        run(&mut drive(64, InitialState::Filled), records, OPEN, Passes::Steady)
    };
    let outcome = search(64 * UNIT);
    assert_eq!(outcome.steady, SteadyState::NotReached);
    assert!(outcome.warm_up_passes < 30, "{}", outcome.warm_up_passes);
    // No affordable number of passes of so short writes reaches cleaning: there is one to measure.
    let outcome = search(UNIT);
    assert_eq!(outcome.steady, SteadyState::OutOfReach);
    assert_eq!((outcome.warm_up_passes, outcome.measured.passes), (1, 1));
    assert!(outcome.passes_needed > u64::from(prism_replay::run::PASSES_MAX), "{outcome:?}");
}

#[test]
fn a_steady_figure_is_the_mean_of_rounds_whose_halves_agree() {
    let mut drive = drive(64, InitialState::Filled);
    let units = drive.device().capacity().0 / UNIT;
    let pace = Pace::Closed { depth: 16 };
    let outcome = run(&mut drive, random_writes(4000, units), pace, Passes::Steady);
    assert_eq!(outcome.steady, SteadyState::Reached);
    let rounds = &outcome.rounds[outcome.rounds.len() - outcome.window_rounds as usize..];
    assert!(rounds.len() >= prism_replay::steady::WINDOW);
    assert!(prism_replay::steady::is_mean_settled(rounds));
    let passes = (outcome.window_rounds + 1) * outcome.passes_per_round;
    assert_eq!(outcome.window.passes, passes);
    assert_eq!(outcome.window.requests, 4000 * u64::from(passes));
    let (mean, deviation) = outcome.steady_write_amplification().unwrap();
    let (min, max) =
        rounds.iter().fold((f64::MAX, 0.0), |(a, b), &r| (f64::min(a, r), f64::max(b, r)));
    assert!(min <= mean && mean <= max.max(outcome.measured.write_amplification().unwrap()));
    assert!(deviation > 0.0 && deviation <= max - min, "{deviation}");
}

/// Without enough passes, write amplification is that of random writes to the same addresses.
#[test]
fn an_estimate_is_near_what_many_passes_measure() {
    let device = device(64);
    let units = device.capacity().0 / UNIT;
    let distinct = units / 2;
    let fresh = || drive(64, InitialState::Filled);
    let pace = Pace::Closed { depth: 16 };
    // A few writes a pass, of a trace that is said to write many addresses.
    let few = run(&mut fresh(), random_writes(4, distinct), pace, Passes::Steady);
    assert_eq!(few.steady, SteadyState::OutOfReach);
    let estimate = few.cleaning(&device, Bytes(distinct * UNIT));
    let many = run(&mut fresh(), random_writes(60_000, distinct), pace, Passes::Steady);
    assert_eq!(many.steady, SteadyState::Reached);
    let measured = many.cleaning(&device, Bytes(0));
    assert!((estimate / measured - 1.0).abs() < 0.15, "{estimate} against {measured}");
}

#[test]
fn reads_alone_need_no_steady_state() {
    let records = (0..100).map(|i| Record::new(Op::Read, i * 1000, 0, UNIT)).collect();
    let outcome = run(&mut drive(16, InitialState::Filled), records, OPEN, Passes::Steady);
    assert_eq!(outcome.steady, SteadyState::NoWrites);
    assert_eq!(outcome.measured.write_amplification(), None);
    assert_eq!(outcome.measured.flash.reads.total(), 100);
}

#[test]
fn errors_name_the_request_or_option() {
    let attempt = |records: Vec<Record>, pace| {
        let mut drive = drive(16, InitialState::Empty);
        let options = Options { pace, passes: Passes::Fixed(1) };
        replay(&mut drive, &mut VecSource::new(records), &options, &mut Silent).unwrap_err()
    };
    let read = |offset, len| Record::new(Op::Read, 77, offset, len);
    let beyond = attempt(vec![read(0, UNIT), read(1 << 40, UNIT)], OPEN);
    assert!(
        matches!(
            beyond,
            ReplayError::Refused { number: 2, at_ns: 77, error: SubmitError::BeyondEnd { .. } }
        ),
        "{beyond}"
    );
    let empty = attempt(vec![read(0, 0)], OPEN);
    assert!(matches!(empty, ReplayError::Refused { error: SubmitError::ZeroLength, .. }));
    assert_eq!(attempt(vec![], OPEN), ReplayError::Empty);
    let depth = attempt(vec![read(0, UNIT)], Pace::Closed { depth: 0 });
    assert!(matches!(depth, ReplayError::Option { field: "queue depth", .. }));
    let mut late = read(0, UNIT);
    late.issue_ns = i64::MAX;
    let slow = attempt(vec![read(0, UNIT), late], Pace::Open { speed: 0.001 });
    assert!(matches!(slow, ReplayError::TooLong { number: 2 }), "{slow}");
    let speed = attempt(vec![read(0, UNIT)], Pace::Open { speed: f64::NAN });
    assert!(matches!(speed, ReplayError::Option { field: "speed", .. }));
}

#[test]
fn an_overloaded_drive_holds_requests_back_and_loses_none() {
    // 64 KiB reads, all due at once: far more than the queue takes.
    let records: Vec<_> =
        (0..2000).map(|i| Record::new(Op::Read, 0, i % 100 * 65_536, 65_536)).collect();
    let outcome = run(&mut drive(16, InitialState::Filled), records, OPEN, Passes::Fixed(1));
    let m = &outcome.measured;
    assert_eq!(m.latency_of(HostOp::Read).count(), 2000);
    assert!(m.held_back >= 2000 - 256, "{}", m.held_back);
    assert!(m.latency_of(HostOp::Read).max() >= m.behind_max);
}
