//! Flash at every level of abstraction: a device shared by applications, each of which
//! chooses how tightly it binds to the flash.

pub mod error;
pub mod journal;
pub mod kv;
pub mod medium;
pub mod memory;
pub mod monitor;
pub mod raw;

pub use error::{FlashError, Result};
pub use kv::KvStore;
pub use medium::{DeviceGeometry, Medium, MediumError, PageState};
pub use memory::{Cache, MemoryDevice};
pub use monitor::{Allocation, Device, GlobalWear, Options, Share, ShareGeometry, WearReport};
pub use raw::Raw;
