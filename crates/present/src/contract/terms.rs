//! The six terms of the unwritten contract, as a section and as JSON.
//! Reasons are notes below the table, as they are too long for its cells.

use prism_contract::terms::{Quoted, Term};
use prism_report::{Block, Column, Section, Table, Value};
use serde::Serialize;

/// A term.
#[derive(Debug, Serialize)]
pub struct TermObject {
    number: u8,
    name: &'static str,
    /// Whether it holds for this trace and drive; null where they do not decide it.
    holds: Option<bool>,
    why: String,
    /// What the source says of kinds of devices.
    quoted: QuotedObject,
    source: &'static str,
}

#[derive(Debug, Serialize)]
struct QuotedObject {
    disk: &'static str,
    raid: &'static str,
    mems: &'static str,
    ssd: &'static str,
}

impl TermObject {
    /// Every term, in the order of the source.
    #[must_use]
    pub fn all(terms: &[Term]) -> Vec<Self> {
        let one = |term: &Term| Self {
            number: term.number,
            name: term.name,
            holds: term.holds,
            why: term.why.clone(),
            quoted: QuotedObject {
                disk: term.disk.name(),
                raid: term.raid.name(),
                mems: term.mems.name(),
                ssd: term.ssd.name(),
            },
            source: term.source,
        };
        terms.iter().map(one).collect()
    }
}

/// The terms as a table, those of the source beside what was found.
#[must_use]
pub fn section(terms: &[Term]) -> Section {
    let fail = terms.iter().filter(|term| term.holds == Some(false)).count();
    let open = terms.iter().filter(|term| term.holds.is_none()).count();
    let undecided = if open == 0 { String::new() } else { format!(", {open} are not decided") };
    let lead = format!(
        "{fail} of {} things that file systems take for granted of storage do not hold for this \
         trace on this drive{undecided}.",
        terms.len()
    );
    let mut section = Section::new("Six assumptions about storage", lead);
    let mut columns = vec![Column::text("assumption"), Column::text("here")];
    columns.extend(["disk", "RAID", "MEMS", "SSD"].map(Column::text));
    let caption = "What is quoted of kinds of devices is from Rajimwale et al., ATC'09, Table 1: \
                   T holds, F fails, (T) holds approximately";
    let mut table = Table::new(caption, columns).whole();
    for term in terms {
        let here = match term.holds {
            Some(true) => "holds",
            Some(false) => "fails",
            None => "not decided",
        };
        let name = format!("{}. {}", term.number, term.name);
        let mut row: Vec<Value> = vec![name.into(), here.into()];
        row.extend([term.disk, term.raid, term.mems, term.ssd].map(|of| letter(of).into()));
        table.rows.push(row);
    }
    section.push(Block::Table(table));
    let why = terms.iter().map(|term| format!("{}. {}", term.number, term.why));
    section.push(Block::Notes(why.collect()));
    section
}

fn letter(quoted: Quoted) -> &'static str {
    match quoted {
        Quoted::True => "T",
        Quoted::False => "F",
        Quoted::Approximately => "(T)",
    }
}
