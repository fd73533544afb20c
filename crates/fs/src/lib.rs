//! A log-structured file system on segments of flash.
//!
//! Everything is appended. Data are grouped by how often they change when they are written, as SFS
//! does, so that segments die as wholes. An fsync appends a transaction; a checkpoint is made now
//! and then, and a mount goes on from the newest one. docs/design/fs.md says why, and
//! docs/fs-format.md what is on flash.
//!
//! The crate knows no kernel, no clock and no file: segments are those of `prism-segments`, time is
//! given by [`Fs::set_now`].

mod acl;
mod blocks;
mod check;
mod clean;
mod commit;
mod config;
mod data;
mod error;
mod folder;
#[cfg(test)]
mod forged;
pub mod format;
mod fs;
pub mod hotness;
mod log;
mod map;
mod names;
mod node;
mod reads;
mod rebuild;
mod recent;
mod recover;
mod removal;
mod repair;
mod scan;
mod table;
mod usage;
pub mod workload;
mod xattr;

pub use acl::{ACL_ACCESS, ACL_DEFAULT};
pub use check::{Problem, Report};
pub use commit::{Fsync, Fsynced};
pub use config::{Config, Deferral, Distance, Quantization, Victim};
pub use data::{Allocate, FILE_MAX, Seek, SetAttr};
pub use error::{FsError, Result};
pub use folder::{DirEntry, NAME_MAX};
pub use fs::{Access, Fs, ROOT, Space};
pub use log::Counts;
pub use names::{LINKS_MAX, NewFile, Rename};
pub use node::{Attr, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, S_ISGID, Time};
pub use reads::FileRead;
pub use recover::Damage;
pub use xattr::SetXattr;
