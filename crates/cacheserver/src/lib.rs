//! A server that speaks memcached's protocol over a cache on flash: sockets, files and clocks
//! around the crate `cache`.

mod connection;
mod device;
pub mod listen;
mod log;
mod mapped;
mod metrics;
mod names;
pub mod open;
mod report;
pub mod server;
mod space;
mod statefile;

pub use listen::Listener;
pub use mapped::Mapped;
pub use open::{Backend, Engine, OpenOptions, Opened, ServerError, WriteLimit};
pub use server::Server;
pub use statefile::state_path;
