//! `prism calc cleaning`: the cost of freeing a block by utilization of the drive, with victims of
//! average utilization and with the emptiest ones.

use clap::Args as ClapArgs;
use prism_present::calc::cleaning::{self, document, json, parse_share};

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::process_env::ProcessEnv;

/// Arguments of `prism calc cleaning`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism calc cleaning --utilization 80% --pages-per-block 128
  prism calc cleaning --sweep 50%,70%,90% --json cleaning.json")]
pub struct Args {
    /// Shares of the flash that hold valid data, such as 80% or 0.8, separated by commas
    #[arg(long, value_name = "SHARE", value_delimiter = ',', value_parser = parse_share,
          visible_alias = "sweep", default_value = "50%,60%,70%,80%,90%,95%")]
    utilization: Vec<f64>,
    /// Pages per block
    #[arg(long, value_name = "N", default_value_t = 128)]
    pages_per_block: u32,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// Computes and simulates every utilization, on all cores, and prints the table.
///
/// # Errors
/// [`Failure`] if an argument is out of range or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (pages, seed) = (args.pages_per_block, args.seed);
    let done = cleaning::run(&args.utilization, pages, seed, &ProcessEnv::new())?;
    args.json.show(&json(&done, pages, seed), &document(&done, pages))
}
