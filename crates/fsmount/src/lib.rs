//! The file system on a device in a file or in memory: it is made, opened, checked, and mounted by
//! FUSE. The only crate that knows the kernel's interface; what a file is it does not know.

mod adapter;
mod batches;
mod convert;
mod full;
mod kernel;
mod listed;
mod memory;
mod open;
mod opens;
mod options;
mod passthrough;
mod run;
mod shared;

pub use memory::{MEMORY, make_in_memory};
pub use open::{AnyStore, Device, DeviceFile, MountError, make, now, open};
pub use options::MountOptions;
pub use run::{Callbacks, mount, pass_through, serve};
