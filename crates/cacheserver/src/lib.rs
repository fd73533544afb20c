//! A server that speaks memcached's protocol over a cache on flash: sockets, files and clocks around
//! the crate `cache`.

mod mapped;
pub mod open;

pub use mapped::Mapped;
pub use open::{Backend, Engine, OpenOptions, ServerError};
