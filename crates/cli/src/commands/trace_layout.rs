//! `prism trace layout`: writes the layout of a file system: where its metadata and data are.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_host::load_layout;

use crate::failure::Failure;
use crate::output::write_whole;

/// Arguments of `prism trace layout`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism trace layout disk.img -o layout.toml
  prism trace layout /dev/nvme0n1p2 -o layout.toml")]
pub struct Args {
    /// Image of a file system, or block device or partition with one: ext4, XFS or F2FS
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// File to write; `-` is standard output. It appears only when it is complete
    #[arg(short, long, value_name = "FILE.toml", default_value = "-")]
    output: PathBuf,
}

/// Reads the layout and writes its text form.
///
/// # Errors
/// [`Failure`] if the image cannot be read or has an unknown file system, or the output cannot be
/// written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let layout = load_layout(&args.image)?;
    write_whole(&args.output, layout.to_toml().as_bytes())?;
    Ok(())
}
