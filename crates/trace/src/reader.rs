//! The one door for bytes: a [`Reader`] turns the bytes of any known format into
//! records in the order of their issue times.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::record::Record;
use crate::skips::Skips;
use crate::symbols::Symbols;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ftrace text and `trace-cmd report`.
    Ftrace,
    /// `perf script`.
    PerfScript,
    /// blkparse text, default form or a given `-f` string.
    Blkparse,
    /// blktrace binary, version 7 or 8, either byte order.
    Blktrace,
    /// fio iolog, version 2 or 3.
    FioIolog,
    /// MSR Cambridge CSV.
    Msr,
    /// Alibaba block traces CSV.
    Alibaba,
    /// Tencent CBS CSV.
    Tencent,
    /// MQSim ASCII.
    Mqsim,
    /// Any text described by a TOML map.
    Map,
}

/// Which event of an event format counts as the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountFrom {
    /// The issue to the device (`D`, `block_rq_issue`), the usual one.
    Issue,
    /// The entry into the block layer (`Q`, `block_bio_queue`), for stacked devices that
    /// have no issue events.
    Queue,
}

/// How to read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The format.
    pub format: Format,
    /// The `-f` string of blkparse, if one was used.
    pub blkparse_format: Option<String>,
    /// The text of the TOML map, for [`Format::Map`].
    pub map_toml: Option<String>,
    /// Which event is the request.
    pub count_from: CountFrom,
}

/// A phase of the experiment, between two markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Its name.
    pub name: String,
    /// Where it starts (ns since trace start).
    pub start_ns: i64,
    /// Where the next one, or the trace, ends it.
    pub end_ns: i64,
}

/// What is known once everything is read.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Lines (or binary records) read.
    pub lines: u64,
    /// What the source could tell, as recorded: a format that has completions but of
    /// which none was in the trace says `completion: false`.
    pub capabilities: Capabilities,
    /// Lines that were no request.
    pub skips: Skips,
    /// Phases, in order.
    pub phases: Vec<PhaseSpan>,
    /// There was no issue event but there were queue events: read again with
    /// [`CountFrom::Queue`].
    pub only_queue_events: bool,
    /// Requests whose completion was not found although the source has completions.
    pub unpaired: u64,
}

/// Reads one trace, which may consist of several inputs (one file a processor).
pub struct Reader {
    _options: ReaderOptions,
}

impl Reader {
    /// A reader for `inputs` inputs (1 for all but blktrace).
    ///
    /// # Errors
    /// [`TraceError::Bad`] if the `-f` string or the map make no sense.
    pub fn new(options: ReaderOptions, inputs: usize) -> Result<Self, TraceError> {
        let _ = inputs;
        Ok(Self { _options: options })
    }

    /// The input whose bytes are wanted next; `None` once all have ended.
    #[must_use]
    pub fn wants(&self) -> Option<usize> {
        None
    }

    /// Takes the next bytes of `input`; pieces may end anywhere, also within a line.
    ///
    /// # Errors
    /// [`TraceError`]
    pub fn feed(
        &mut self,
        input: usize,
        bytes: &[u8],
        out: &mut Vec<Record>,
    ) -> Result<(), TraceError> {
        let _ = (input, bytes, out);
        Ok(())
    }

    /// Says that `input` has no more bytes.
    ///
    /// # Errors
    /// [`TraceError`]
    pub fn end_of_input(&mut self, input: usize, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let _ = (input, out);
        Ok(())
    }

    /// Hands out what was held back, and what is known now.
    ///
    /// # Errors
    /// [`TraceError::NoEvent`] or [`TraceError::Empty`] if there was nothing.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<Outcome, TraceError> {
        let _ = out;
        Err(TraceError::Empty)
    }

    /// The names that the records refer to.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        unimplemented!("written with the first format")
    }
}
