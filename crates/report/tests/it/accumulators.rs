//! Every accumulator against a naive model that keeps all recorded values.

use prism_base::{Bytes, Nanos, SimTime};
use prism_report::accumulate::{
    Bucket, HeatGrid, LatencySeries, LevelSeries, LogHistogram, SizeClass, SizeHistogram, SumSeries,
};
use prism_testkit::cases;
use proptest::prelude::*;

const START: SimTime = SimTime(1000);
const WIDTH: Nanos = Nanos(3);
const BUCKETS: usize = 8;

/// Offsets from the start, of all magnitudes.
fn offset() -> impl Strategy<Value = u64> {
    (0u32..40, any::<u64>()).prop_map(|(bits, raw)| raw & ((1 << bits) - 1))
}

fn at(offset: u64) -> SimTime {
    SimTime(START.0 + offset)
}

/// The width that repeated doubling gives for a run of `last` nanoseconds, and the number of
/// buckets that are left after the cut.
fn expected_buckets(last: u64) -> (u64, usize) {
    let mut width = WIDTH.0;
    while last / width >= BUCKETS as u64 {
        width *= 2;
    }
    (width, last.div_ceil(width).max(1) as usize)
}

proptest! {
    #![proptest_config(cases(256))]
    #[test]
    fn random_sums_are_exact_in_every_bucket(
        events in prop::collection::vec((offset(), 0u64..1 << 40), 1..60),
        rest in 0u64..100,
    ) {
        let end = events.iter().map(|e| e.0).max().unwrap_or(0) + rest;
        let mut series = SumSeries::new(START, WIDTH, BUCKETS);
        for &(offset, amount) in &events {
            series.record(at(offset), amount);
        }
        let finished = series.finish(at(end));
        let (width, count) = expected_buckets(end);
        prop_assert_eq!(finished.width, Nanos(width));
        prop_assert_eq!(finished.buckets.len(), count);
        prop_assert_eq!(finished.spans().iter().map(|s| s.0).sum::<u64>(), end);
        for (i, bucket) in finished.buckets.iter().enumerate() {
            let index = |offset: u64| ((offset / width) as usize).min(count - 1);
            let inside = events.iter().filter(|e| index(e.0) == i).map(|e| e.1);
            prop_assert_eq!(bucket.sum, inside.map(u128::from).sum::<u128>());
        }
    }

    #[test]
    fn random_percentiles_are_at_most_an_eighth_too_high(
        events in prop::collection::vec((offset(), offset()), 1..80),
        per_mille in 0u32..=1000,
    ) {
        let end = events.iter().map(|e| e.0).max().unwrap_or(0);
        let mut series = LatencySeries::new(START, WIDTH, BUCKETS);
        for &(offset, latency) in &events {
            series.record(at(offset), Nanos(latency));
        }
        let buckets = series.finish(at(end)).buckets;
        let total = buckets.iter().fold(LogHistogram::default(), |mut total, bucket| {
            total.absorb(bucket);
            total
        });
        let mut sorted: Vec<u64> = events.iter().map(|e| e.1).collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * per_mille as usize).div_ceil(1000).max(1);
        let exact = sorted[rank - 1];
        let found = total.percentile(per_mille).expect("not empty");
        prop_assert!(found >= exact && found <= exact + exact / 8, "{} for {}", found, exact);
        prop_assert_eq!(total.percentile(1000), sorted.last().copied());
    }

    #[test]
    fn random_levels_have_an_exact_integral(
        changes in prop::collection::vec((offset(), 0u64..1 << 20), 0..40),
        rest in offset(),
    ) {
        let mut changes = changes;
        changes.sort_by_key(|change| change.0);
        let end = changes.last().map_or(0, |change| change.0) + rest;
        let mut series = LevelSeries::new(START, WIDTH, BUCKETS);
        for &(offset, level) in &changes {
            series.set(at(offset), level);
        }
        let finished = series.finish(at(end));
        let (width, count) = expected_buckets(end);
        prop_assert_eq!(finished.buckets.len(), count);

        // The naive model walks over the pieces between changes, once for each bucket.
        let mut pieces = vec![(0, 0)];
        pieces.extend(&changes);
        let ends = pieces.iter().skip(1).map(|p| p.0).chain([end]);
        let pieces: Vec<(u64, u64, u64)> =
            pieces.iter().zip(ends).map(|(&(from, level), to)| (from, to, level)).collect();
        for (i, bucket) in finished.buckets.iter().enumerate() {
            let (low, high) = (i as u64 * width, (i as u64 + 1) * width);
            let integral: u128 = pieces
                .iter()
                .map(|&(from, to, level)| {
                    let overlap = to.min(high).saturating_sub(from.max(low));
                    u128::from(overlap) * u128::from(level)
                })
                .sum();
            prop_assert_eq!(bucket.integral, integral, "bucket {}", i);
        }
        let highest = changes.iter().map(|change| change.1).max().unwrap_or(0);
        prop_assert_eq!(finished.buckets.iter().map(|b| b.max).max(), Some(highest));
    }

    #[test]
    fn random_heat_grids_give_each_bin_its_bytes(
        events in prop::collection::vec((0usize..2, offset(), 0u64..1000, 0u64..1000), 1..40),
        rows in 1usize..9,
    ) {
        let span = 1000;
        let end = events.iter().map(|e| e.1).max().unwrap_or(0);
        let mut grid =
            HeatGrid::new(&["read", "write"], Bytes(span), rows, START, WIDTH, BUCKETS);
        let clip = |from: u64, len: u64| len.min(span - from);
        for &(layer, offset, from, len) in &events {
            grid.record(layer, at(offset), Bytes(from), Bytes(clip(from, len)));
        }
        let map = grid.finish(at(end), "", "");
        let (width, count) = expected_buckets(end);
        prop_assert_eq!(map.columns, count);
        let bin = span.div_ceil(rows as u64);
        for (l, layer) in map.layers.iter().enumerate() {
            for column in 0..count {
                for row in 0..rows {
                    let (low, high) = (row as u64 * bin, (row as u64 + 1) * bin);
                    let expected: u64 = events
                        .iter()
                        .filter(|e| e.0 == l)
                        .filter(|e| ((e.1 / width) as usize).min(count - 1) == column)
                        .map(|&(_, _, from, len)| {
                            (from + clip(from, len)).min(high).saturating_sub(from.max(low))
                        })
                        .sum();
                    prop_assert_eq!(layer.cell(column, row, rows), expected);
                }
            }
        }
    }

    #[test]
    fn random_sizes_are_counted_once_each(sizes in prop::collection::vec(offset(), 0..60)) {
        let mut histogram = SizeHistogram::default();
        for &size in &sizes {
            histogram.record(Bytes(size));
        }
        prop_assert_eq!(histogram.classes().map(|c| c.1).sum::<u64>(), sizes.len() as u64);
        for power in 0..41 {
            let exact = sizes.iter().filter(|&&s| s == 1 << power).count() as u64;
            let above = sizes.iter().filter(|&&s| s > 1 << power && s < 2 << power).count() as u64;
            prop_assert_eq!(histogram.count(SizeClass::Exactly(power)), exact);
            prop_assert_eq!(histogram.count(SizeClass::Above(power)), above);
        }
    }
}

#[test]
fn time_may_reach_the_end_of_64_bits() {
    let mut sums = SumSeries::new(SimTime::ZERO, Nanos(1), 2);
    sums.record(SimTime(u64::MAX), 7);
    sums.record(SimTime::ZERO, 1);
    let finished = sums.finish(SimTime(u64::MAX));
    assert_eq!(finished.buckets.iter().map(|b| b.sum).collect::<Vec<_>>(), [1, 7]);

    let mut level = LevelSeries::new(SimTime::ZERO, Nanos(1), 2);
    level.set(SimTime::ZERO, 3);
    let finished = level.finish(SimTime(u64::MAX));
    let integral: u128 = finished.buckets.iter().map(|bucket| bucket.integral).sum();
    assert_eq!(integral, 3 * u128::from(u64::MAX));
}

#[test]
fn rates_use_the_time_that_a_bucket_really_covers() {
    let mut sums = SumSeries::new(SimTime::ZERO, Nanos(1_000_000_000), 4);
    sums.record(SimTime(100_000_000), 10);
    sums.record(SimTime(1_200_000_000), 10);
    let finished = sums.finish(SimTime(1_500_000_000));
    assert_eq!(finished.rates(), [Some(10.0), Some(20.0)]);
    assert_eq!(finished.midpoints(), [0.5e9, 1.25e9]);
}

#[test]
#[should_panic(expected = "before")]
fn a_level_cannot_change_in_the_past() {
    let mut level = LevelSeries::new(SimTime::ZERO, Nanos(1), 2);
    level.set(SimTime(5), 1);
    level.set(SimTime(4), 2);
}

#[test]
#[should_panic(expected = "behind")]
fn an_access_behind_the_span_is_a_bug() {
    let mut grid = HeatGrid::new(&["read"], Bytes(100), 4, SimTime::ZERO, Nanos(1), 2);
    grid.record(0, SimTime::ZERO, Bytes(90), Bytes(11));
}
