//! How a drive is chosen on the command line, the same for every command that runs one.

use std::path::PathBuf;

use clap::Args;
use prism_base::Nanos;
use prism_present::DriveChoice;
use prism_present::drive_choice::{Capacity, Override, parse_capacity, parse_kind, parse_override};
use prism_present::initial_state::{State, parse_state, parse_state_file};
use prism_ssd::DriveSpec;

use crate::quantities;

/// Which drive, how large, and what it holds at the start.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// The drive: a preset or a TOML file
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = DriveSpec::DEFAULT_PRESET,
        help = device_help())]
    pub device: String,
    /// What the host may write, as 64GiB, or `device` for the drive's own size
    /// [default: what the trace touches; for `sim` 8GiB]
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
    /// Let the drive age and fail as cells of this kind do: slc, mlc, tlc or qlc
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub faults: Option<String>,
    /// Cycles that every block starts with, for a drive that ages
    #[arg(long, value_name = "CYCLES")]
    pub wear: Option<u32>,
    /// How long ago what the drive holds at the start was programmed, as 90d, for a drive that
    /// ages
    #[arg(long, value_name = "TIME", value_parser = quantities::nanos)]
    pub retention: Option<Nanos>,
    /// Change a field of the drive before it is made to fit, as ftl.victim=fifo
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = parse_override)]
    pub overrides: Vec<Override>,
}

impl DeviceArgs {
    /// The drive that is asked for.
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
