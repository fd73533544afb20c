//! The seven design rules, as a section and as JSON.
//! Numbers and advice are notes below the table, as they are too long for its cells.

use prism_contract::advice::{Advice, Verdict};
use prism_report::{Block, Column, Section, Table};
use serde::Serialize;

/// A design rule.
#[derive(Debug, Serialize)]
pub struct AdviceObject {
    number: u8,
    rule: &'static str,
    verdict: &'static str,
    /// Why the trace does not tell; null where it does.
    reason: Option<String>,
    numbers: String,
    advice: String,
    source: &'static str,
}

impl AdviceObject {
    /// Every rule, in the order of the source.
    #[must_use]
    pub fn all(advice: &[Advice]) -> Vec<Self> {
        let one = |advice: &Advice| Self {
            number: advice.number,
            rule: advice.rule,
            verdict: advice.verdict.key(),
            reason: reason(&advice.verdict).map(str::to_owned),
            numbers: advice.numbers.clone(),
            advice: advice.advice.clone(),
            source: advice.source,
        };
        advice.iter().map(one).collect()
    }
}

fn reason(verdict: &Verdict) -> Option<&str> {
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
        "Of {} design rules for applications this trace follows {} and violates {}; {} cannot be \
         told from it.",
        advice.len(),
        count("follows"),
        count("violates"),
        count("not_decidable"),
    );
    let mut section = Section::new("Seven design rules", lead);
    let columns = ["rule", "verdict"].map(Column::text).to_vec();
    let caption = "From \"Designing SSD-friendly applications\", 2016";
    let mut table = Table::new(caption, columns).whole();
    let mut notes = Vec::new();
    for one in advice {
        let name = format!("{}. {}", one.number, one.rule);
        table.rows.push(vec![name.into(), one.verdict.name().into()]);
        let reason = reason(&one.verdict).unwrap_or_default();
        let parts = [reason, &one.numbers, &one.advice];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        notes.push(format!("{}. {}", one.number, parts.join(" ")));
    }
    section.push(Block::Table(table));
    section.push(Block::Notes(notes));
    section
}
