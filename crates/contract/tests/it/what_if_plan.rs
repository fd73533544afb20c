//! The what-ifs in a plan, the runs that they are compared with, and the skipped changes with
//! their reasons.

use prism_base::{Bytes, Nanos, Rng};
use prism_contract::what_if::{
    Change, FigureSource, Figures, MainRuns, Original, Plan, Run, Selection, Sources, Speed,
    TraceFacts, WhatIfError, plan,
};
use prism_replay::{Options, Pace, Passes, ReplayError, ReplayResult, replay};
use prism_ssd::scale::fit_for_speed;
use prism_ssd::{Drive, DriveSpec, InitialState, fit};
use prism_trace::{Op, OptTime, Record, VecSource};
use prism_workload::Silent;

const UNIT: u64 = 4096;
const UNITS: u64 = 8192;

fn full() -> DriveSpec {
    DriveSpec::preset("dc-tlc").unwrap()
}

fn run() -> Run {
    let device = fit(&full(), Bytes(UNITS * UNIT)).unwrap().device;
    let options = Options { pace: Pace::Open { speed: 1.0 }, passes: Passes::Steady };
    Run::new(device, options, InitialState::Filled, 1)
}

/// 4000 requests that cycle through `ops`, 1 ms apart, each with a latency of 0.1 ms.
fn trace(ops: &[Op]) -> Vec<Record> {
    let mut rng = Rng::stream(2, "test.plan");
    let of = |i: usize| {
        let at = i as i64 * 1_000_000;
        let op = ops[i % ops.len()];
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (rng.below(UNITS) * UNIT, UNIT) };
        Record { complete: OptTime::at(at + 100_000), ..Record::new(op, at, offset, len) }
    };
    (0..4000).map(of).collect()
}

/// The main replay on the fitted drive and on one with all dies, and the plan that follows.
struct Planned {
    plan: Plan,
    wear: (Run, ReplayResult),
    speed: (Run, ReplayResult),
    main: Figures,
}

impl Planned {
    fn runs(&self) -> MainRuns<'_> {
        MainRuns { wear: (&self.wear.0, &self.wear.1), speed: (&self.speed.0, &self.speed.1) }
    }
}

fn planned(run: &Run, records: &[Record]) -> Planned {
    let mut source = VecSource::new(records.to_vec());
    let mut replayed = |run: &Run| {
        let state = run.initial_state();
        let prepared = Drive::prepared(run.device.clone(), state, run.seed, |_| true);
        let mut drive = prepared.unwrap().unwrap().0;
        let outcome = replay(&mut drive, &mut source, &run.options, &mut Silent).unwrap();
        (drive, outcome)
    };
    let (drive, worn) = replayed(run);
    let device = fit_for_speed(&full(), run.device.capacity()).unwrap().device;
    let options = Options { passes: Passes::Fixed(1), ..run.options };
    let cleaning = Some(worn.cleaning(&run.device, Bytes(0)));
    let speed = Run { cleaning, ..Run::new(device, options, run.state, run.seed) };
    let (_, timed) = replayed(&speed);
    let original = Original::of(&timed.measured, Bytes(0));
    let main = Figures::of(&worn, &drive, run.raw, &original);
    let facts = TraceFacts::of(&mut source, run.device.ftl.mapping_unit).unwrap();
    let plan = plan(&facts, MainRuns { wear: (run, &worn), speed: (&speed, &timed) });
    Planned { plan, wear: (run.clone(), worn), speed: (speed, timed), main }
}

fn keys(plan: &Plan) -> Vec<&'static str> {
    plan.what_ifs.iter().map(|what_if| what_if.change.key()).collect()
}

fn skipped(plan: &Plan) -> Vec<(&'static str, &str)> {
    plan.skipped.iter().map(|skipped| (skipped.change.key(), skipped.reason.as_str())).collect()
}

#[test]
fn a_trace_with_all_operations_gets_all_what_ifs() {
    let planned = planned(&run(), &trace(&[Op::Write, Op::Read, Op::Discard, Op::Flush]));
    let (plan, outcome) = (&planned.plan, &planned.wear.1);
    let expected = [
        "depth",
        "merge",
        "group-commit",
        "delay-discards",
        "map-cache",
        "align-page",
        "align-stripe",
        "align-block",
        "page-map",
        "discards",
        "no-discards",
        "streams",
        "hot-cold",
        "over-provisioning",
        "levelling",
    ];
    assert_eq!(keys(plan), expected);
    assert_eq!(skipped(plan), []);
    // The speed of four changes is compared with the same closed loop, the others with the main
    // replay or with runs on other drives.
    use FigureSource::Main;
    let before: Vec<Sources> = plan.what_ifs.iter().map(|what_if| what_if.before).collect();
    assert!(before[..4].iter().all(|of| *of == before[0] && of.wear == Main && of.speed != Main));
    assert!(before[9..14].iter().all(|of| *of == Sources { wear: Main, speed: Main }));
    assert!(before[8] == Sources { wear: before[8].wear, speed: before[8].wear });
    // A closed loop and four more, three of which also change wear; both drives with and without
    // a larger map cache; five drives or traces twice; a block-level mapping; wear with
    // and without levelling, and its speed.
    assert_eq!(plan.jobs.len(), 1 + 4 + 3 + 4 + 2 * 3 + 1 + 2 * 5 + 3);
    let levelling = plan.what_ifs.last().expect("levelling is the last");
    assert_eq!(levelling.before.speed, Main);
    let FigureSource::Job(wear) = levelling.after.wear else { panic!("a job of its own") };
    assert_eq!(plan.jobs[wear].run.records, Selection::WithoutReads);
    let Passes::Fixed(passes) = plan.jobs[wear].run.options.passes else { panic!("fixed") };
    assert_eq!(plan.jobs[wear].requests, 3000 * u64::from(passes), "without 1000 reads");
    // Where the speed of a changed drive is measured follows from the cleaning on it.
    let merge = plan.what_ifs[1].after;
    let FigureSource::Job(speed) = merge.speed else { panic!("a job of its own") };
    assert_eq!(plan.jobs[speed].cleaning_of, Some(merge.wear));
    let closed = &plan.jobs[0].run;
    assert_eq!(closed.device.geometry().dies(), full().geometry().dies());
    assert_eq!(closed.options.pace, Pace::Closed { depth: 1 });
    // One thread takes the time of all jobs, many threads that of the longest job.
    // The pass on the drive with all dies is the last one.
    let replayed = 4000 * u64::from(outcome.warm_up_passes + outcome.measured.passes + 1);
    let of = |requests: u64, jobs: usize, request: f64, drive: f64| {
        (requests as f64 * request + jobs as f64 * drive) as u64
    };
    let longest = plan.jobs.iter().map(|job| job.requests).max().unwrap();
    for (main, request, drive) in [
        (Nanos(1_000_000_000_000), 2000.0, 200e6),
        (Nanos(10_000_000), 10_000_000.0 / replayed as f64, 10e6),
    ] {
        let estimate = |threads| plan.estimate(planned.runs(), main, threads).0;
        let all = of(plan.requests(), plan.jobs.len(), request, drive);
        assert!(estimate(1).abs_diff(all) <= 2, "{} for {all}", estimate(1));
        let most = of(longest, 1, request, drive);
        assert!(estimate(1000).abs_diff(most) <= 2, "{} for {most}", estimate(1000));
    }
}

#[test]
fn senseless_changes_are_skipped_with_a_reason() {
    let plan = planned(&run(), &trace(&[Op::Read])).plan;
    assert_eq!(keys(&plan), ["depth", "map-cache"]);
    assert_eq!(plan.skipped.len(), 13);
    assert!(skipped(&plan).contains(&("streams", "nothing is written")));

    let plan = planned(&run(), &trace(&[Op::Write])).plan;
    let expected = [
        ("group-commit", "the trace has no flush, FUA or preflush"),
        ("delay-discards", "the trace discards nothing"),
        ("no-discards", "the trace discards nothing"),
    ];
    assert_eq!(skipped(&plan), expected);

    let mut run = run();
    run.options.pace = Pace::Closed { depth: 40 };
    run.device.drive.discards = false;
    run.device.ftl.segment = Some(Bytes(UNITS * UNIT));
    let plan = planned(&run, &trace(&[Op::Write, Op::Discard])).plan;
    let expected = [
        ("depth", "40 requests are already in flight"),
        ("group-commit", "the trace has no flush, FUA or preflush"),
        ("no-discards", "the drive ignores discards anyway"),
        ("streams", "the drive's own mapping decides where data goes"),
        ("hot-cold", "the drive's own mapping decides where data goes"),
    ];
    assert_eq!(skipped(&plan), expected);
}

#[test]
fn figures_are_paired_and_failed_jobs_are_skipped() {
    let Planned { plan, main, .. } = planned(&run(), &trace(&[Op::Write]));
    let with =
        |factor| Figures { speed: Speed { iops: factor * main.speed.iops, ..main.speed }, ..main };
    let slower = with(0.5);
    let mut figures: Vec<Result<Figures, WhatIfError>> = vec![Ok(slower); plan.jobs.len()];
    let streams = plan.what_ifs.iter().find(|w| w.change.key() == "streams").unwrap();
    let FigureSource::Job(index) = streams.after.wear else { panic!("a job of its own") };
    figures[index] = Err(ReplayError::Interrupted.into());
    let count = plan.what_ifs.len();
    let plan_of_writes = plan.clone();
    let (comparisons, skipped) = plan.compare(&main, &figures);
    assert_eq!(comparisons.len(), count - 1);
    let of = |key| comparisons.iter().find(|c| c.change.key() == key);
    assert!(of("streams").is_none());
    // At the times of the trace nothing is done sooner.
    let faster = plan_of_writes.compare(&main, &vec![Ok(with(2.0)); figures.len()]).0;
    let over = faster.iter().find(|c| c.change.key() == "over-provisioning").unwrap();
    assert_eq!((over.before, over.after), (main, main));
    let over = of("over-provisioning").unwrap();
    assert_eq!((over.before, over.after), (main, slower));
    assert!(matches!(over.change, Change::OverProvisioning { spare } if spare == 0.28));
    let last = skipped.last().unwrap();
    assert_eq!((last.change.key(), last.reason.as_str()), ("streams", "interrupted"));
}
