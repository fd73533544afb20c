//! Flash at every level of abstraction: a device shared by applications, each of which
//! chooses how tightly it binds to the flash.

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
pub use monitor::{Allocation, Device, GlobalWear, Options, Share, ShareGeometry, WearReport};
pub use raw::Raw;
