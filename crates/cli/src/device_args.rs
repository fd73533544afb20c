//! How a drive is chosen on the command line, the same for every command that runs one.

use std::path::Path;

use clap::Args;
use prism_base::Bytes;
use prism_ssd::scale::Scaled;
use prism_ssd::{Device, InitialState, fit};

use crate::failure::Failure;

/// Which drive, how large, and what it holds at the start.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// The drive: a preset or a TOML file
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = Device::DEFAULT_PRESET,
        help = device_help())]
    pub device: String,
    /// What the host may write, as 64GiB, or `device` for the drive's own size
    /// [default: what the trace touches]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<Capacity>,
    /// What the drive holds before the first request: empty, filled (each unit once, in
    /// order) or preconditioned (then overwritten twice at random)
    #[arg(long, value_name = "STATE", default_value = "filled", value_parser = parse_state)]
    pub state: State,
}

/// A capacity from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// The device's own.
    Device,
    /// This one; the device is scaled to it.
    Bytes(Bytes),
}

/// An initial state with its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// As given.
    pub name: &'static str,
    /// What it means.
    pub state: InitialState,
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

fn device_help() -> String {
    let names: Vec<_> = Device::preset_names().collect();
    format!("The drive: a preset ({}) or a TOML file", names.join(", "))
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

fn parse_state(text: &str) -> Result<State, String> {
    let states = [
        State { name: "empty", state: InitialState::Empty },
        State { name: "filled", state: InitialState::Filled },
        State { name: "preconditioned", state: InitialState::Preconditioned { overwrites: 2.0 } },
    ];
    let known = || "states are empty, filled, preconditioned".to_owned();
    states.into_iter().find(|state| state.name == text).ok_or_else(known)
}
