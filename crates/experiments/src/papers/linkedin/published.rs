//! Comparison of the simulations with every number of the article that they can produce.

use prism_base::Bytes;

use super::{
    AddressPattern, ChangeRow, RateRow, Results, SMALL, ThreadsRow, Update, When, changes,
};
use crate::comparison::{Basis, Comparison, Quantity, Why};

/// Tolerance of rates, to some of which the drive is fitted.
const RATE_TOLERANCE: f64 = 0.1;
/// Tolerance of simulated random victims against the formula, which assumes random victims.
const RANDOM_TOLERANCE: f64 = 0.02;
/// Tolerance of lifetimes, which the article rounds to whole months.
const MONTHS_TOLERANCE: f64 = 0.2;

/// The size of the writes with which queries are compared.
const PAGE: Bytes = Bytes(4096);

/// The parts of the article: its seven design changes by number, and the sections "Better
/// application performance" and "Longer SSD life" before them.
const SMALL_PLACE: &str = "change 6";
const LARGE_PLACE: &str = "change 7";
const FULL_PLACE: &str = "change 5";
const LIFE_PLACE: &str = "life";
const RATES_PLACE: &str = "change 4";
const QUERIES_PLACE: &str = "intro";

/// Every comparison, in the order of the article.
#[must_use]
pub fn compare(found: &Results) -> Vec<Comparison> {
    let mut all = queries(found);
    all.extend(lives(found));
    all.extend(rates(found));
    all.extend(full(found));
    all.extend(in_place(found));
    all.extend(changes(&found.updates).first().map(change));
    all.extend(found.threads.iter().filter_map(rate));
    all.extend(threshold(found));
    all
}

fn rate(row: &ThreadsRow) -> Option<Comparison> {
    let small = row.size == SMALL;
    let (size, place) = if small { ("10 KB", SMALL_PLACE) } else { ("10 MB", LARGE_PLACE) };
    let why = match (small, row.threads) {
        (false, 8) => Why::Unexplained(
            "no modelled part of the drive slows eight threads that write files in order; the \
             table of mechanisms lists what was tried",
        ),
        _ => Why::Same,
    };
    let many = if row.threads == 1 { "" } else { "s" };
    let what = format!("writes of {size}, {} thread{many}", row.threads);
    let both = [row.published?, row.stretch.rate / 1e6];
    let rate = Quantity::MegabytesPerSecond;
    let comparison = Comparison::new(place, what, rate, both, RATE_TOLERANCE, why);
    // Five numbers of the drive are fitted to these seven rates.
    Some(comparison.on(Basis::Fitted))
}

/// Queries a second of the application: 142 on a hard disk, 20,000 on an SSD, 100,000 with
/// several threads. The article does not say what a query writes, so only the ratio can be
/// compared. Next to the absolute numbers are writes of one page a second.
fn queries(found: &Results) -> Vec<Comparison> {
    let find = |rows: &[ThreadsRow], size, threads| {
        rows.iter().find(|row| (row.size, row.threads) == (size, threads)).map(|row| row.stretch)
    };
    let small = |threads| find(&found.threads, SMALL, threads).map(|stretch| stretch.rate);
    let page = |threads| find(&found.sizes, PAGE, threads).map(|stretch| stretch.per_second);
    let query = |what: &str, quantity, published, ours: Option<f64>, why| {
        let both = [published, ours.unwrap_or(f64::NAN)];
        let what = format!("queries a second, {what}");
        Comparison::new(QUERIES_PLACE, what, quantity, both, RATE_TOLERANCE, why)
    };
    let writes = Why::NotGiven(
        "the article does not say what a query writes; its 115 and 500 MB/s are 11,200 and 49,000 \
         writes of 10 KB a second, so about two queries share a write",
    );
    let rise = Why::Unexplained(
        "the article's rates of such writes rise by 500/115 = 4.3, and it calls 100,000 over \
         20,000 \"4x further\"",
    );
    let (each, ratio) = (Quantity::PerSecond, Quantity::Ratio);
    let times = small(1).zip(small(8)).map(|(one, eight)| eight / one);
    vec![
        query("one thread; ours 4 KiB writes", each, 20_000.0, page(1), writes),
        query("several; ours 4 KiB writes", each, 100_000.0, page(8), writes),
        query("threads over one; ours 10 KB", ratio, 100_000.0 / 20_000.0, times, rise)
            .on(Basis::Derived),
    ]
}

/// The longest latency at the lowest and at the highest rate, and the number of large latencies.
fn rates(found: &Results) -> Vec<Comparison> {
    let wanted = |rate| {
        let written = |row: &&RateRow| {
            (row.rate, row.place, row.when) == (rate, AddressPattern::Log, When::Foreground)
        };
        found.rates.iter().find(written)
    };
    let comparison = |what: &str, rate, quantity, published, ours: fn(&RateRow) -> f64, why| {
        let what = format!("{what}, {rate} MB/s, log");
        let both = [published, wanted(rate).map_or(f64::NAN, ours)];
        let why = Why::Unexplained(why);
        Comparison::new(RATES_PLACE, what, quantity, both, RATE_TOLERANCE, why)
    };
    let longest = |rate, published, why| {
        let ours = |row: &RateRow| row.max.0 as f64 / 1e6;
        comparison("longest write", rate, Quantity::Milliseconds, published, ours, why)
    };
    let large = |rate, published, why| {
        let ours = |row: &RateRow| row.large_in_span.round();
        comparison("writes over 50 ms in 2 h", rate, Quantity::Count, published, ours, why)
    };
    let light = "the article gives neither the size of its writes nor the time of the file system; \
                 a larger write takes longer";
    let heavy = "in the simulation cleaning alternates with host writes after each program unit, \
                 and a log leaves no valid data to copy; the article does not say whether its \
                 drive cleaned whole blocks in one operation, or whether it copied";
    vec![
        longest(10, 8.0, light),
        longest(800, 92.0, heavy),
        large(10, 0.0, light),
        large(50, 0.0, light),
        large(800, 61.0, heavy),
    ]
}

fn lives(found: &Results) -> Vec<Comparison> {
    let rows = found.lives.iter().flat_map(|row| {
        let (cell, wa) = (row.cell.name(), row.write_amplification);
        let days = |what: &str, ours, why| {
            let (what, both) = (format!("life, {cell}, WA {wa}: {what}"), [row.published, ours]);
            Comparison::new(LIFE_PLACE, what, Quantity::Days, both, MONTHS_TOLERANCE, why)
        };
        let spare = Why::Unexplained("spare flash wears as well; the formula leaves it out");
        [
            days("formula", row.formula, Why::Same).on(Basis::Arithmetic),
            days("WA measured", row.by_measured, Why::Same),
            days("by erases", row.by_erases, spare),
        ]
    });
    rows.collect()
}

/// The examples of the article: share of valid data, blocks cleaned and pages copied per free
/// block.
const NAMED: [(f64, f64, f64); 2] = [(0.80, 5.0, 512.0), (0.95, 20.0, 2432.0)];

fn full(found: &Results) -> Vec<Comparison> {
    let mut all = Vec::new();
    for (full, blocks, pages) in NAMED {
        let Some(row) = found.full.iter().find(|row| row.full == full) else { continue };
        // The run with random victims is the one without this cause.
        let greedy = Why::Removed(
            "the formula assumes victims as full as the drive; greedy takes emptier ones",
        );
        let both = [("random victims", row.random, Why::Same), ("greedy", row.greedy, greedy)];
        for (victim, ours, why) in both {
            let mut add = |what: &str, both, basis| {
                let what = format!("{:.0} % full, {victim}: {what}", 100.0 * full);
                let count = Quantity::Count;
                let one = Comparison::new(FULL_PLACE, what, count, both, RANDOM_TOLERANCE, why);
                all.push(one.on(basis));
            };
            // The published number of pages is that of blocks times the pages in them.
            add("blocks for one", [blocks, ours.blocks], Basis::Independent);
            add("pages copied", [pages, ours.pages], Basis::Derived);
        }
    }
    all
}

/// Updates in place and at random addresses: about 20,000 a second each on an SSD (280 and 170 on a
/// hard disk).
fn in_place(found: &Results) -> Option<Comparison> {
    let rate = |update| {
        let row = found.updates.iter().find(|row| row.update == update)?;
        Some(row.stretch.per_second)
    };
    let both = [1.0, rate(Update::InPlace)? / rate(Update::Anywhere)?];
    let what = "updates a second, in place over random";
    Some(Comparison::new("change 1", what, Quantity::Ratio, both, 0.02, Why::Same))
}

/// "Even a single-bit update will result in at least a 4KB SSD write"; the simulation changes a
/// byte.
fn change(cheapest: &ChangeRow) -> Comparison {
    let what = "bytes of flash for a change of one byte, at least";
    let why = Why::Unexplained(
        "the article gives the minimum; on a full drive under random writes, cleaning adds its \
         write amplification",
    );
    let both = [4096.0, cheapest.scattered[1]];
    Comparison::new("change 3", what, Quantity::Count, both, RATE_TOLERANCE, why)
}

/// The smallest size at which one thread reaches 90 % of the rate of larger writes.
fn threshold(found: &Results) -> Option<Comparison> {
    let best = found.threshold.iter().map(|row| row.rate).reduce(f64::max)?;
    let reached = found.threshold.iter().find(|row| row.rate >= 0.9 * best);
    let both = [64.0, reached.map_or(f64::NAN, |row| row.size.0 as f64 / 1024.0)];
    let what = "KiB a write that keep 16 dies busy";
    Some(Comparison::new(SMALL_PLACE, what, Quantity::Count, both, 0.0, Why::Same))
}
