//! `prism device export`: writes the data of a share, or tables of all blocks, for other programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_flash::{Medium, MediumError, PageState};
use prism_flashfile::FlashFile;
use prism_host::{OutputFile, Progress};
use serde::Serialize;

use super::device::{self, GeometryObject, Tables};
use super::device_info::erase_counts;
use crate::failure::Failure;
use crate::output::{JsonArg, write_whole};

/// Arguments of `prism device export`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism device export flash.prism --json blocks.json
  prism device export flash.prism --share cache --output cache.raw")]
pub struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the pages of this share, LUN by LUN and block by block; unwritten pages are zeros
    #[arg(long, value_name = "NAME", requires = "output")]
    share: Option<String>,
    /// File for the share; `-` for standard output
    #[arg(long, value_name = "FILE", requires = "share")]
    output: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Export {
    file: String,
    geometry: GeometryObject,
    /// Null if the device was never formatted.
    monitor: Option<Tables>,
    /// The erase count of each block, LUN by LUN.
    erases: Vec<u32>,
    /// The pages programmed since the erase, of each block.
    programmed: Vec<u32>,
}

/// Writes the share or the tables.
///
/// # Errors
/// [`Failure`] if the file cannot be used, is damaged where it is read, or has no such share.
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    if let Some(output) = &args.output {
        args.json.refuse_same_stdout(output)?;
    }
    let file = device::open(&args.file)?;
    let (erases, geometry) = (erase_counts(&file), *file.geometry());
    let programmed = (0..geometry.blocks()).map(|block| file.write_pointer(block)).collect();
    let monitor = device::tables(&args.file, &file)?;
    let export =
        Export { file: name.clone(), geometry: geometry.into(), monitor, erases, programmed };
    match (&args.share, &args.output) {
        (Some(share), Some(output)) => {
            let blocks = blocks_of(&export, share)?;
            write_blocks(&name, &file, blocks, output)?;
        }
        _ if args.json.path().is_none() => {
            let what = "give --json FILE, or --share NAME --output FILE";
            return Err(Failure::Usage(what.into()));
        }
        _ => {}
    }
    if let Some(path) = args.json.path() {
        write_whole(path, crate::output::json(&export).as_bytes())?;
    }
    Ok(())
}

fn blocks_of<'a>(export: &'a Export, name: &str) -> Result<&'a [u32], Failure> {
    let shares = export.monitor.as_ref().map_or(&[][..], |tables| &tables.shares);
    if let Some(share) = shares.iter().find(|share| share.name == name) {
        return Ok(&share.blocks);
    }
    let names: Vec<_> = shares.iter().map(|share| share.name.as_str()).collect();
    let known = if names.is_empty() { "none".into() } else { names.join(", ") };
    Err(Failure::Usage(format!("{}: no share is named {name:?}; known are: {known}", export.file)))
}

fn write_blocks(
    name: &str,
    file: &FlashFile,
    blocks: &[u32],
    output: &Path,
) -> Result<(), Failure> {
    let wrong = |error: MediumError| Failure::Usage(format!("{name}: {error}"));
    let geometry = *file.geometry();
    let progress = Progress::on_stderr();
    progress.start_bytes("writing:", Some(blocks.len() as u64 * geometry.block_bytes()));
    let mut out = OutputFile::create(output)?;
    let mut page_bytes = vec![0; geometry.page_size as usize];
    for (done, &block) in (0u64..).zip(blocks) {
        for page in 0..geometry.pages_per_block {
            let state = file.read(block, page, 0, &mut page_bytes, &mut []).map_err(wrong)?;
            if state != PageState::Written {
                page_bytes.fill(0);
            }
            out.write_all(&page_bytes).map_err(|error| out.failed(error))?;
        }
        progress.reached((done + 1) * geometry.block_bytes());
    }
    progress.clear();
    Ok(out.commit()?)
}
