//! Tables of the micro-benchmarks.

use prism_experiments::contract_micro::{Comparison, Metric, Published, Side};
use prism_report::{Column, Table, Unit, Value};

/// The price of breaking each rule, and what the paper names.
pub fn prices(comparisons: &[Comparison]) -> Table {
    let columns = vec![
        Column::text("rule"),
        Column::text("benchmark"),
        Column::number("bandwidth", Unit::Ratio),
        Column::number("latency", Unit::Ratio),
        Column::number("erases", Unit::Ratio),
        Column::number("WA kept", Unit::Ratio),
        Column::number("broken", Unit::Ratio),
        Column::text("published"),
    ];
    let mut table = Table::new(
        "How many times worse the broken rule is; published is of bandwidth or latency",
        columns,
    )
    .whole();
    for comparison in comparisons {
        let price = |metric| Value::from(comparison.price(metric));
        table.rows.push(vec![
            comparison.rule.short_name().into(),
            comparison.name.into(),
            price(Metric::Bandwidth),
            price(Metric::Latency),
            price(Metric::Erases),
            comparison.conform.cost.write_amplification.into(),
            comparison.violate.cost.write_amplification.into(),
            published(comparison).into(),
        ]);
    }
    table
}

fn published(comparison: &Comparison) -> String {
    let one = |published: &Published| match published.metric {
        Metric::Erases => format!("erases {}", published.price),
        Metric::Bandwidth | Metric::Throughput | Metric::Latency => published.price.to_string(),
    };
    comparison.published.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What each side got.
pub fn sides(comparisons: &[Comparison]) -> Table {
    let columns = vec![
        Column::text("benchmark"),
        Column::text("workload"),
        Column::text("rule"),
        Column::number("bandwidth", Unit::BytesPerSec),
        Column::number("mean latency", Unit::Nanos),
        Column::number("erases", Unit::Count),
        Column::number("misses", Unit::Percent),
    ];
    let mut table = Table::new("", columns).whole();
    for comparison in comparisons {
        for (side, kept) in [(&comparison.conform, "kept"), (&comparison.violate, "broken")] {
            let cost = &side.cost;
            table.rows.push(vec![
                comparison.name.into(),
                side.what.as_str().into(),
                kept.into(),
                cost.bandwidth.into(),
                cost.latency.into(),
                cost.erases.into(),
                cost.map.map(|map| map.miss_ratio()).into(),
            ]);
        }
    }
    table
}

/// How blocks wore.
pub fn wear(comparisons: &[Comparison]) -> Table {
    let columns = vec![
        Column::text("workload"),
        Column::number("moved/written", Unit::Ratio),
        Column::number("mean erases", Unit::Ratio),
        Column::number("deviation/mean", Unit::Ratio),
        Column::number("most", Unit::Count),
    ];
    let mut table = Table::new("", columns).whole();
    let mut seen: Vec<&str> = Vec::new();
    let sides =
        comparisons.iter().flat_map(|comparison| [&comparison.conform, &comparison.violate]);
    for Side { what, cost } in sides {
        let Some(wear) = cost.wear.as_ref().filter(|_| !seen.contains(&what.as_str())) else {
            continue;
        };
        seen.push(what);
        table.rows.push(vec![
            what.as_str().into(),
            wear.levelling_writes.into(),
            wear.mean.into(),
            wear.variation.into(),
            u64::from(wear.max).into(),
        ]);
    }
    table
}
