//! Replays a trace on a simulated block device and measures it.
//!
//! The caller chooses how requests are paced ([`Pace`]). A trace that writes less than the capacity
//! shows no cleaning, so by default it is repeated until write amplification passes a steady-state
//! test ([`steady`]). The crate prints nothing. Design: docs/design/replay.md.

pub mod host_ftl;
pub mod layout;
pub mod lifetime;
pub mod options;
pub mod pass;
pub mod replay_device;
pub mod run;
pub mod steady;

mod dependency;

pub use host_ftl::{HostFtl, HostFtlCounts, HostFtlError, ZoneRuleCheck};
pub use layout::{DeviceRange, LaidOut, Layout};
pub use lifetime::Lifetime;
pub use options::{Options, Pace, Passes};
pub use replay_device::ReplayDevice;
pub use run::{ReplayError, ReplayResult, SteadyState, replay};
