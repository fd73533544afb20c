//! A cache on flash: items of a key and a value, an index in memory, and slabs of flash blocks that
//! are written as wholes. Memcached's protocol in front of it.
//!
//! Design: docs/design/cache.md.

pub mod cache;
pub mod handles;
pub mod index;
pub mod items;
pub mod memory;
pub mod protocol;
pub mod record;
pub mod simulate;
pub mod slab;
pub mod state;

pub mod workload;

pub use cache::{Cache, Config};
pub use memory::Memory;
