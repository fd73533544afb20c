//! Tables of the traces, with a row for each pair of application and file system.

use prism_contract::rules::Rule;
use prism_experiments::unwritten::{
    App, ColdReads, DepthMedians, FIGURE_1, Facts, Figure1, Observed, Scale, Sequential,
    depth_medians,
};
use prism_report::{Listing, Table, Unit};

/// Medians of fewer reads or writes than this are not compared.
const REQUESTS_MIN: u64 = 50;

/// A row for each pair, with its name.
fn by_pair(observed: &[Observed]) -> Listing<'_, Observed> {
    Table::listing(observed).text("pair", |one| one.facts.pair.name())
}

/// The scores of the five rules.
pub fn scores(observed: &[Observed]) -> Table {
    let mut listing = by_pair(observed);
    for (place, rule) in Rule::ALL.into_iter().enumerate() {
        listing = listing.number(rule.short_name(), Unit::Ratio, |one| {
            one.facts.scores[place].map(three_digits)
        });
    }
    listing.whole("1: the rule is kept entirely, 0: not at all")
}

/// Scores are means over thousands of requests, so further digits are noise.
fn three_digits(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

/// The windows of Figure 1: the published one, and those of the log-structured stores.
pub fn figure_1(observed: &[Observed]) -> Table {
    // The published window comes first.
    let mut rows = vec![None];
    rows.extend(stores(observed).filter_map(|one| Some(Some((one, one.figure1.as_ref()?)))));
    Table::listing(&rows)
        .text("pair", |row| row.map_or("published".into(), |(one, _)| one.facts.pair.name()))
        .number("most reads", Unit::Count, |row| {
            row.map_or(FIGURE_1.reads_max, |(_, figure)| figure.reads_max)
        })
        .number("most writes", Unit::Count, |row| {
            row.map_or(FIGURE_1.writes_max, |(_, figure)| figure.writes_max)
        })
        .number("median read", Unit::Bytes, |row| {
            row.map_or(Some(FIGURE_1.read_median), |(_, figure)| figure.read_median)
        })
        .number("read", Unit::Bytes, |row| row.map(|(_, figure)| figure.read))
        .number("written", Unit::Bytes, |row| row.map(|(_, figure)| figure.written))
        .number("from", Unit::Nanos, |row| row.map(|(_, figure)| figure.start))
        .text("compared", |row| row.map_or("", |(_, figure)| compared_window(figure)))
        .whole("")
}

/// Compares a window with the published one.
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

/// Medians of the requests outstanding, with the published ones.
pub fn depths(observed: &[Observed]) -> Table {
    let mut rows: Vec<(&Facts, &str, &Scale, [u64; 3])> = Vec::new();
    for Observed { facts, .. } in observed {
        let published = depth_medians(facts.pair.app, facts.pair.fs);
        rows.push((facts, "reads", &facts.reads, published.reads));
        rows.push((facts, "writes", &facts.writes, published.writes));
    }
    let mut listing = Table::listing(&rows)
        .text("pair", |(facts, ..)| facts.pair.name())
        .text("requests", |&(_, what, ..)| what)
        .number("how many", Unit::Count, |(_, _, scale, _)| scale.requests);
    for (place, name) in ["sequential", "random", "both"].into_iter().enumerate() {
        listing = listing.number(name, Unit::Count, |(.., medians)| medians[place]);
    }
    listing
        .number("ours", Unit::Count, |(_, _, scale, _)| scale.depth())
        .text("compared", |&(_, _, scale, medians)| compared(scale, medians))
        .whole("")
}

/// Compares a median with the published ones.
fn compared(scale: &Scale, medians: [u64; 3]) -> &'static str {
    match scale.depth() {
        _ if scale.requests < REQUESTS_MIN => "too few",
        None => "no completions",
        Some(ours) if DepthMedians::contains(medians, ours) => "within",
        Some(ours) if ours > medians.into_iter().max().unwrap_or(0) => "deeper",
        Some(_) => "shallower",
    }
}

/// Reads or writes.
type OfFacts = fn(&Facts) -> &Scale;

/// Quartiles of the sizes of requests.
pub fn sizes(observed: &[Observed]) -> Table {
    let mut listing = by_pair(observed);
    let reads: OfFacts = |facts| &facts.reads;
    let writes: OfFacts = |facts| &facts.writes;
    for (kind, of) in [("read", reads), ("write", writes)] {
        listing = listing.number(format!("{kind}s"), Unit::Count, |one| of(&one.facts).requests);
        for (place, quartile) in ["p25", "p50", "p75"].into_iter().enumerate() {
            listing = listing.number(format!("{kind} {quartile}"), Unit::Bytes, |one| {
                let scale = of(&one.facts);
                (scale.requests > 0).then(|| scale.sizes[place])
            });
        }
    }
    listing.whole("")
}

/// Barriers, and requests that move no data.
pub fn barriers(observed: &[Observed]) -> Table {
    by_pair(observed)
        .number("flushes", Unit::Count, |one| one.facts.flushes)
        .number("durable", Unit::Count, |one| one.facts.durable_writes)
        .number("writes/barrier", Unit::Ratio, |one| one.facts.writes_per_barrier())
        .number("between (p50)", Unit::Bytes, |one| one.facts.between_barriers)
        .number("discards", Unit::Count, |one| one.facts.discards)
        .number("share", Unit::Percent, |one| one.facts.discard_ratio())
        .number("later", Unit::Count, |one| one.facts.discards_later)
        .whole("")
}

/// Reads with cold caches, with a row for each pair and setting of read-ahead.
pub fn cold_reads(observed: &[Observed]) -> Table {
    let rows: Vec<(&Facts, &ColdReads)> = observed
        .iter()
        .flat_map(|one| one.facts.cold.iter().map(|cold| (&one.facts, cold)))
        .collect();
    let mut listing = Table::listing(&rows).text("pair", |(facts, _)| facts.pair.name()).number(
        "read-ahead",
        Unit::Bytes,
        |(_, cold)| cold.read_ahead,
    );
    let ordered: fn(&ColdReads) -> &Scale = |cold| &cold.ordered;
    let random: fn(&ColdReads) -> &Scale = |cold| &cold.random;
    for (name, of) in [("in order", ordered), ("random", random)] {
        listing = listing
            .number(name, Unit::Count, |(_, cold)| of(cold).requests)
            .number("bytes", Unit::Bytes, |(_, cold)| of(cold).bytes)
            .number("p50", Unit::Bytes, |(_, cold)| of(cold).size())
            .number("depth", Unit::Count, |(_, cold)| of(cold).depth_same());
    }
    listing.whole("")
}

/// Sequential work, with a row for each pair and number of instances.
pub fn sequential(observed: &[Observed]) -> Table {
    let rows: Vec<(&Facts, &Sequential)> = observed
        .iter()
        .flat_map(|one| one.facts.sequential.iter().map(|work| (&one.facts, work)))
        .collect();
    Table::listing(&rows)
        .text("pair", |(facts, _)| facts.pair.name())
        .number("instances", Unit::Count, |(_, work)| u64::from(work.instances))
        .number("merged/live", Unit::Ratio, |(_, work)| work.unaligned)
        .number("removed", Unit::Bytes, |(_, work)| work.removed.map(|removed| removed.bytes))
        .number("amid others", Unit::Percent, |(_, work)| work.removed.and_then(|r| r.share()))
        .whole("")
}

/// The numbers of locality, alignment and grouping.
pub fn rule_numbers(observed: &[Observed]) -> Table {
    by_pair(observed)
        .number("misses, 1 %", Unit::Percent, |one| one.facts.misses_by_lookups[0])
        .number("10 %", Unit::Percent, |one| one.facts.misses_by_lookups[1])
        .number("unaligned", Unit::Ratio, |one| one.facts.unaligned[0])
        .number("1 MiB", Unit::Ratio, |one| one.facts.unaligned[1])
        .number("valid", Unit::Percent, |one| one.facts.density[0])
        .number("segmented", Unit::Percent, |one| one.facts.density[1])
        .number("zombies", Unit::Percent, |one| one.facts.mixed[0])
        .number("dead", Unit::Percent, |one| one.facts.dead_share())
        .whole("")
}

/// The numbers of lifetime, and of the written addresses.
pub fn lifetimes(observed: &[Observed]) -> Table {
    by_pair(observed)
        .number("data writes", Unit::Ratio, |one| one.facts.data.mean())
        .number("metadata", Unit::Ratio, |one| one.facts.metadata.mean())
        .number("top tenth", Unit::Percent, |one| one.facts.top_tenth)
        .number("overwrites", Unit::Percent, |one| one.facts.overwritten)
        .number("map/written", Unit::Ratio, |one| one.facts.spread)
        .number("busiest", Unit::Ratio, |one| one.facts.bias.most_over_mean)
        .whole("")
}
