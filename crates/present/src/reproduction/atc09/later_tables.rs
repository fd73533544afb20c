//! Tables of ATC'09 from Table 3 on.

use prism_experiments::atc09::{
    ALIGNED, Alignment, Arrivals, Cleaning, IMPROVEMENT, Macro, MacroResult, PAGES, Priority, Run,
    SEQUENTIAL, Setting, TIMES, UNALIGNED, closest_depth,
};
use prism_report::{Column, Table, Unit, Value};

fn milliseconds(ms: f64) -> Value {
    (ms * 1e6).into()
}

/// A setting in a few words.
pub fn setting_name(setting: &Setting) -> String {
    let arrivals = match setting.arrivals {
        Arrivals::Closed { depth } => format!("{depth} outstanding"),
        Arrivals::Open { gap_max } => format!("0 to {gap_max} apart"),
    };
    format!("{arrivals}, {} wait", setting.wait)
}

/// The setting nearest to Table 3, and the range over all.
pub fn alignment(alignment: &Alignment) -> Table {
    let columns = vec![
        Column::number("P(sequential)", Unit::Ratio),
        Column::number("unaligned", Unit::Nanos),
        Column::number("unaligned, published", Unit::Nanos),
        Column::number("aligned", Unit::Nanos),
        Column::number("aligned, published", Unit::Nanos),
        Column::number("gains from", Unit::Percent),
        Column::number("gains to", Unit::Percent),
    ];
    let closest = alignment.closest();
    let name = closest.map(setting_name).unwrap_or_default();
    let caption = format!("Mean response with {name}; gains over all settings");
    let mut table = Table::new(caption, columns).whole();
    let Some(closest) = closest else { return table };
    let range = alignment.range();
    for (i, p) in SEQUENTIAL.into_iter().enumerate() {
        table.rows.push(vec![
            p.into(),
            milliseconds(closest.unaligned[i]),
            milliseconds(UNALIGNED[i]),
            milliseconds(closest.aligned[i]),
            milliseconds(ALIGNED[i]),
            (range[i].0 / 100.0).into(),
            (range[i].1 / 100.0).into(),
        ]);
    }
    table
}

/// Every setting of Table 3.
pub fn settings(alignment: &Alignment) -> Table {
    let mut columns = vec![Column::text("setting"), Column::text("writes")];
    columns.extend(SEQUENTIAL.map(|p| Column::number(format!("P = {p}"), Unit::Nanos)));
    let mut table = Table::new("Mean response by setting", columns);
    for setting in &alignment.settings {
        for (scheme, means) in [("unaligned", setting.unaligned), ("aligned", setting.aligned)] {
            let mut row = vec![setting_name(setting).into(), scheme.into()];
            row.extend(means.map(milliseconds));
            table.rows.push(row);
        }
    }
    table
}

/// Table 4 at every depth.
pub fn macros(results: &[MacroResult]) -> Table {
    let columns = vec![
        Column::text("benchmark"),
        Column::number("outstanding", Unit::Count),
        Column::number("unaligned", Unit::Nanos),
        Column::number("aligned", Unit::Nanos),
        Column::number("lower by", Unit::Percent),
        Column::number("published", Unit::Percent),
    ];
    let depth = closest_depth(results).unwrap_or_default();
    let caption = format!("Mean response; nearest to the paper with {depth} outstanding");
    let mut table = Table::new(caption, columns).whole();
    for one in results {
        table.rows.push(vec![
            one.benchmark.name().into(),
            u64::from(one.depth).into(),
            milliseconds(one.unaligned),
            milliseconds(one.aligned),
            (one.gain() / 100.0).into(),
            (one.benchmark.published() / 100.0).into(),
        ]);
    }
    table
}

/// What each mixture is made of.
pub fn macro_notes() -> Vec<String> {
    let note = |benchmark: Macro| format!("{}: {}.", benchmark.name(), benchmark.source());
    Macro::ALL.map(note).into()
}

/// The pool nearest to Table 5.
pub fn informed(cleaning: &Cleaning) -> Table {
    let columns = vec![
        Column::number("transactions", Unit::Count),
        Column::number("moved, default", Unit::Count),
        Column::number("informed", Unit::Count),
        Column::number("relative", Unit::Ratio),
        Column::number("published", Unit::Ratio),
        Column::number("time, default", Unit::Nanos),
        Column::number("time, informed", Unit::Nanos),
        Column::number("relative time", Unit::Ratio),
        Column::number("published time", Unit::Ratio),
    ];
    let Some(run) = cleaning.closest() else { return Table::new("", columns) };
    let caption = format!(
        "Pages moved and cleaning time with {} files in {} directories",
        run.pool.files, run.pool.directories
    );
    let mut table = Table::new(caption, columns).whole();
    for (i, (default, informed)) in run.pairs().enumerate() {
        table.rows.push(vec![
            u64::from(default.transactions).into(),
            default.pages.into(),
            informed.pages.into(),
            run.pages()[i].into(),
            PAGES[i].into(),
            milliseconds(default.time),
            milliseconds(informed.time),
            run.times()[i].into(),
            TIMES[i].into(),
        ]);
    }
    table
}

/// Relative pages and times of every pool.
pub fn pools(cleaning: &Cleaning) -> Table {
    let columns = vec![
        Column::number("files", Unit::Count),
        Column::number("directories", Unit::Count),
        Column::number("transactions", Unit::Count),
        Column::number("written", Unit::Count),
        Column::number("moved, default", Unit::Count),
        Column::number("relative", Unit::Ratio),
        Column::number("relative time", Unit::Ratio),
    ];
    let mut table = Table::new("Every pool", columns).whole();
    for run in &cleaning.runs {
        for (i, (default, _)) in run.pairs().enumerate() {
            table.rows.push(vec![
                u64::from(run.pool.files).into(),
                u64::from(run.pool.directories).into(),
                u64::from(default.transactions).into(),
                default.written.into(),
                default.pages.into(),
                run.pages()[i].into(),
                run.times()[i].into(),
            ]);
        }
    }
    table
}

/// Every run of Figure 3 and Table 6.
pub fn priority(priority: &Priority) -> Table {
    let columns = vec![
        Column::text("places"),
        Column::number("writes", Unit::Percent),
        Column::number("priority, agnostic", Unit::Nanos),
        Column::number("aware", Unit::Nanos),
        Column::number("lower by", Unit::Percent),
        Column::number("published", Unit::Percent),
        Column::number("others, agnostic", Unit::Nanos),
        Column::number("others, aware", Unit::Nanos),
        Column::number("erases, agnostic", Unit::Count),
        Column::number("erases, aware", Unit::Count),
    ];
    let mut table = Table::new("Mean response", columns).whole();
    for (run, published) in priority.runs.iter().zip(IMPROVEMENT.into_iter().cycle()) {
        let Run { places, writes, agnostic, aware } = run;
        table.rows.push(vec![
            places.name().into(),
            (*writes as f64 / 100.0).into(),
            agnostic.map(|responses| responses.foreground * 1e6).into(),
            aware.map(|responses| responses.foreground * 1e6).into(),
            run.improvement().map(|percent| percent / 100.0).into(),
            (published / 100.0).into(),
            agnostic.map(|responses| responses.background * 1e6).into(),
            aware.map(|responses| responses.background * 1e6).into(),
            agnostic.map(|responses| responses.erases).into(),
            aware.map(|responses| responses.erases).into(),
        ]);
    }
    table
}
