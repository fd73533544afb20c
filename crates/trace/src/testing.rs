//! For the tests of line formats: splits text into lines, as the reader does, and shows the
//! result.

use crate::record::Record;
use crate::sink::{LineParser, Sink};
use crate::symbols::Symbols;

/// As much disorder as any format may have.
const DISORDER_NS: u64 = 60_000_000_000;

/// The result of parsing a text.
pub(crate) struct Parsed {
    pub records: Vec<Record>,
    pub symbols: Symbols,
    /// Reason, count, first line.
    pub skips: Vec<(&'static str, u64, u64)>,
}

/// Runs `parser` over the lines of `text`.
///
/// # Panics
/// If the parser returns an error.
pub(crate) fn parse(parser: &mut dyn LineParser, text: &str) -> Parsed {
    let mut sink = Sink::new(DISORDER_NS);
    for (index, line) in text.lines().enumerate() {
        parser.line(line.as_bytes(), index as u64 + 1, &mut sink).expect("readable");
    }
    let mut records = Vec::new();
    sink.drain(true, &mut records);
    let rows = sink.skips.rows();
    let skips = rows.iter().map(|row| (row.reason.0, row.count, row.first_line)).collect();
    Parsed { records, symbols: sink.symbols, skips }
}

impl Parsed {
    /// Each record as `issue complete op offset len device file`.
    pub fn lines(&self) -> Vec<String> {
        self.records.iter().map(|record| show(record, &self.symbols)).collect()
    }
}

fn show(record: &Record, symbols: &Symbols) -> String {
    format!(
        "{} {:?} {} {} {} {} {}",
        record.issue_ns,
        record.complete,
        record.op.name(),
        record.offset,
        record.len,
        symbols.name(record.device),
        symbols.name(record.file),
    )
    .trim_end()
    .to_owned()
}
