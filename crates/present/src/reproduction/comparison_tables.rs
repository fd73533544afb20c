//! Comparisons of published numbers with ours, as a table and as JSON.

use prism_experiments::comparison::{Basis, Comparison, Quantity, Verdict};
use prism_report::{Block, Figure, Section, Table, Unit};
use serde_json::{Value as Json, json};

/// The number of independent comparisons with each verdict, then all comparisons, then the reasons.
pub fn section(title: &str, lead: &str, all: &[Comparison]) -> Section {
    let mut section = Section::new(title, lead);
    let counted = all.iter().filter(|one| one.counts()).count();
    let figure = |verdict: Verdict| {
        Figure::new(verdict.name(), Unit::Count, count(all, verdict)).note(format!("of {counted}"))
    };
    let mut figures = Verdict::ALL.map(figure).to_vec();
    if counted < all.len() {
        let not_counted = (all.len() - counted) as u64;
        let note = "fitted, derived, closest runs, arithmetic or repeated";
        figures.push(Figure::new("not counted", Unit::Count, not_counted).note(note));
    }
    section.push(figures);
    section.push(table(all));
    let mut reasons: Vec<String> = Vec::new();
    for one in all.iter().filter(|one| !one.reason().is_empty()) {
        let (word, reason) = (one.verdict().name(), one.reason());
        let others =
            |other: &&Comparison| other.verdict() == one.verdict() && other.reason() == reason;
        let same: Vec<&str> = all.iter().filter(others).map(|other| &*other.what).collect();
        let note = format!("{} ({word}): {reason}.", same.join("; "));
        if !reasons.contains(&note) {
            reasons.push(note);
        }
    }
    section.push(Block::Notes(reasons));
    section
}

fn count(all: &[Comparison], verdict: Verdict) -> u64 {
    all.iter().filter(|one| one.counts() && one.verdict() == verdict).count() as u64
}

/// A row for each comparison.
pub fn table(all: &[Comparison]) -> Table {
    Table::listing(all)
        .text("what", |one| one.what.as_str())
        .text("place", |one| one.place)
        .text("published", |one| show(one.quantity, one.published))
        .text("ours", |one| one.ours.map(|ours| show(one.quantity, ours)))
        .number("difference", Unit::Percent, |one| one.difference())
        .text("verdict", verdict)
        .whole("")
}

/// The verdict, in brackets with the basis if it does not count.
fn verdict(one: &Comparison) -> String {
    match one.basis {
        Basis::Independent => one.verdict().name().to_owned(),
        basis => format!("({}; {})", one.verdict().name(), basis.name()),
    }
}

fn show(quantity: Quantity, value: f64) -> String {
    let number = Unit::Ratio.format(value);
    match quantity {
        Quantity::MegabytesPerSecond => format!("{number} MB/s"),
        Quantity::Milliseconds => format!("{number} ms"),
        Quantity::Days => format!("{number} days"),
        Quantity::PerSecond => format!("{number}/s"),
        Quantity::Percent => format!("{number} %"),
        Quantity::Bytes => Unit::Bytes.format(value),
        Quantity::Count | Quantity::Ratio => number,
    }
}

/// The comparisons as JSON.
pub fn json(all: &[Comparison]) -> Json {
    let one = |one: &Comparison| {
        json!({
            "what": one.what,
            "place": one.place,
            "quantity": quantity_key(one.quantity),
            "published": one.published,
            "ours": one.ours,
            "difference": one.difference(),
            "tolerance": one.tolerance,
            "verdict": one.verdict().name(),
            "basis": one.basis.name(),
            "why": one.reason(),
        })
    };
    all.iter().map(one).collect()
}

fn quantity_key(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::MegabytesPerSecond => "megabytes_per_second",
        Quantity::Milliseconds => "milliseconds",
        Quantity::Days => "days",
        Quantity::Count => "count",
        Quantity::PerSecond => "per_second",
        Quantity::Ratio => "ratio",
        Quantity::Percent => "percent",
        Quantity::Bytes => "bytes",
    }
}
