//! A user-level flash library: applications share one device, each at the level of abstraction that
//! suits it.
//!
// The manual is a file of its own because the rows of its tables are long.
#![doc = include_str!("manual.md")]

pub use prism_base::{Bytes, Nanos, Rng, SimTime};
pub use prism_flash::medium::GeometryError;
pub use prism_flash::monitor::{OpCounts, ShareInfo};
pub use prism_flash::{
    Allocation, Buffer, BufferMemory, Cache, Device, DeviceGeometry, FlashError, GlobalWear,
    Medium, MediumError, MediumQueue, MemoryDevice, Op, Options, PageState, Reply, Request, Result,
    Share, ShareGeometry, SharedMemory, WallClock, WearReport,
};
pub use prism_flash::{function, kv, object, policy, raw};
pub use prism_flashfile::{
    Access, CheckReport, EngineChoice, FlashFile, FlashFileError, REAL, RealClock, Settings,
    SimulatedFile,
};
pub use prism_nand::{Cause, Counts, PageTimes, Timing};

/// The program in docs/library.md runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct LibraryPage;
