//! `prism device`: flash devices in files, and the import of drives.

use std::path::Path;
use std::sync::Arc;

use clap::Subcommand;
use prism_flash::{Device, DeviceGeometry, FlashError, Medium, Options};
use prism_flashfile::{FlashFile, Settings};
use serde::Serialize;

use super::{device_create, device_export, device_import, device_info};
use crate::failure::Failure;

/// The commands on flash devices in files, and the import of drives.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Make a file with an empty device
    Create(device_create::Args),
    /// Show the geometry, shares and free space of a device
    #[command(after_help = "Example:
  prism device info flash.prism --json -")]
    Info(device_info::Args),
    /// Read the whole device and report damage
    #[command(after_help = "Exit code 1 if something is damaged. The file is not changed.

Example:
  prism device check flash.prism")]
    Check(device_info::Args),
    /// Show the wear of the blocks
    #[command(after_help = "Example:
  prism device wear flash.prism")]
    Wear(device_info::Args),
    /// Write a share, or tables of all blocks, to another file
    Export(device_export::Args),
    /// Convert a drive or workload of MQSim, SimpleSSD or FEMU
    Import(device_import::Args),
}

/// Runs one of the commands.
///
/// # Errors
/// [`Failure`] if the file cannot be used, or is damaged.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create(args) => device_create::run(args),
        Command::Info(args) => device_info::info(args),
        Command::Check(args) => device_info::check(args),
        Command::Wear(args) => device_info::wear(args),
        Command::Export(args) => device_export::run(args),
        Command::Import(args) => device_import::run(args),
    }
}

/// The shape of a device, as JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GeometryObject {
    channels: u32,
    luns_per_channel: u32,
    blocks_per_lun: u32,
    pages_per_block: u32,
    page_bytes: u32,
    oob_bytes: u32,
    /// Null for any number.
    max_open_blocks: Option<u32>,
    raw_bytes: u64,
}

impl From<DeviceGeometry> for GeometryObject {
    fn from(of: DeviceGeometry) -> Self {
        Self {
            channels: of.channels,
            luns_per_channel: of.luns_per_channel,
            blocks_per_lun: of.blocks_per_lun,
            pages_per_block: of.pages_per_block,
            page_bytes: of.page_size,
            oob_bytes: of.oob_size,
            max_open_blocks: of.max_open_blocks,
            raw_bytes: of.raw().0,
        }
    }
}

/// A share, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ShareObject {
    /// Its name.
    pub name: String,
    /// The numbers of its LUNs in the device.
    pub luns: Vec<u32>,
    /// The number of LUNs that are over-provisioning.
    pub over_provisioning_luns: u32,
    /// Bytes of all its LUNs.
    pub bytes: u64,
    /// The blocks of the device that hold its blocks, LUN by LUN.
    pub blocks: Vec<u32>,
}

/// The tables of the monitor on a device.
#[derive(Clone, Debug, Serialize)]
pub struct Tables {
    /// Usable bytes of a LUN.
    pub lun_bytes: u64,
    /// LUNs without a share.
    pub free_luns: u32,
    /// The shares, in the order of their allocation.
    pub shares: Vec<ShareObject>,
    /// Blocks that failed, or are bad from the factory.
    pub bad_blocks: Vec<u32>,
}

/// Opens a file without changing it.
///
/// # Errors
/// [`Failure::FlashFile`].
pub fn open(path: &Path) -> Result<Arc<FlashFile>, Failure> {
    Ok(Arc::new(FlashFile::open_with(path, Settings::READ_ONLY)?))
}

/// The tables of the monitor, `None` if the device was never formatted.
///
/// # Errors
/// [`Failure`] if its tables cannot be read.
pub fn tables(path: &Path, file: &Arc<FlashFile>) -> Result<Option<Tables>, Failure> {
    let wrong = |error: FlashError| Failure::Usage(format!("{}: {error}", path.display()));
    let medium: Arc<dyn Medium> = Arc::clone(file) as _;
    let device = match Device::open(medium, Options::default()) {
        Ok(device) => device,
        Err(FlashError::NotFormatted { .. }) => return Ok(None),
        Err(error) => return Err(wrong(error)),
    };
    let lun_bytes = device.lun_capacity().0;
    let mut shares = Vec::new();
    for share in device.shares() {
        let blocks = device.blocks_of(&share.name).map_err(wrong)?;
        shares.push(ShareObject {
            bytes: lun_bytes * share.luns.len() as u64,
            name: share.name,
            luns: share.luns,
            over_provisioning_luns: share.ops_luns,
            blocks,
        });
    }
    let free_luns = device.free_luns();
    let tables = Tables { lun_bytes, free_luns, shares, bad_blocks: device.bad_blocks() };
    Ok(Some(tables))
}
