//! Generated traces have the statistics of their workload.

use super::*;

fn plain() -> Workload {
    Workload {
        seed: 1,
        requests: 100_000,
        span: Bytes(1 << 30),
        align: Bytes(4096),
        sizes: vec![SizeShare { size: Bytes(4096), weight: 1 }],
        read_share: 0.0,
        discard_share: 0.0,
        writes_per_flush: None,
        pattern: Pattern::Uniform,
        arrival: Arrival::Fixed { interval: Nanos(1_000) },
    }
}

fn make(workload: &Workload) -> Vec<Record> {
    workload.records().expect("makes sense").collect()
}

fn share(records: &[Record], is: impl Fn(&Record) -> bool) -> f64 {
    records.iter().filter(|record| is(record)).count() as f64 / records.len() as f64
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 0.01, "{value} is not about {expected}");
}

#[test]
fn a_seed_means_the_same_requests() {
    let check = |pattern, arrival| {
        let workload = Workload { pattern, arrival, requests: 1_000, ..plain() };
        assert_eq!(make(&workload), make(&workload));
        assert_ne!(make(&workload), make(&Workload { seed: 2, ..workload }));
    };
    let poisson = Arrival::Poisson { mean: Nanos(50_000) };
    check(Pattern::Uniform, poisson);
    check(Pattern::Zipf { theta: 0.99 }, poisson);
    check(Pattern::HotCold { hot_space: 0.2, hot_requests: 0.8 }, poisson);
}

#[test]
fn a_change_in_one_draw_leaves_the_others() {
    let writes = Workload {
        arrival: Arrival::Poisson { mean: Nanos(50_000) },
        pattern: Pattern::Zipf { theta: 1.0 },
        ..plain()
    };
    let reads = Workload { read_share: 1.0, ..writes.clone() };
    let strip = |record: Record| (record.issue_ns, record.offset);
    let without_op = |workload| make(workload).into_iter().map(strip).collect::<Vec<_>>();
    assert_eq!(without_op(&writes), without_op(&reads));
}

#[test]
fn requests_stay_within_the_span_and_on_the_grid() {
    for pattern in [
        Pattern::Uniform,
        Pattern::Sequential,
        Pattern::Zipf { theta: 0.5 },
        Pattern::HotCold { hot_space: 0.5, hot_requests: 0.9 },
    ] {
        let sizes = [4096, 12_288, 100].map(|size| SizeShare { size: Bytes(size), weight: 1 });
        let span = Bytes(65_536 + 1_000);
        let records = make(&Workload { pattern, sizes: sizes.to_vec(), span, ..plain() });
        assert!(records.iter().all(|record| record.end() <= span.0), "{pattern:?}");
        assert!(records.iter().all(|record| record.offset % 4096 == 0), "{pattern:?}");
        let last = records.iter().map(|record| record.offset).max();
        assert!(last >= Some(53_248), "{pattern:?} reaches the end: {last:?}");
    }
}

#[test]
fn sequential_requests_touch_each_other_and_wrap() {
    let workload =
        Workload { pattern: Pattern::Sequential, requests: 5, span: Bytes(3 * 4096), ..plain() };
    let offsets: Vec<u64> = make(&workload).iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [0, 4096, 8192, 0, 4096]);
}

#[test]
fn shares_are_as_asked() {
    let sizes = vec![
        SizeShare { size: Bytes(4096), weight: 3 },
        SizeShare { size: Bytes(65_536), weight: 1 },
    ];
    let records = make(&Workload { read_share: 0.6, discard_share: 0.1, sizes, ..plain() });
    near(share(&records, |record| record.op == Op::Read), 0.6);
    near(share(&records, |record| record.op == Op::Discard), 0.1);
    near(share(&records, |record| record.op == Op::Write), 0.3);
    near(share(&records, |record| record.len == 4096), 0.75);
    near(share(&records, |record| record.offset < 1 << 28), 0.25);
}

#[test]
fn hot_and_cold() {
    let pattern = Pattern::HotCold { hot_space: 0.2, hot_requests: 0.8 };
    let records = make(&Workload { pattern, ..plain() });
    let hot = (f64::from(1 << 30) * 0.2) as u64;
    near(share(&records, |record| record.offset < hot), 0.8);
    near(share(&records, |record| record.offset < hot / 2), 0.4);
    let middle = hot + ((1 << 30) - hot) / 2;
    near(share(&records, |record| record.offset >= middle), 0.1);
}

#[test]
fn the_hottest_place_of_zipf_has_its_share() {
    let pattern = Pattern::Zipf { theta: 1.0 };
    let records = make(&Workload { pattern, span: Bytes(1000 * 4096), ..plain() });
    let mut counts = vec![0u32; 1000];
    records.iter().for_each(|record| counts[(record.offset / 4096) as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
    near(f64::from(counts[0]) / 100_000.0, 1.0 / harmonic);
    near(f64::from(counts[1]) / 100_000.0, 0.5 / harmonic);
}

#[test]
fn arrivals() {
    let times = |arrival, requests| {
        let records = make(&Workload { arrival, requests, ..plain() });
        records.iter().map(|record| record.issue_ns).collect::<Vec<_>>()
    };
    assert_eq!(times(Arrival::Fixed { interval: Nanos(7) }, 3), [0, 7, 14]);
    let bursts = Arrival::Bursts { interval: Nanos(10), on: Nanos(25), off: Nanos(100) };
    assert_eq!(times(bursts, 6), [0, 10, 20, 130, 140, 250]);
    let poisson = times(Arrival::Poisson { mean: Nanos(10_000) }, 100_000);
    assert!(poisson.is_sorted());
    near(poisson[99_999] as f64 / 1e9, 1.0);
    let gaps: Vec<i64> = poisson.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let longer = gaps.iter().filter(|&&gap| gap > 10_000).count() as f64;
    near(longer / gaps.len() as f64, (-1.0f64).exp());
}

#[test]
fn flushes_follow_writes_and_are_no_requests() {
    let workload = Workload { requests: 5, writes_per_flush: Some(2), ..plain() };
    let ops: Vec<&str> = make(&workload).iter().map(|record| record.op.name()).collect();
    assert_eq!(ops, ["write", "write", "flush", "write", "write", "flush", "write"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let check = |workload: Workload, expected: WorkloadError| {
        assert_eq!(workload.records().err(), Some(expected));
    };
    let sized = |size, weight| vec![SizeShare { size: Bytes(size), weight }];
    check(Workload { sizes: vec![], ..plain() }, WorkloadError::Sizes);
    check(Workload { sizes: sized(0, 1), ..plain() }, WorkloadError::Sizes);
    check(Workload { sizes: sized(1, 0), ..plain() }, WorkloadError::Sizes);
    check(Workload { align: Bytes(0), ..plain() }, WorkloadError::Alignment);
    check(Workload { span: Bytes(1 << 63), ..plain() }, WorkloadError::SpanTooLarge);
    let span = WorkloadError::Span { size: Bytes(4096), span: Bytes(512) };
    check(Workload { span: Bytes(512), ..plain() }, span);
    check(Workload { read_share: 0.6, discard_share: 0.6, ..plain() }, WorkloadError::Shares);
    check(Workload { read_share: f64::NAN, ..plain() }, WorkloadError::Shares);
    for theta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        check(Workload { pattern: Pattern::Zipf { theta }, ..plain() }, WorkloadError::Theta);
    }
    for hot_space in [0.0, 1.0, f64::NAN] {
        let pattern = Pattern::HotCold { hot_space, hot_requests: 0.5 };
        check(Workload { pattern, ..plain() }, WorkloadError::Hot);
    }
    check(Workload { writes_per_flush: Some(0), ..plain() }, WorkloadError::Flush);
    let (interval, on, off) = (Nanos(1), Nanos(0), Nanos(1));
    let arrival = Arrival::Bursts { interval, on, off };
    check(Workload { arrival, ..plain() }, WorkloadError::Arrival);
    let arrival = Arrival::Fixed { interval: Nanos(1 << 60) };
    check(Workload { arrival, ..plain() }, WorkloadError::Arrival);
}
