//! Errors in traces. Each message names the line (or record) and says what to do; the crate
//! that opens the file adds its name.

use prism_base::{Bytes, Nanos};

use crate::order::HELD_MAX;
use crate::skips::Skip;

/// The longest disorder for which `--disorder` is proposed: longer ones are of damaged clocks or
/// of traces that follow one another, and hold more requests than can be held.
const SORTED_MAX: Nanos = Nanos(3_600_000_000_000);

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The beginning of the input fits no known format.
    #[error(
        "the format was not recognised; name it with --format, or describe it with --map FILE.toml"
    )]
    UnknownFormat,
    /// The text is of a tool whose user chooses the columns.
    #[error("{advice}")]
    OwnColumns {
        /// What it seems to be, and what to do.
        advice: &'static str,
    },
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
    /// Lines (or records) were read, but none was a request.
    #[error("{}", no_request(format, *lines, skipped))]
    NoRequest {
        /// The format of the reader.
        format: &'static str,
        /// Lines (or binary records) read.
        lines: u64,
        /// Why they were none; a header or an empty line needs no reason.
        skipped: Vec<Skip>,
    },
    /// A line or record that breaks the format in a way that cannot be skipped.
    #[error("line {line}: {what}")]
    Bad {
        /// Line, or record in a binary format, from 1.
        line: u64,
        /// What is wrong and what to do.
        what: String,
    },
    /// Time goes back by more than the disorder that is corrected.
    #[error("line {line}: {}", backwards(*back, *window, *is_full))]
    TimeRunsBackwards {
        /// Line, or record in a binary format, from 1.
        line: u64,
        /// By how much.
        back: Nanos,
        /// The limit.
        window: Nanos,
        /// The limit is lower than requested, because no more requests are held.
        is_full: bool,
    },
}

fn no_request(format: &str, lines: u64, skipped: &[Skip]) -> String {
    if skipped.is_empty() {
        return format!(
            "the trace has no request (format {format}, lines read: {lines}); record it again \
             while requests are made"
        );
    }
    let reason = |skip: &Skip| match (skip.count, skip.first_line, skip.reason.0) {
        (1, line, reason) => format!("once \"{reason}\" (line {line})"),
        (count, line, reason) => format!("{count} times \"{reason}\" (first at line {line})"),
    };
    let reasons: Vec<String> = skipped.iter().map(reason).collect();
    let none = match lines {
        1 => "the only line is no request".to_owned(),
        _ => format!("none of the {lines} lines is a request"),
    };
    format!("{none} of the format {format}: {}; check --format", reasons.join(", "))
}

fn backwards(back: Nanos, window: Nanos, is_full: bool) -> String {
    if is_full {
        return format!(
            "time goes back by {back}, and at most {HELD_MAX} requests are held to be sorted, here \
             those of the last {window}; sort the trace by time"
        );
    }
    let far = format!(
        "time goes back by {back}, and requests are sorted only within {window}; sort the trace by \
         time"
    );
    if back > SORTED_MAX {
        return far;
    }
    // The rest of the file is not read.
    format!(
        "{far}, or give --disorder at least {}s: larger steps back may follow",
        back.0.div_ceil(1_000_000_000)
    )
}
