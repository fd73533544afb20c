//! `prism validate`: compares the simulation with theory and data sheets.

use clap::Args as ClapArgs;
use prism_experiments::{Check, Scale, checks, datasheet, oracles, tiers};
use prism_host::Progress;
use prism_host::jobs::run_all;
use prism_present::validation::{document, failed, json};
use prism_ssd::DriveSpec;

use crate::failure::Failure;
use crate::output::JsonArg;

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
    let mut pending = checks(args.seed, Scale::Full);
    pending.extend(tiers::checks(args.seed, Scale::Full));
    pending.extend(oracles::checks(args.seed, Scale::Full));
    for name in DriveSpec::preset_names() {
        let device = DriveSpec::preset(name).map_err(|e| Failure::Usage(e.to_string()))?;
        pending.extend(datasheet::checks(&device, args.seed));
    }
    if let Some(part) = &args.only {
        pending.retain(|check| check.what.contains(part));
        if pending.is_empty() {
            return Err(Failure::Usage(format!("no check's name contains {part:?}")));
        }
    }
    let progress = Progress::on_stderr();
    progress.start_count("checking:", "checks", Some(pending.len() as u64));
    let jobs = pending.into_iter().map(|check| || check.run()).collect();
    let done: Vec<Vec<Check>> = run_all(jobs, |finished| progress.reached(finished as u64));
    let done: Vec<Check> = done.into_iter().flatten().collect();
    progress.clear();
    args.json.show(&json(&done, args.seed), &document(&done))?;
    let failed = failed(&done);
    if failed > 0 {
        return Err(Failure::Finding(format!("{failed} checks failed")));
    }
    Ok(())
}
