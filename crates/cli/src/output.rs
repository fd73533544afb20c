//! The output of results: text to standard output, JSON to the file of `--json`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use prism_host::{HostError, OutputFile};
use prism_report::{Document, Style, terminal};
use serde::Serialize;

use crate::failure::Failure;

/// The `--json` flag, the same for every command.
#[derive(Clone, Debug, Args)]
pub struct JsonArg {
    /// Write the result as JSON to FILE; `-` writes it to standard output instead of text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl JsonArg {
    /// The file for the JSON, if `--json` was given.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// As [`JsonArg::write`], with `document` as the text.
    ///
    /// # Errors
    /// [`HostError::Write`]
    pub fn show(&self, value: &impl Serialize, document: &Document) -> Result<(), Failure> {
        Ok(self.write(value, &text(document))?)
    }

    /// Writes `value` as JSON if `--json` was given, and `text` to standard output unless the JSON
    /// goes there.
    ///
    /// # Errors
    /// [`HostError::Write`]
    pub fn write(&self, value: &impl Serialize, text: &str) -> Result<(), HostError> {
        if let Some(path) = &self.json {
            write_whole(path, json(value).as_bytes())?;
            if path == Path::new("-") {
                return Ok(());
            }
        }
        write_whole(Path::new("-"), text.as_bytes())
    }
}

impl JsonArg {
    /// Refuses that both `output` and the JSON go to standard output.
    ///
    /// # Errors
    /// [`Failure::Usage`] if they are.
    pub fn refuse_same_stdout(&self, output: &Path) -> Result<(), Failure> {
        let stdout = Path::new("-");
        if output == stdout && self.json.as_deref() == Some(stdout) {
            let what = "the output and --json cannot both go to standard output";
            return Err(Failure::Usage(what.into()));
        }
        Ok(())
    }

    /// As [`JsonArg::write`], for a command whose result goes to `output`: if that is
    /// standard output, the text goes to standard error.
    ///
    /// # Errors
    /// [`HostError::Write`]
    pub fn write_with(
        &self,
        output: &Path,
        value: &impl Serialize,
        text: &str,
    ) -> Result<(), HostError> {
        if output != Path::new("-") {
            return self.write(value, text);
        }
        if let Some(path) = &self.json {
            write_whole(path, json(value).as_bytes())?;
        }
        // A failure is ignored: there is no other place to report it.
        let _ = std::io::stderr().write_all(text.as_bytes());
        Ok(())
    }
}

/// `value` as the text of a JSON file.
///
/// # Panics
/// If a map in it has keys other than strings; results have none.
#[must_use]
pub fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("results have only plain fields");
    text.push('\n');
    text
}

/// `document` as text for standard output.
#[must_use]
pub fn text(document: &Document) -> String {
    let (width, style) = screen();
    terminal::render(document, width, style)
}

/// The width of text for a file or a pipe, and the largest for a terminal.
const WIDTH: usize = 100;
/// Tables need this much.
const WIDTH_MIN: usize = 72;

/// The width and style of standard output: colours only on a terminal and without `NO_COLOR`,
/// ASCII only for files and pipes.
fn screen() -> (usize, Style) {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if !std::io::stdout().is_terminal() {
        return (width(columns, None), Style::PLAIN);
    }
    let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let width = width(columns, prism_host::progress::terminal_width());
    (width, Style { color, unicode: true })
}

/// The width of text, given the variable `COLUMNS` and the width of the terminal.
fn width(columns: Option<usize>, terminal: Option<usize>) -> usize {
    let asked = columns.filter(|&columns| columns > 0);
    asked.or(terminal).unwrap_or(WIDTH).clamp(WIDTH_MIN, WIDTH)
}

/// Writes `bytes` to `path`, which changes only if all of them can be written.
///
/// # Errors
/// [`HostError`] if that fails.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let mut out = OutputFile::create(path)?;
    out.write_all(bytes).map_err(|error| out.failed(error))?;
    out.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_wide_as_the_terminal_within_limits() {
        let check = |columns, terminal, expected| assert_eq!(width(columns, terminal), expected);
        check(None, None, 100);
        check(None, Some(80), 80);
        check(None, Some(200), 100);
        check(None, Some(40), 72);
        check(Some(90), Some(80), 90);
        check(Some(0), Some(80), 80);
    }
}
