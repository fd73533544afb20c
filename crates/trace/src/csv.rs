//! What the public data sets of comma-separated lines have in common: one request a line,
//! perhaps a header, and lines that are skipped with a reason.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::is_header;
use crate::record::Record;
use crate::sink::{LineParser, Sink};
use crate::skips::SkipReason;

/// Reads the lines of one data set, with or without a header line. Made by the `parser`
/// functions of [`crate::msr`], [`crate::alibaba`] and [`crate::tencent`].
#[derive(Clone, Debug)]
pub struct CsvParser {
    /// Turns the fields of a line into a request.
    pub(crate) parse: fn(&[u8], &mut Sink) -> Result<Record, SkipReason>,
    /// The field, from 0, that is a number unless the line is a header.
    pub(crate) number_field: usize,
    /// What the format can carry.
    pub(crate) capabilities: Capabilities,
    /// How far lines may stand out of order (ns).
    pub(crate) disorder_ns: u64,
}

impl LineParser for CsvParser {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let line = line.trim_ascii();
        if line.is_empty() || number == 1 && is_header(line, b',', self.number_field) {
            return Ok(());
        }
        match (self.parse)(line, sink) {
            Ok(record) => sink.record(record, number),
            Err(reason) => {
                sink.skip(reason, number);
                Ok(())
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn disorder_ns(&self) -> u64 {
        self.disorder_ns
    }
}
