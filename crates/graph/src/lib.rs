//! Graphs that are larger than memory, on segments of flash.
//!
//! [`Ingest`] sorts edges into segments of one flash block each, and [`Graph`] streams these to
//! threads that compute. The state of vertices is in memory; edges are not, except for as many
//! segments as the memory allows. [`VertexProgram`] is for algorithms by rounds,
//! [`Graph::stream`] for any others; [`algorithms`] has the usual ones.
//!
//! This crate knows no files, threads and clocks: flash is a [`prism_segments::Store`], threads are
//! a [`Pool`], input is bytes.

pub mod algorithms;
pub mod bits;
pub mod builder;
pub mod catalog;
mod check;
mod collect;
mod distribute;
pub mod engine;
pub mod error;
pub mod external;
pub mod ids;
pub mod ingest;
pub mod input;
mod lists;
mod order;
pub mod pool;
pub mod pull;
pub mod results;
pub mod rmat;
pub mod scratch;
pub mod segment;
mod sort;
pub mod space;
mod stream;
mod tables;
pub mod verify;
mod write;

pub use catalog::{Catalog, Direction};
pub use engine::Graph;
pub use error::GraphError;
pub use ingest::{Edge, Ingest, IngestOptions, Keep, Prepared, Saved};
pub use order::Order;
pub use pool::{Pool, Serial};
pub use pull::VertexProgram;
pub use results::Results;
pub use space::Space;
