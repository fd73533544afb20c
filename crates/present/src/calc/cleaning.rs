//! What freeing a block costs on a drive of given utilization, with victims of average
//! utilization and with the emptiest ones (greedy).

use prism_experiments::calc::{self, CalcError, Cleaning, Cost};
use prism_report::{Block, Document, Section, Table, Unit};
use serde_json::{Value as Json, json};

use crate::env::{Env, run_all};
use crate::error::PresentError;

/// Computes and simulates drives with these shares of valid data, on all cores.
///
/// # Errors
/// [`PresentError::Refused`] if there are none, or a share or the number of pages is out of range.
pub fn run(
    utilizations: &[f64],
    pages_per_block: u32,
    seed: u64,
    env: &impl Env,
) -> Result<Vec<Cleaning>, PresentError> {
    let wrong = |error: CalcError| PresentError::refused(error.to_string());
    if utilizations.is_empty() {
        return Err(PresentError::refused("give at least one utilization"));
    }
    utilizations.iter().try_for_each(|&u| calc::check(u, pages_per_block)).map_err(wrong)?;
    let job = |&share: &f64| move || calc::cleaning(share, pages_per_block, seed);
    let jobs = utilizations.iter().map(job).collect();
    run_all(env, "simulating:", "drives", jobs).into_iter().collect::<Result<_, _>>().map_err(wrong)
}

/// Reads a share, such as `80%` or `0.8`.
///
/// # Errors
/// What is expected.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|value| value / scale);
    share.map_err(|_| format!("{text:?} is not a share; write for example 80% or 0.8"))
}

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
    Block::Table(table.whole(caption))
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
