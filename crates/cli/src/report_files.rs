//! The output files of a report: text, HTML, JSON and Parquet, committed together at the end.

use std::io::Write;
use std::path::Path;

use prism_host::{HostError, OutputFile};
use prism_report::{Document, html};

use crate::failure::Failure;
use crate::output;

/// The requested files. They are opened before the work begins, so that an unwritable one is
/// reported at once, and committed together at the end.
pub struct ReportFiles {
    html: Option<OutputFile>,
    json: Option<OutputFile>,
    /// Taken by the writer of the requests, and put back when it has finished.
    pub requests: Option<OutputFile>,
    /// The output of the text: by default standard output, unless another file goes there.
    text: Option<OutputFile>,
}

/// The path of each output, by flag.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    /// `--html`
    pub html: Option<&'a Path>,
    /// `--json`
    pub json: Option<&'a Path>,
    /// `--requests`
    pub requests: Option<&'a Path>,
    /// `--output`
    pub text: Option<&'a Path>,
}

impl ReportFiles {
    /// Opens the files.
    ///
    /// # Errors
    /// [`Failure`] if two name the same file, or one cannot be opened.
    pub fn open(paths: Paths<'_>) -> Result<Self, Failure> {
        let asked = [
            ("--html", paths.html),
            ("--json", paths.json),
            ("--requests", paths.requests),
            ("--output", paths.text),
        ];
        for (i, (flag, path)) in asked.iter().enumerate() {
            let same = |(_, other): &&(_, Option<&Path>)| path.is_some() && other == path;
            if let Some((other, _)) = asked[..i].iter().find(same) {
                let path = path.map(Path::display).expect("it is the same as another");
                let what = format!("{path}: {other} and {flag} name the same file");
                return Err(Failure::Usage(what));
            }
        }
        let stdout = Path::new("-");
        let free = asked.iter().all(|&(_, path)| path != Some(stdout));
        let text = paths.text.or(free.then_some(stdout));
        let open = |path: Option<&Path>| path.map(OutputFile::create).transpose();
        Ok(Self {
            html: open(paths.html)?,
            json: open(paths.json)?,
            requests: open(paths.requests)?,
            text: open(text)?,
        })
    }

    /// Whether the text is written at all.
    #[must_use]
    pub fn has_text(&self) -> bool {
        self.text.is_some()
    }

    /// Writes all files, `document` as text and `page` as HTML, then commits them: if the disk is
    /// full, none appears. `text` replaces the text of `document`.
    ///
    /// # Errors
    /// [`Failure`] if one cannot be written.
    pub fn write(
        mut self,
        document: &Document,
        page: Document,
        json: &str,
        text: Option<&str>,
    ) -> Result<(), Failure> {
        if let Some(out) = &mut self.html {
            put(out, html::render(&page).as_bytes())?;
        }
        if let Some(out) = &mut self.json {
            put(out, json.as_bytes())?;
        }
        if let Some(out) = &mut self.text {
            match text {
                Some(text) => put(out, text.as_bytes())?,
                None => put(out, output::text(document).as_bytes())?,
            }
        }
        // Outputs that cannot be undone are committed first; if one fails, no file appears.
        let (direct, renamed): (Vec<_>, Vec<_>) = [self.text, self.json, self.html, self.requests]
            .into_iter()
            .flatten()
            .partition(OutputFile::is_direct);
        for out in direct.into_iter().chain(renamed) {
            out.commit()?;
        }
        Ok(())
    }
}

fn put(out: &mut OutputFile, bytes: &[u8]) -> Result<(), HostError> {
    out.write_all(bytes).map_err(|error| out.failed(error))
}
