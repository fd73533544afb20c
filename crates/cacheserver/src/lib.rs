//! A server that speaks memcached's protocol over a cache on flash: sockets, files and clocks
//! around the crate `cache`.

pub mod listen;
mod mapped;
pub mod open;
pub mod server;

pub use listen::Listener;
pub use mapped::Mapped;
pub use open::{Backend, Engine, OpenOptions, ServerError};
pub use server::Server;
