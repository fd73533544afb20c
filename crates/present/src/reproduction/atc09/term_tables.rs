//! Table 1 of ATC'09: the terms by drive.

use prism_contract::terms::Quoted;
use prism_experiments::atc09::{DriveTerms, Ends, IdleReads};
use prism_report::{Table, Unit};

fn quoted(quoted: Quoted) -> &'static str {
    match quoted {
        Quoted::True => "T",
        Quoted::False => "F",
        Quoted::Approximately => "T~",
    }
}

/// The terms: quoted columns, then one for each drive.
pub fn terms(all: &[DriveTerms]) -> Table {
    let terms = all.first().map_or(&[][..], |first| &first.terms);
    let places: Vec<_> = terms.iter().enumerate().collect();
    let mut listing = Table::listing(&places)
        .text("term", |(_, term)| format!("{}. {}", term.number, term.name))
        .text("Disk", |(_, term)| quoted(term.disk))
        .text("RAID", |(_, term)| quoted(term.raid))
        .text("MEMS", |(_, term)| quoted(term.mems))
        .text("SSD", |(_, term)| quoted(term.ssd));
    for one in all {
        listing = listing.text(one.preset, |&(place, _)| {
            one.terms[place].holds.map(|holds| if holds { "T" } else { "F" })
        });
    }
    listing.whole("T holds, F does not, T~ approximately")
}

/// Why a term is decided differently from the paper's SSDs.
pub fn term_notes(all: &[DriveTerms]) -> Vec<String> {
    let mut notes = vec![
        "The columns disk, RAID, MEMS and SSD are quoted from the paper. For each drive with a T \
         where the paper's SSDs have an F, the numbers are given below. Section 3.1 of the \
         paper says that some SSDs have slower random writes than a disk, and 3.3 that \
         addresses can be interchanged as long as all flash is of one type."
            .to_owned(),
    ];
    for one in all {
        for term in &one.terms {
            if term.holds == Some(true) && term.ssd == Quoted::False {
                notes.push(format!("{}, term {}: {}", one.preset, term.number, term.why));
            }
        }
    }
    notes
}

/// The two ends of the addresses of each drive.
pub fn ends(all: &[Ends]) -> Table {
    let caption = "Term 3: random 4 KiB, one at a time, MB/s in the first and the last sixteenth";
    Table::listing(all)
        .text("drive", |one| one.preset)
        .number("reads, first", Unit::Ratio, |one| one.reads[0])
        .number("reads, last", Unit::Ratio, |one| one.reads[1])
        .number("writes, first", Unit::Ratio, |one| one.writes[0])
        .number("writes, last", Unit::Ratio, |one| one.writes[1])
        .number("ends differ", Unit::Ratio, |one| one.ratio())
        .whole(caption)
}

/// The effect of background activity on reads of an idle host.
pub fn idle_reads(reads: &IdleReads) -> Table {
    let rows =
        [("filled", reads.before), ("overwritten at random, cleaning in idle time", reads.after)];
    let caption = "Term 6: reads of 4 KiB, one every 2 ms, without other requests";
    Table::listing(&rows)
        .text("drive", |&(name, _)| name)
        .number("mean response", Unit::Nanos, |(_, reads)| reads.mean * 1e6)
        .number("longest", Unit::Nanos, |(_, reads)| reads.longest * 1e6)
        .whole(caption)
}
