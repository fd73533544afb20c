//! The arguments that choose a drive, shared by all commands that simulate one.

use std::path::PathBuf;

use clap::Args;
use prism_base::Nanos;
use prism_present::DriveChoice;
use prism_present::drive_choice::{Capacity, Override, parse_capacity, parse_kind, parse_override};
use prism_present::initial_state::{State, parse_state, parse_state_file};
use prism_ssd::DriveSpec;

use crate::quantities;

/// The drive, its capacity and its initial state.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// The drive: a preset or a TOML file
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = DriveSpec::DEFAULT_PRESET,
        help = device_help())]
    pub device: String,
    /// Capacity for the host, such as 64GiB, or `device` for that of the device file
    /// [default: the addresses of the trace; for `sim` 8GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<Capacity>,
    /// State of the drive before the first request: empty; filled (each unit written once, in
    /// order) or filled:0.7 (a share of the units); preconditioned (filled, then overwritten at
    /// random until write amplification is steady) or preconditioned:2 (for two capacities);
    /// steady (the result of preconditioning, laid out directly); or a snapshot written by
    /// --save-state
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
    /// Change a field of the drive before it is scaled, such as ftl.victim=fifo
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

fn device_help() -> String {
    let names: Vec<_> = DriveSpec::preset_names().chain(DriveSpec::zoned_preset_names()).collect();
    format!("The drive: a preset ({}) or a TOML file", names.join(", "))
}
