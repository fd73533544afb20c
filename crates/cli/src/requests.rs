//! The Parquet file of the requests, written while they complete.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use prism_host::parquet::{self, RequestsWriter};
use prism_host::{HostError, OutputFile};
use prism_trace::Symbols;
use prism_workload::Finished;

/// The argument of `--requests`.
pub fn file() -> impl TypedValueParser<Value = PathBuf> {
    let checked = |path: PathBuf| parquet::is_there(&path.display().to_string()).map(|()| path);
    PathBufValueParser::new().try_map(checked)
}

/// Writes requests to a file, if there is one.
pub struct Requests {
    writer: Option<RequestsWriter>,
    failed: Option<HostError>,
}

impl Requests {
    /// Starts writing to `file`, if there is one, with the names of `symbols`.
    ///
    /// # Errors
    /// [`HostError::Write`] if that fails.
    pub fn to(
        file: Option<OutputFile>,
        symbols: impl FnOnce() -> Symbols,
    ) -> Result<Self, HostError> {
        let writer = file.map(|file| RequestsWriter::create(file, symbols())).transpose()?;
        Ok(Self { writer, failed: None })
    }

    /// Writes one request; false if the file cannot be written.
    pub fn add(&mut self, finished: &Finished) -> bool {
        if let (Some(writer), None) = (&mut self.writer, &self.failed) {
            self.failed = writer.add(finished).err();
        }
        self.failed.is_none()
    }

    /// The file with all requests, which is still to be committed.
    ///
    /// # Errors
    /// [`HostError::Write`] if it could not be written.
    pub fn finish(self) -> Result<Option<OutputFile>, HostError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.map(RequestsWriter::finish).transpose(),
        }
    }
}
