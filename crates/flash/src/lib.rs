//! Flash at every level of abstraction: applications share a device, and each chooses how much of
//! the flash it manages itself.
//!
//! The manual, with examples, is the documentation of the crate `prism`, which re-exports this
//! library. The modules, each built on those before it:
//!
//! * [`medium`] is the interface of a device, [`error`] the errors, [`memory`] a device in memory;
//! * [`journal`] is a log of records on a ring of blocks;
//! * [`monitor`] divides a device into shares, replaces bad blocks and levels wear, through a table
//!   of blocks that is stored in the journal;
//! * [`raw`] and [`function`] serve applications with a mapping of their own;
//! * [`policy`] runs FTLs of the `ftl` crate over parts of a share, and [`object`] stores objects
//!   in one such range;
//! * [`kv`] is a key-value store over a log of its own.
//!
//! Which module may use which is a table in `xtask/tests/tidy/flash.rs`. Design:
//! docs/design/flash.md.

pub mod address;
pub mod buffer;
pub mod error;
pub mod function;
pub mod journal;
pub mod kv;
pub mod medium;
pub mod memory;
pub mod monitor;
pub mod object;
pub mod policy;
pub mod raw;

pub use address::Address;
pub use buffer::{Buffer, BufferMemory};
pub use error::{FlashError, Result};
pub use function::Function;
pub use kv::KvStore;
pub use medium::{DeviceGeometry, Medium, MediumError, MediumQueue, Op, PageState, Reply, Request};
pub use memory::{Cache, MemoryDevice, SharedMemory};
pub use monitor::{
    Allocation, Device, GlobalWear, Options, Share, ShareGeometry, WallClock, WearReport,
};
pub use raw::Raw;
