//! The rule of every observation, on invented numbers that support it, contradict it, or cannot
//! decide.

use prism_base::Bytes;
use prism_experiments::unwritten::{
    App, ColdReads, Facts, Fs, OBSERVATIONS, ObservationVerdict, Pair, READ_AHEADS, RangeBias,
    Removed, Scale, Sequential, TRACED_FIRST, WriteCounts, judge_all, observe, observe_sequential,
    reads_of,
};
use prism_trace::{Op, OptTime, Record, Symbols, VecSource};

/// Invented numbers of a pair.
fn facts(app: App, fs: Fs) -> Facts {
    let counts = WriteCounts { writes: 100, units: 100 };
    Facts {
        pair: Pair { app, fs },
        scores: [Some(0.5); 5],
        reads: scale(100, 4096, 0),
        writes: scale(100, 4096, 0),
        discards: 0,
        discards_later: 0,
        flushes: 10,
        durable_writes: 0,
        between_barriers: None,
        misses: [Some(0.1); 2],
        misses_by_lookups: [Some(0.1); 2],
        spread: Some(1.0),
        unaligned: [Some(0.0); 2],
        density: [Some(0.5); 2],
        mixed: [Some(0.0); 2],
        mapped: Bytes(1000),
        dead: Bytes(0),
        overwritten: Some(0.0),
        top_tenth: Some(0.1),
        data: counts,
        metadata: counts,
        bias: RangeBias { ranges: 2, most_over_mean: 1.0 },
        cold: Vec::new(),
        sequential: Vec::new(),
    }
}

/// Requests of one size, each issued with `before` requests in flight.
fn scale(requests: u64, size: u64, before: u64) -> Scale {
    Scale {
        requests,
        bytes: requests * size,
        sizes: [size; 3],
        before: Some([before; 3]),
        before_same: Some(before),
    }
}

/// Checks the verdict on observation `number` for all pairs, each changed by `change`.
fn check(number: u32, expected: ObservationVerdict, change: impl Fn(&mut Facts)) {
    let mut all: Vec<Facts> = Pair::all().map(|pair| facts(pair.app, pair.fs)).collect();
    all.iter_mut().for_each(change);
    let observation = OBSERVATIONS.iter().find(|one| one.number == number).unwrap();
    let judged = observation.judge(&all);
    assert_eq!(judged.outcome, expected, "{judged:#?}");
    assert_eq!(judged.why.is_empty(), expected == ObservationVerdict::Reproduced, "{judged:#?}");
    all.reverse();
    assert_eq!(observation.judge(&all).outcome, expected, "the order of pairs has no effect");
}

fn holds(number: u32, change: impl Fn(&mut Facts)) {
    check(number, ObservationVerdict::Reproduced, change);
}

fn fails(number: u32, change: impl Fn(&mut Facts)) {
    check(number, ObservationVerdict::NotReproduced, change);
}

fn undecided(number: u32, change: impl Fn(&mut Facts)) {
    check(number, ObservationVerdict::NotTestable, change);
}

fn is_store(facts: &Facts) -> bool {
    App::LOG_STRUCTURED.contains(&facts.pair.app)
}

fn is_sqlite(facts: &Facts) -> bool {
    App::SQLITE.contains(&facts.pair.app)
}

fn is_f2fs(facts: &Facts) -> bool {
    facts.pair.fs == Fs::F2fs
}

fn is(app: App, fs: Fs) -> impl Fn(&Facts) -> bool {
    move |facts| facts.pair == Pair { app, fs }
}

/// A change of the pairs for which `condition` holds.
fn when(condition: impl Fn(&Facts) -> bool, change: impl Fn(&mut Facts)) -> impl Fn(&mut Facts) {
    move |facts| {
        if condition(facts) {
            change(facts);
        }
    }
}

#[test]
fn observations_are_numbered_and_need_traces() {
    let numbers: Vec<u32> = OBSERVATIONS.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (1..=24).collect::<Vec<_>>());
    for judged in judge_all(&[]) {
        assert_eq!(judged.outcome, ObservationVerdict::NotTestable, "{judged:#?}");
        assert!(!judged.why.is_empty(), "{judged:#?}");
    }
    for number in [9, 16, 20] {
        undecided(number, |_| {});
    }
}

/// A rule about all or most traces needs two; one is enough for a rule about at least one.
#[test]
fn one_trace_decides_nothing_about_all() {
    let mut one = facts(App::RocksDb, Fs::Ext4);
    one.unaligned[1] = Some(0.5);
    for judged in judge_all(&[one]) {
        let decides = judged.outcome != ObservationVerdict::NotTestable;
        assert_eq!(decides, judged.number == 14, "{judged:#?}");
    }
}

#[test]
fn request_scale() {
    let stores_write = |size| when(is_store, move |f| f.writes = scale(100, size, 0));
    holds(1, stores_write(1 << 20));
    fails(1, stores_write(4096));
    let read = |before| move |f: &mut Facts| f.reads = scale(100, 4096, before);
    holds(2, read(1));
    fails(2, read(2));
    undecided(2, |f| f.reads = scale(49, 4096, 0));
    let rocks = |score| {
        move |f: &mut Facts| {
            f.scores[0] = Some(score);
            if f.pair.app == App::RocksDb {
                f.reads = scale(100, 4096, 9);
            }
        }
    };
    holds(3, rocks(0.79));
    fails(3, rocks(0.8));
    let barriers = |flushes, before| {
        when(is_sqlite, move |f| {
            (f.flushes, f.writes) = (flushes, scale(100, 4096, before));
        })
    };
    holds(4, barriers(50, 0));
    fails(4, barriers(10, 0));
    fails(4, barriers(50, 1));
    holds(5, read(1));
    fails(5, read(2));
    fails(5, |f| f.reads = scale(100, (128 << 10) + 4096, 0));
    let varmail =
        |before| when(is(App::Varmail, Fs::F2fs), move |f| f.writes = scale(100, 4096, before));
    holds(6, varmail(1));
    fails(6, varmail(0));
    holds(7, when(is_f2fs, |f| f.reads = scale(100, 4096, 10)));
    fails(7, |_| {});
    undecided(7, |f| f.reads = scale(6, 4096, 0));
    // Reads with cold caches count, where they were recorded.
    let cold = |log| {
        move |f: &mut Facts| {
            f.reads = scale(6, 4096, 0);
            f.cold = cold_reads([1, 2, 2], [1, 1, 1]);
            f.cold[1].ordered = scale(100, 4096, if is_f2fs(f) { log } else { 0 });
        }
    };
    holds(7, cold(1));
    fails(7, cold(0));
    let discards = |log| move |f: &mut Facts| f.discards = if is_f2fs(f) { log } else { 100 };
    holds(8, discards(9));
    fails(8, discards(10));
    undecided(8, |_| {});
}

/// Reads of the given numbers of pages, in order and at random, at each setting of read-ahead.
fn cold_reads(ordered: [u64; 3], random: [u64; 3]) -> Vec<ColdReads> {
    let reads = |pages: u64| scale(100, pages * 4096, 0);
    let one = |at: usize| ColdReads {
        read_ahead: READ_AHEADS[at],
        ordered: reads(ordered[at]),
        random: reads(random[at]),
    };
    (0..3).map(one).collect()
}

#[test]
fn prefetching() {
    let all = |ordered, random| move |f: &mut Facts| f.cold = cold_reads(ordered, random);
    holds(9, all([1, 32, 64], [1, 1, 2]));
    fails(9, all([1, 32, 63], [1, 1, 2]));
    fails(9, all([1, 32, 64], [1, 1, 1]));
    // One pair that wastes reads is enough; one that gains by more read-ahead is not.
    let one = is(App::LevelDb, Fs::Xfs);
    holds(9, |f| f.cold = cold_reads([1, 32, 64], if one(f) { [1, 1, 2] } else { [1; 3] }));
    fails(9, |f| f.cold = cold_reads(if one(f) { [1, 32, 64] } else { [1; 3] }, [1, 1, 2]));
    undecided(9, |f| {
        f.cold = cold_reads([1, 32, 64], [1, 1, 2]);
        f.cold.pop();
    });
}

/// Sequential work of one, two and four instances.
fn sequential(unaligned: [f64; 3], amid: [u64; 3]) -> Vec<Sequential> {
    let one = |at: usize| Sequential {
        instances: 1 << at,
        unaligned: Some(unaligned[at]),
        removed: (at > 0).then_some(Removed { bytes: Bytes(100), amid: Bytes(amid[at]) }),
    };
    (0..3).map(one).collect()
}

#[test]
fn several_instances() {
    let ratios = |all| move |f: &mut Facts| f.sequential = sequential(all, [0; 3]);
    holds(16, ratios([0.5, 0.55, 0.56]));
    fails(16, ratios([0.5, 0.56, 0.54]));
    fails(16, ratios([0.0, 0.0, 0.0]));
    undecided(16, |f| f.sequential = sequential([0.1; 3], [0; 3])[..1].to_vec());
    let amid = |all| move |f: &mut Facts| f.sequential = sequential([0.0; 3], all);
    holds(20, amid([0, 50, 50]));
    fails(20, amid([0, 50, 49]));
    fails(20, |f| f.sequential = sequential([0.0; 3], [0, if is_f2fs(f) { 49 } else { 90 }, 90]));
    undecided(20, |f| f.sequential = sequential([0.0; 3], [0; 3])[..1].to_vec());
}

/// A removed folder is live when the applications end, and its data lies where it was written.
#[test]
fn sequential_work_becomes_facts() {
    let mib = 1 << 20;
    let mut symbols = Symbols::new();
    let comm = symbols.intern("leveldb");
    let write = |time, offset| Record { comm, ..Record::new(Op::Write, time, offset, mib / 2) };
    let app = vec![write(0, mib / 2), write(1, mib), write(2, 0), write(3, mib + mib / 2)];
    let freed = Record::new(Op::Discard, 9, 0, mib);
    let whole = [app.clone(), vec![freed]].concat();
    let pair = Pair { app: App::LevelDb, fs: Fs::Ext4 };
    let mut sources = [app.clone(), whole, vec![freed]].map(VecSource::new);
    let [first, second, third] = &mut sources;
    let found =
        observe_sequential(pair, 2, first, &[freed], &symbols, Some((second, third))).unwrap();
    // The first logical block was written by halves, the second half first: 1 of 2 MiB is merged.
    assert_eq!(found.unaligned, Some(0.5));
    let folder = Bytes(mib);
    assert_eq!(found.removed, Some(Removed { bytes: folder, amid: folder }));
    let alone = observe_sequential(pair, 1, &mut VecSource::new(app), &[], &symbols, None).unwrap();
    assert_eq!((alone.unaligned, alone.removed), (Some(0.5), None));
    let read = Record::new(Op::Read, 5, 0, 8192);
    let reads = reads_of(&mut VecSource::new(vec![read; 3])).unwrap();
    assert_eq!((reads.requests, reads.size()), (3, 8192));
}

#[test]
fn locality() {
    let misses = |log| when(is_f2fs, move |f| f.misses_by_lookups[0] = Some(log));
    holds(10, misses(0.2));
    fails(10, misses(0.1));
    holds(11, when(|f| f.pair.fs == Fs::Ext4, |f| f.spread = Some(2.0)));
    fails(11, |_| {});
    holds(12, when(is(App::SqliteWal, Fs::F2fs), |f| f.overwritten = Some(0.1)));
    fails(12, |f| f.overwritten = Some(if is_f2fs(f) { 0.09 } else { 1.0 }));
    let spread = |log| when(is_f2fs, move |f| f.spread = Some(log));
    holds(13, spread(1.1));
    fails(13, spread(1.0));
}

#[test]
fn alignment_and_grouping() {
    let stores = |ratio| when(is(App::RocksDb, Fs::Xfs), move |f| f.unaligned[1] = Some(ratio));
    holds(14, stores(0.25));
    fails(14, stores(0.24));
    let one = |ratio| when(is(App::SqliteRb, Fs::F2fs), move |f| f.unaligned[1] = Some(ratio));
    holds(15, one(1.01));
    fails(15, one(1.0));
    fails(15, stores(9.0));
    let mixed = |share| move |f: &mut Facts| f.mixed[0] = Some(share);
    holds(17, mixed(0.1));
    fails(17, mixed(0.09));
    holds(18, mixed(0.5));
    fails(18, mixed(0.49));
    undecided(18, |f| f.mixed = [None; 2]);
    holds(19, |f| f.density = [Some(0.5), Some(0.51)]);
    fails(19, |f| f.density = [Some(0.5), Some(if is_f2fs(f) { 0.5 } else { 0.6 })]);
    undecided(19, |f| f.density = [Some(0.5), None]);
    holds(21, |f| f.dead = Bytes(if is_f2fs(f) { 2 } else { 1 }));
    fails(21, |f| f.dead = Bytes(1));
}

#[test]
fn lifetime() {
    let own = |writes| move |f: &mut Facts| f.metadata = WriteCounts { writes, units: 100 };
    holds(22, own(200));
    holds(22, own(50));
    fails(22, own(199));
    undecided(22, |f| f.metadata = WriteCounts::default());
    let bias =
        |log: f64| move |f: &mut Facts| f.bias.most_over_mean = if is_f2fs(f) { log } else { 2.0 };
    holds(23, bias(2.0));
    fails(23, bias(1.9));
    undecided(23, |f| f.bias.ranges = 1);
    let in_place =
        |top| move |f: &mut Facts| f.top_tenth = Some(if is_f2fs(f) { 0.5 } else { top });
    holds(24, in_place(0.51));
    fails(24, in_place(0.5));
}

/// The numbers of a trace of five requests match those worked out by hand.
#[test]
fn a_trace_becomes_facts() {
    let record = |op, issue, done, offset, len| Record {
        complete: OptTime::at(done),
        ..Record::new(op, issue, offset, len)
    };
    let records = vec![
        record(Op::Write, 0, 1000, 0, 1 << 20),
        record(Op::Write, 10, 1000, 1 << 20, 1 << 20),
        record(Op::Flush, 1500, 1600, 0, 0),
        record(Op::Read, 2000, 2500, 0, 8192),
        record(Op::Discard, 3000, 3100, 0, 4096),
    ];
    let later = [record(Op::Discard, 9000, 9100, 1 << 20, 1 << 20)];
    let pair = Pair { app: App::LevelDb, fs: Fs::Xfs };
    let mut source = VecSource::new(records);
    let facts = observe(pair, TRACED_FIRST, &mut source, &later, &Symbols::new()).unwrap().facts;
    assert_eq!((facts.reads.requests, facts.writes.requests), (1, 2));
    assert_eq!((facts.reads.depth(), facts.writes.depth()), (Some(1), Some(1)));
    assert_eq!(facts.writes.before, Some([0, 0, 1]));
    assert_eq!((facts.discards, facts.discards_later, facts.flushes), (1, 1, 1));
    assert_eq!(facts.discard_ratio(), Some(0.25));
    assert_eq!(facts.writes_per_barrier(), Some(2.0));
    assert_eq!(facts.between_barriers, Some(Bytes(2 << 20)));
    assert_eq!((facts.mapped, facts.dead), (Bytes((2 << 20) - 4096), Bytes(1 << 20)));
    assert_eq!(facts.data, WriteCounts { writes: 512, units: 512 });
    assert_eq!((facts.spread, facts.overwritten), (Some(1.0), Some(0.0)));
    assert_eq!(facts.unaligned, [Some(0.0); 2]);
    assert_eq!(facts.scores[2], Some(1.0));
    assert_eq!(facts.mixed, [Some(0.5); 2]);
}
