//! A drive: what the host sees of flash, translation layer and engine.
//!
//! Trace formats and printing are unknown here. The host submits requests at times of
//! its own choosing and lets the drive advance; see [`drive::Drive`].

pub mod drive;
pub mod power;
pub mod request;
pub mod scale;
pub mod snapshot;
pub mod spec;
pub mod state;
pub mod zones;

mod buffer;
mod quantity;

pub use drive::{Drive, DriveHealth, HostCounts, ReadOnly, SlcHealth, ZoneHealth};
pub use power::CrashImage;
pub use prism_ftl::{MapCounts, MergeCounts};
pub use request::{Completion, Cost, HostOp, Request, Status, SubmitError};
pub use scale::{Scaled, fit};
pub use snapshot::SnapshotError;
pub use spec::{DriveSpec, DriveSpecError};
pub use state::{InitialState, Preparation};
pub use zones::{ZoneFault, ZoneInfo, ZoneShape, ZoneState, Zones};
