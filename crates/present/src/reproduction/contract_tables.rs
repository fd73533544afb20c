//! Tables of what the traces show, a row for each pair of application and file system.

use prism_base::Bytes;
use prism_contract::rules::Rule;
use prism_experiments::unwritten::{
    App, DepthMedians, FIGURE_1, Facts, Figure1, Observed, Scale, depth_medians,
};
use prism_report::{Column, Table, Unit, Value};

/// Reads or writes of which there are fewer have no median worth comparing.
const REQUESTS_MIN: u64 = 50;

fn pair_name(facts: &Facts) -> Value {
    facts.pair.name().into()
}

/// The scores of the five rules.
pub fn scores(observed: &[Observed]) -> Table {
    let mut columns = vec![Column::text("pair")];
    columns.extend(Rule::ALL.map(|rule| Column::number(rule.short_name(), Unit::Ratio)));
    let caption = "1 keeps a rule entirely, 0 not at all";
    let mut table = Table::new(caption, columns).whole();
    for Observed { facts, .. } in observed {
        let mut row = vec![pair_name(facts)];
        row.extend(facts.scores.map(|score| Value::from(score.map(three_digits))));
        table.rows.push(row);
    }
    table
}

/// Scores are means over thousands of requests: more digits mean nothing.
fn three_digits(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

/// The windows of Figure 1: those of the log-structured stores, below what the paper says.
pub fn figure_1(observed: &[Observed]) -> Table {
    let columns = vec![
        Column::text("pair"),
        Column::number("most reads", Unit::Count),
        Column::number("most writes", Unit::Count),
        Column::number("median read", Unit::Bytes),
        Column::number("read", Unit::Bytes),
        Column::number("written", Unit::Bytes),
        Column::number("from", Unit::Nanos),
        Column::text("compared"),
    ];
    let mut table = Table::new("", columns).whole();
    table.rows.push(vec![
        "published".into(),
        u64::from(FIGURE_1.reads_max).into(),
        u64::from(FIGURE_1.writes_max).into(),
        FIGURE_1.read_median.into(),
        Value::Missing,
        Value::Missing,
        Value::Missing,
        "".into(),
    ]);
    for (observed, figure) in stores(observed).filter_map(|o| Some((o, o.figure1.as_ref()?))) {
        table.rows.push(vec![
            pair_name(&observed.facts),
            u64::from(figure.reads_max).into(),
            u64::from(figure.writes_max).into(),
            figure.read_median.into(),
            figure.read.into(),
            figure.written.into(),
            figure.start.into(),
            compared_window(figure).into(),
        ]);
    }
    table
}

/// How a window lies to the published one.
fn compared_window(figure: &Figure1) -> &'static str {
    match (figure.reads_max > FIGURE_1.reads_max, figure.writes_max > FIGURE_1.writes_max) {
        (false, false) => "within",
        (true, false) => "reads deeper",
        (false, true) => "writes deeper",
        (true, true) => "both deeper",
    }
}

/// The pairs of log-structured stores that read from the device at all.
pub fn stores(observed: &[Observed]) -> impl Iterator<Item = &Observed> {
    let reads = |o: &&Observed| o.facts.reads.requests >= REQUESTS_MIN;
    observed.iter().filter(|o| App::LOG_STRUCTURED.contains(&o.facts.pair.app)).filter(reads)
}

/// Medians of the requests outstanding beside the published ones.
pub fn depths(observed: &[Observed]) -> Table {
    let columns = vec![
        Column::text("pair"),
        Column::text("requests"),
        Column::number("how many", Unit::Count),
        Column::number("sequential", Unit::Count),
        Column::number("random", Unit::Count),
        Column::number("both", Unit::Count),
        Column::number("ours", Unit::Count),
        Column::text("compared"),
    ];
    let mut table = Table::new("", columns).whole();
    for Observed { facts, .. } in observed {
        let published = depth_medians(facts.pair.app, facts.pair.fs);
        let sides = [("reads", &facts.reads, published.reads)];
        let sides = sides.into_iter().chain([("writes", &facts.writes, published.writes)]);
        for (what, scale, medians) in sides {
            let mut row = vec![pair_name(facts), what.into(), scale.requests.into()];
            row.extend(medians.map(Value::from));
            row.push(scale.depth().into());
            row.push(compared(scale, medians).into());
            table.rows.push(row);
        }
    }
    table
}

/// How a median lies to the published ones.
fn compared(scale: &Scale, medians: [u64; 3]) -> &'static str {
    match scale.depth() {
        _ if scale.requests < REQUESTS_MIN => "too few",
        None => "no completions",
        Some(ours) if DepthMedians::contains(medians, ours) => "within",
        Some(ours) if ours > medians.into_iter().max().unwrap_or(0) => "deeper",
        Some(_) => "shallower",
    }
}

/// Quartiles of the sizes of requests.
pub fn sizes(observed: &[Observed]) -> Table {
    let mut columns = vec![Column::text("pair")];
    for kind in ["read", "write"] {
        columns.push(Column::number(format!("{kind}s"), Unit::Count));
        columns.push(Column::number(format!("{kind} p25"), Unit::Bytes));
        columns.push(Column::number(format!("{kind} p50"), Unit::Bytes));
        columns.push(Column::number(format!("{kind} p75"), Unit::Bytes));
    }
    let mut table = Table::new("", columns).whole();
    for Observed { facts, .. } in observed {
        let mut row = vec![pair_name(facts)];
        for scale in [&facts.reads, &facts.writes] {
            row.push(scale.requests.into());
            row.extend(scale.sizes.map(|size| {
                if scale.requests > 0 { Value::from(Bytes(size)) } else { Value::Missing }
            }));
        }
        table.rows.push(row);
    }
    table
}

/// Barriers, and requests that move no data.
pub fn barriers(observed: &[Observed]) -> Table {
    let columns = vec![
        Column::text("pair"),
        Column::number("flushes", Unit::Count),
        Column::number("durable", Unit::Count),
        Column::number("writes/barrier", Unit::Ratio),
        Column::number("between (p50)", Unit::Bytes),
        Column::number("discards", Unit::Count),
        Column::number("share", Unit::Percent),
        Column::number("later", Unit::Count),
    ];
    let mut table = Table::new("", columns).whole();
    for Observed { facts, .. } in observed {
        table.rows.push(vec![
            pair_name(facts),
            facts.flushes.into(),
            facts.durable_writes.into(),
            facts.writes_per_barrier().into(),
            facts.between_barriers.into(),
            facts.discards.into(),
            facts.discard_ratio().into(),
            facts.discards_later.into(),
        ]);
    }
    table
}

/// The numbers of locality, alignment and grouping.
pub fn rule_numbers(observed: &[Observed]) -> Table {
    let columns = vec![
        Column::text("pair"),
        Column::number("misses, 1 %", Unit::Percent),
        Column::number("10 %", Unit::Percent),
        Column::number("unaligned", Unit::Ratio),
        Column::number("1 MiB", Unit::Ratio),
        Column::number("valid", Unit::Percent),
        Column::number("segmented", Unit::Percent),
        Column::number("zombies", Unit::Percent),
        Column::number("dead", Unit::Percent),
    ];
    let mut table = Table::new("", columns).whole();
    for Observed { facts, .. } in observed {
        let mut row = vec![pair_name(facts)];
        row.extend(facts.misses_by_lookups.map(Value::from));
        row.extend(facts.unaligned.map(Value::from));
        row.extend(facts.density.map(Value::from));
        row.push(facts.mixed[0].into());
        row.push(facts.dead_share().into());
        table.rows.push(row);
    }
    table
}

/// The numbers of lifetime, and of where is written.
pub fn lifetimes(observed: &[Observed]) -> Table {
    let columns = vec![
        Column::text("pair"),
        Column::number("data writes", Unit::Ratio),
        Column::number("metadata", Unit::Ratio),
        Column::number("top tenth", Unit::Percent),
        Column::number("overwrites", Unit::Percent),
        Column::number("map/written", Unit::Ratio),
        Column::number("busiest", Unit::Ratio),
    ];
    let mut table = Table::new("", columns).whole();
    for Observed { facts, .. } in observed {
        table.rows.push(vec![
            pair_name(facts),
            facts.data.mean().into(),
            facts.metadata.mean().into(),
            facts.top_tenth.into(),
            facts.overwritten.into(),
            facts.spread.into(),
            facts.bias.most_over_mean.into(),
        ]);
    }
    table
}
