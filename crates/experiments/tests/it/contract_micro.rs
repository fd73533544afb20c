//! Breaking a rule of the contract has the cost that the rule predicts, at a quarter of the scale.

use prism_experiments::Scale;
use prism_experiments::contract_micro::{Benchmark, Comparison, Metric, Side};

fn check(benchmark: Benchmark, holds: impl Fn(&Comparison) -> bool) {
    let all = benchmark.run(Scale::Quarter, 1);
    assert!(!all.is_empty());
    for comparison in &all {
        assert!(holds(comparison), "{comparison:#?}");
    }
}

fn price(comparison: &Comparison, metric: Metric) -> f64 {
    comparison.price(metric).expect("both sides have one")
}

/// Writes gain the number of channels, which is 4 here; reads gain less, because some meet on a
/// channel.
#[test]
fn request_scale_uses_all_channels() {
    for benchmark in [Benchmark::RequestScaleCount, Benchmark::RequestScaleSize] {
        check(benchmark, |c| (2.0..=4.001).contains(&price(c, Metric::Bandwidth)));
    }
}

#[test]
fn map_misses_cost_more_the_wider_the_addresses() {
    let all = Benchmark::Locality.run(Scale::Quarter, 1);
    let prices: Vec<f64> = all.iter().map(|c| price(c, Metric::Latency)).collect();
    assert!(prices[0] > 1.2 && prices.is_sorted(), "{prices:?}");
    let misses = |c: &Comparison| c.violate.cost.map.unwrap().miss_ratio();
    assert!(all.iter().all(|c| c.conform.cost.map.unwrap().misses == 0), "{all:#?}");
    assert!(all.iter().map(misses).is_sorted(), "{all:#?}");
}

#[test]
fn blocks_written_second_half_first_are_copied() {
    check(Benchmark::Alignment, |c| {
        let amplification =
            |side: &Side| side.cost.write_amplification.expect("something is written");
        amplification(&c.conform) == 1.0
            && amplification(&c.violate) > 1.9
            && price(c, Metric::Bandwidth) > 1.3
    });
}

#[test]
fn data_that_dies_at_different_times_is_copied() {
    for benchmark in [Benchmark::GroupInTime, Benchmark::GroupInSpace] {
        check(benchmark, |c| {
            price(c, Metric::Bandwidth) > 1.2
                && price(c, Metric::Erases) > 1.2
                && c.conform.cost.write_amplification < Some(1.05)
        });
    }
}

#[test]
fn uneven_overwrites_wear_blocks_unevenly() {
    let all = Benchmark::Lifetime.run(Scale::Quarter, 1);
    let even = all[0].conform.cost.wear.clone().unwrap();
    let uneven: Vec<_> = all.iter().map(|c| c.violate.cost.wear.clone().unwrap()).collect();
    assert!(uneven.iter().all(|wear| wear.variation > 1.5 * even.variation), "{all:#?}");
    let moved: Vec<f64> = uneven.iter().map(|wear| wear.levelling_writes).collect();
    assert_eq!(
        (even.levelling_writes, moved[0]),
        (0.0, 0.0),
        "zipf overwrites all data, if rarely"
    );
    assert!(moved[1] > 0.0 && moved[2] > 10.0 * moved[1], "{moved:?}");
}
