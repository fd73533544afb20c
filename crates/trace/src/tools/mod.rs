//! Texts of tools that print a request in one line once it is done.
//!
//! What each looks like and what it cannot tell: `docs/spec/event-formats.md`.

pub(crate) mod biosnoop;
pub(crate) mod etw;

/// How far back the issue may lie from its completion, in whose order the lines stand: the
/// block layer itself gives a command up after 30 s.
const DISORDER_NS: u64 = 30_000_000_000;
