//! The one place that knows which parser reads a format in which a line stands alone.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::reader::{Format, ReaderOptions};
use crate::sink::LineParser;

/// A parser and what the reader must know of its format.
pub struct LineFormat {
    /// Reads the lines.
    pub parser: Box<dyn LineParser>,
    /// What the format can carry.
    pub capabilities: Capabilities,
    /// Disorder that is put right, in nanoseconds.
    pub window_ns: u64,
}

/// The parser of `options.format`.
///
/// # Errors
/// [`TraceError::UnknownFormat`] for a format that has no such parser, and what the
/// parser says of its options.
pub fn line_format(options: &ReaderOptions) -> Result<LineFormat, TraceError> {
    match options.format {
        Format::Ftrace
        | Format::PerfScript
        | Format::Blkparse
        | Format::Blktrace
        | Format::FioIolog
        | Format::Msr
        | Format::Alibaba
        | Format::Tencent
        | Format::Mqsim
        | Format::Map => Err(TraceError::UnknownFormat),
    }
}
