//! `prism validate`: compares the simulation with theory and data sheets.

use clap::Args as ClapArgs;
use prism_present::validation::{self, document, failed, json};

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::process_env::ProcessEnv;

/// Arguments of `prism validate`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism validate --json validate.json")]
pub struct Args {
    /// Only checks whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs every check on all cores and prints the table.
///
/// # Errors
/// [`Failure::Finding`] if a check fails, others if the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let done = validation::run(args.seed, args.only.as_deref(), &ProcessEnv::new())?;
    args.json.show(&json(&done, args.seed), &document(&done))?;
    let failed = failed(&done);
    if failed > 0 {
        return Err(Failure::Finding(format!("{failed} checks failed")));
    }
    Ok(())
}
