//! The document: the verdicts first, then the numbers behind them.

use prism_experiments::Scale;
use prism_experiments::unwritten::{
    Figure1, Judged, OBSERVATIONS, ObservationVerdict, Observed, Pair, WINDOW,
};
use prism_report::{
    Axis, Block, Chart, Curve, CurveShape, Curves, Document, Figure, Section, Table, Unit,
};

use super::{Reproduced, contract_tables, micro_tables};

/// The results as a document.
#[must_use]
pub fn document(found: &Reproduced) -> Document {
    let subtitle = format!(
        "He, Kannan, Arpaci-Dusseau, Arpaci-Dusseau, EuroSys'17, on {} of {} traces, seed {}",
        found.observed.len(),
        Pair::all().count(),
        found.seed
    );
    let mut document = Document::new("The unwritten contract of solid state drives", subtitle);
    document.sections = vec![
        observations(found),
        prices(found),
        scores(found),
        figure_1(found),
        depths(found),
        requests(found),
        rules(found),
        cold_reads(found),
        sequential(found),
        reasons(found),
        limits(found),
    ];
    document
}

fn with_table(title: &str, lead: &str, table: Table) -> Section {
    Section::new(title, lead).with(table)
}

fn observations(found: &Reproduced) -> Section {
    let mut section = Section::new(
        "Observations",
        "The observations of the paper, and whether these traces show them. The rule that \
         decides each, and its numbers, are listed at the end.",
    );
    let figure = |outcome: ObservationVerdict| {
        Figure::new(outcome.name(), Unit::Count, found.count(outcome))
            .note(format!("of {}", OBSERVATIONS.len()))
    };
    section.push(ObservationVerdict::ALL.map(figure).to_vec());
    let table = Table::listing(&found.judged)
        .number("no.", Unit::Count, |judged| judged.number)
        .text("verdict", |judged| judged.outcome.name())
        .text("observation", |judged| judged.title)
        .whole("");
    section.push(table);
    section
}

fn prices(found: &Reproduced) -> Section {
    let lead = "Each rule kept and broken on the same drive (preset wiscsim). Published prices \
                are from the paper's introduction of the rules and most likely come from the \
                literature that it cites, so a difference is no contradiction.";
    let table = micro_tables::prices(&found.comparisons);
    let mut section = with_table("Micro-benchmarks", lead, table);
    section.push(micro_tables::sides(&found.comparisons));
    section.push(micro_tables::wear(&found.comparisons));
    if found.scale == Scale::Quarter {
        let note = "A quarter of the channels: prices of request scale are lower accordingly.";
        section.push(Block::Notes(vec![note.into()]));
    }
    section
}

fn scores(found: &Reproduced) -> Section {
    let lead = "How far each application on each file system keeps the rules, for a drive of 16 \
                channels with pages of 2 KiB, a tenth of its map cached.";
    with_table("The five rules", lead, contract_tables::scores(&found.observed))
}

fn figure_1(found: &Reproduced) -> Section {
    let lead = format!(
        "Figure 1: requests outstanding while a store compacts. The window is the {WINDOW} in \
         which the lesser of bytes read and bytes written is largest, the first of equal ones."
    );
    let table = contract_tables::figure_1(&found.observed);
    let mut section = with_table("Outstanding requests", &lead, table);
    section.push(Block::Notes(vec![
        "Stores that read fewer than 50 times from the device have no such window. For deeper \
         reads, see the note on queue depth. Deeper writes are larger bursts of a store that \
         flushes and compacts at once; the bursts of the paper's stores are unknown."
            .into(),
    ]));
    for observed in contract_tables::stores(&found.observed) {
        if let Some(figure) = &observed.figure1 {
            section.push(chart(observed, figure));
        }
    }
    section
}

fn chart(observed: &Observed, figure: &Figure1) -> Chart {
    let name = observed.facts.pair.name();
    let points = |count: fn(&prism_experiments::unwritten::Point) -> u32| {
        let point = |p| (figure_time(p), f64::from(count(p)));
        figure.points.iter().map(point).collect()
    };
    Chart::Curves(Curves {
        title: format!("Outstanding requests, {name}"),
        caption: format!("A window of {WINDOW}, starting at {}.", figure.start),
        x: Axis::linear("time", Unit::Nanos),
        y: Axis::linear("outstanding", Unit::Count),
        series: vec![
            Curve::new("reads", CurveShape::Steps, points(|point| point.reads)),
            Curve::new("writes", CurveShape::Steps, points(|point| point.writes)),
        ],
        marks: Vec::new(),
    })
}

fn figure_time(point: &prism_experiments::unwritten::Point) -> f64 {
    point.at.0 as f64
}

fn depths(found: &Reproduced) -> Section {
    let lead = "Median of the requests outstanding at an issue, including the request itself; \
                discards count as outstanding, flushes do not. The paper has sequential and \
                random accesses, and both at once; our traces have one access pattern and are \
                compared with all three.";
    with_table("Queue depth", lead, contract_tables::depths(&found.observed)).with(Block::Notes(
        vec![
        "The paper defines depth without the request itself, but none of its medians is below \
         1, as they would be with one request at a time: so they include it."
            .into(),
        "Deeper reads: a read-ahead is issued in many pieces at once, where the paper's kernel \
         issued one request; what splits it is not known. Other differences are unexplained; in \
         the shipped traces one CPU serves the 16 threads of Varmail."
            .into(),
    ],
    ))
}

fn requests(found: &Reproduced) -> Section {
    let lead = "Sizes; barriers (flushes, and writes with forced unit access) and the bytes \
                written between them; discards while the application runs, their share of the \
                requests, and later discards.";
    with_table("Requests", lead, contract_tables::sizes(&found.observed))
        .with(contract_tables::barriers(&found.observed))
}

fn rules(found: &Reproduced) -> Section {
    let lead = "Misses count units looked up, as in the paper, with 1 % and 10 % of the map \
                cached; unaligned is bytes merged over bytes valid at the end, for blocks of 128 \
                KiB and 1 MiB; valid is the share of valid data in blocks that hold some, with one \
                open block and with one for each segment of 128 MiB; zombies are blocks with both \
                data and garbage; dead is data that is mapped but discarded later. Second table: \
                mean writes per block of data and of metadata, the share of the writes that goes \
                to the most written tenth of the blocks, the share of bytes that overwrite data, \
                bytes that the accessed part of the map covers over bytes written, and writes per \
                block in the busiest sixty-fourth of the addresses over the mean.";
    let table = contract_tables::rule_numbers(&found.observed);
    with_table("Behind the scores", lead, table).with(contract_tables::lifetimes(&found.observed))
}

fn cold_reads(found: &Reproduced) -> Section {
    let lead = "After the usual run the file system is mounted anew, and records are read in the \
                order of their keys (every mail of Varmail) and then, mounted anew again, at \
                random, for each setting of the device's read-ahead. Depth is the median of the \
                reads outstanding, including the read itself.";
    with_table("Reads with cold caches", lead, contract_tables::cold_reads(&found.observed))
}

fn sequential(found: &Reproduced) -> Section {
    let lead = "Updates in the order of keys by one instance, and the same work by two or four at \
                once, each in a folder of its own: bytes merged over live bytes, with logical \
                blocks of 1 MiB; data of the first instance when its folder is removed, and the \
                share of it in flash blocks of which a tenth or more of the valid data stays, with \
                an open block for each segment of 128 MiB.";
    with_table("Several instances", lead, contract_tables::sequential(&found.observed))
}

fn reasons(found: &Reproduced) -> Section {
    Section::new(
        "Why each verdict",
        "An observation is reproduced if its rule holds. The numbers are those that the rule \
         compares.",
    )
    .with(Block::Notes(found.judged.iter().map(reason).collect()))
}

fn reason(judged: &Judged) -> String {
    let Judged { number, title, rule, outcome, supporting, opposing, why } = judged;
    let mut text = format!("{number}. {title}: {}. Rule: {rule}.", outcome.name());
    // Without a verdict, numbers count neither for the observation nor against it.
    let against = if *outcome == ObservationVerdict::NotTestable { "Found" } else { "Against" };
    for (what, numbers) in [("For", supporting), (against, opposing)] {
        if !numbers.is_empty() {
            text.push_str(&format!(" {what}: {}.", numbers.join("; ")));
        }
    }
    if !why.is_empty() {
        text.push_str(&format!(" Why: {why}."));
    }
    text
}

fn limits(found: &Reproduced) -> Section {
    let mut notes = vec![
        "The traces are of the same applications and file systems, not of the paper's runs: \
         other versions, kernels and amounts."
            .to_owned(),
        "The shipped traces have devices of 1 GiB, as the paper's; all file systems ran under one \
         kernel on one machine with a single CPU, on both of which it depends how deep queues are."
            .to_owned(),
        "Writes are counted in blocks of 4 KiB, where the paper counts flash pages of 2 KiB; \
         open blocks do not count as zombies, and the map takes no blocks."
            .to_owned(),
    ];
    if !found.missing.is_empty() {
        let names = found.missing_names().join(", ");
        notes.push(format!(
            "These traces are missing, so the verdicts rest on the others: {names}."
        ));
    }
    Section::new("What limits this", "").with(Block::Notes(notes))
}
