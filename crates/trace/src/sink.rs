//! Where a parser of one-line-one-request formats puts what it read.

use crate::error::TraceError;
use crate::order::Orderer;
use crate::record::Record;
use crate::skips::{SkipReason, Skips};
use crate::symbols::Symbols;

/// Collects records (put into order of issue time), names and skipped lines.
#[derive(Debug)]
pub struct Sink {
    /// Names seen so far.
    pub symbols: Symbols,
    /// What was not turned into a request.
    pub skips: Skips,
    order: Orderer,
}

impl Sink {
    /// A sink that puts right up to `window_ns` of disorder.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        Self { symbols: Symbols::new(), skips: Skips::default(), order: Orderer::new(window_ns) }
    }

    /// Takes a request read at `line`. Its times are still those of the source's own
    /// clock; they become relative to the first request when they leave the sink.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if it belongs before what has already left.
    pub fn record(&mut self, record: Record, line: u64) -> Result<(), TraceError> {
        self.order.push(record, line)
    }

    /// Counts a line that is no request.
    pub fn skip(&mut self, reason: SkipReason, line: u64) {
        self.skips.add(reason, line);
    }

    /// Moves the records that can no longer be overtaken to `out`; all of them if
    /// `at_end`.
    pub fn drain(&mut self, at_end: bool, out: &mut Vec<Record>) {
        self.order.drain(at_end, out);
    }
}

/// A format in which a line stands alone.
pub trait LineParser {
    /// Reads one line (without its line end; numbered from 1).
    ///
    /// A line that is no request is counted with [`Sink::skip`]; only damage that makes
    /// the rest meaningless is an error.
    ///
    /// # Errors
    /// [`TraceError`] as described.
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError>;
}
