//! The arguments of an output trace, and the report on what was left out of it.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use prism_base::Named;
use prism_host::{HostError, Progress, TraceFile, TraceTarget};
use prism_trace::{Source, Symbols, TraceFacts};

use crate::failure::Failure;
use crate::output::JsonArg;

/// The format of an output trace.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// Format to write [default: by the extension of the output: .parquet, .fio, .iolog or
    /// .mqsim]
    #[arg(long, value_name = "TO", value_parser = target_parser())]
    to: Option<TraceTarget>,
    #[command(flatten)]
    json: JsonArg,
}

/// Accepts the name of a format.
fn target_parser() -> impl TypedValueParser<Value = TraceTarget> {
    let help = |target| match target {
        TraceTarget::Parquet => {
            "Prism's own format: lossless, readable by DuckDB, Polars and pandas"
        }
        TraceTarget::Fio => "fio's iolog, version 3",
        TraceTarget::Mqsim => "MQSim's ASCII trace, times in nanoseconds",
    };
    let value = |target: TraceTarget| PossibleValue::new(target.name()).help(help(target));
    let names = PossibleValuesParser::new(TraceTarget::ALL.map(value));
    names.map(|name| TraceTarget::from_name(&name).expect("only names of formats are possible"))
}

/// An open output file and its format.
#[derive(Debug)]
pub struct TraceOutput<'a> {
    path: PathBuf,
    file: TraceFile,
    json: &'a JsonArg,
}

impl TargetArgs {
    /// Opens `path` before a long trace is read or generated, so that an unwritable path is
    /// reported at once.
    ///
    /// # Errors
    /// [`Failure`] if no format is given, or the file cannot be created.
    pub fn open(&self, path: &Path) -> Result<TraceOutput<'_>, Failure> {
        self.json.refuse_same_stdout(path)?;
        let file = TraceFile::create(path, self.to)?;
        Ok(TraceOutput { path: path.to_owned(), file, json: &self.json })
    }
}

impl TraceOutput<'_> {
    /// Writes every record of `source`, commits the output, and reports what it holds.
    ///
    /// # Errors
    /// [`HostError`]; then the output does not appear.
    pub fn write(
        self,
        source: &mut dyn Source,
        symbols: &Symbols,
        facts: &TraceFacts,
    ) -> Result<(), HostError> {
        let written = self.file.write(source, symbols, facts, &Progress::on_stderr())?;
        let mut text = format!("{}: {} requests and flushes\n", written.output, written.records);
        for loss in &written.losses {
            text.push_str(&format!("  {} of them: {}\n", loss.count, loss.reason));
        }
        self.json.write_with(&self.path, &written, &text)
    }
}
