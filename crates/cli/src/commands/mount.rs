//! `prism mount`: a file system in a file, as a folder.

use std::cell::OnceCell;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_fsmount::{MountOptions, mount};
use prism_host::interrupt::SoftStop;

use crate::background::{self, Errors};
use crate::failure::Failure;

/// Arguments of `prism mount`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism mount disk.prism /mnt
  prism mount disk.prism /mnt --foreground -o ro,noatime
  prism mount disk.prism /mnt -o victim=cost-hotness,k=4
  umount /mnt")]
pub struct Args {
    /// The file of the file system, which prism mkfs made
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder on which it is mounted
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Do not go to the background; Ctrl-C unmounts
    #[arg(long)]
    foreground: bool,
    /// Options of the mount, with commas; docs/fs.md describes them
    #[arg(short = 'o', value_name = "OPTIONS", default_value = "")]
    #[arg(value_parser = MountOptions::parse)]
    options: MountOptions,
    /// This is the child in the background
    #[arg(long, hide = true, conflicts_with = "foreground")]
    in_background: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`] if it cannot be mounted, [`Failure::Finding`] if what was written could not
/// be made durable at the end.
pub fn run(args: &Args) -> Result<(), Failure> {
    if !args.foreground && !args.in_background {
        return background::start(background::again()?);
    }
    if args.in_background {
        background::begin();
    }
    let stop = SoftStop::begin();
    let mut is_mounted = false;
    let refused = OnceCell::new();
    let ready = || {
        is_mounted = true;
        if args.in_background
            && let Err(failure) = background::ready(Errors::Dropped)
        {
            // It is unmounted at once.
            let _ = refused.set(failure);
        }
    };
    let stop = || stop.came() || refused.get().is_some();
    let ended = mount(&args.file, &args.folder, &args.options, ready, stop);
    if let Some(failure) = refused.into_inner() {
        return Err(failure);
    }
    ended.map_err(|error| match is_mounted {
        true => Failure::Finding(error.to_string()),
        false => Failure::Usage(error.to_string()),
    })
}
