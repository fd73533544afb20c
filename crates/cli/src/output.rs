//! Where results go: text to standard output, JSON to the file that `--json` names.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use prism_host::{HostError, OutputFile};
use serde::Serialize;

/// The `--json` flag, the same for every command.
#[derive(Clone, Debug, Args)]
pub struct JsonArg {
    /// Write the result as JSON to FILE; `-` writes it to standard output instead of text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl JsonArg {
    /// Writes `value` as JSON if that was asked for, and `text` to standard output unless
    /// the JSON goes there.
    ///
    /// # Errors
    /// [`HostError::Write`]
    pub fn write(&self, value: &impl Serialize, text: &str) -> Result<(), HostError> {
        if let Some(path) = &self.json {
            let mut json =
                serde_json::to_string_pretty(value).expect("results have only plain fields");
            json.push('\n');
            write_whole(path, json.as_bytes())?;
            if path == Path::new("-") {
                return Ok(());
            }
        }
        write_whole(Path::new("-"), text.as_bytes())
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let mut out = OutputFile::create(path)?;
    out.write_all(bytes).map_err(|error| out.failed(error))?;
    out.commit()
}
