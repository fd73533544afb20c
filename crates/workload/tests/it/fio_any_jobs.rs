//! Jobs with arbitrary options are refused with a message or run to their end: no panic, no lost
//! I/O, no violated conservation law (the run asserts them).

use crate::common::{parse, run};
use prism_base::Latencies;
use prism_testkit::cases;
use prism_workload::fio::options::names;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Options with valid and invalid values.
const OPTIONS: &[&str] = &[
    "rw=read",
    "rw=randwrite",
    "rw=randrw",
    "rw=trimwrite",
    "rw=randtrimwrite",
    "rw=randtrim",
    "rw=rw",
    "rw=write",
    "rwmixread=90",
    "rwmixwrite=90",
    "bs=4k",
    "bs=512",
    "bs=4k,16k,64k",
    "bs=,8k,",
    "bsrange=4k-64k",
    "bsrange=512-12k,4k-8k",
    "bssplit=4k/50:64k/",
    "ba=512",
    "ba=8k",
    "size=1m",
    "size=10%",
    "size=512",
    "filesize=256k",
    "io_size=300k",
    "io_size=1%",
    "offset=1m",
    "offset=50%",
    "offset_increment=1m",
    "offset_increment=3%",
    "numjobs=3",
    "iodepth=8",
    "iodepth=400",
    "ioengine=psync",
    "ioengine=io_uring",
    "number_ios=7",
    "loops=3",
    "norandommap",
    "random_distribution=zipf:1.1",
    "random_distribution=pareto:0.2:0.9",
    "random_distribution=normal:0:1",
    "random_distribution=normal:0.0001:1",
    "random_distribution=zoned:90/1:10/99",
    "random_distribution=zoned_abs:50/512:50/4k",
    "random_generator=lfsr",
    "randseed=99",
    "rate=100m",
    "rate=,3m",
    "rate_iops=5000",
    "rate_iops=9000,100",
    "rate_process=poisson",
    "thinktime=100",
    "thinktime=1ms",
    "thinktime_blocks=5",
    "runtime=20ms",
    "runtime=2ms",
    "time_based",
    "ramp_time=3ms",
    "startdelay=1ms",
    "stonewall",
    "wait_for=a",
    "new_group",
    "group_reporting",
    "fsync=3",
    "fdatasync=5",
    "sync=dsync",
    "end_fsync=1",
    "prioclass=1",
    "kb_base=1000",
    "stonewall=0",
];

fn job() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(OPTIONS), 0..9)
}

/// Two jobs with these options. A limit that keeps each case short comes first, so that other
/// options may override it.
fn text(a: &[&str], b: &[&str], global: &[&str]) -> String {
    let (a, b, global) = (a.join("\n"), b.join("\n"), global.join("\n"));
    format!("[global]\nsize=2m\nnumber_ios=300\n{global}\n[a]\n{a}\n[b]\n{b}\n")
}

#[test]
fn enough_of_them_are_accepted() {
    let mut runner = TestRunner::deterministic();
    let mut taken = || {
        let words = (job(), job(), job()).new_tree(&mut runner).unwrap().current();
        parse(&text(&words.0, &words.1, &words.2)).is_ok()
    };
    let count = (0..1000).filter(|_| taken()).count();
    assert!(count > 200, "{count} of 1000 are jobs that make sense");
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_jobs_end_and_lose_nothing(a in job(), b in job(), global in job()) {
        let text = text(&a, &b, &global);
        let Ok(jobs) = parse(&text) else { return Ok(()) };
        let (outcome, log) = run(&jobs);
        let rows: u64 = outcome.rows.iter().map(|row| row.stats.ios()).sum();
        let all: u64 = outcome.rows.iter().map(|row| row.jobs as u64).sum();
        prop_assert_eq!(all, jobs.len() as u64);
        prop_assert!(rows <= outcome.total.requests, "{}", text);
        let ramps = jobs.iter().any(|job| job.ramp.0 > 0);
        if !ramps {
            prop_assert_eq!(rows, outcome.total.requests, "{}", text);
            // Little's law over the jobs, including waits for a full queue.
            let waited: u128 = outcome.total.latency.iter().map(Latencies::sum_ns).sum();
            prop_assert_eq!(outcome.total.in_flight_ns, waited, "{}", text);
            prop_assert_eq!(log.issued.iter().filter(|io| io.len > 0).count() as u64, rows);
        }
        let end = jobs.iter().map(|job| job.region.end).max().unwrap();
        prop_assert!(log.issued.iter().all(|io| io.offset + io.len <= end));
        let (again, _) = run(&jobs);
        prop_assert_eq!(again.total.simulated, outcome.total.simulated);
        prop_assert_eq!(again.total.flash, outcome.total.flash);
    }

    #[test]
    fn random_noise_is_refused_with_a_message(
        text in "(\\[?[a-z_]{0,9}\\]?[= ]?[0-9a-z%:/,.-]{0,8}\n){0,6}",
    ) {
        let _ = parse(&text);
    }

    #[test]
    fn random_values_are_refused_with_a_message(
        option in prop::sample::select(names().collect::<Vec<_>>()),
        value in "[0-9a-z%:/,.-]{0,12}",
    ) {
        let _ = parse(&format!("[a]\nrw=randrw\n{option}={value}\n"));
    }
}
