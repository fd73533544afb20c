//! The simulated drive: queues, write buffer and link in front of FTL, engine and flash.
//!
//! The crate knows no trace formats and prints nothing. The host submits requests at times of its
//! own choosing and lets the drive advance; see [`drive::Drive`].

pub mod drive;
pub mod power;
pub mod scale;
pub mod snapshot;
pub mod spec;
pub mod state;
pub mod zones;

mod buffer;
mod quantity;

pub use drive::{Drive, DriveHealth, ReadOnly, SlcHealth, ZoneHealth};
pub use power::CrashImage;
pub use prism_engine::block::{
    BlockDevice, Completion, Cost, HostCounts, HostOp, Refused, Request, Status, SubmitError,
};
pub use prism_ftl::{MapCounts, MergeCounts};
pub use prism_nand::NandError;
pub use scale::{Scaled, fit};
pub use snapshot::SnapshotError;
pub use spec::{DriveSpec, DriveSpecError};
pub use state::{InitialState, Preparation, PreparationProgress, PreparationStep, PreparedDrive};
pub use zones::{ZoneFault, ZoneInfo, ZoneShape, ZoneState, Zones};
