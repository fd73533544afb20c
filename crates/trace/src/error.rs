//! Errors in traces. Each message names the line (or record) and says what to do; the crate
//! that opens the file adds its name.

use prism_base::Bytes;

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The beginning of the input fits no known format.
    #[error(
        "the format was not recognised; name it with --format, or describe it with --map FILE.toml"
    )]
    UnknownFormat,
    /// The lines fit more than one format.
    #[error("the lines fit the formats {formats}; say which it is with --format")]
    Ambiguous {
        /// The formats.
        formats: &'static str,
    },
    /// The input has no byte.
    #[error("the input is empty")]
    Empty,
    /// The input is neither text nor a known binary format.
    #[error("the input is {what}")]
    NotText {
        /// What it seems to be, and what to do.
        what: &'static str,
    },
    /// The `-f` string of blkparse cannot be read back.
    #[error("the blkparse format string: {what}")]
    FormatString {
        /// What is wrong and what to do.
        what: String,
    },
    /// A description by the kernel of its trace buffer.
    #[error("the description {name}: {what}; give the texts of the kernel that recorded")]
    EventFormat {
        /// Which text.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// Logical blocks of drives do not have this size.
    #[error("a logical block cannot have {size}: its size is a power of two from 512 B to 64 KiB")]
    BlockSize {
        /// The requested size.
        size: Bytes,
    },
    /// Lines were read, but none was an event.
    #[error("none of the {lines} lines is an event of the format {format}; check --format")]
    NoEvent {
        /// The format of the reader.
        format: &'static str,
        /// Lines read.
        lines: u64,
    },
    /// A line or record that breaks the format in a way that cannot be skipped.
    #[error("line {line}: {what}")]
    Bad {
        /// Line, or record in a binary format, from 1.
        line: u64,
        /// What is wrong and what to do.
        what: String,
    },
    /// Time runs backwards by more than slight disorder between CPUs.
    #[error(
        "line {line}: time runs backwards by {back_ns} ns, more than the {window_ns} ns allowed \
         for disorder between CPUs; sort the trace by time"
    )]
    TimeRunsBackwards {
        /// Line, or record in a binary format, from 1.
        line: u64,
        /// By how much.
        back_ns: u64,
        /// The limit.
        window_ns: u64,
    },
}
