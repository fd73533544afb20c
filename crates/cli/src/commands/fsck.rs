//! `prism fsck`: the check of a file system.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_base::counted;
use prism_fs::{Access, Config, Damage, FsError};
use prism_fsmount::{DeviceFile, MountError};

use crate::failure::Failure;
use crate::output;

/// Arguments of `prism fsck`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism fsck disk.prism
  prism fsck disk.prism --repair")]
pub struct Args {
    /// The file of the file system, which must not be mounted
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Repair what can be repaired; without it nothing is written
    #[arg(long)]
    repair: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Finding`] if something is wrong and not repaired, [`Failure::Usage`] if the file
/// cannot be used.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut text = String::new();
    let examined = examine(args, &mut text);
    // Also what was repaired before something failed.
    output::write_whole(Path::new("-"), text.as_bytes())?;
    examined
}

/// Checks the file system, and repairs it if that is wanted; adds what is found to `text`.
fn examine(args: &Args, text: &mut String) -> Result<(), Failure> {
    let name = args.file.display();
    let (access, accept) = match args.repair {
        true => (Access::ReadWrite, Damage::Accept),
        false => (Access::ReadOnly, Damage::Refuse),
    };
    let opened = DeviceFile::open(&args.file, access).and_then(|file| {
        let repaired = if args.repair { "repaired: " } else { "" };
        for damage in file.damage() {
            text.push_str(&format!("{repaired}{name}: {damage}\n"));
        }
        file.file_system(Config::NORMAL, accept)
    });
    let mut fs = opened.map_err(|error| failure(error, args.repair))?.fs;
    let failed = |error: prism_fs::FsError| Failure::Finding(format!("{name}: {error}"));
    if args.repair {
        fs.set_now(prism_fsmount::now());
        for problem in fs.repair().map_err(failed)? {
            text.push_str(&format!("repaired: {}\n", problem.what));
        }
        fs.unmount().map_err(failed)?;
    }
    let report = fs.check().map_err(failed)?;
    for problem in &report.problems {
        text.push_str(&format!("{}\n", problem.what));
    }
    text.push_str(&match fs.was_unmounted() {
        true => format!("{name}: ended by an unmount\n"),
        false => {
            format!("{name}: was not unmounted; this is the newest synced state that was found\n")
        }
    });
    let (files, blocks) = (counted(report.files, "file"), counted(report.blocks, "block"));
    text.push_str(&format!("{name}: read {files} and {blocks} of their content\n"));
    match report.problems.len() {
        0 if fs.lost_changes() => Err(Failure::Finding(format!(
            "{name}: a part of the log was damaged: files that changed in it may be older now"
        ))),
        0 => Ok(()),
        count => Err(Failure::Finding(format!("{name}: {}", counted(count as u64, "problem")))),
    }
}

/// Damage because of which a mount is refused is a finding.
fn failure(error: MountError, repair: bool) -> Failure {
    let (file, what) = match error {
        MountError::Fs { file, source: FsError::Inconsistent(what) } if !repair => (file, what),
        MountError::Fs { file, source: source @ FsError::Damaged { .. } } if !repair => {
            (file, source.to_string())
        }
        MountError::Fs { file, source: source @ FsError::NoCheckpoint } if !repair => {
            return Failure::Finding(format!("{file}: {source}"));
        }
        error => return Failure::usage(error),
    };
    Failure::Finding(format!("{file}: {what}; prism fsck --repair takes what is whole"))
}
