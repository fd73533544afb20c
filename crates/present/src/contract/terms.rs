//! The six terms of the unwritten contract, as a section.
//! Reasons are notes below the table, as they are too long for its cells.

use prism_contract::terms::{Quoted, Term};
use prism_report::{Block, Section, Table};

/// The terms as a table: what the source says, and what was found.
#[must_use]
pub fn section(terms: &[Term]) -> Section {
    let fail = terms.iter().filter(|term| term.holds == Some(false)).count();
    let open = terms.iter().filter(|term| term.holds.is_none()).count();
    let undecided = if open == 0 { String::new() } else { format!("; {open} are not decided") };
    let lead = format!(
        "{fail} of {} assumptions that file systems make about storage do not hold for this \
         trace on this drive{undecided}.",
        terms.len()
    );
    let caption = "Disk, RAID, MEMS and SSD are quoted from Rajimwale et al., ATC'09, Table 1: T \
                   holds, F fails, (T) holds approximately";
    let here = |term: &Term| match term.holds {
        Some(true) => "holds",
        Some(false) => "fails",
        None => "not decided",
    };
    let table = Table::listing(terms)
        .text("assumption", |term| format!("{}. {}", term.number, term.name))
        .text("here", here)
        .text("disk", |term| letter(term.disk))
        .text("RAID", |term| letter(term.raid))
        .text("MEMS", |term| letter(term.mems))
        .text("SSD", |term| letter(term.ssd))
        .whole(caption);
    let why = terms.iter().map(|term| format!("{}. {}", term.number, term.why));
    let section = Section::new("Six assumptions about storage", lead);
    section.with(table).with(Block::Notes(why.collect()))
}

fn letter(quoted: Quoted) -> &'static str {
    match quoted {
        Quoted::True => "T",
        Quoted::False => "F",
        Quoted::Approximately => "(T)",
    }
}
