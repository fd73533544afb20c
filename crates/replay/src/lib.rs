//! Replays a trace on a block device and measures what the drive does.
//!
//! How the requests are paced is chosen, never guessed ([`Pace`]). A trace shorter than
//! the drive says nothing about cleaning, so by default it is repeated until write
//! amplification passes a steady-state test ([`steady`]). How results are printed is
//! unknown here. Design: docs/design/replay.md.

pub mod block_device;
pub mod host_ftl;
pub mod layout;
pub mod lifetime;
pub mod options;
pub mod pass;
pub mod run;
pub mod steady;

mod dependency;

pub use block_device::BlockDevice;
pub use host_ftl::{BareWrites, HostFtl, LogCounts, LogError};
pub use layout::{LaidOut, Layout, Place};
pub use lifetime::Lifetime;
pub use options::{Options, Pace, Passes};
pub use run::{Outcome, ReplayError, SteadyState, replay};
