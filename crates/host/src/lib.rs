//! Access to the operating system for the command line: files, streams, Parquet, progress, signals,
//! captures.
//!
//! This crate only adapts: it passes bytes to the pure crates and writes their values to files. Of
//! the other crates, only `flashfile` (the flash library's device in a file), `lab` (applications
//! on loop devices) and the programs on top use the operating system.

pub mod atomic;
#[cfg(feature = "capture")]
pub mod capture;
pub mod clock;
#[cfg(test)]
mod compact;
pub mod error;
mod guard;
pub mod input;
pub mod interrupt;
pub mod jobs;
pub mod layout_file;
pub mod load;
pub mod memory;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "without_parquet.rs"]
pub mod parquet;
pub mod progress;
pub mod row_store;
pub mod siblings;
pub mod spool;
pub mod state_file;
pub mod trace_cache;
pub mod trace_file;

pub use atomic::OutputFile;
pub use error::HostError;
pub use guard::within_memory;
pub use layout_file::load_layout;
pub use load::{LoadedTrace, digest, load_trace, trace_of_records};
pub use prism_trace::LoadSpec;
pub use progress::Progress;
pub use row_store::{RowStore, RowStoreSpec};
pub use spool::{Spool, SpoolWriter};
pub use state_file::{read_state, write_state};
pub use trace_cache::TraceCache;
pub use trace_file::{TraceFile, TraceTarget, WrittenTrace};
