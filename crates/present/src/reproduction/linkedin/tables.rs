//! Tables of the measurements.

use prism_experiments::linkedin::{
    AddressPattern, ChangeRow, FullRow, LayoutRow, LifeRow, MechanismRow, Price, RateRow,
    ThreadsRow, ThresholdRow, UpdateRow, When,
};
use prism_report::{Table, Unit};

/// Megabytes (10^6) per second, the article's unit of rates.
fn megabytes(rate: f64) -> f64 {
    rate / 1e6
}

/// The article's sizes and threads.
pub fn threads(rows: &[ThreadsRow]) -> Table {
    Table::listing(rows)
        .number("write", Unit::Bytes, |row| row.size)
        .number("threads", Unit::Count, |row| row.threads)
        .number("published MB/s", Unit::Ratio, |row| row.published)
        .number("ours MB/s", Unit::Ratio, |row| megabytes(row.stretch.rate))
        .number("writes", Unit::PerSec, |row| row.stretch.per_second)
        .number("mean latency", Unit::Nanos, |row| row.stretch.latency)
        .number("WA", Unit::Ratio, |row| row.stretch.write_amplification)
        .whole("")
}

/// Sizes by one thread and by eight.
pub fn sizes(rows: &[ThreadsRow]) -> Table {
    let pairs: Vec<_> = rows.as_chunks::<2>().0.iter().map(|[one, eight]| (one, eight)).collect();
    Table::listing(&pairs)
        .number("write", Unit::Bytes, |(one, _)| one.size)
        .number("1 thread MB/s", Unit::Ratio, |(one, _)| megabytes(one.stretch.rate))
        .number("8 threads MB/s", Unit::Ratio, |(_, eight)| megabytes(eight.stretch.rate))
        .number("8 over 1", Unit::Ratio, |(one, eight)| eight.stretch.rate / one.stretch.rate)
        .whole("")
}

/// Bandwidth by size on the drive of the article's example.
pub fn threshold(rows: &[ThresholdRow]) -> Table {
    let best = rows.iter().map(|row| row.rate).fold(0.0, f64::max);
    Table::listing(rows)
        .number("write", Unit::Bytes, |row| row.size)
        .number("MB/s", Unit::Ratio, |row| megabytes(row.rate))
        .number("of the best", Unit::Percent, |row| row.rate / best)
        .whole("")
}

/// The mechanisms that could slow eight threads down.
pub fn mechanisms(rows: &[MechanismRow]) -> Table {
    Table::listing(rows)
        .text("mechanism", |row| row.mechanism.name())
        .number("threads", Unit::Count, |row| row.threads)
        .number("MB/s", Unit::Ratio, |row| megabytes(row.stretch.rate))
        .number("WA", Unit::Ratio, |row| row.stretch.write_amplification)
        .whole("")
}

fn place_name(place: AddressPattern) -> &'static str {
    match place {
        AddressPattern::Log => "log",
        AddressPattern::Anywhere => "random",
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
    Table::listing(rows)
        .number("MB/s", Unit::Ratio, |row| f64::from(row.rate))
        .text("places", |row| place_name(row.place))
        .text("cleaning", |row| when_name(row.when))
        .number("done MB/s", Unit::Ratio, |row| row.done)
        .number("longest", Unit::Nanos, |row| row.max)
        .number("over 50 ms", Unit::Count, |row| row.large)
        .number("in 2 h", Unit::Count, |row| row.large_in_span.round())
        .number("simulated", Unit::Nanos, |row| row.span)
        .number("WA", Unit::Ratio, |row| row.write_amplification)
        .number("erases", Unit::Count, |row| row.erases)
        .whole("")
}

/// One way to compute the price.
type PriceOf = fn(&FullRow) -> Price;

/// The price of a free block.
pub fn full(rows: &[FullRow]) -> Table {
    let prices: [(&str, PriceOf); 4] = [
        ("formula", |row| row.formula),
        ("random", |row| row.random),
        ("greedy", |row| row.greedy),
        ("greedy, theory", |row| row.greedy_theory),
    ];
    let mut listing = Table::listing(rows).number("full", Unit::Percent, |row| row.full);
    for (name, of) in prices {
        listing = listing.number(format!("blocks: {name}"), Unit::Ratio, |row| of(row).blocks);
    }
    for (name, of) in prices {
        listing = listing.number(format!("pages: {name}"), Unit::Ratio, |row| of(row).pages);
    }
    listing.whole("")
}

/// How long drives last.
pub fn lives(rows: &[LifeRow]) -> Table {
    Table::listing(rows)
        .text("cells", |row| row.cell.name())
        .number("cycles", Unit::Count, |row| row.cycles)
        .number("WA supposed", Unit::Ratio, |row| row.write_amplification)
        .number("days published", Unit::Ratio, |row| row.published)
        .number("days by formula", Unit::Ratio, |row| row.formula)
        .number("spare", Unit::Percent, |row| row.spare)
        .number("WA measured", Unit::Ratio, |row| row.measured)
        .number("days with it", Unit::Ratio, |row| row.by_measured)
        .number("days by erases", Unit::Ratio, |row| row.by_erases)
        .whole("")
}

/// Updates by one thread.
pub fn updates(rows: &[UpdateRow]) -> Table {
    Table::listing(rows)
        .text("update", |row| row.update.name())
        .number("rate", Unit::PerSec, |row| row.stretch.per_second)
        .number("mean latency", Unit::Nanos, |row| row.stretch.latency)
        .number("longest", Unit::Nanos, |row| row.stretch.latency_max)
        .number("WA", Unit::Ratio, |row| row.stretch.write_amplification)
        .number("pages read/update", Unit::Ratio, |UpdateRow { stretch, .. }| {
            stretch.rmw_reads as f64 / stretch.count as f64
        })
        .number("to flash, bare", Unit::Nanos, |row| row.on_flash)
        .whole("")
}

/// Hot users and cold ones.
pub fn users(rows: &[LayoutRow]) -> Table {
    Table::listing(rows)
        .text("users", |row| row.layout.name())
        .number("pages/update", Unit::Ratio, |row| row.pages)
        .number("WA", Unit::Ratio, |row| row.write_amplification)
        .number("flash bytes/byte updated", Unit::Ratio, |row| row.flash_bytes)
        .whole("")
}

/// Bytes written and programmed per changed byte.
pub fn changes(rows: &[ChangeRow]) -> Table {
    Table::listing(rows)
        .number("change", Unit::Bytes, |row| row.change)
        .number("pages: written", Unit::Ratio, |row| row.scattered[0])
        .number("pages: flash", Unit::Ratio, |row| row.scattered[1])
        .number("sectors: written", Unit::Ratio, |row| row.sectors[0])
        .number("sectors: flash", Unit::Ratio, |row| row.sectors[1])
        .number("log: written", Unit::Ratio, |row| row.compact[0])
        .number("log: flash", Unit::Ratio, |row| row.compact[1])
        .whole("")
}
