//! Parsers of the output of tools that print a line for each completed request.
//!
//! The formats and what they do not contain: `docs/spec/event-formats.md`.

pub(crate) mod biosnoop;
pub(crate) mod etw;

/// By how much the issue may be earlier than the completion, by which the lines are ordered:
/// the block layer itself aborts a command after 30 s.
const DISORDER_NS: u64 = 30_000_000_000;
