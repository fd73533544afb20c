//! Tables of ATC'09 from Table 3 on.

use prism_experiments::atc09::{
    ALIGNED, Alignment, Arrivals, Cleaning, IMPROVEMENT, Macro, MacroResult, PAGES, Priority,
    Responses, SEQUENTIAL, Setting, TIMES, UNALIGNED, closest_depth,
};
use prism_report::{Table, Unit};

fn milliseconds(ms: f64) -> f64 {
    ms * 1e6
}

/// The description of a setting.
pub fn setting_name(setting: &Setting) -> String {
    let arrivals = match setting.arrivals {
        Arrivals::Closed { depth } => format!("{depth} outstanding"),
        Arrivals::Open { gap_max } => format!("0 to {gap_max} apart"),
    };
    format!("{arrivals}, {} wait", setting.wait)
}

/// The setting nearest to Table 3, and the range of gains over all settings.
pub fn alignment(alignment: &Alignment) -> Table {
    let closest = alignment.closest();
    let name = closest.map(setting_name).unwrap_or_default();
    let rows: Vec<_> = closest.map_or(Vec::new(), |closest| {
        let places = SEQUENTIAL.into_iter().enumerate();
        places.map(|(i, p)| (p, i, closest, alignment.range()[i])).collect()
    });
    Table::listing(&rows)
        .number("P(sequential)", Unit::Ratio, |&(p, ..)| p)
        .number("unaligned", Unit::Nanos, |&(_, i, of, _)| milliseconds(of.unaligned[i]))
        .number("unaligned, published", Unit::Nanos, |&(_, i, ..)| milliseconds(UNALIGNED[i]))
        .number("aligned", Unit::Nanos, |&(_, i, of, _)| milliseconds(of.aligned[i]))
        .number("aligned, published", Unit::Nanos, |&(_, i, ..)| milliseconds(ALIGNED[i]))
        .number("gains from", Unit::Percent, |(.., range)| range.0 / 100.0)
        .number("gains to", Unit::Percent, |(.., range)| range.1 / 100.0)
        .whole(format!("Mean response with {name}; gains over all settings"))
}

/// Every setting of Table 3.
pub fn settings(alignment: &Alignment) -> Table {
    let both = |setting| [(setting, "unaligned"), (setting, "aligned")];
    let rows: Vec<(&Setting, &str)> = alignment.settings.iter().flat_map(both).collect();
    let mut listing = Table::listing(&rows)
        .text("setting", |(setting, _)| setting_name(setting))
        .text("writes", |&(_, scheme)| scheme);
    for (place, p) in SEQUENTIAL.into_iter().enumerate() {
        listing = listing.number(format!("P = {p}"), Unit::Nanos, |(setting, scheme)| {
            let aligned = *scheme == "aligned";
            let means = if aligned { setting.aligned } else { setting.unaligned };
            milliseconds(means[place])
        });
    }
    listing.table("Mean response by setting")
}

/// Table 4 at every depth.
pub fn macros(results: &[MacroResult]) -> Table {
    let depth = closest_depth(results).unwrap_or_default();
    let caption = format!("Mean response; nearest to the paper with {depth} outstanding");
    Table::listing(results)
        .text("benchmark", |one| one.benchmark.name())
        .number("outstanding", Unit::Count, |one| one.depth)
        .number("unaligned", Unit::Nanos, |one| milliseconds(one.unaligned))
        .number("aligned", Unit::Nanos, |one| milliseconds(one.aligned))
        .number("lower by", Unit::Percent, |one| one.gain() / 100.0)
        .number("published", Unit::Percent, |one| one.benchmark.published() / 100.0)
        .whole(caption)
}

/// The composition of each mixture.
pub fn macro_notes() -> Vec<String> {
    let note = |benchmark: Macro| format!("{}: {}.", benchmark.name(), benchmark.source());
    Macro::ALL.map(note).into()
}

/// The pool nearest to Table 5.
pub fn informed(cleaning: &Cleaning) -> Table {
    let run = cleaning.closest();
    let caption = run.map_or(String::new(), |run| {
        let (files, directories) = (run.pool.files, run.pool.directories);
        format!("Pages moved and cleaning time with {files} files in {directories} directories")
    });
    let rows: Vec<_> = run.map_or(Vec::new(), |run| {
        run.pairs().enumerate().map(|(i, pair)| (i, run, pair)).collect()
    });
    let table = Table::listing(&rows)
        .number("transactions", Unit::Count, |(.., (default, _))| default.transactions)
        .number("moved, default", Unit::Count, |(.., (default, _))| default.pages)
        .number("informed", Unit::Count, |(.., (_, informed))| informed.pages)
        .number("relative", Unit::Ratio, |&(i, run, _)| run.pages()[i])
        .number("published", Unit::Ratio, |&(i, ..)| PAGES[i])
        .number("time, default", Unit::Nanos, |(.., (default, _))| milliseconds(default.time))
        .number("time, informed", Unit::Nanos, |(.., (_, informed))| milliseconds(informed.time))
        .number("relative time", Unit::Ratio, |&(i, run, _)| run.times()[i])
        .number("published time", Unit::Ratio, |&(i, ..)| TIMES[i])
        .table(caption);
    Table { whole: run.is_some(), ..table }
}

/// Relative pages and times of every pool.
pub fn pools(cleaning: &Cleaning) -> Table {
    let mut rows = Vec::new();
    for run in &cleaning.runs {
        rows.extend(run.pairs().enumerate().map(|(i, (default, _))| (run, i, default)));
    }
    Table::listing(&rows)
        .number("files", Unit::Count, |(run, ..)| run.pool.files)
        .number("directories", Unit::Count, |(run, ..)| run.pool.directories)
        .number("transactions", Unit::Count, |(.., default)| default.transactions)
        .number("written", Unit::Count, |(.., default)| default.written)
        .number("moved, default", Unit::Count, |(.., default)| default.pages)
        .number("relative", Unit::Ratio, |&(run, i, _)| run.pages()[i])
        .number("relative time", Unit::Ratio, |&(run, i, _)| run.times()[i])
        .whole("Every pool")
}

/// Every run of Figure 3 and Table 6.
pub fn priority(priority: &Priority) -> Table {
    let rows: Vec<_> = priority.runs.iter().zip(IMPROVEMENT.into_iter().cycle()).collect();
    let foreground = |of: Option<Responses>| of.map(|of| of.foreground * 1e6);
    let background = |of: Option<Responses>| of.map(|of| of.background * 1e6);
    let erases = |of: Option<Responses>| of.map(|of| of.erases);
    Table::listing(&rows)
        .text("places", |(run, _)| run.places.name())
        .number("writes", Unit::Percent, |(run, _)| run.writes as f64 / 100.0)
        .number("priority, agnostic", Unit::Nanos, |(run, _)| foreground(run.agnostic))
        .number("aware", Unit::Nanos, |(run, _)| foreground(run.aware))
        .number("lower by", Unit::Percent, |(run, _)| run.improvement().map(|by| by / 100.0))
        .number("published", Unit::Percent, |(_, published)| published / 100.0)
        .number("others, agnostic", Unit::Nanos, |(run, _)| background(run.agnostic))
        .number("others, aware", Unit::Nanos, |(run, _)| background(run.aware))
        .number("erases, agnostic", Unit::Count, |(run, _)| erases(run.agnostic))
        .number("erases, aware", Unit::Count, |(run, _)| erases(run.aware))
        .whole("Mean response")
}
