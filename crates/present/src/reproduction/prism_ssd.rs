//! The results of `prism reproduce prism-ssd`, as a document and as JSON.

use prism_experiments::Scale;
use prism_experiments::comparison::Comparison;
use prism_experiments::prism_ssd::{
    BACKEND, CPU, DEVIATION, EXPONENT, Engine, GcRow, HitRow, Results, ServerRow, Setup, Shape,
    compare, shapes,
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
        "table_4": table(&lines()),
    })
}

/// The results as a document.
#[must_use]
pub fn document(result: &PrismSsd) -> Document {
    let Setup { divisor, .. } = Setup::new(result.scale, result.seed);
    let subtitle = format!(
        "Shen, Chen, Shao, ICDCS 2019: the key-value cache at each level, 1/{divisor} of the \
         bytes, seed {}",
        result.seed
    );
    let found = &result.found;
    let lead = "Published numbers that are independent. The deviation of the keys in Figure 4 and \
                the time of the backend in Figure 5 are fitted to one number each, which is not \
                compared.";
    let mut document = Document::new("The cache of Prism-SSD", subtitle);
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
            "What differs between the caches: the file of the level, without comments and blank \
             lines. The paper counts what was added to fatcache.",
        )
        .with(lines()),
        limits(),
    ];
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
        .table("")
        .whole()
}

fn hits(rows: &[HitRow]) -> Table {
    Table::listing(rows)
        .text("keys", |row| row.keys.name())
        .text("cache", |row| row.engine.name())
        .number("of the data", Unit::Percent, |row| f64::from(row.percent) / 100.0)
        .number("hit ratio", Unit::Percent, |row| row.hit_ratio)
        .table("")
        .whole()
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
        .table("")
        .whole()
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
        .table("")
        .whole()
}

fn lines() -> Table {
    let published = [None, Some(210), Some(860), Some(1450), Some(2100)];
    let rows: Vec<(Engine, Option<u64>)> = Engine::ALL.into_iter().zip(published).collect();
    Table::listing(&rows)
        .text("cache", |row| row.0.name())
        .column(Column::number("published", Unit::Count), |row| row.1)
        .number("ours", Unit::Count, |row| row.0.lines() as u64)
        .table("")
        .whole()
}

fn limits() -> Section {
    Section::new("Limits", "").with(Block::Notes(vec![
        "Virtual time is that of flash, without CPU time of clients, kernel and library.".into(),
        "The number of blocks is the paper's; blocks, items in the cache and requests are divided, \
         sizes of items are not. The time of an erase is divided as blocks are."
            .into(),
        "In a loop of 16 clients the mean latency is 16 over the throughput, so Figure 7 is not \
         compared."
            .into(),
    ]))
}
