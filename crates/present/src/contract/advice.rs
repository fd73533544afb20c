//! The seven design rules, as a section.
//! Numbers and advice are notes below the table, as they are too long for its cells.

use prism_contract::advice::{Advice, Verdict};
use prism_report::{Block, Section, Table};

/// Why the trace does not decide whether a rule is followed.
pub(super) fn reason(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::NotDecidable(reason) => Some(reason),
        Verdict::Follows | Verdict::Violates => None,
    }
}

/// The rules as a table.
#[must_use]
pub fn section(advice: &[Advice]) -> Section {
    let count = |key: &str| advice.iter().filter(|one| one.verdict.key() == key).count();
    let lead = format!(
        "Of {} design rules for applications this trace follows {} and violates {}; it does not \
         decide {}.",
        advice.len(),
        count("follows"),
        count("violates"),
        count("not_decidable"),
    );
    let table = Table::listing(advice)
        .text("rule", |one| format!("{}. {}", one.number, one.rule))
        .text("verdict", |one| one.verdict.name())
        .whole("From \"Designing SSD-friendly applications\", 2016");
    let note = |one: &Advice| {
        let reason = reason(&one.verdict).unwrap_or_default();
        let parts = [reason, &one.numbers, &one.advice];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}. {}", one.number, parts.join(" "))
    };
    let notes = advice.iter().map(note).collect();
    Section::new("Seven design rules", lead).with(table).with(Block::Notes(notes))
}
