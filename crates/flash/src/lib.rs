//! Flash at every level of abstraction: a device shared by applications, each of which
//! chooses how tightly it binds to the flash.
//!
//! The manual, with examples, is the documentation of the crate `prism`, under whose name the
//! library is used. This is how it is built, each module on those before it:
//!
//! * [`medium`] is what a device offers, [`error`] what can go wrong, [`memory`] the device in
//!   memory;
//! * [`journal`] keeps small tables on a ring of blocks;
//! * [`monitor`] divides a device into shares, replaces bad blocks and levels wear, behind a
//!   table of blocks that the journal keeps;
//! * [`raw`] and [`function`] give a share to applications that map for themselves;
//! * [`policy`] runs translation layers of the `ftl` crate over parts of a share, and
//!   [`object`] keeps objects in one such range;
//! * [`kv`] keeps keys and values in a log of its own.
//!
//! Which module may use which is a table in `xtask/tests/tidy/flash.rs`. Design:
//! docs/design/flash.md.

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

pub use error::{FlashError, Result};
pub use function::Function;
pub use kv::KvStore;
pub use medium::{DeviceGeometry, Medium, MediumError, PageState};
pub use memory::{Cache, MemoryDevice, SharedMemory};
pub use monitor::{
    Allocation, Device, GlobalWear, Options, Share, ShareGeometry, WallClock, WearReport,
};
pub use raw::Raw;
