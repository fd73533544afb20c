//! Block traces: one canonical record, readers for the formats of the world
//! (bytes in, records out), generators and text writers.
//!
//! Nothing here opens a file or knows a device: `host` brings the bytes.

pub mod alibaba;
pub mod capabilities;
pub mod error;
pub mod fields;
pub mod filter;
pub mod fio;
pub mod generate;
pub mod map;
pub mod mqsim;
pub mod msr;
pub mod order;
pub mod reader;
pub mod record;
pub mod sink;
pub mod skips;
pub mod source;
pub mod summary;
pub mod symbols;
pub mod tencent;
#[cfg(test)]
mod testing;
pub mod write;

pub use capabilities::Capabilities;
pub use error::TraceError;
pub use reader::{CountFrom, Format, Outcome, PhaseSpan, Reader, ReaderOptions};
pub use record::{Flags, Op, OptTime, Record};
pub use sink::{LineParser, Sink};
pub use skips::{SkipReason, Skips};
pub use source::{Source, SourceError, VecSource};
pub use symbols::{Symbol, Symbols};
