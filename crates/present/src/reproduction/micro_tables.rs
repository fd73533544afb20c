//! Tables of the micro-benchmarks.

use prism_experiments::contract_micro::{Comparison, Metric, Published, Side, Wear};
use prism_report::{Table, Unit};

/// The price of breaking each rule, and the paper's price.
pub fn prices(comparisons: &[Comparison]) -> Table {
    let caption = "How many times worse it is to break the rule; published: bandwidth or latency";
    Table::listing(comparisons)
        .text("rule", |one| one.rule.short_name())
        .text("benchmark", |one| one.name)
        .number("bandwidth", Unit::Ratio, |one| one.price(Metric::Bandwidth))
        .number("latency", Unit::Ratio, |one| one.price(Metric::Latency))
        .number("erases", Unit::Ratio, |one| one.price(Metric::Erases))
        .number("WA kept", Unit::Ratio, |one| one.conform.cost.write_amplification)
        .number("broken", Unit::Ratio, |one| one.violate.cost.write_amplification)
        .text("published", published)
        .whole(caption)
}

fn published(comparison: &Comparison) -> String {
    let one = |published: &Published| match published.metric {
        Metric::Erases => format!("erases {}", published.price),
        Metric::Bandwidth | Metric::Throughput | Metric::Latency => published.price.to_string(),
    };
    comparison.published.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The figures of each side of a comparison.
pub fn sides(comparisons: &[Comparison]) -> Table {
    let sides: Vec<_> = comparisons
        .iter()
        .flat_map(|one| [(one, &one.conform, "kept"), (one, &one.violate, "broken")])
        .collect();
    Table::listing(&sides)
        .text("benchmark", |(one, ..)| one.name)
        .text("workload", |(_, side, _)| side.what.as_str())
        .text("rule", |&(.., kept)| kept)
        .number("bandwidth", Unit::BytesPerSec, |(_, side, _)| side.cost.bandwidth)
        .number("mean latency", Unit::Nanos, |(_, side, _)| side.cost.latency)
        .number("erases", Unit::Count, |(_, side, _)| side.cost.erases)
        .number("misses", Unit::Percent, |(_, side, _)| side.cost.map.map(|map| map.miss_ratio()))
        .whole("")
}

/// The wear of blocks.
pub fn wear(comparisons: &[Comparison]) -> Table {
    let mut rows: Vec<(&str, &Wear)> = Vec::new();
    for Side { what, cost } in comparisons.iter().flat_map(|one| [&one.conform, &one.violate]) {
        if let Some(wear) = cost.wear.as_ref().filter(|_| rows.iter().all(|row| row.0 != what)) {
            rows.push((what, wear));
        }
    }
    Table::listing(&rows)
        .text("workload", |&(what, _)| what)
        .number("moved/written", Unit::Ratio, |(_, wear)| wear.levelling_writes)
        .number("mean erases", Unit::Ratio, |(_, wear)| wear.mean)
        .number("deviation/mean", Unit::Ratio, |(_, wear)| wear.variation)
        .number("most", Unit::Count, |(_, wear)| wear.max)
        .whole("")
}
