//! `prism mount`: a file system in a file or in memory, as a folder.

use std::cell::OnceCell;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use prism_base::Bytes;
use prism_fs::{Access, Damage};
use prism_fsmount::{
    Callbacks, Device, DeviceFile, MEMORY, MountError, MountOptions, make_in_memory, serve,
};
use prism_host::Progress;
use prism_host::interrupt::SoftStop;
use prism_ssd::DriveSpec;

use crate::background::{self, Errors};
use crate::failure::Failure;
use crate::quantities;

/// Arguments of `prism mount`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism mount disk.prism /mnt
  prism mount disk.prism /mnt --foreground -o ro,noatime
  prism mount disk.prism /mnt -o victim=cost-hotness,k=4
  prism mount memory /mnt --size 1GiB
  prism mount memory /mnt --size 1GiB --preset dc-tlc
  umount /mnt")]
pub struct Args {
    /// The file of the file system, which prism mkfs made; `memory` for one that ends with its
    /// mount (a file of that name is ./memory)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder on which it is mounted
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Bytes of a file system in memory, such as 1GiB
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    size: Option<Bytes>,
    /// A file system in memory is on a simulated drive of this kind: a preset
    #[arg(long, value_name = "NAME", requires = "size")]
    #[arg(value_parser = PossibleValuesParser::new(DriveSpec::preset_names()))]
    preset: Option<String>,
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
    let in_memory = args.file.as_os_str() == MEMORY;
    if in_memory && args.size.is_none() {
        let what = "`prism mount memory DIR` needs --size, such as --size 1GiB";
        return Err(Failure::Usage(what.into()));
    }
    if !in_memory && args.size.is_some() {
        let file = args.file.display();
        return Err(Failure::Usage(format!(
            "{file}: the file has a size; leave out --size, which is for `prism mount memory DIR`"
        )));
    }
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
    let in_use = || {
        let folder = args.folder.display();
        Progress::on_stderr().note(&format!(
            "{folder}: the folder is in use; everything is durable, and the mount ends when its \
             last file is closed"
        ));
    };
    let callbacks = Callbacks { ready, stop, in_use };
    let ended = match args.size {
        None => open_file(args).and_then(|(device, path)| {
            serve(device, &path, &args.folder, &args.options, callbacks)
        }),
        Some(size) => {
            let spec = args.preset.as_deref().map(DriveSpec::preset).transpose();
            let spec = spec.map_err(Failure::usage)?;
            make_in_memory(size, spec.as_ref(), args.options.config.clone()).and_then(|device| {
                serve(device, &args.file, &args.folder, &args.options, callbacks)
            })
        }
    };
    if let Some(failure) = refused.into_inner() {
        return Err(failure);
    }
    ended.map_err(|error| match is_mounted {
        true => Failure::Finding(error.to_string()),
        false => Failure::Usage(error.to_string()),
    })
}

/// Opens the file system of the file, and says what was damaged in the file's tables. Returns its
/// path for any working folder as well.
fn open_file(args: &Args) -> Result<(Device, PathBuf), MountError> {
    let path = std::path::absolute(&args.file).unwrap_or_else(|_| args.file.clone());
    let access = args.options.access();
    let file = DeviceFile::open(&path, access)?;
    let repaired = if access == Access::ReadWrite { "repaired: " } else { "" };
    for damage in file.damage() {
        Progress::on_stderr().note(&format!("{repaired}{}: {damage}", args.file.display()));
    }
    Ok((file.file_system(args.options.config.clone(), Damage::Refuse)?, path))
}
