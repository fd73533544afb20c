//! How a trace is chosen on the command line, the same for every command that reads one.

use std::path::PathBuf;

use crate::quantities;
use clap::Args;
use prism_host::{HostError, LoadSpec, LoadedTrace, Progress, load_trace};
use prism_trace::{Format, LogicalBlock};

/// Which trace to read, how, and what of it.
#[derive(Clone, Debug, Args)]
pub struct TraceArgs {
    /// Trace file(s), plain, .gz or .zst; `-` is standard input. Several text files are
    /// read one after another; one file of a blktrace recording stands for all of them
    #[arg(required = true, value_name = "TRACE")]
    pub paths: Vec<PathBuf>,
    /// How it is read, and what of it.
    #[command(flatten)]
    pub select: SelectArgs,
}

/// How a trace is read, and what of it.
#[derive(Clone, Debug, Args)]
pub struct SelectArgs {
    /// Format of the trace [default: recognised by its content]
    #[arg(long, value_parser = parse_format, value_name = "FORMAT",
          conflicts_with_all = ["map", "blkparse_format"])]
    pub format: Option<Format>,
    /// TOML map that describes the columns of a text
    #[arg(long, value_name = "FILE.toml", conflicts_with = "blkparse_format")]
    pub map: Option<PathBuf>,
    /// The -f string with which blkparse printed the trace
    #[arg(long, value_name = "STRING")]
    pub blkparse_format: Option<String>,
    /// Size of a logical block, for a trace of nothing but NVMe commands, which do not tell
    /// it [default: 512B]
    #[arg(long, value_name = "SIZE", value_parser = parse_block)]
    pub block_size: Option<LogicalBlock>,
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

fn parse_format(text: &str) -> Result<Format, String> {
    Format::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
        format!("the formats are: {}", names.join(" "))
    })
}
