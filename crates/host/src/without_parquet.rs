//! The part of `parquet` that reports, jobs and traces use, in a build without Parquet: every file
//! is refused with what to do.

use std::convert::Infallible;
use std::fs::File;

use prism_trace::{Record, Source, Symbols, TraceFacts};
use prism_workload::Finished;

use crate::atomic::OutputFile;
use crate::error::HostError;

/// The first bytes of a Parquet file.
pub const MAGIC: &[u8; 4] = b"PAR1";

fn refused(file: &str) -> HostError {
    let what = "this program was built without Parquet; to build all of it, run `cargo build \
                --release`";
    HostError::Parquet { file: file.to_owned(), what: what.to_owned() }
}

/// Cannot be made.
pub struct ParquetReader(Infallible);

impl ParquetReader {
    /// Refuses the file `name`.
    ///
    /// # Errors
    /// Always [`HostError::Parquet`].
    pub fn open(_file: File, name: &str) -> Result<Self, HostError> {
        Err(refused(name))
    }

    /// There is no reader.
    #[must_use]
    pub fn facts(&self) -> &TraceFacts {
        match self.0 {}
    }

    /// There is no reader.
    #[must_use]
    pub fn records(&self) -> u64 {
        match self.0 {}
    }

    /// There is no reader.
    ///
    /// # Errors
    /// Never returns.
    pub fn next_batch(&mut self, _: &mut Symbols, _: &mut Vec<Record>) -> Result<(), HostError> {
        match self.0 {}
    }
}

/// Cannot be made.
pub struct RequestsWriter(Infallible);

impl RequestsWriter {
    /// Refuses the file `out`.
    ///
    /// # Errors
    /// Always [`HostError::Parquet`].
    pub fn create(out: OutputFile, _symbols: Symbols) -> Result<Self, HostError> {
        Err(refused(out.name()))
    }

    /// There is no writer.
    ///
    /// # Errors
    /// Never returns.
    pub fn add(&mut self, _finished: &Finished) -> Result<(), HostError> {
        match self.0 {}
    }

    /// There is no writer.
    ///
    /// # Errors
    /// Never returns.
    pub fn finish(self) -> Result<OutputFile, HostError> {
        match self.0 {}
    }
}

/// Refuses the file `out`.
///
/// # Errors
/// Always [`HostError::Parquet`].
pub fn write(
    out: &mut OutputFile,
    _source: &mut dyn Source,
    _symbols: &Symbols,
    _facts: &TraceFacts,
) -> Result<u64, HostError> {
    Err(refused(out.name()))
}
