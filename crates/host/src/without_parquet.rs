//! What takes the place of `parquet` in a build without it: the part that reports, jobs and traces
//! use, with the same signatures, and the answer what to do.

use std::convert::Infallible;
use std::fs::File;

use prism_trace::{Record, Source, Symbols, TraceFacts};
use prism_workload::Finished;

use crate::atomic::OutputFile;
use crate::error::HostError;

/// Whether this build can read and write the Parquet file `file`.
///
/// # Errors
/// Always [`HostError::Content`].
pub fn is_there(file: &str) -> Result<(), HostError> {
    Err(refused(file))
}

fn refused(file: &str) -> HostError {
    let what = "this program was built without Parquet; to build all of it, run `cargo build \
                --release`";
    HostError::content(file, what)
}

/// A reader of records, of which this build has none.
pub struct ParquetReader(Infallible);

impl ParquetReader {
    /// Opens `_file`, called `name` in messages.
    ///
    /// # Errors
    /// Always [`HostError::Content`].
    pub fn open(_file: File, name: &str) -> Result<Self, HostError> {
        Err(refused(name))
    }

    /// What is known of the trace.
    #[must_use]
    pub fn facts(&self) -> &TraceFacts {
        match self.0 {}
    }

    /// The number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        match self.0 {}
    }

    /// Reads the next records.
    ///
    /// # Errors
    /// None: no reader can be opened.
    pub fn next_batch(&mut self, _: &mut Symbols, _: &mut Vec<Record>) -> Result<(), HostError> {
        match self.0 {}
    }
}

/// A writer of requests, of which this build has none.
pub struct RequestsWriter(Infallible);

impl RequestsWriter {
    /// Writes to `out` the requests whose names are in `_symbols`.
    ///
    /// # Errors
    /// Always [`HostError::Content`].
    pub fn create(out: OutputFile, _symbols: Symbols) -> Result<Self, HostError> {
        Err(refused(out.name()))
    }

    /// Adds one request.
    ///
    /// # Errors
    /// None: no writer can be created.
    pub fn add(&mut self, _finished: &Finished) -> Result<(), HostError> {
        match self.0 {}
    }

    /// Ends the content of the file.
    ///
    /// # Errors
    /// None: no writer can be created.
    pub fn finish(self) -> Result<OutputFile, HostError> {
        match self.0 {}
    }
}

/// Writes every record of `_source` to `out`.
///
/// # Errors
/// Always [`HostError::Content`].
pub fn write(
    out: &mut OutputFile,
    _source: &mut dyn Source,
    _symbols: &Symbols,
    _facts: &TraceFacts,
) -> Result<u64, HostError> {
    Err(refused(out.name()))
}
