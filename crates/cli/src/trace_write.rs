//! Writes a trace in an output format, and reports what was left out.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use prism_host::{HostError, OutputFile, parquet};
use prism_trace::write::{TextFormat, TextWriter};
use prism_trace::{SkipRow, Source, Symbols, TraceFacts};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::JsonArg;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Prism's own format: lossless, readable by DuckDB, Polars and pandas
    Parquet,
    /// fio's iolog, version 3
    Fio,
    /// MQSim's ASCII trace, times in nanoseconds
    Mqsim,
}

/// The format of an output trace.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// Format to write [default: by the extension of the output: .parquet, .fio, .iolog or
    /// .mqsim]
    #[arg(long, value_enum)]
    to: Option<Target>,
    #[command(flatten)]
    json: JsonArg,
}

/// An open output file and its format.
#[derive(Debug)]
pub struct TraceOutput<'a> {
    path: PathBuf,
    file: OutputFile,
    target: Target,
    json: &'a JsonArg,
}

/// The result of writing.
#[derive(Debug, Serialize)]
struct Written {
    output: String,
    to: Target,
    /// Requests and flushes of the trace.
    records: u64,
    /// Records that were dropped or changed because the format cannot represent them, by reason;
    /// the line is the number of the first such record.
    losses: Vec<SkipRow>,
}

impl TargetArgs {
    /// Opens `path` before a long trace is read or generated, so that an unwritable path is
    /// reported at once.
    ///
    /// # Errors
    /// [`Failure`] if no format is given, or the file cannot be created.
    pub fn open(&self, path: &Path) -> Result<TraceOutput<'_>, Failure> {
        self.json.refuse_same_stdout(path)?;
        let target = self.to.or_else(|| Target::of(path)).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: its extension names no output format; use .parquet, .fio, .iolog or .mqsim, \
                 or give --to",
                path.display()
            ))
        })?;
        let file = OutputFile::create(path)?;
        Ok(TraceOutput { path: path.to_owned(), file, target, json: &self.json })
    }
}

impl TraceOutput<'_> {
    /// Writes every record of `source`, commits the output, and reports what it holds.
    ///
    /// # Errors
    /// [`HostError`]; then the output does not appear.
    pub fn write(
        mut self,
        source: &mut dyn Source,
        symbols: &Symbols,
        facts: &TraceFacts,
    ) -> Result<(), HostError> {
        let (records, losses) = match self.target {
            Target::Parquet => (parquet::write(&mut self.file, source, symbols, facts)?, vec![]),
            Target::Fio => self.write_text(source, symbols, TextFormat::FioV3)?,
            Target::Mqsim => self.write_text(source, symbols, TextFormat::Mqsim)?,
        };
        let output = self.file.name().to_owned();
        self.file.commit()?;
        let mut text = format!("{output}: {records} requests and flushes\n");
        for loss in &losses {
            text.push_str(&format!("  {} of them: {}\n", loss.count, loss.reason));
        }
        let written = Written { output, to: self.target, records, losses };
        self.json.write_with(&self.path, &written, &text)
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

impl Target {
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
