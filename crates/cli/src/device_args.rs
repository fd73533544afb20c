//! The arguments that choose a drive, shared by all commands that simulate one.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Command};
use prism_base::Nanos;
use prism_present::DriveChoice;
use prism_present::drive_choice::{
    Capacity, Override, is_device, parse_capacity, parse_kind, parse_override,
};
use prism_present::initial_state::{State, parse_state, parse_state_file};
use prism_ssd::DriveSpec;

use crate::quantities;

/// The drive, its capacity and its initial state.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// The drive: a preset or a TOML file
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = DriveSpec::DEFAULT_PRESET,
        value_parser = DeviceParser, help = device_help())]
    pub device: String,
    /// Capacity for the host, such as 64GiB, or `device` for that of the device file
    /// [default: the addresses of the trace; for `sim` 8GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<Capacity>,
    /// State of the drive before the first request: empty; filled (each unit written once, in
    /// order) or filled:0.7 (a share of the units); preconditioned (overwritten at random until
    /// write amplification is steady) or preconditioned:2 (filled, then overwritten for two
    /// capacities); steady (as random overwrites for long would leave it, laid out directly); or
    /// a snapshot written by --save-state
    #[arg(long, value_name = "STATE|FILE.prism-state", default_value = "filled",
          value_parser = parse_state)]
    pub state: State,
    /// Write a snapshot of the drive before the first request, for --state of later runs
    #[arg(long, value_name = "FILE.prism-state", value_parser = parse_state_file)]
    pub save_state: Option<PathBuf>,
    /// Simulate ageing and failures of cells of this kind: slc, mlc, tlc or qlc
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub faults: Option<String>,
    /// Cycles that every block starts with, for a drive that ages
    #[arg(long, value_name = "CYCLES")]
    pub wear: Option<u32>,
    /// Age of the data on the drive at the start, such as 90d, for a drive that ages
    #[arg(long, value_name = "TIME", value_parser = quantities::nanos)]
    pub retention: Option<Nanos>,
    /// Change a field of the drive before it is scaled, such as ftl.victim=fifo. A number of
    /// channels or dies changes the capacity, too; `prism sim` keeps it when it scales the drive
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = parse_override)]
    pub overrides: Vec<Override>,
}

impl DeviceArgs {
    /// The chosen drive.
    #[must_use]
    pub fn choice(&self) -> DriveChoice {
        let Self { device, capacity, state, save_state, faults, wear, retention, overrides } =
            self.clone();
        DriveChoice {
            name: device,
            capacity,
            state,
            save_state,
            faults,
            wear,
            retention,
            overrides,
        }
    }
}

/// Accepts a preset or a device file; for other names clap proposes a similar preset.
#[derive(Clone)]
struct DeviceParser;

impl TypedValueParser for DeviceParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        flag: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        match value.to_str().filter(|text| is_device(text)) {
            Some(device) => Ok(device.to_owned()),
            None => PossibleValuesParser::new(presets()).parse_ref(command, flag, value),
        }
    }
}

fn presets() -> Vec<&'static str> {
    DriveSpec::preset_names().chain(DriveSpec::zoned_preset_names()).collect()
}

fn device_help() -> String {
    let names = presets();
    format!("The drive: a preset ({}) or a TOML file", names.join(", "))
}
