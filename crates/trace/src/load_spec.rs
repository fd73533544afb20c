//! Which files are a trace, and which part of it is wanted. A crate that opens files reads them.

use std::path::PathBuf;

use prism_base::Nanos;

use crate::{Format, LogicalBlock};

/// Which trace to load, and which part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadSpec {
    /// Its files; `-` is standard input. Several text files follow one another; any file of a
    /// blktrace recording means all of them.
    pub paths: Vec<PathBuf>,
    /// Its format; `None` to recognise it.
    pub format: Option<Format>,
    /// A TOML map that describes the columns of the text.
    pub map: Option<PathBuf>,
    /// The `-f` string with which blkparse printed it.
    pub blkparse_format: Option<String>,
    /// The logical block size of NVMe commands, if it is not 512 B; only for traces of NVMe
    /// commands.
    pub nvme_block: Option<LogicalBlock>,
    /// By how much requests may be out of the order of time; `None` for what the format needs.
    pub disorder: Option<Nanos>,
    /// Only the requests of this phase.
    pub phase: Option<String>,
    /// Only the requests of this device.
    pub source: Option<String>,
}
