//! `prism capture mark`: tells running captures that a phase begins.

use clap::Args as ClapArgs;
use prism_host::capture;

use crate::failure::Failure;

/// Arguments of `prism capture mark`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism capture -o run.parquet -- sh -c './load.sh; prism capture mark app; ./run.sh'

Within a captured command the mark reaches its capture (by PRISM_CAPTURE); elsewhere it
reaches every capture of this user that runs.")]
pub struct Args {
    /// Name of the phase that begins now
    #[arg(value_name = "NAME")]
    name: String,
}

/// Sends the mark.
///
/// # Errors
/// [`Failure`] if the name is none, or nobody captures.
pub fn run(args: &Args) -> Result<(), Failure> {
    capture::mark(&args.name)?;
    Ok(())
}
