//! What freeing a block costs on a drive that is so full, where victims are of average
//! fullness, and where they are the emptiest.

use prism_experiments::calc::{Cleaning, Cost};
use prism_report::{Block, Column, Document, Section, Table, Unit, Value};
use serde::Serialize;

#[derive(Debug, Serialize)]
struct CostRow {
    victim_valid_share: f64,
    blocks_compacted: f64,
    pages_copied: f64,
    write_amplification: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    utilization: f64,
    average_victim: CostRow,
    greedy_theory: CostRow,
    greedy_simulated: CostRow,
}

/// What was asked, and the answer.
#[derive(Debug, Serialize)]
pub struct Answer {
    pages_per_block: u32,
    seed: u64,
    rows: Vec<Row>,
}

impl Answer {
    /// The answer for drives with blocks of so many pages.
    #[must_use]
    pub fn new(done: &[Cleaning], pages_per_block: u32, seed: u64) -> Self {
        Self { pages_per_block, seed, rows: done.iter().map(row).collect() }
    }
}

fn row(cleaning: &Cleaning) -> Row {
    let cost = |cost: &Cost| CostRow {
        victim_valid_share: cost.valid,
        blocks_compacted: cost.blocks,
        pages_copied: cost.pages,
        write_amplification: cost.write_amplification,
    };
    Row {
        utilization: cleaning.utilization,
        average_victim: cost(&cleaning.average),
        greedy_theory: cost(&cleaning.theory),
        greedy_simulated: cost(&cleaning.simulated),
    }
}

/// The answer as a document.
#[must_use]
pub fn document(done: &[Cleaning], pages_per_block: u32) -> Document {
    let lead = format!(
        "What freeing one block costs, with {pages_per_block} pages a block and random writes \
         spread evenly: 1/(1-A) of an average victim, and what greedy pays."
    );
    let mut section = Section::new("Cleaning", lead);
    section.push(table("Blocks compacted for each free block.", done, |cost| cost.blocks));
    section.push(table("Pages copied for each free block.", done, |cost| cost.pages.round()));
    section.push(Block::Text(meaning(done)));
    Document::new("prism calc cleaning", "what a full drive pays for a free block").with(section)
}

fn table(caption: &str, done: &[Cleaning], what: impl Fn(&Cost) -> f64) -> Block {
    let columns = vec![
        Column::number("utilization A", Unit::Percent),
        Column::number("average victim", Unit::Count),
        Column::number("greedy, theory", Unit::Count),
        Column::number("greedy, simulated", Unit::Count),
    ];
    let mut table = Table::new(caption, columns).whole();
    for cleaning in done {
        let costs = [&cleaning.average, &cleaning.theory, &cleaning.simulated];
        let mut cells = vec![Value::from(cleaning.utilization)];
        cells.extend(costs.map(|cost| Value::from(what(cost))));
        table.rows.push(cells);
    }
    Block::Table(table)
}

/// What the difference between the columns means, at the fullest of the drives.
fn meaning(done: &[Cleaning]) -> String {
    let fullest = done.iter().max_by(|a, b| a.utilization.total_cmp(&b.utilization));
    let fullest = fullest.expect("the list of utilizations has a default");
    let percent = |share: f64| Unit::Percent.format(share);
    format!(
        "The formula 1/(1-A) takes a victim with the average share of valid pages, as a random \
         one has, while greedy takes the emptiest block: on a drive that is {} full its victims \
         are {} full, so every page that the host writes costs {} programs and not {}.",
        percent(fullest.utilization),
        percent(fullest.simulated.valid),
        Unit::Ratio.format(fullest.simulated.write_amplification),
        Unit::Ratio.format(fullest.average.write_amplification),
    )
}
