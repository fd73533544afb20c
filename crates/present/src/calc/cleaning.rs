//! What freeing a block costs on a drive of given utilization, with victims of average
//! utilization and with the emptiest ones (greedy).

use prism_experiments::calc::{Cleaning, Cost};
use prism_report::{Block, Document, Section, Table, Unit};
use serde_json::{Value as Json, json};

/// The result for drives with `pages_per_block` pages per block, as JSON.
#[must_use]
pub fn json(done: &[Cleaning], pages_per_block: u32, seed: u64) -> Json {
    let cost = |cost: &Cost| {
        json!({
            "victim_valid_share": cost.valid,
            "blocks_compacted": cost.blocks,
            "pages_copied": cost.pages,
            "write_amplification": cost.write_amplification,
        })
    };
    let row = |cleaning: &Cleaning| {
        json!({
            "utilization": cleaning.utilization,
            "average_victim": cost(&cleaning.average),
            "greedy_theory": cost(&cleaning.theory),
            "greedy_simulated": cost(&cleaning.simulated),
        })
    };
    let rows: Vec<Json> = done.iter().map(row).collect();
    json!({"pages_per_block": pages_per_block, "seed": seed, "rows": rows})
}

/// The result as a document.
#[must_use]
pub fn document(done: &[Cleaning], pages_per_block: u32) -> Document {
    let lead = format!(
        "The cost of freeing one block of {pages_per_block} pages under uniform random writes: \
         1/(1-A) for a victim of average utilization, and the cost of greedy cleaning."
    );
    let mut section = Section::new("Cleaning", lead);
    section.push(table("Blocks compacted per free block.", done, |cost| cost.blocks));
    section.push(table("Pages copied per free block.", done, |cost| cost.pages.round()));
    section.push(Block::Text(meaning(done)));
    Document::new("prism calc cleaning", "the cost of a free block on a full drive").with(section)
}

fn table(caption: &str, done: &[Cleaning], what: impl Fn(&Cost) -> f64) -> Block {
    let table = Table::listing(done)
        .number("utilization A", Unit::Percent, |cleaning| cleaning.utilization)
        .number("average victim", Unit::Count, |cleaning| what(&cleaning.average))
        .number("greedy, theory", Unit::Count, |cleaning| what(&cleaning.theory))
        .number("greedy, simulated", Unit::Count, |cleaning| what(&cleaning.simulated));
    Block::Table(table.table(caption).whole())
}

/// Explains the difference between the columns, for the fullest of the drives.
fn meaning(done: &[Cleaning]) -> String {
    let fullest = done.iter().max_by(|a, b| a.utilization.total_cmp(&b.utilization));
    let fullest = fullest.expect("the list of utilizations has a default");
    let percent = |share: f64| Unit::Percent.format(share);
    format!(
        "The formula 1/(1-A) supposes a victim with the average share of valid pages, as a \
         random victim has. Greedy takes the emptiest block: on a drive that is {} full its \
         victims are {} full, so every page that the host writes costs {} programs, not {}.",
        percent(fullest.utilization),
        percent(fullest.simulated.valid),
        Unit::Ratio.format(fullest.simulated.write_amplification),
        Unit::Ratio.format(fullest.average.write_amplification),
    )
}
