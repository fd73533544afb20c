//! Each change moves its figures in the direction that theory predicts, by a clear margin.

use prism_base::{Bytes, Nanos, Rng};
use prism_contract::what_if::{
    Boundary, Change, Drives, Figures, Original, Run, Selection, WhatIfError, simulate,
};
use prism_replay::{Options, Pace, Passes, ReplayError, replay};
use prism_ssd::scale::fit_wide;
use prism_ssd::{Drive, DriveSpec, InitialState, fit};
use prism_trace::{Op, Record, Source, VecSource};
use prism_workload::{Finished, Observer, Progress, Silent};

const UNIT: u64 = 4096;
/// Units of the drive: 32 MiB.
const UNITS: u64 = 8192;
const MS: i64 = 1_000_000;
const WINDOW: Nanos = Nanos(10_000_000);

/// A run on a small drive, with 8 requests always in flight.
fn run(preset: &str) -> Run {
    let device = fit(&DriveSpec::preset(preset).unwrap(), Bytes(UNITS * UNIT)).unwrap().device;
    let options = Options { pace: Pace::Closed { depth: 8 }, passes: Passes::Steady };
    Run::new(device, options, InitialState::Filled, 1)
}

fn main_replay(run: &Run, records: &[Record]) -> (Figures, Original) {
    let prepared = Drive::prepared(run.device.clone(), run.state, run.seed, |_| true);
    let mut drive = prepared.unwrap().unwrap().0;
    let mut source = VecSource::new(records.to_vec());
    let outcome = replay(&mut drive, &mut source, &run.options, &mut Silent).unwrap();
    let original = Original::of(&outcome.measured, Bytes(0));
    (Figures::of(&outcome, &drive, run.raw, &original), original)
}

/// The figures without and with a change.
fn compare(run: &Run, records: &[Record], change: Change) -> (Figures, Figures) {
    let (before, original) = main_replay(run, records);
    let mut source = VecSource::new(records.to_vec());
    let after_run = change.applied(run).unwrap();
    let begins = (&Drives::default(), &mut source as &mut dyn Source);
    let after = simulate(&after_run, Some(&change), begins, &original, &mut Silent);
    (before, after.unwrap())
}

fn wa(figures: &Figures) -> f64 {
    figures.write_amplification.unwrap()
}

fn write(i: u64, unit: u64) -> Record {
    Record::new(Op::Write, i as i64 * MS / 10, unit * UNIT, UNIT)
}

/// Nine tenths of the writes go to a tenth of the drive, the rest to the whole drive.
fn two_lifetimes() -> Vec<Record> {
    let mut rng = Rng::stream(3, "test.hot");
    let mut unit = || if rng.below(10) < 9 { rng.below(UNITS / 10) } else { rng.below(UNITS) };
    (0..8000).map(|i| write(i, unit())).collect()
}

/// All writes go to the first `1 / parts` of the drive.
fn hot(parts: u64) -> Vec<Record> {
    let mut rng = Rng::stream(7, "test.wear");
    (0..8000).map(|i| write(i, rng.below(UNITS / parts))).collect()
}

fn uniform() -> Vec<Record> {
    let mut rng = Rng::stream(3, "test.uniform");
    (0..8000).map(|i| write(i, rng.below(UNITS))).collect()
}

#[test]
fn placement_handles_lower_write_amplification() {
    let (run, trace) = (run("dc-tlc"), two_lifetimes());
    let (before, bound) = compare(&run, &trace, Change::Streams { handles: 8 });
    let (_, guess) = compare(&run, &trace, Change::HotCold { classes: 4 });
    assert!(wa(&bound) < 0.8 * wa(&before), "{bound:?} {before:?}");
    assert!(wa(&guess) < 0.9 * wa(&before), "{guess:?} {before:?}");
    assert!(wa(&bound) < wa(&guess));
    // The lifetime grows by the same factor.
    let longer = bound.lifetime_days.unwrap() / before.lifetime_days.unwrap();
    assert!((longer - wa(&before) / wa(&bound)).abs() < 1e-9 * longer);
}

#[test]
fn more_spare_flash_lowers_write_amplification() {
    let (before, after) =
        compare(&run("dc-tlc"), &uniform(), Change::OverProvisioning { spare: 0.28 });
    assert!(wa(&before) > 2.0 && wa(&after) < 0.8 * wa(&before), "{before:?} {after:?}");
}

#[test]
fn discards_of_dead_data_lower_write_amplification() {
    let (run, trace) = (run("dc-tlc"), uniform());
    let (before, after) = compare(&run, &trace, Change::Discards { delay: WINDOW });
    assert!(wa(&after) < 0.6 * wa(&before), "{before:?} {after:?}");
}

#[test]
fn removing_discards_raises_write_amplification() {
    // Temporary data: a quarter of the drive is written at random and then discarded, each
    // quarter after the other.
    let mut rng = Rng::stream(4, "test.temporary");
    let mut trace = Vec::new();
    for i in 0..16 {
        let begin = (i % 4) * UNITS / 4;
        trace.extend((0..500).map(|k| write(500 * i + k, begin + rng.below(UNITS / 4))));
        let discard = Record::new(Op::Discard, 0, begin * UNIT, UNITS / 4 * UNIT);
        trace.push(Record { issue_ns: trace.last().unwrap().issue_ns, ..discard });
    }
    let (before, after) = compare(&run("dc-tlc"), &trace, Change::NoDiscards);
    assert!(wa(&after) > 1.5 * wa(&before), "{before:?} {after:?}");
}

#[test]
fn a_larger_map_cache_moves_fewer_translation_pages() {
    let mut small = run("dc-tlc");
    small.device =
        Change::MapCache { bytes: Bytes(UNITS / 10 * 8) }.applied(&small).unwrap().device;
    let trace = two_lifetimes();
    let (before, after) = compare(&small, &trace, Change::MapCache { bytes: Bytes(UNITS * 8) });
    let moved = |figures: &Figures| figures.map_pages_per_pass().unwrap();
    assert!(3.0 * moved(&after) < moved(&before), "{before:?} {after:?}");
    assert!(after.map_miss_ratio().unwrap() < 0.2 * before.map_miss_ratio().unwrap());
}

/// Sequential writes of 1 KiB, with a flush after every `per_flush` writes.
fn small_writes(per_flush: u64) -> Vec<Record> {
    let mut trace = Vec::new();
    for i in 0..8000 {
        let at = i as i64 * MS / 50;
        trace.push(Record::new(Op::Write, at, i * 1024, 1024));
        if i % per_flush == per_flush - 1 {
            trace.push(Record::new(Op::Flush, at, 0, 0));
        }
    }
    trace
}

/// A run on a drive of eight dies, with `depth` requests in flight.
fn wide(preset: &str, depth: u32) -> Run {
    let mut device = DriveSpec::preset(preset).unwrap();
    let dies = device.geometry().dies();
    (device.flash.channels, device.flash.dies_per_channel) = (8, 1);
    device.drive.capacity = Bytes(device.drive.capacity.0 / u64::from(dies) * 8);
    let device = fit_wide(&device, Bytes(UNITS * UNIT)).unwrap().device;
    let options = Options { pace: Pace::Closed { depth }, passes: Passes::Fixed(3) };
    Run::new(device, options, InitialState::Filled, 1)
}

#[test]
fn merging_small_writes_raises_throughput() {
    let run = wide("dc-tlc", 2);
    let merge = Change::Merge { most: Bytes(1 << 20), window: WINDOW };
    let (before, after) = compare(&run, &small_writes(1000), merge);
    assert!(
        after.speed.bytes_per_second > 2.0 * before.speed.bytes_per_second,
        "{before:?} {after:?}"
    );
    // Both rates count the work of the original trace, whose requests have 1 KiB.
    assert!((after.speed.iops / after.speed.bytes_per_second * 1024.0 - 1.0).abs() < 1e-9);
}

#[test]
fn group_commit_raises_throughput() {
    let run = wide("consumer-nvme", 2);
    let (before, after) = compare(&run, &small_writes(4), Change::GroupCommit { window: WINDOW });
    assert!(
        after.speed.bytes_per_second > 3.0 * before.speed.bytes_per_second,
        "{before:?} {after:?}"
    );
    assert!(wa(&after) < 0.8 * wa(&before));
}

#[test]
fn alignment_takes_fewer_programs() {
    // Sequential writes of half a page, on a drive with a write-through cache.
    let trace: Vec<_> =
        (0..1000).map(|i| Record::new(Op::Write, i * MS / 10, i as u64 * 2048, 2048)).collect();
    let run = wide("slc-2008", 1);
    let (before, units) =
        compare(&run, &trace, Change::Align { what: Boundary::Page, to: Bytes(UNIT) });
    let (_, stripes) =
        compare(&run, &trace, Change::Align { what: Boundary::Stripe, to: Bytes(8 * UNIT) });
    // Without alignment, each half page is programmed as a whole page.
    assert!((wa(&before) - 2.0).abs() < 0.1, "{before:?}");
    assert!((wa(&units) - 1.0).abs() < 0.1, "{units:?}");
    assert_eq!(units.host_bytes, before.host_bytes);
    assert!((wa(&stripes) - 1.0).abs() < 0.1, "{stripes:?}");
    assert!(
        stripes.speed.bytes_per_second > 2.0 * before.speed.bytes_per_second,
        "{stripes:?} {before:?}"
    );
}

#[test]
fn more_requests_in_flight_raise_read_throughput() {
    let mut rng = Rng::stream(6, "test.reads");
    let trace: Vec<_> =
        (0..4000).map(|i| Record { op: Op::Read, ..write(i, rng.below(UNITS)) }).collect();
    let run = wide("dc-tlc", 1);
    let (before, after) = compare(&run, &trace, Change::Depth { requests: 32 });
    assert!(after.speed.iops > 1.2 * before.speed.iops, "{before:?} {after:?}");
    assert_eq!((after.write_amplification, after.lifetime_days), (None, None));
}

#[test]
fn delaying_discards_raises_throughput() {
    let mut trace = Vec::new();
    for i in 0..2000 {
        trace.push(write(i, i));
        trace.push(Record { op: Op::Discard, ..write(i, UNITS / 2 + i) });
    }
    let run = wide("dc-tlc", 1);
    let delay = Change::DelayDiscards { by: WINDOW };
    let (before, after) = compare(&run, &trace, delay);
    assert!(
        after.speed.bytes_per_second > 1.2 * before.speed.bytes_per_second,
        "{before:?} {after:?}"
    );
}

#[test]
fn levelling_evens_out_wear_and_costs_copies() {
    let trace = hot(10);
    let mut run = run("dc-tlc");
    run.options = Options { pace: Pace::Open { speed: 0.1 }, passes: Passes::Fixed(10) };
    let (before, after) = compare(&run, &trace, Change::Levelling { behind: 2 });
    let spread = |figures: &Figures| figures.wear.max - figures.wear.min;
    assert!(2 * spread(&after) < spread(&before), "{before:?} {after:?}");
    assert!(wa(&after) > wa(&before));
}

#[test]
fn levelling_works_on_a_drive_that_is_always_busy() {
    // In a closed loop, there is always a write to serve, so that cleaning never pauses.
    for trace in [two_lifetimes(), hot(2), hot(10)] {
        let mut run = run("dc-tlc");
        run.options.passes = Passes::Fixed(6);
        let (before, after) = compare(&run, &trace, Change::Levelling { behind: 2 });
        let spread = |figures: &Figures| figures.wear.max - figures.wear.min;
        assert!(after.wear.min > before.wear.min, "{before:?} {after:?}");
        assert!(4 * spread(&after) < 3 * spread(&before), "{before:?} {after:?}");
    }
}

#[test]
fn the_same_simulation_gives_the_same_figures() {
    let (run, trace) = (run("dc-tlc"), two_lifetimes());
    let change = Change::Streams { handles: 4 };
    assert_eq!(compare(&run, &trace, change), compare(&run, &trace, change));
}

/// The figures of `run` on a drive from `drives`.
fn simulated(run: &Run, drives: &Drives, records: &[Record], original: &Original) -> Figures {
    let mut source = VecSource::new(records.to_vec());
    let begins = (drives, &mut source as &mut dyn Source);
    simulate(run, None, begins, original, &mut Silent).unwrap()
}

#[test]
fn simulations_that_share_a_drive_have_the_same_figures() {
    let (mut first, trace) = (run("dc-tlc"), two_lifetimes());
    first.options.passes = Passes::Fixed(2);
    first.state = InitialState::Preconditioned { overwrites: 1.0 };
    let (main, original) = main_replay(&first, &trace);
    let other = Run { seed: 2, ..first.clone() };
    let drives = Drives::of([&first, &other, &first, &first]);
    // One more than announced prepares its own.
    for _ in 0..4 {
        assert_eq!(simulated(&first, &drives, &trace, &original), main);
    }
    let alone = simulated(&other, &Drives::default(), &trace, &original);
    assert_eq!(simulated(&other, &drives, &trace, &original), alone);
    assert!(alone != main, "another seed gives other figures");
}

#[test]
fn reads_wear_no_flash() {
    let mut trace = two_lifetimes();
    let reads: Vec<_> =
        trace.iter().map(|write| Record { op: Op::Read, ..*write }).step_by(3).collect();
    let mut run = run("dc-tlc");
    run.options = Options { pace: Pace::Open { speed: 0.1 }, passes: Passes::Fixed(4) };
    let (alone, original) = main_replay(&run, &trace);
    trace.extend(reads);
    trace.sort_by_key(|record| record.issue_ns);
    run.records = Selection::WithoutReads;
    assert_eq!(simulated(&run, &Drives::default(), &trace, &original), alone);
}

/// An observer that ends the simulation at the given call of `keep_going`.
struct Patience(u32);

impl Observer for Patience {
    fn finished(&mut self, _: &Finished) {}

    fn in_flight(&mut self, _: prism_base::SimTime, _: u32) {}

    fn keep_going(&mut self, _: Progress) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

#[test]
fn a_simulation_can_be_interrupted() {
    let (run, trace) = (run("dc-tlc"), uniform());
    let (_, original) = main_replay(&run, &trace);
    for patience in 1..4 {
        let mut source = VecSource::new(trace.clone());
        let begins = (&Drives::default(), &mut source as &mut dyn Source);
        let result = simulate(&run, None, begins, &original, &mut Patience(patience)).unwrap_err();
        assert_eq!(result, WhatIfError::Replay(ReplayError::Interrupted));
    }
}
