//! Jobs against the documentation of fio: which I/Os are issued, at which offsets and times, and
//! their latencies. Sequences are those that fio 3.33 issues with its null engine.

use crate::common::{
    self, CAPACITY, Issued, Log, drive, fitted, one, parse, prepared, run, run_one,
};
use prism_base::{Bytes, Nanos};
use prism_nand::timing::transfer_time;
use prism_ssd::HostOp::{self, Discard, Flush, Read, Write};
use prism_ssd::{Drive, DriveSpec, InitialState};
use prism_testkit::cases;
use prism_workload::Silent;
use prism_workload::fio::{self, stats::Dir};
use proptest::prelude::*;

/// Checks what one job at queue depth 1 issues, in KiB.
fn sequence(options: &str, expected: &[(HostOp, u64)]) {
    let (_, log) = run_one(options);
    let issued: Vec<_> = log.issued.iter().map(|io| (io.op, io.offset / 1024)).collect();
    assert_eq!(issued, expected, "{options}");
}

#[test]
fn sequences_are_as_in_fio() {
    let writes = |offsets: &[u64]| offsets.iter().map(|&at| (Write, at)).collect::<Vec<_>>();
    sequence("rw=write size=10k", &writes(&[0, 4]));
    sequence("rw=write size=10k loops=2", &writes(&[0, 4, 0, 4]));
    sequence("rw=write size=64k io_size=10k", &writes(&[0, 4, 8]));
    sequence("rw=write size=16k io_size=38k", &writes(&[0, 4, 8, 12, 0, 4, 8, 12, 0, 4]));
    sequence("rw=write size=16k number_ios=6 loops=2", &writes(&[0, 4, 8, 12, 0, 4, 8, 12]));
    sequence("rw=write size=16k number_ios=3 loops=2", &writes(&[0, 4, 8, 12, 0, 4]));
    sequence("rw=write size=12k offset=25%", &writes(&[16384, 16388, 16392]));
    sequence("rw=write filesize=8k size=16k", &writes(&[0, 4]));
    sequence("rw=write filesize=16k size=8k", &writes(&[0, 4]));
    sequence("rw=trimwrite size=16k number_ios=1", &[(Discard, 0), (Write, 0)]);
    sequence("rw=trimwrite size=8k", &[(Discard, 0), (Write, 0), (Discard, 4), (Write, 4)]);
    sequence(
        "rw=write size=20k fsync=2 end_fsync=1",
        &[
            (Write, 0),
            (Write, 4),
            (Flush, 0),
            (Write, 8),
            (Write, 12),
            (Flush, 0),
            (Write, 16),
            (Flush, 0),
        ],
    );
    sequence(
        "rw=write size=16k fsync=2 fdatasync=3",
        &[(Write, 0), (Write, 4), (Flush, 0), (Write, 8), (Flush, 0), (Write, 12)],
    );
    // No FLUSH after the last write, except with end_fsync.
    sequence("rw=write size=8k fdatasync=2", &writes(&[0, 4]));
    sequence("rw=read size=8k end_fsync=1", &[(Read, 0), (Read, 4)]);
}

#[test]
fn mixed_sequential_io_has_a_position_for_each_direction() {
    let (_, log) = run_one("rw=rw size=64k rwmixread=50");
    for op in [Read, Write] {
        let offsets: Vec<_> =
            log.issued.iter().filter(|io| io.op == op).map(|io| io.offset).collect();
        let expected: Vec<_> = (0..offsets.len() as u64).map(|i| i * 4096).collect();
        assert_eq!(offsets, expected);
    }
    assert_eq!(log.issued.len(), 16);
}

#[test]
fn clones_have_offsets_of_their_own() {
    let jobs = one("rw=write size=1m numjobs=3 offset=4m offset_increment=2m");
    let regions: Vec<_> =
        jobs.iter().map(|job| (job.region.start >> 20, job.region.end >> 20)).collect();
    assert_eq!(regions, [(4, 5), (6, 7), (8, 9)]);
    let jobs = one("rw=write size=10% offset_increment=20% numjobs=2");
    assert_eq!(jobs[1].region.start, (CAPACITY / 5).next_multiple_of(4096));
    assert_eq!(jobs[1].region.end - jobs[1].region.start, CAPACITY / 10 / 4096 * 4096);
    let jobs = one("rw=write size=50% offset=75%");
    assert_eq!(jobs[0].region, CAPACITY / 4 * 3..CAPACITY);
}

/// How often each block of `block` bytes of the first `len` bytes was touched.
fn touched(log: &Log, len: u64, block: u64) -> Vec<u32> {
    let mut counts = vec![0; (len / block) as usize];
    for io in log.issued.iter().filter(|io| io.op != Flush) {
        assert!(io.offset.is_multiple_of(block) && io.len.is_multiple_of(block), "{io:?}");
        for at in io.offset / block..(io.offset + io.len) / block {
            counts[at as usize] += 1;
        }
    }
    counts
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn random_orders_with_a_map_use_every_block_once_per_pass(
        blocks in 1u64..400,
        sizes in prop::sample::select(vec![
            "bs=4k", "bsrange=4k-16k", "bssplit=4k/30:8k/:20k/", "bs=4k,8k",
            "bs=4k random_generator=lfsr norandommap=1",
        ]),
        rw in prop::sample::select(vec!["randread", "randwrite", "randrw", "randtrim"]),
        depth in 1u32..20,
        loops in 1u32..4,
        seed in 0u64..1000,
    ) {
        // With only 8k blocks an odd 4k block would remain.
        let rw = if sizes.contains(",8k") { "randrw" } else { rw };
        let blocks = blocks.max(2);
        let len = blocks * 4096;
        let options = format!(
            "rw={rw} size={len} {sizes} iodepth={depth} loops={loops} randseed={seed}"
        );
        let (outcome, log) = run_one(&options);
        let counts = touched(&log, len, 4096);
        prop_assert!(counts.iter().all(|&n| n == loops), "{options}: {counts:?}");
        prop_assert_eq!(outcome.total.requests, log.issued.len() as u64);
        prop_assert!(log.deepest <= depth);
    }

    #[test]
    fn random_orders_without_a_map_stay_inside_and_have_the_given_count(
        size in 40u64..400,
        options in prop::sample::select(vec![
            "norandommap", "ba=512", "ba=1k", "random_distribution=zipf:1.2",
            "random_distribution=pareto:0.3:0.2", "random_distribution=normal:20",
            "random_distribution=zoned:60/10:30/20:10/50",
            "random_distribution=zoned_abs:50/4k:50/32k",
        ]),
        sizes in prop::sample::select(vec!["bs=4k", "bsrange=4k-16k", "bssplit=512/30:8k/:20k/"]),
        seed in 0u64..1000,
    ) {
        let options = format!("rw=randwrite size={size}k io_size=1m {options} {sizes} \
                               randseed={seed}");
        let (_, log) = run_one(&options);
        let bytes: u64 = log.issued.iter().map(|io| io.len).sum();
        let last = log.issued.last().unwrap().len;
        prop_assert!(bytes >= 1 << 20 && bytes - last < 1 << 20, "{options}: {bytes}");
        let end = size * 1024;
        let inside = |io: &Issued| io.offset + io.len <= end && io.offset.is_multiple_of(512);
        prop_assert!(log.issued.iter().all(inside), "{options}");
    }
}

#[test]
fn random_orders_are_random_and_repeatable() {
    let offsets = |options: &str| run_one(options).1.offsets();
    let options = "rw=randread size=4m randseed=7";
    assert_eq!(offsets(options), offsets(options));
    assert_ne!(offsets(options), offsets("rw=randread size=4m randseed=8"));
    let passes = offsets("rw=randread size=1m loops=2");
    assert_ne!(passes[..256], passes[256..]);
    let steps = offsets(options).windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= 16).count();
    assert!(steps < 40, "{steps} of 1023 steps are short");
}

#[test]
fn at_depth_one_latency_is_the_closed_form() {
    let (outcome, log) = run_one("rw=randread size=4m bs=4k");
    let device = drive().device().clone();
    let (flash, spec) = (&device.flash, &device.drive);
    let page = Bytes(4096);
    let expected = spec.firmware_read
        + flash.t_read.of(0)
        + transfer_time(page, flash.channel_bandwidth.unwrap())
        + transfer_time(page, spec.link_bandwidth.unwrap());
    let read = outcome.rows[0].stats.dir(Dir::Read).unwrap();
    assert_eq!((read.latency.min(), read.latency.max()), (expected, expected));
    // Back to back.
    assert_eq!(outcome.rows[0].stats.span(), Nanos(1024 * expected.0));
    assert!(log.issued.windows(2).all(|pair| pair[0].done == pair[1].at));
    // Synchronous engines have one I/O in flight, whatever iodepth is.
    let (waiting, _) = run_one("rw=randread size=4m bs=4k iodepth=32 ioengine=psync");
    assert_eq!(waiting.rows[0].stats.span(), Nanos(1024 * expected.0));
}

#[test]
fn the_depth_is_kept_full() {
    let (outcome, log) = run_one("rw=randread size=8m iodepth=16 ioengine=libaio");
    assert_eq!(log.deepest, 16);
    let stats = &outcome.rows[0].stats;
    assert_eq!(stats.depths, [1, 2, 4, 8, 2048 - 15, 0, 0]);
    let mean = outcome.total.in_flight_mean();
    assert!((15.8..=16.0).contains(&mean), "{mean}");
}

#[test]
fn rates_are_exact() {
    // 10,000 I/Os per second: one every 100 us.
    let (outcome, mut log) = run_one("rw=randread size=4m rate_iops=10k kb_base=1000 iodepth=8");
    log.issued.sort_by_key(|io| io.at);
    for (i, io) in log.issued.iter().enumerate() {
        assert_eq!(io.at, i as u64 * 100_000);
    }
    assert_eq!((log.issued.len(), outcome.total.requests), (976, 976));
    // 3 MB/s of 4 KiB blocks: due times are rounded down and never drift.
    let (_, log) = run_one("rw=read size=1m rate=3m kb_base=1000 bs=4096 iodepth=4");
    for (i, io) in log.issued.iter().enumerate() {
        assert_eq!(io.at, i as u64 * 4096 * 1_000_000_000 / 3_000_000);
    }
}

#[test]
fn a_late_job_catches_up_with_its_rate() {
    // Reads take 76 us each; with one in flight 20,000 per second cannot be reached.
    let (_, log) = run_one("rw=randread size=400k rate_iops=20000 iodepth=1");
    assert!(log.issued.windows(2).all(|pair| pair[0].done == pair[1].at));
}

#[test]
fn directions_have_rates_of_their_own() {
    let options =
        "rw=randrw rwmixread=50 size=32m rate_iops=4000,1000 iodepth=32 runtime=1 norandommap";
    let (_, log) = run_one(&format!("{options} time_based"));
    assert_eq!((log.count(Read), log.count(Write)), (4000, 1000));
}

#[test]
fn poisson_arrivals_have_their_mean_and_deviation() {
    let options = "rw=randread size=32m rate_iops=10000 rate_process=poisson iodepth=64";
    let (_, mut log) = run_one(options);
    log.issued.sort_by_key(|io| io.at);
    let gaps: Vec<f64> = log.issued.windows(2).map(|p| (p[1].at - p[0].at) as f64).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n).sqrt();
    // Both are 100 us; 8191 gaps leave about 1.1 us of standard error.
    assert!((mean / 100_000.0 - 1.0).abs() < 0.05, "{mean}");
    assert!((deviation / 100_000.0 - 1.0).abs() < 0.05, "{deviation}");
}

#[test]
fn the_mix_has_the_given_percentage() {
    for (percent, options) in [(70, "rwmixread=70"), (10, "rwmixread=30 rwmixwrite=90")] {
        let (_, log) = run_one(&format!("rw=randrw size=40m iodepth=8 {options}"));
        let reads = log.count(Read) as f64 / log.issued.len() as f64;
        // 10,240 draws: three standard deviations are below 1.4 %.
        assert!((reads - f64::from(percent) / 100.0).abs() < 0.014, "{options}: {reads}");
    }
    for (percent, op) in [(100, Read), (0, Write)] {
        let (_, log) = run_one(&format!("rw=randrw size=1m rwmixread={percent}"));
        assert_eq!(log.count(op), 256);
    }
}

#[test]
fn pauses_wait_for_ios_in_flight() {
    let (_, mut log) = run_one("rw=randread size=80k thinktime=1000 thinktime_blocks=4 iodepth=16");
    log.issued.sort_by_key(|io| io.at);
    assert_eq!(log.deepest, 4);
    for group in log.issued.chunks(4).collect::<Vec<_>>().windows(2) {
        let end = group[0].iter().map(|io| io.done).max().unwrap();
        assert!(group[1].iter().all(|io| io.at == end + 1_000_000), "{group:?}");
    }
}

#[test]
fn the_drive_works_while_a_job_pauses() {
    // Program units are programmed in the pauses, with no request of the host in flight.
    let (outcome, log) = run_one("rw=write size=2m bs=64k thinktime=5ms");
    assert_eq!((log.issued.len(), outcome.total.requests), (32, 32));
    assert_eq!(run_one("rw=write size=2m bs=64k rate_iops=100").1.issued.len(), 32);
}

#[test]
fn runtime_ends_and_ramp_hides() {
    let (outcome, log) = run_one("rw=randread size=1m time_based runtime=50ms");
    assert!(log.issued.iter().all(|io| io.at < 50_000_000));
    let last = log.issued.iter().map(|io| io.done).max().unwrap();
    assert!((50_000_000..50_200_000).contains(&last), "{last}");
    assert_eq!(outcome.rows[0].stats.span(), Nanos(last));
    // Without time_based it ends at its size.
    assert_eq!(run_one("rw=randread size=1m runtime=50ms").1.issued.len(), 256);
    let (ramped, _) = run_one("rw=randread size=1m ramp_time=20ms");
    let stats = &ramped.rows[0].stats;
    assert_eq!(stats.begin.unwrap().0, 20_000_000);
    // The I/O in flight at the end of the ramp is measured, but not counted for limits.
    assert_eq!(stats.ios(), 257);
    assert_eq!(ramped.total.requests, 257);
    let (delayed, _) = run_one("rw=randread size=1m startdelay=5ms");
    assert_eq!(delayed.rows[0].stats.begin.unwrap().0, 5_000_000);
}

#[test]
fn stonewalls_and_waits_keep_the_order() {
    let text = "[global]\nrw=randread\nsize=256k\n[a]\n[b]\nsize=512k\n[c]\nstonewall\n[d]\n\
                wait_for=c\n[e]\n";
    let jobs = parse(text).unwrap();
    assert_eq!(jobs.iter().map(|job| job.stage).collect::<Vec<_>>(), [0, 0, 1, 1, 1]);
    let (outcome, _) = run(&jobs);
    let begin = |i: usize| outcome.rows[i].stats.begin.unwrap();
    let end = |i: usize| outcome.rows[i].stats.end;
    assert_eq!(begin(0), begin(1));
    assert!(end(0) < end(1));
    assert_eq!((begin(2), begin(4)), (end(1), end(1)));
    assert_eq!(begin(3), end(2));
    assert_eq!(outcome.stages.len(), 2);
    let requests: Vec<_> = outcome.stages.iter().map(|stage| stage.measured.requests).collect();
    assert_eq!(requests, [192, 192]);
    assert_eq!(outcome.total.requests, 384);
    assert_eq!(outcome.total.latency_of(Read).count(), 384);
}

#[test]
fn groups_are_one_row() {
    let text = "[a]\nrw=randread\nsize=1m\nnumjobs=3\ngroup_reporting\n[b]\nstonewall\nsize=1m\n";
    let (outcome, _) = run(&parse(text).unwrap());
    let rows: Vec<_> = outcome.rows.iter().map(|row| (row.jobs, row.stats.ios())).collect();
    assert_eq!(rows, [(3, 768), (1, 256)]);
}

#[test]
fn ios_beyond_the_queue_depth_wait_and_are_counted() {
    let (outcome, log) = run_one("rw=randread size=8m iodepth=300");
    assert_eq!(drive().device().drive.queue_depth, 256);
    assert!(outcome.total.held_back > 0 && outcome.total.behind_max > Nanos::ZERO);
    assert_eq!((log.deepest, log.issued.len()), (300, 2048));
}

#[test]
fn jobs_spread_over_the_queues_of_a_drive() {
    let mean = |jobs: u32| {
        let mut device = drive().device().clone();
        (device.drive.queues, device.drive.queue_depth) = (2, 4);
        let mut drive = prepared(device, InitialState::Filled);
        let jobs = one(&format!("rw=randread size=2m iodepth=16 numjobs={jobs}"));
        fio::run(&mut drive, &jobs, &mut Silent).unwrap();
        drive.host_counts().in_flight_ns as f64 / drive.now().0 as f64
    };
    assert!((3.9..=4.0).contains(&mean(1)), "one job fills one queue of 4");
    assert!((7.8..=8.0).contains(&mean(2)), "the second job fills the other");
}

#[test]
fn real_time_reads_go_before_others_where_the_scheduler_knows_them() {
    let mean = |class: u32| {
        let mut device = drive().device().clone();
        device.drive.scheduler = prism_engine::Scheduler::Priority;
        let mut drive = prepared(device, InitialState::Filled);
        let text = format!(
            "[global]\nrw=randread\nsize=4m\n[crowd]\niodepth=32\n[one]\nnumber_ios=20\n\
             prioclass={class}\n"
        );
        let jobs = parse(&text).unwrap();
        let outcome = fio::run(&mut drive, &jobs, &mut Silent).unwrap();
        outcome.rows[1].stats.dir(Dir::Read).unwrap().latency.mean_ns()
    };
    let (urgent, usual) = (mean(1), mean(2));
    assert!(urgent * 4.0 < usual, "{urgent} against {usual}");
}

#[test]
fn synchronous_writes_wait_for_flash_where_the_cache_is_volatile() {
    let mean = |options: &str| {
        let device = fitted(&DriveSpec::preset("consumer-nvme").unwrap());
        let mut drive = Drive::new(device, 1).unwrap();
        let jobs = one(options);
        let outcome = fio::run(&mut drive, &jobs, &mut Silent).unwrap();
        outcome.rows[0].stats.dir(Dir::Write).unwrap().latency.mean_ns()
    };
    let program = 185_000.0;
    assert!(mean("rw=write size=1m") < program);
    for options in ["sync=1", "sync=dsync", "dsync"] {
        assert!(mean(&format!("rw=write size=1m {options}")) > program, "{options}");
    }
    assert!(mean("rw=write size=1m sync=none") < program);
}

#[test]
fn rates_too_low_for_simulated_time_are_refused() {
    let mut drive = drive();
    let jobs = one("rw=read size=32m rate=1 bs=16m");
    let error = fio::run(&mut drive, &jobs, &mut Silent);
    // 16 MiB at 1 byte per second are 194 days, which is within simulated time.
    assert!(error.is_ok());
    let jobs = one("rw=read size=64m rate=1 bs=64m loops=1000");
    let error = fio::run(&mut common::drive(), &jobs, &mut Silent);
    assert!(error.unwrap_err().to_string().contains("job job: its rate or pauses"));
}

/// An I/O that completes exactly at the end of a ramp is measured, for the job and in total.
#[test]
fn an_io_that_ends_with_the_ramp_is_counted_once() {
    let text = "[global]\nsize=2m\nnumber_ios=300\nramp_time=3ms\niodepth=400\nbs=512\n\
                [a]\nrw=randwrite\nrandom_distribution=normal:0:1\n[b]\niodepth=8\n";
    let (outcome, _) = run(&parse(text).unwrap());
    let rows: u64 = outcome.rows.iter().map(|row| row.stats.ios()).sum();
    assert_eq!(rows, outcome.total.requests);
}
