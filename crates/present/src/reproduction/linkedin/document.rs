//! The document: the article's numbers first, then the measurements.

use prism_experiments::Scale;
use prism_experiments::linkedin::{
    FullRow, LARGE, Price, RATE_SIZE, RECORD, Results, SKEW, SMALL, ThreadsRow, changes,
};
use prism_report::{
    Axis, Block, Chart, Curve, CurveShape, Curves, Document, Mark, Section, Table, Unit,
};

use super::{LinkedIn, tables};
use crate::reproduction::{comparison_tables, scale_name};

/// The results as a document.
#[must_use]
pub fn document(result: &LinkedIn) -> Document {
    let subtitle = format!(
        "the article of 2016 on the preset pcie-mlc, scale {}, seed {}",
        scale_name(result.scale),
        result.seed
    );
    let lead = "The numbers of the article, by heading, compared with a simulated drive.";
    let mut document = Document::new("Designing SSD-friendly applications", subtitle);
    document.sections = vec![comparison_tables::section("Compared", lead, &result.compared)];
    document.sections.extend(sections(&result.found));
    document.sections.push(limits(result.scale));
    document
}

fn with_table(title: &str, lead: &str, table: Table) -> Section {
    Section::new(title, lead).with(table)
}

fn sections(found: &Results) -> Vec<Section> {
    vec![
        lives(found),
        updates(found),
        users(found),
        small_changes(found),
        rates(found),
        full(found),
        threads(found),
        sizes(found),
        mechanisms(found),
    ]
}

fn threads(found: &Results) -> Section {
    let lead = format!(
        "Writes of {SMALL} and {LARGE} to new files; each thread has one write in flight and its \
         own address range."
    );
    with_table("Threads", &lead, tables::threads(&found.threads))
}

fn sizes(found: &Results) -> Section {
    let lead = "The larger a write, the less several threads gain. Below is the article's example: \
                16 dies with pages of 4 KiB, where only the dies take time and a write completes \
                on flash.";
    let mut section = with_table("Sizes", lead, tables::sizes(&found.sizes));
    let of = |threads: u32| {
        let rows = found.sizes.iter().filter(move |row| row.threads == threads);
        rows.map(|row: &ThreadsRow| (row.size.0 as f64, row.stretch.rate)).collect()
    };
    section.push(Chart::Curves(Curves {
        title: "Bandwidth by size".into(),
        caption: "One thread and eight threads, each with one write in flight.".into(),
        x: Axis::log("size", Unit::Bytes),
        y: Axis::linear("bandwidth", Unit::BytesPerSec),
        series: vec![
            Curve::new("1 thread", CurveShape::Line, of(1)),
            Curve::new("8 threads", CurveShape::Line, of(8)),
        ],
        marks: vec![mark(SMALL.0, "10 KB"), mark(LARGE.0, "10 MB")],
    }));
    section.push(tables::threshold(&found.threshold));
    section
}

fn mark(x: u64, label: &str) -> Mark {
    Mark { x: x as f64, label: label.into() }
}

fn mechanisms(found: &Results) -> Section {
    let lead = "Mechanisms that could make eight threads of large writes slower than two.";
    let mut section =
        with_table("Why eight threads are slower", lead, tables::mechanisms(&found.slower));
    section.push(Block::Notes(vec![
        "A used drive that has to clean is about half as fast, with two threads as with eight, \
         and the published 500 MB/s lie between the two: the run with eight threads may have \
         taken place when the free space of the drive was used up. The article does not state \
         the fill of its drive. It names contention and the write-back of the operating system \
         as reasons; neither is part of a drive."
            .into(),
    ]));
    section
}

fn rates(found: &Results) -> Section {
    let lead = format!(
        "Writes of {RATE_SIZE} at fixed rates; latency counts from the time a write is due. Counts \
         of writes that take more than 50 ms are scaled from the simulated time to two hours."
    );
    with_table("Rates", &lead, tables::rates(&found.rates)).with(Block::Notes(vec![
        "Cleaning alternates with host writes, a program unit at a time, so no write waits until \
         a whole block is emptied, which takes several times ten milliseconds of programs on \
         one die. Where the drive cannot keep up, its queue grows without bound, and so does \
         the latency."
            .into(),
        "Background cleaning cleans more blocks than necessary, with more valid data in them: \
         write amplification is higher."
            .into(),
    ]))
}

fn full(found: &Results) -> Section {
    let lead = "The net cost of freeing a block of 128 pages under uniform random writes: by the \
                article's formulas 1/(1-A) and P A/(1-A), and simulated.";
    let mut section = with_table("Full drives", lead, tables::full(&found.full));
    let curve = |name: &str, of: fn(&FullRow) -> Price| {
        let points = found.full.iter().map(|row| (row.full, of(row).pages)).collect();
        Curve::new(name, CurveShape::Line, points)
    };
    section.push(Chart::Curves(Curves {
        title: "Pages copied per free block".into(),
        caption: "By utilization of the drive.".into(),
        x: Axis::linear("full", Unit::Percent),
        y: Axis::linear("pages", Unit::Count),
        series: vec![
            curve("formula", |row| row.formula),
            curve("random victims", |row| row.random),
            curve("greedy", |row| row.greedy),
        ],
        marks: Vec::new(),
    }));
    section
}

fn lives(found: &Results) -> Section {
    let lead = "1 TB at 100 MB/s: by the article's formula with its write amplification, by the \
                formula with that of a simulated drive whose spare flash should give the \
                article's, and by the erases of that simulation.";
    with_table("Lifetimes", lead, tables::lives(&found.lives))
}

fn updates(found: &Results) -> Section {
    let lead = "One thread on a drive filled by such updates. To flash, bare: the time until the \
                data is on flash, without write-back cache and firmware time.";
    with_table("Updates in place", lead, tables::updates(&found.updates)).with(Block::Notes(vec![
        "Published: about 20,000 updates/s both in place and elsewhere on an SSD, 280 and 170 on \
         a hard disk. A write-back cache makes all of them equal; without it, a drive that has to \
         program a part of a page must first read the rest."
            .into(),
    ]))
}

fn users(found: &Results) -> Section {
    let lead = format!(
        "User records of {RECORD}, of which {:.0} % get {:.0} % of the updates; updated pages are \
         written at checkpoints. The article has no numbers.",
        100.0 * SKEW.units,
        100.0 * SKEW.writes
    );
    with_table("Hot and cold data", &lead, tables::users(&found.users)).with(Block::Notes(vec![
        "Pages of hot users take several updates between two checkpoints, so fewer are written. \
         A drive with one open block still mixes them with cold pages and copies more; \
         separated on flash as well, they leave blocks that are nearly empty."
            .into(),
    ]))
}

fn small_changes(found: &Results) -> Section {
    let lead = "Bytes written and bytes programmed to flash, per byte that changes: each change in \
                its own page, in its own sectors, or as many changes as fit in a page of a log.";
    with_table("Compact data", lead, tables::changes(&changes(&found.updates)))
}

fn limits(scale: Scale) -> Section {
    let mut notes = vec![
        "The host is threads that wait for their writes. File system, page cache and CPU are \
         modelled by a fitted time per write."
            .into(),
        "Figures of hard disks are quoted, not simulated.".into(),
    ];
    if scale == Scale::Quarter {
        notes.push("A quarter of the work: the noise is larger.".into());
    }
    Section::new("Limits", "").with(Block::Notes(notes))
}
