//! `prism device`: flash devices in files.

use std::path::Path;

use clap::Subcommand;
use prism_flash::{Device, DeviceGeometry, FlashError, Options};
use prism_flashfile::{FlashFile, Settings};
use serde::Serialize;

use super::{device_create, device_export, device_info};
use crate::failure::Failure;

/// What is done with a device in a file.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Make a file with an empty device
    Create(device_create::Args),
    /// Say what a device is, who has it and what is free
    Info(device_info::InfoArgs),
    /// Read everything and say what is damaged
    Check(device_info::CheckArgs),
    /// Say how worn its blocks are
    Wear(device_info::WearArgs),
    /// Write a share, or tables of all blocks, to another file
    Export(device_export::Args),
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
    /// Its LUNs, as the device counts them.
    pub luns: Vec<u32>,
    /// How many of them are over-provisioning.
    pub over_provisioning_luns: u32,
    /// Bytes of all its LUNs.
    pub bytes: u64,
    /// The blocks of the device on which its blocks stand, LUN by LUN.
    pub blocks: Vec<u32>,
}

/// What the monitor keeps on a device.
#[derive(Clone, Debug, Serialize)]
pub struct Tables {
    /// Bytes that a LUN gives to a share.
    pub lun_bytes: u64,
    /// LUNs that a share could get.
    pub free_luns: u32,
    /// The shares, in the order in which they were allocated.
    pub shares: Vec<ShareObject>,
    /// Blocks that failed, or were marked by the maker.
    pub bad_blocks: Vec<u32>,
}

/// Opens a file without changing it.
///
/// # Errors
/// [`Failure::FlashFile`].
pub fn open(path: &Path) -> Result<FlashFile, Failure> {
    Ok(FlashFile::open_with(path, Settings::READ_ONLY)?)
}

/// What the monitor has written on the device, `None` if it was never formatted; and the
/// device again.
///
/// # Errors
/// [`Failure`] if its tables cannot be read.
pub fn tables(path: &Path, file: FlashFile) -> Result<(Option<Tables>, FlashFile), Failure> {
    let wrong = |error: FlashError| Failure::Usage(format!("{}: {error}", path.display()));
    let device = match Device::open(Box::new(file), Options::default()) {
        Ok(device) => device,
        Err(FlashError::NotFormatted { .. }) => return Ok((None, open(path)?)),
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
    let medium = device.into_medium().map_err(wrong)?.into_any();
    let file = medium.downcast::<FlashFile>().expect("what was put in comes out");
    Ok((Some(tables), *file))
}
