//! The arguments that choose a trace, shared by all commands that read one.

use std::path::PathBuf;

use crate::quantities;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use prism_base::{Named, Nanos};
use prism_host::{HostError, LoadSpec, LoadedTrace, Progress, load_trace};
use prism_trace::{Format, LogicalBlock};

/// The trace files, and the selection of requests.
#[derive(Clone, Debug, Args)]
pub struct TraceArgs {
    /// Trace file(s), plain, .gz or .zst; `-` is standard input. Several text files are read one
    /// after another; for a blktrace recording, name one of its files
    #[arg(required = true, value_name = "TRACE")]
    pub paths: Vec<PathBuf>,
    /// Format and selection.
    #[command(flatten)]
    pub select: SelectArgs,
}

/// The format of a trace, and the selection of requests.
#[derive(Clone, Debug, Args)]
pub struct SelectArgs {
    /// Format of the trace [default: recognised by its content]
    #[arg(long, value_parser = format_parser(), value_name = "FORMAT",
          conflicts_with_all = ["map", "blkparse_format"])]
    pub format: Option<Format>,
    /// TOML map that describes the columns of a text file
    #[arg(long, value_name = "FILE.toml", conflicts_with = "blkparse_format")]
    pub map: Option<PathBuf>,
    /// The -f string with which blkparse printed the trace
    #[arg(long, value_name = "STRING")]
    pub blkparse_format: Option<String>,
    /// Size of a logical block, for a trace with only NVMe commands, which do not record it
    /// [default: 512B]
    #[arg(long, value_name = "SIZE", value_parser = parse_block)]
    pub block_size: Option<LogicalBlock>,
    /// Sort requests that are out of the order of time by up to this much (30s). At most 1,048,576
    /// requests are held to be sorted, in about 100 MB [default: what the format needs, mostly 1s]
    #[arg(long, value_name = "TIME", value_parser = quantities::nanos)]
    pub disorder: Option<Nanos>,
    /// Only the requests of this phase
    #[arg(long, value_name = "PHASE")]
    pub phase: Option<String>,
    /// Only the requests of this device of the trace
    #[arg(long, value_name = "DEVICE", visible_alias = "device-name")]
    pub source: Option<String>,
}

impl TraceArgs {
    /// Reads the trace, with progress on standard error if that is a terminal.
    ///
    /// # Errors
    /// [`HostError`] naming the file.
    pub fn load(&self) -> Result<LoadedTrace, HostError> {
        self.select.load(&self.paths)
    }
}

impl SelectArgs {
    /// Reads the trace of the files `paths`.
    ///
    /// # Errors
    /// [`HostError`] naming the file.
    pub fn load(&self, paths: &[PathBuf]) -> Result<LoadedTrace, HostError> {
        let spec = LoadSpec {
            paths: paths.to_vec(),
            format: self.format,
            map: self.map.clone(),
            blkparse_format: self.blkparse_format.clone(),
            nvme_block: self.block_size,
            disorder: self.disorder,
            phase: self.phase.clone(),
            source: self.source.clone(),
        };
        load_trace(&spec, &Progress::on_stderr())
    }
}

fn parse_block(text: &str) -> Result<LogicalBlock, String> {
    let size = quantities::bytes(text)?;
    LogicalBlock::new(size).map_err(|error| error.to_string())
}

/// Accepts the name of a format; for others clap proposes a similar one.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::ALL.map(Format::name));
    names.map(|name| Format::from_name(&name).expect("only names of formats are possible"))
}
