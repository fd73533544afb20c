//! The results of `prism reproduce prism-ssd`, as a document and as JSON.

use prism_experiments::Scale;
use prism_experiments::comparison::Comparison;
use prism_experiments::prism_ssd::{
    BACKEND, CALL, CPU, Change, DEVIATION, EXPONENT, Engine, FsRow, FsSum, GRAPHS, GcRow, GraphRow,
    HitRow, IN_MEMORY, INGEST, OWN, PARSE, Results, SHARD, Saving, ServerRow, Setup, Shape, USED,
    USED_BY_FEW, Variant, WINDOWS, compare, lines_of_graphs, shapes,
};
use prism_report::json::table;
use prism_report::{Block, Column, Document, Section, Table, Unit};
use serde_json::{Value as Json, json};

use super::{comparison_tables, scale_name};

/// The results.
pub struct PrismSsd {
    /// Seed of everything random.
    pub seed: u64,
    /// How much was simulated.
    pub scale: Scale,
    /// What was measured.
    pub found: Results,
    /// The paper's numbers compared with ours.
    pub compared: Vec<Comparison>,
    /// The paper's relations between the caches.
    pub shapes: Vec<Shape>,
}

impl PrismSsd {
    /// The results, compared with the paper.
    #[must_use]
    pub fn new(seed: u64, scale: Scale, found: Results) -> Self {
        let (compared, shapes) = (compare(&found), shapes(&found));
        Self { seed, scale, found, compared, shapes }
    }
}

/// The results as JSON.
#[must_use]
pub fn json(result: &PrismSsd) -> Json {
    let found = &result.found;
    json!({
        "id": "prism-ssd",
        "seed": result.seed,
        "scale": scale_name(result.scale),
        "compared": comparison_tables::json(&result.compared),
        "relations": table(&relations(&result.shapes)),
        "figure_4": table(&hits(&found.hits)),
        "figure_5": table(&server(&found.backend)),
        "figures_6_and_7": table(&server(&found.server)),
        "table_1": table(&cleaning(&found.gc)),
        "figure_8": table(&workloads(&found.files)),
        "table_2": table(&file_copies(found)),
        "figure_9": table(&graph_engines(&found.graphs)),
        "figure_9_saved": table(&savings(found)),
        "table_3": table(&graphs()),
        "table_4": table(&lines()),
    })
}

/// The results as a document.
#[must_use]
pub fn document(result: &PrismSsd) -> Document {
    let Setup { divisor, .. } = Setup::new(result.scale, result.seed);
    let subtitle = format!(
        "Shen, Chen, Shao, ICDCS 2019: the key-value cache at each level, 1/{divisor} of the \
         bytes, the file system and the graph engine, seed {}",
        result.seed
    );
    let found = &result.found;
    let lead = "Published numbers that are independent. The deviation of the keys in Figure 4 and \
                the time of the backend in Figure 5 are fitted to one number each, which is not \
                compared.";
    let mut document = Document::new("The applications of Prism-SSD", subtitle);
    document.sections = vec![
        comparison_tables::section("Compared", lead, &result.compared),
        Section::new("Relations", "What the paper says about the order of the caches.")
            .with(relations(&result.shapes)),
        Section::new(
            "Figure 4: hit ratio",
            format!(
                "By flash in percent of the data. Keys by a Normal distribution (deviation \
                 {DEVIATION} of the keys) or Zipf's law (exponent {EXPONENT}), each fitted to \
                 Original at 6 %. Policy is as Original, and Function as Raw."
            ),
        )
        .with(hits(&found.hits)),
        Section::new(
            "Figures 6 and 7: the server alone",
            format!(
                "16 clients with one request each, without CPU time of the server and with {CPU} \
                 for a request. A miss costs nothing here."
            ),
        )
        .with(server(&found.server)),
        Section::new(
            "Table I: cleaning",
            "Copies over bytes of items that were set. First as compared, then with one thing \
             changed.",
        )
        .with(cleaning(&found.gc)),
        Section::new(
            "Table IV: lines of code",
            "What differs between the programs: the file of the level, without comments and blank \
             lines. The paper counts what was added to fatcache, all of ULFS-SSD, and what \
             ULFS-Prism adds to that. GraphChi: segments instead of files, and the two ranges, \
             too.",
        )
        .with(lines()),
        limits(),
    ];
    let place = document.sections.len() - 2;
    let files = file_systems(found).into_iter();
    document.sections.splice(place..place, files.chain(graph_sections(found)));
    if !found.backend.is_empty() {
        let lead =
            format!("Flash of 10 % of the data; a miss costs {BACKEND}, then the item is set.");
        let section = Section::new("Figure 5: with a backend", lead).with(server(&found.backend));
        document.sections.insert(3, section);
    }
    document
}

fn relations(all: &[Shape]) -> Table {
    let holds = |shape: &Shape| match shape.holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not run",
    };
    Table::listing(all)
        .text("relation", |shape| shape.what)
        .text("place", |shape| shape.place)
        .text("holds", holds)
        .whole("")
}

fn hits(rows: &[HitRow]) -> Table {
    Table::listing(rows)
        .text("keys", |row| row.keys.name())
        .text("cache", |row| row.engine.name())
        .number("of the data", Unit::Percent, |row| f64::from(row.percent) / 100.0)
        .number("hit ratio", Unit::Percent, |row| row.hit_ratio)
        .whole("")
}

fn server(rows: &[ServerRow]) -> Table {
    Table::listing(rows)
        .text("cache", |row| row.engine.name())
        .text("CPU time", |row| if row.cpu { "yes" } else { "no" })
        .number("gets", Unit::Percent, |row| f64::from(row.gets) / 100.0)
        .number("requests/s", Unit::Count, |row| row.served.throughput() as u64)
        .number("mean latency", Unit::Nanos, |row| row.served.latency())
        .column(Column::number("hits", Unit::Percent), |row| {
            (row.served.gets > 0).then(|| row.served.hit_ratio())
        })
        .number("erases", Unit::Count, |row| row.served.flash.erases)
        .whole("")
}

fn cleaning(rows: &[GcRow]) -> Table {
    Table::listing(rows)
        .text("cache", |row| row.engine.name())
        .text("changed", |row| row.what)
        .number("S", Unit::Count, |row| row.setup.divisor)
        .number("items copied", Unit::Ratio, |row| row.item_copies())
        .number("pages copied", Unit::Ratio, |row| row.page_copies())
        .number("erases", Unit::Count, |row| row.served.flash.erases)
        .column(Column::number("sets/s", Unit::Count), |row| {
            // The store without the library has no clock.
            (row.served.time.0 > 0).then(|| row.served.throughput() as u64)
        })
        .whole("")
}

fn file_systems(found: &Results) -> [Section; 2] {
    [
        Section::new(
            "Figure 8: file systems",
            format!(
                "Filebench's workloads in files that take {USED} % of df (segments over all \
                 channels: {USED_BY_FEW} %), fitted to the file copies of Table II. A call takes \
                 {CALL}. Copied: by cleaning and by the device, over what else is written."
            ),
        )
        .with(workloads(&found.files)),
        Section::new(
            "Table II: copies of file systems",
            "The three workloads together, first as compared, then with one thing changed. Bytes \
             over what is written besides copies of files.",
        )
        .with(file_copies(found)),
    ]
}

fn workloads(rows: &[FsRow]) -> Table {
    let written = |row: &FsRow| (row.blocks - row.copied) as f64;
    Table::listing(rows)
        .text("workload", |row| row.workload.name())
        .text("file system", |row| row.variant.name())
        .text("changed", |row| row.change.name())
        .number("calls/s", Unit::Count, |row| row.rate() as u64)
        .column(Column::number("fsync", Unit::Nanos), FsRow::fsync_latency)
        .number("files copied", Unit::Ratio, |row| row.copied as f64 / written(row))
        .number("device copies", Unit::Ratio, |row| 4.0 * row.flash.copies as f64 / written(row))
        .number("erases", Unit::Count, |row| row.flash.erases)
        .whole("")
}

fn file_copies(found: &Results) -> Table {
    let sum = |change, variant| Some((variant, change, found.table_2(variant, change)?));
    let all = Change::ALL.into_iter();
    let rows: Vec<(Variant, Change, FsSum)> =
        all.flat_map(|change| Variant::ALL.map(|variant| sum(change, variant))).flatten().collect();
    Table::listing(&rows)
        .text("file system", |row| row.0.name())
        .text("changed", |row| row.1.name())
        .number("files copied", Unit::Ratio, |row| row.2.copied_of_written())
        .number("device copies", Unit::Ratio, |row| {
            4.0 * row.2.device_copies as f64 / row.2.written as f64
        })
        .number("erases", Unit::Count, |row| row.2.erases)
        .whole("")
}

fn graph_sections(found: &Results) -> [Section; 2] {
    let lead = format!(
        "PageRank; virtual time. CPU time of an edge was measured elsewhere: text {PARSE} ns, \
         shards {SHARD}, an iteration {IN_MEMORY} with vertices in memory and {WINDOWS} by sliding \
         windows; Prism's engine {INGEST} for ingest, {OWN} for an iteration. Read and written: \
         by execution. Saved: by how much Policy is shorter than Original; where a change concerns \
         one of them, the other is without it."
    );
    [
        Section::new("Figure 9: graph engines", lead)
            .with(graph_engines(&found.graphs))
            .with(savings(found)),
        Section::new("Table III: graphs", "Not compared: what the paper ran, and what ran here.")
            .with(graphs()),
    ]
}

fn graph_engines(rows: &[GraphRow]) -> Table {
    let sum = |[shards, results]: [u64; 2]| shards + results;
    Table::listing(rows)
        .text("engine", |row| row.run.system.name())
        .text("on", |row| row.run.below.name())
        .text("changed", |row| row.run.change.name())
        .number("edges", Unit::Count, |row| row.edges)
        .number("preprocessing", Unit::Nanos, |row| row.preprocessing)
        .number("execution", Unit::Nanos, |row| row.execution)
        .number("total", Unit::Nanos, GraphRow::total)
        .number("read", Unit::Bytes, |row| sum(row.traffic.read))
        .number("written", Unit::Bytes, |row| sum(row.traffic.written))
        .number("pages copied", Unit::Count, |row| row.flash.copies)
        .number("erases", Unit::Count, |row| row.flash.erases)
        .whole("")
}

fn savings(found: &Results) -> Table {
    let percent = |step: usize| move |row: &Saving| row.percent[step] / 100.0;
    Table::listing(&Saving::all(found))
        .text("engine", |row| row.system.name())
        .text("changed", |row| row.change.name())
        .number("preprocessing saved", Unit::Percent, percent(0))
        .number("execution saved", Unit::Percent, percent(1))
        .number("total saved", Unit::Percent, percent(2))
        .whole("")
}

fn graphs() -> Table {
    Table::listing(&GRAPHS)
        .text("graph", |graph| graph.name)
        .text("nodes", |graph| graph.vertices)
        .text("edges", |graph| graph.edges)
        .text("size", |graph| graph.size)
        .text("remark", |graph| graph.remark)
        .text("here", |graph| graph.here)
        .whole("")
}

fn lines() -> Table {
    let published = [None, Some(210), Some(860), Some(1450), Some(2100)];
    let mut rows: Vec<(&str, Option<u64>, usize)> = Engine::ALL
        .into_iter()
        .zip(published)
        .map(|(engine, published)| (engine.name(), published, engine.lines()))
        .collect();
    let files = Variant::ALL.into_iter().zip([Some(2880), Some(660)]);
    rows.extend(files.map(|(one, published)| (one.name(), published, one.lines())));
    rows.push(("GraphChi at the policy level", Some(490), lines_of_graphs()));
    Table::listing(&rows)
        .text("program", |row| row.0)
        .column(Column::number("published", Unit::Count), |row| row.1)
        .number("ours", Unit::Count, |row| row.2 as u64)
        .whole("")
}

fn limits() -> Section {
    Section::new("Limits", "").with(Block::Notes(vec![
        "Virtual time is that of flash, without CPU time of clients, kernel and library; of graph \
         engines it has the CPU time that is named."
            .into(),
        "The number of blocks is the paper's; blocks, items in the cache and requests are divided, \
         sizes of items are not. The time of an erase is divided as blocks are."
            .into(),
        "In a loop of 16 clients the mean latency is 16 over the throughput, so Figure 7 is not \
         compared."
            .into(),
    ]))
}
