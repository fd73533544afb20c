//! How a drive is chosen on the command line, the same for every command that runs one.

use std::path::{Path, PathBuf};

use clap::Args;
use prism_base::Bytes;
use prism_ssd::scale::Scaled;
use prism_ssd::{Device, fit};

use crate::failure::Failure;
use crate::initial_state::{State, parse_state, parse_state_file};

/// Which drive, how large, and what it holds at the start.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// The drive: a preset (dc-tlc, consumer-nvme, slc-2008, femu) or a TOML file
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = Device::DEFAULT_PRESET)]
    pub device: String,
    /// What the host may write, as 64GiB, or `device` for the drive's own size
    /// [default: what the trace touches]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<Capacity>,
    /// What the drive holds before the first request: empty; filled (each unit once, in
    /// order) or filled:0.7 (a share of them); preconditioned (filled, then overwritten at
    /// random until write amplification is steady) or preconditioned:2 (for so many
    /// capacities); steady (what that leads to, laid out at once); or a file that
    /// --save-state wrote
    #[arg(long, value_name = "STATE|FILE.prism-state", default_value = "filled",
          value_parser = parse_state)]
    pub state: State,
    /// Keep the drive as it is before the first request, for --state of later runs
    #[arg(long, value_name = "FILE.prism-state", value_parser = parse_state_file)]
    pub save_state: Option<PathBuf>,
}

/// A capacity from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// The device's own.
    Device,
    /// This one; the device is scaled to it.
    Bytes(Bytes),
}

impl DeviceArgs {
    /// The drive, fitted to `--capacity` or else to `span` bytes of addresses.
    ///
    /// # Errors
    /// [`Failure`] naming the file or the preset, and the field.
    pub fn scaled(&self, span: u64) -> Result<Scaled, Failure> {
        let wrong = |error| Failure::Usage(format!("{}: {error}", self.device));
        let device = if Path::new(&self.device).extension().is_some_and(|e| e == "toml") {
            let text = prism_host::input::read_text(Path::new(&self.device))?;
            Device::from_toml(&text).map_err(wrong)?
        } else {
            Device::preset(&self.device).map_err(|e| Failure::Usage(e.to_string()))?
        };
        let fitted = |capacity| {
            fit(&device, capacity).map_err(|error| {
                let what = format!("no drive of this kind holds {capacity}");
                Failure::Usage(format!("{}: {what}: {error}", self.device))
            })
        };
        match self.capacity {
            Some(Capacity::Device) => {
                let full_capacity = device.capacity();
                Ok(Scaled { device, full_capacity, changes: Vec::new() })
            }
            Some(Capacity::Bytes(capacity)) => fitted(capacity),
            None => fitted(Bytes(span.max(1))),
        }
    }
}

fn parse_capacity(text: &str) -> Result<Capacity, String> {
    if text == "device" {
        return Ok(Capacity::Device);
    }
    match Bytes::parse(text) {
        Ok(Bytes(0)) => Err("a drive of no bytes".into()),
        Ok(bytes) => Ok(Capacity::Bytes(bytes)),
        Err(error) => Err(error.to_string()),
    }
}
