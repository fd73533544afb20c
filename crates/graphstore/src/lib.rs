//! Stores of graphs: devices in files or in memory, which are made of files of edges, and on which
//! algorithms run. The commands `prism graph` and the Python package call it.
//!
//! `prism-graph` knows neither files nor threads; this crate provides both, with the files and
//! threads of `host`.

mod counted;
pub mod device;
pub mod error;
mod format;
pub mod histogram;
pub mod ingest;
pub mod inspect;
mod kept;
mod parquet;
pub mod run;
pub mod scratch;
pub mod temporary;
pub mod values;

pub use device::{GraphDevice, Threads};
pub use error::StoreError;
pub use ingest::IngestPlan;
pub use inspect::{Info, Verified, export};
pub use run::RunPlan;
pub use temporary::MEMORY;
