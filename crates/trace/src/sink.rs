//! Collects the records of a parser of formats with one request per line.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::order::{Orderer, Timed};
use crate::record::{OptTime, Record};
use crate::skips::{SkipReason, Skips};
use crate::symbols::Symbols;

/// Collects records, sorts them by issue time, and counts names and skipped lines.
#[derive(Debug)]
pub struct Sink {
    /// Names seen so far.
    pub symbols: Symbols,
    /// The lines that are not requests.
    pub skips: Skips,
    order: Orderer<Record>,
    origin_ns: Option<i64>,
    seen: Seen,
}

/// What the records so far contained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests.
    pub records: u64,
    /// Requests with a completion time.
    pub completed: u64,
    /// Requests with a queue time.
    pub queued: u64,
}

impl Timed for Record {
    fn time_ns(&self) -> i64 {
        self.issue_ns
    }
}

impl Record {
    /// The same request with times relative to `origin_ns`.
    pub(crate) fn since(mut self, origin_ns: i64) -> Self {
        let shift =
            |time: OptTime| time.get().map_or(time, |ns| OptTime::at(ns.saturating_sub(origin_ns)));
        self.issue_ns = self.issue_ns.saturating_sub(origin_ns);
        self.queue = shift(self.queue);
        self.complete = shift(self.complete);
        self
    }
}

impl Sink {
    /// A sink that corrects up to `window_ns` of disorder.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        Self {
            symbols: Symbols::new(),
            skips: Skips::default(),
            order: Orderer::new(window_ns),
            origin_ns: None,
            seen: Seen::default(),
        }
    }

    /// Adds a request read at `line`. Its times are those of the source's clock; they become
    /// relative to the first request when the record leaves the sink.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if it belongs before records that have already left.
    pub fn record(&mut self, record: Record, line: u64) -> Result<(), TraceError> {
        self.seen.records += 1;
        self.seen.completed += u64::from(record.complete.get().is_some());
        self.seen.queued += u64::from(record.queue.get().is_some());
        self.order.push(record, line)
    }

    /// Counts a line that is not a request.
    pub fn skip(&mut self, reason: SkipReason, line: u64) {
        self.skips.add(reason, line);
    }

    /// Moves the records that can no longer be overtaken to `out`; all of them if
    /// `at_end`.
    pub fn drain(&mut self, at_end: bool, out: &mut Vec<Record>) {
        while let Some(record) = self.order.pop(at_end) {
            let origin_ns = *self.origin_ns.get_or_insert(record.issue_ns);
            out.push(record.since(origin_ns));
        }
    }

    /// How many requests were sorted in far from their place ([`Orderer::far`]).
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.order.far()
    }

    /// What was added so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.seen
    }
}

/// Disorder that is corrected unless a format has another limit: tools that merge the buffers of
/// several CPUs read one after another, each for a fraction of a second, and traces of several
/// servers stay well within a second.
pub const DISORDER_NS: u64 = 1_000_000_000;

/// A parser of a format whose lines do not depend on each other.
pub trait LineParser {
    /// Reads one line (without its line end; numbered from 1).
    ///
    /// A line that is not a request is counted with [`Sink::skip`]; only damage that makes the
    /// rest meaningless is an error.
    ///
    /// # Errors
    /// [`TraceError`] as described.
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError>;

    /// What the format can contain, as far as the lines so far have shown.
    fn capabilities(&self) -> Capabilities;

    /// By how many nanoseconds lines may be out of the order of their issue times.
    fn disorder_ns(&self) -> u64 {
        DISORDER_NS
    }
}
