//! Writes a trace in an output format, and reports what that format cannot represent.

use std::io::Write;
use std::path::Path;

use prism_trace::write::{TextFormat, TextWriter};
use prism_trace::{Record, SkipRow, Source, SourceError, Symbols, TraceFacts};
use serde::Serialize;

use crate::atomic::OutputFile;
use crate::error::HostError;
use crate::parquet;
use crate::progress::Progress;

prism_base::named_enum! {
    /// A format that can be written.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TraceTarget {
        /// Prism's own format: lossless, readable by DuckDB, Polars and pandas
        Parquet = "parquet",
        /// fio's iolog, version 3
        Fio = "fio",
        /// MQSim's ASCII trace, times in nanoseconds
        Mqsim = "mqsim",
    }
}

/// An open output file and its format.
#[derive(Debug)]
pub struct TraceFile {
    file: OutputFile,
    target: TraceTarget,
}

/// The result of writing.
#[derive(Debug, Serialize)]
pub struct WrittenTrace {
    /// The file.
    pub output: String,
    /// Its format.
    pub to: TraceTarget,
    /// Requests and flushes of the trace.
    pub records: u64,
    /// Records that were dropped or changed because the format cannot represent them, by reason;
    /// the line is the number of the first such record.
    pub losses: Vec<SkipRow>,
}

impl TraceTarget {
    /// The format of the extension of `path`.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "fio" | "iolog" => Some(Self::Fio),
            "mqsim" => Some(Self::Mqsim),
            _ => None,
        }
    }
}

/// Records that are counted as they are read.
struct Counted<'a> {
    source: &'a mut dyn Source,
    progress: &'a Progress,
    done: u64,
}

impl Source for Counted<'_> {
    fn rewind(&mut self) -> Result<(), SourceError> {
        self.done = 0;
        self.source.rewind()
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<(), SourceError> {
        self.source.next_batch(batch)?;
        self.done += batch.len() as u64;
        self.progress.reached(self.done);
        Ok(())
    }
}

impl TraceFile {
    /// Opens `path` before a long trace is read or generated, so that an unwritable path is
    /// reported at once. Without a `target`, the extension of `path` names it.
    ///
    /// # Errors
    /// [`HostError`] if no format is given, or the file cannot be created.
    pub fn create(path: &Path, target: Option<TraceTarget>) -> Result<Self, HostError> {
        let target = target.or_else(|| TraceTarget::of(path));
        let target =
            target.ok_or_else(|| HostError::NoTarget { file: path.display().to_string() })?;
        if target == TraceTarget::Parquet {
            parquet::is_there(&path.display().to_string())?;
        }
        Ok(Self { file: OutputFile::create(path)?, target })
    }

    /// Writes every record of `source`, shows how many of them are written, and commits the output.
    ///
    /// # Errors
    /// [`HostError`]; then the output does not appear.
    pub fn write(
        mut self,
        source: &mut dyn Source,
        symbols: &Symbols,
        facts: &TraceFacts,
        progress: &Progress,
    ) -> Result<WrittenTrace, HostError> {
        progress.start_count("writing:", "records", None);
        let source = &mut Counted { source, progress, done: 0 };
        let (records, losses) = match self.target {
            TraceTarget::Parquet => {
                (parquet::write(&mut self.file, source, symbols, facts)?, vec![])
            }
            TraceTarget::Fio => self.write_text(source, symbols, TextFormat::FioV3)?,
            TraceTarget::Mqsim => self.write_text(source, symbols, TextFormat::Mqsim)?,
        };
        progress.clear();
        let output = self.file.name().to_owned();
        self.file.commit()?;
        Ok(WrittenTrace { output, to: self.target, records, losses })
    }

    fn write_text(
        &mut self,
        source: &mut dyn Source,
        symbols: &Symbols,
        format: TextFormat,
    ) -> Result<(u64, Vec<SkipRow>), HostError> {
        source.rewind()?;
        let (mut text, mut batch, mut records) = (Vec::new(), Vec::new(), 0);
        let mut writer = TextWriter::new(format, &mut text);
        loop {
            self.file.write_all(&text).map_err(|error| self.file.failed(error))?;
            text.clear();
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok((records, writer.losses().rows().iter().map(SkipRow::from).collect()));
            }
            records += batch.len() as u64;
            for record in &batch {
                writer.record(record, symbols, &mut text);
            }
        }
    }
}
