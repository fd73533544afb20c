//! `prism fsck`: the check of a file system.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_fs::{Access, Config, Damage};
use prism_fsmount::open;

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
/// cannot be read.
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display();
    let config = Config::NORMAL;
    let (access, damage) = match args.repair {
        true => (Access::ReadWrite, Damage::Accept),
        false => (Access::ReadOnly, Damage::Refuse),
    };
    let mut fs = open(&args.file, config, access, damage).map_err(Failure::usage)?.fs;
    let failed = |error: prism_fs::FsError| Failure::Finding(format!("{name}: {error}"));
    let mut text = String::new();
    if args.repair {
        fs.set_now(prism_fsmount::now());
        for problem in fs.repair().map_err(failed)? {
            text.push_str(&format!("repaired: {}\n", problem.what));
        }
    }
    let report = fs.check().map_err(failed)?;
    for problem in &report.problems {
        text.push_str(&format!("{}\n", problem.what));
    }
    let (files, blocks) = (report.files, report.blocks);
    text.push_str(&format!("{name}: {files} files, {blocks} blocks of files were read\n"));
    output::write_whole(Path::new("-"), text.as_bytes())?;
    match report.problems.len() {
        0 => Ok(()),
        count => Err(Failure::Finding(format!("{name}: {count} problems"))),
    }
}
