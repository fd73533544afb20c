//! Text formats with one request per line, perhaps a header that is repeated where files were
//! joined, and lines that are skipped with a reason.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::{decimals_used, time_and_decimals};
use crate::record::Record;
use crate::sink::{DISORDER_NS, LineParser, Sink};
use crate::skips::SkipReason;
use crate::symbols::Symbols;

/// What is found in a line.
pub(crate) struct RowOutput<'a> {
    pub symbols: &'a mut Symbols,
    /// One request; several if a contiguous range of a file is not contiguous on the device.
    pub records: &'a mut Vec<Record>,
}

/// A text format.
pub(crate) trait Row {
    /// Appends the request of `line`, which is neither empty nor a header, to `out`.
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason>;

    /// What the lines so far contained.
    fn capabilities(&self) -> Capabilities;

    /// By how much lines may be out of the order of their issue times (ns).
    fn disorder_ns(&self) -> u64 {
        DISORDER_NS
    }

    /// Whether `line` is a header. Formats that find their columns by name do so here, and
    /// return which column is missing.
    fn header(&mut self, line: &[u8], is_first: bool) -> Result<bool, String> {
        Ok(is_first && line[0].is_ascii_alphabetic())
    }
}

/// Reads the lines of one format.
pub(crate) struct Rows<R> {
    row: R,
    /// The header, if there was one: an equal later line comes from a joined file.
    header: Vec<u8>,
    out: Vec<Record>,
}

impl<R: Row> Rows<R> {
    pub fn new(row: R) -> Self {
        Self { row, header: Vec::new(), out: Vec::new() }
    }
}

impl<R: Row> LineParser for Rows<R> {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let line = line.trim_ascii();
        if line.is_empty() || line == self.header {
            return Ok(());
        }
        let is_header = self.row.header(line, number == 1);
        if is_header.map_err(|what| TraceError::Bad { line: number, what })? {
            self.header = line.to_vec();
            return Ok(());
        }
        self.out.clear();
        let mut found = RowOutput { symbols: &mut sink.symbols, records: &mut self.out };
        match self.row.read(line, &mut found) {
            Ok(()) => self.out.drain(..).try_for_each(|record| sink.record(record, number)),
            Err(reason) => {
                sink.skip(reason, number);
                Ok(())
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.row.capabilities()
    }

    fn disorder_ns(&self) -> u64 {
        self.row.disorder_ns()
    }
}

/// Reads the times of a format, and finds their resolution: some formats print nine decimals of
/// which six are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    unit_ns: u64,
    decimals: u32,
}

impl Clock {
    /// A clock whose times are decimal numbers of `unit_ns` nanoseconds.
    pub fn new(unit_ns: u64) -> Self {
        Self { unit_ns, decimals: 0 }
    }

    /// The time in `field` in nanoseconds.
    pub fn read(&mut self, field: &[u8]) -> Result<i64, SkipReason> {
        let (ns, decimals) = time_and_decimals(field, self.unit_ns)?;
        if decimals > self.decimals {
            self.saw(decimals_used(field));
        }
        Ok(ns)
    }

    /// Counts a time with `decimals` decimal places that was read in another way.
    pub fn saw(&mut self, decimals: u32) {
        self.decimals = self.decimals.max(decimals);
    }

    /// The resolution of the times so far (ns).
    pub fn step_ns(&self) -> u64 {
        (self.unit_ns / 10_u64.pow(self.decimals)).max(1)
    }
}
