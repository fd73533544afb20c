//! `prism mkfs`: a file with an empty file system.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;

use crate::failure::Failure;
use crate::quantities;

/// Arguments of `prism mkfs`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism mkfs disk.prism --size 8GiB")]
pub struct Args {
    /// The file to make; it is sparse and grows on disk as it is written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Bytes of flash, such as 8GiB; about a tenth is kept for cleaning
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    size: Bytes,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`].
pub fn run(args: &Args) -> Result<(), Failure> {
    prism_fsmount::make(&args.file, args.size).map(drop).map_err(Failure::usage)
}
