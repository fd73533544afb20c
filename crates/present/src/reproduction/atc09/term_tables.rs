//! Table 1 of ATC'09: the terms by drive.

use prism_contract::terms::Quoted;
use prism_experiments::atc09::{DriveTerms, Ends, IdleReads};
use prism_report::{Column, Table, Unit};

fn quoted(quoted: Quoted) -> &'static str {
    match quoted {
        Quoted::True => "T",
        Quoted::False => "F",
        Quoted::Approximately => "T~",
    }
}

/// The terms: quoted columns, then one for each drive.
pub fn terms(all: &[DriveTerms]) -> Table {
    let mut columns = vec![Column::text("term")];
    columns.extend(["Disk", "RAID", "MEMS", "SSD"].map(Column::text));
    columns.extend(all.iter().map(|one| Column::text(one.preset)));
    let mut table = Table::new("T holds, F does not, T~ approximately", columns).whole();
    let Some(first) = all.first() else { return table };
    for (place, term) in first.terms.iter().enumerate() {
        let mut row = vec![format!("{}. {}", term.number, term.name).into()];
        let columns = [term.disk, term.raid, term.mems, term.ssd];
        row.extend(columns.map(|column| quoted(column).into()));
        row.extend(all.iter().map(|one| match one.terms[place].holds {
            Some(true) => "T".into(),
            Some(false) => "F".into(),
            None => prism_report::Value::Missing,
        }));
        table.rows.push(row);
    }
    table
}

/// Why a term is decided otherwise than for the paper's SSDs.
pub fn term_notes(all: &[DriveTerms]) -> Vec<String> {
    let mut notes = vec![
        "Quoted: disk, RAID, MEMS and SSD are the paper's columns. Where a drive has T for an F \
         of the paper's SSDs, its numbers follow. In 3.1 the paper says of some SSDs that their \
         random writes are worse than a disk's, and in 3.3 that addresses can be interchanged \
         as long as all flash is of one type."
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
    let columns = vec![
        Column::text("drive"),
        Column::number("reads, first", Unit::Ratio),
        Column::number("reads, last", Unit::Ratio),
        Column::number("writes, first", Unit::Ratio),
        Column::number("writes, last", Unit::Ratio),
        Column::number("ends differ", Unit::Ratio),
    ];
    let caption = "Term 3: random 4 KiB, one at a time, MB/s in the first and the last sixteenth";
    let mut table = Table::new(caption, columns).whole();
    for one in all {
        let mut row = vec![one.preset.into()];
        row.extend([one.reads, one.writes].into_iter().flatten().map(prism_report::Value::from));
        row.push(one.ratio().into());
        table.rows.push(row);
    }
    table
}

/// What a host sees of background activity.
pub fn idle_reads(reads: &IdleReads) -> Table {
    let columns = vec![
        Column::text("drive"),
        Column::number("mean response", Unit::Nanos),
        Column::number("longest", Unit::Nanos),
    ];
    let caption = "Term 6: reads of 4 KiB, one every 2 ms, by a host that does nothing else";
    let mut table = Table::new(caption, columns).whole();
    let rows = [
        ("only filled", reads.before),
        ("overwritten at random before, cleaning in idle time", reads.after),
    ];
    for (name, reads) in rows {
        let (mean, longest) = (reads.mean * 1e6, reads.longest * 1e6);
        table.rows.push(vec![name.into(), mean.into(), longest.into()]);
    }
    table
}
