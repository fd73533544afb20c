//! Reads binary formats whose records do not depend on each other, from bytes that arrive in
//! pieces.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::record::Record;
use crate::sink::Sink;

/// Consumed bytes at the start of a buffer after which it is compacted.
const COMPACT_BYTES: usize = 64 << 10;

/// A parser of a binary format whose records do not depend on each other.
pub(crate) trait RecordParser {
    /// Reads the header or record at the start of `bytes`, and returns which it was. `number`
    /// is that of the record, from 1.
    ///
    /// # Errors
    /// What is wrong and what to do, if the rest is meaningless.
    fn take(&mut self, bytes: &[u8], number: u64, sink: &mut Sink) -> Result<Parsed, TraceError>;

    /// What the records so far contained.
    fn capabilities(&self) -> Capabilities;
}

/// What a [`RecordParser`] read at the start of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A header with this number of bytes.
    Header(usize),
    /// A record with this number of bytes.
    Record(usize),
    /// Nothing: a part of the header or record is still missing.
    Part,
}

/// Reads one input of such a format.
pub(crate) struct Records {
    parser: Box<dyn RecordParser>,
    pub sink: Sink,
    buffer: Vec<u8>,
    start: usize,
    records: u64,
}

impl Records {
    /// Records may be up to `disorder_ns` out of the order of their issue times.
    pub fn new(parser: Box<dyn RecordParser>, disorder_ns: u64) -> Self {
        Self { parser, sink: Sink::new(disorder_ns), buffer: Vec::new(), start: 0, records: 0 }
    }

    /// Records read, including those that are not requests.
    pub fn records(&self) -> u64 {
        self.records
    }

    pub fn capabilities(&self) -> Capabilities {
        self.parser.capabilities()
    }

    /// Reads the next bytes, and moves the requests that are in order to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), TraceError> {
        self.buffer.extend_from_slice(bytes);
        loop {
            let rest = &self.buffer[self.start..];
            let parsed = self.parser.take(rest, self.records + 1, &mut self.sink)?;
            let len = match parsed {
                Parsed::Header(len) => len,
                Parsed::Record(len) => {
                    self.records += 1;
                    len
                }
                Parsed::Part => break,
            };
            assert!((1..=rest.len()).contains(&len), "{parsed:?} of {} bytes", rest.len());
            self.start += len;
        }
        if self.start >= COMPACT_BYTES || self.start == self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.sink.drain(false, out);
        Ok(())
    }

    /// Ends the input.
    pub fn end(&mut self) -> Result<(), TraceError> {
        let left = self.buffer.len() - self.start;
        if left == 0 {
            return Ok(());
        }
        let line = self.records + 1;
        let what = format!(
            "record {line} is cut off after {left} bytes; the trace was not copied whole, or is \
             of another format"
        );
        Err(TraceError::Bad { line, what })
    }
}

/// The little-endian numbers of a record, from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// The next `N` bytes.
    ///
    /// # Panics
    /// If there are fewer: a parser reads fields only from complete records.
    fn next<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("the record is whole");
        self.0 = rest;
        *first
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.next())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.next())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.next())
    }
}
