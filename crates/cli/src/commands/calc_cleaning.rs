//! `prism calc cleaning`: what freeing a block costs on a drive that is so full, where
//! victims are of average fullness, and where they are the emptiest.

use clap::Args as ClapArgs;
use prism_experiments::calc::{self, Cleaning, Cost};
use prism_host::Progress;
use prism_host::jobs::run_all;
use prism_report::{Block, Column, Document, Section, Table, Unit, Value, terminal};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{JsonArg, screen};

/// Arguments of `prism calc cleaning`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism calc cleaning --utilization 80% --pages-per-block 128
  prism calc cleaning --sweep 50%,70%,90% --json cleaning.json")]
pub struct Args {
    /// Shares of the flash that hold valid data, such as 80% or 0.8; several with commas
    /// between them
    #[arg(long, value_name = "SHARE", value_delimiter = ',', value_parser = parse_share,
          visible_alias = "sweep", default_value = "50%,60%,70%,80%,90%,95%")]
    utilization: Vec<f64>,
    /// Pages of a block
    #[arg(long, value_name = "N", default_value_t = 128)]
    pages_per_block: u32,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct CostRow {
    victim_valid_share: f64,
    blocks_compacted: f64,
    pages_copied: f64,
    write_amplification: f64,
}

#[derive(Serialize)]
struct Row {
    utilization: f64,
    average_victim: CostRow,
    greedy_theory: CostRow,
    greedy_simulated: CostRow,
}

#[derive(Serialize)]
struct Answer {
    pages_per_block: u32,
    seed: u64,
    rows: Vec<Row>,
}

/// Computes and simulates every utilization, on all cores, and prints the table.
///
/// # Errors
/// [`Failure`] if an argument is out of range or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (pages, seed) = (args.pages_per_block, args.seed);
    let wrong = |error: calc::CalcError| Failure::Usage(error.to_string());
    args.utilization.iter().try_for_each(|&share| calc::check(share, pages)).map_err(wrong)?;
    let progress = Progress::on_stderr();
    progress.start_count("simulating:", "drives", Some(args.utilization.len() as u64));
    let jobs = args.utilization.iter().map(|&share| move || calc::cleaning(share, pages, seed));
    let done = run_all(jobs.collect(), |finished| progress.reached(finished as u64));
    progress.clear();
    let done: Vec<Cleaning> = done.into_iter().collect::<Result<_, _>>().map_err(wrong)?;
    let rows = done.iter().map(row).collect();
    let (width, style) = screen();
    let text = terminal::render(&document(&done, pages), width, style);
    args.json.write(&Answer { pages_per_block: pages, seed, rows }, &text)?;
    Ok(())
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

fn document(done: &[Cleaning], pages_per_block: u32) -> Document {
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

fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|value| value / scale);
    share.map_err(|_| format!("{text:?} is no share; write for example 80% or 0.8"))
}
