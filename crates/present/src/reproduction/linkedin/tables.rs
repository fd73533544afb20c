//! Tables of what was measured.

use prism_experiments::linkedin::{
    ChangeRow, FullRow, LayoutRow, LifeRow, MechanismRow, Place, RateRow, ThreadsRow, ThresholdRow,
    UpdateRow, When,
};
use prism_report::{Column, Table, Unit, Value};

/// Megabytes (10^6) a second, as the article writes rates.
fn megabytes(rate: f64) -> Value {
    Value::from(rate / 1e6)
}

fn ratio(name: &str) -> Column {
    Column::number(name, Unit::Ratio)
}

/// The article's sizes and threads.
pub fn threads(rows: &[ThreadsRow]) -> Table {
    let columns = vec![
        Column::number("write", Unit::Bytes),
        Column::number("threads", Unit::Count),
        ratio("published MB/s"),
        ratio("ours MB/s"),
        Column::number("writes", Unit::PerSec),
        Column::number("mean latency", Unit::Nanos),
        ratio("WA"),
    ];
    let mut table = Table::new("", columns).whole();
    for row in rows {
        table.rows.push(vec![
            row.size.into(),
            u64::from(row.threads).into(),
            row.published.into(),
            megabytes(row.stretch.rate),
            row.stretch.per_second.into(),
            row.stretch.latency.into(),
            row.stretch.write_amplification.into(),
        ]);
    }
    table
}

/// Sizes by one thread and by eight.
pub fn sizes(rows: &[ThreadsRow]) -> Table {
    let columns = vec![
        Column::number("write", Unit::Bytes),
        ratio("1 thread MB/s"),
        ratio("8 threads MB/s"),
        ratio("8 over 1"),
    ];
    let mut table = Table::new("", columns).whole();
    for pair in rows.chunks(2) {
        if let [one, eight] = pair {
            table.rows.push(vec![
                one.size.into(),
                megabytes(one.stretch.rate),
                megabytes(eight.stretch.rate),
                Value::from(eight.stretch.rate / one.stretch.rate),
            ]);
        }
    }
    table
}

/// The drive of the article's example.
pub fn threshold(rows: &[ThresholdRow]) -> Table {
    let columns = vec![
        Column::number("write", Unit::Bytes),
        ratio("MB/s"),
        Column::number("of the best", Unit::Percent),
    ];
    let mut table = Table::new("", columns).whole();
    let best = rows.iter().map(|row| row.rate).fold(0.0, f64::max);
    for row in rows {
        table.rows.push(vec![row.size.into(), megabytes(row.rate), Value::from(row.rate / best)]);
    }
    table
}

/// What could slow eight threads down.
pub fn mechanisms(rows: &[MechanismRow]) -> Table {
    let columns = vec![
        Column::text("mechanism"),
        Column::number("threads", Unit::Count),
        ratio("MB/s"),
        ratio("WA"),
    ];
    let mut table = Table::new("", columns).whole();
    for row in rows {
        table.rows.push(vec![
            row.mechanism.name().into(),
            u64::from(row.threads).into(),
            megabytes(row.stretch.rate),
            row.stretch.write_amplification.into(),
        ]);
    }
    table
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Log => "log",
        Place::Anywhere => "random",
    }
}

fn when_name(when: When) -> &'static str {
    match when {
        When::Foreground => "foreground",
        When::Background => "background",
    }
}

/// The longest latencies at each rate.
pub fn rates(rows: &[RateRow]) -> Table {
    let columns = vec![
        ratio("MB/s"),
        Column::text("places"),
        Column::text("cleaning"),
        ratio("done MB/s"),
        Column::number("longest", Unit::Nanos),
        Column::number("over 50 ms", Unit::Count),
        Column::number("in 2 h", Unit::Count),
        Column::number("simulated", Unit::Nanos),
        ratio("WA"),
        Column::number("erases", Unit::Count),
    ];
    let mut table = Table::new("", columns).whole();
    for row in rows {
        table.rows.push(vec![
            f64::from(row.rate).into(),
            place_name(row.place).into(),
            when_name(row.when).into(),
            row.done.into(),
            row.max.into(),
            row.large.into(),
            row.large_in_span.round().into(),
            row.span.into(),
            row.write_amplification.into(),
            row.erases.into(),
        ]);
    }
    table
}

/// The price of a free block.
pub fn full(rows: &[FullRow]) -> Table {
    let columns = vec![
        Column::number("full", Unit::Percent),
        ratio("blocks: formula"),
        ratio("blocks: random"),
        ratio("blocks: greedy"),
        ratio("blocks: greedy, theory"),
        ratio("pages: formula"),
        ratio("pages: random"),
        ratio("pages: greedy"),
        ratio("pages: greedy, theory"),
    ];
    let mut table = Table::new("", columns).whole();
    for row in rows {
        let prices = [row.formula, row.random, row.greedy, row.greedy_theory];
        let mut cells = vec![Value::from(row.full)];
        cells.extend(prices.map(|price| Value::from(price.blocks)));
        cells.extend(prices.map(|price| Value::from(price.pages)));
        table.rows.push(cells);
    }
    table
}

/// How long drives last.
pub fn lives(rows: &[LifeRow]) -> Table {
    let columns = vec![
        Column::text("cells"),
        Column::number("cycles", Unit::Count),
        ratio("WA supposed"),
        ratio("days published"),
        ratio("days by formula"),
        Column::number("spare", Unit::Percent),
        ratio("WA measured"),
        ratio("days with it"),
        ratio("days by erases"),
    ];
    let mut table = Table::new("", columns).whole();
    for row in rows {
        table.rows.push(vec![
            row.cell.name().into(),
            u64::from(row.cycles).into(),
            row.write_amplification.into(),
            row.published.into(),
            row.formula.into(),
            row.spare.into(),
            row.measured.into(),
            row.by_measured.into(),
            row.by_erases.into(),
        ]);
    }
    table
}

/// Updates by one thread.
pub fn updates(rows: &[UpdateRow]) -> Table {
    let columns = vec![
        Column::text("update"),
        Column::number("rate", Unit::PerSec),
        Column::number("mean latency", Unit::Nanos),
        Column::number("longest", Unit::Nanos),
        ratio("WA"),
        ratio("pages read/update"),
        Column::number("to flash, bare", Unit::Nanos),
    ];
    let mut table = Table::new("", columns).whole();
    for UpdateRow { update, stretch, on_flash } in rows {
        table.rows.push(vec![
            update.name().into(),
            stretch.per_second.into(),
            stretch.latency.into(),
            stretch.latency_max.into(),
            stretch.write_amplification.into(),
            Value::from(stretch.rmw_reads as f64 / stretch.count as f64),
            (*on_flash).into(),
        ]);
    }
    table
}

/// Hot users and cold ones.
pub fn users(rows: &[LayoutRow]) -> Table {
    let columns = vec![
        Column::text("users"),
        ratio("pages/update"),
        ratio("WA"),
        ratio("flash bytes/byte updated"),
    ];
    let mut table = Table::new("", columns).whole();
    for row in rows {
        table.rows.push(vec![
            row.layout.name().into(),
            row.pages.into(),
            row.write_amplification.into(),
            row.flash_bytes.into(),
        ]);
    }
    table
}

/// What a change costs.
pub fn changes(rows: &[ChangeRow]) -> Table {
    let columns = vec![
        Column::number("change", Unit::Bytes),
        ratio("pages: written"),
        ratio("pages: flash"),
        ratio("sectors: written"),
        ratio("sectors: flash"),
        ratio("log: written"),
        ratio("log: flash"),
    ];
    let mut table = Table::new("", columns).whole();
    for row in rows {
        let mut cells = vec![Value::from(row.change)];
        let costs = [row.scattered, row.sectors, row.compact];
        cells.extend(costs.as_flattened().iter().copied().map(Value::from));
        table.rows.push(cells);
    }
    table
}
