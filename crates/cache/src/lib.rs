//! A cache on flash: items of a key and a value, an index in memory, and slabs of flash blocks that
//! are written as wholes. Memcached's protocol in front of it.
//!
//! Design: docs/design/cache.md.

pub mod items;
