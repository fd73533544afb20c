//! The arguments of a replay.

use clap::Args;
use prism_present::pace::{parse_pace, parse_passes};
use prism_replay::{Options, Pace, Passes};

/// Pace and number of passes.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// When requests are submitted: open (at the times of the trace), open:2 (twice as fast),
    /// closed:32 (as fast as 32 in flight allow), dependent (with the think times of the trace;
    /// needs completions in the trace)
    #[arg(long, value_name = "PACE", default_value = "open", value_parser = parse_pace)]
    pub pace: Pace,
    /// How often the trace is replayed: a number; `steady` to repeat it until write
    /// amplification is steady, then measure; or `until-read-only`, for a drive that ages, to
    /// repeat it until the drive is read-only
    #[arg(long, value_name = "N|steady|until-read-only", default_value = "steady",
          value_parser = parse_passes)]
    pub passes: Passes,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl ReplayArgs {
    /// The options of the replay.
    #[must_use]
    pub fn options(&self) -> Options {
        Options { pace: self.pace, passes: self.passes }
    }
}
