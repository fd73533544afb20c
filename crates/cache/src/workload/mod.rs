//! Requests to a cache: traces of real caches, and a generator.

mod etc;
mod traces;

pub use etc::{Etc, EtcConfig, Popularity};
pub use traces::{TraceError, Traces};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Looks up; a miss is followed by an insertion, as clients do.
    Get,
    /// Inserts or replaces.
    Set,
    /// Removes.
    Delete,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Seconds since the beginning of the trace.
    pub time: u32,
    /// What it does.
    pub op: Op,
    /// The hash of its key.
    pub key: u64,
    /// Bytes of the key.
    pub key_len: u32,
    /// Bytes of the value.
    pub value_len: u32,
    /// Seconds until what is inserted expires; 0 for never.
    pub ttl: u32,
}
