//! `prism capture mark`: marks the beginning of a phase in running captures.

use clap::Args as ClapArgs;
use prism_host::capture;

use crate::failure::Failure;

/// Arguments of `prism capture mark`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism capture -o run.parquet -- sh -c './load.sh; prism capture mark app; ./run.sh'

Within a captured command, the mark goes to the capture of that command (by PRISM_CAPTURE);
elsewhere it goes to every running capture of this user.")]
pub struct Args {
    /// Name of the phase that begins now
    #[arg(value_name = "NAME")]
    name: String,
}

/// Sends the mark.
///
/// # Errors
/// [`Failure`] if the name is invalid, or no capture is running.
pub fn run(args: &Args) -> Result<(), Failure> {
    capture::mark(&args.name)?;
    Ok(())
}
