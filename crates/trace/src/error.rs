//! What can be wrong with a trace. Each error names the line (or record) and says
//! what to do; the file's name is added by whoever opened it.

use prism_base::Bytes;

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Nothing in the beginning of the input looks like a format we know.
    #[error(
        "the format was not recognised; name it with --format, or describe it with --map FILE.toml"
    )]
    UnknownFormat,
    /// Lines are of more than one format as far as their look goes.
    #[error("the lines fit the formats {formats} alike; say which it is with --format")]
    Ambiguous {
        /// The formats.
        formats: &'static str,
    },
    /// The input has no byte.
    #[error("the input is empty")]
    Empty,
    /// The input is not text, and not a binary format we know.
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
    /// A text of the kernel's that describes its trace buffer.
    #[error("the description {name}: {what}; give the texts of the kernel that recorded")]
    EventFormat {
        /// Which text.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// No drive has logical blocks of this size.
    #[error("a logical block of {size} cannot be: it is a power of two from 512 B to 64 KiB")]
    BlockSize {
        /// What was asked for.
        size: Bytes,
    },
    /// Lines were read, but none was an event.
    #[error("none of the {lines} lines is an event of the format {format}; check --format")]
    NoEvent {
        /// The format in force.
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
    /// Time runs backwards by more than slight disorder between processors.
    #[error(
        "line {line}: time runs backwards by {back_ns} ns, more than the {window_ns} ns allowed \
         for disorder between processors; sort the trace by time"
    )]
    TimeRunsBackwards {
        /// Line, or record in a binary format, from 1.
        line: u64,
        /// By how much.
        back_ns: u64,
        /// What is allowed.
        window_ns: u64,
    },
}
