//! Results of reports and simulations: JSON, text, HTML, and tables.

use std::io::Write;
use std::path::PathBuf;

use prism_contract::rules::NamedRange;
use prism_host::OutputFile;
use prism_present::analysis::{Analysis, AnalysisOptions, parse_what_ifs};
use prism_present::pace::{parse_pace, parse_passes};
use prism_present::report::Report;
use prism_replay::Options;
use prism_report::{Block, Document, Style, html, terminal};
use pyo3::prelude::*;
use serde_json::Value;

use crate::arguments::{Arguments, parsed};
use crate::device::DeviceOptions;
use crate::error::Failure;
use crate::frames;
use crate::requests::RequestTable;
use crate::table::Table;
use crate::trace::Trace;
use crate::watch::{self, INLINE_AGAINST};

/// The result of a report or a simulation.
#[pyclass(module = "prism._prism", frozen)]
pub struct Results {
    json: Value,
    /// fio's JSON, for jobs.
    fio: Option<Value>,
    short: Document,
    page: Document,
    requests: Option<Table>,
}

impl Results {
    /// A result without requests.
    pub fn new(json: Value, short: Document, page: Document) -> Self {
        Self { json, fio: None, short, page, requests: None }
    }

    /// With the JSON of fio.
    pub fn with_fio(self, fio: Value) -> Self {
        Self { fio: Some(fio), ..self }
    }

    /// With a table of requests.
    pub fn with_requests(self, requests: Option<Table>) -> Self {
        Self { requests, ..self }
    }
}

#[pymethods]
impl Results {
    /// The result as the command's JSON.
    #[getter]
    fn json(&self) -> String {
        self.json.to_string()
    }

    /// The result with the keys of fio 3, for jobs.
    #[getter]
    fn fio_json(&self) -> Option<String> {
        self.fio.as_ref().map(Value::to_string)
    }

    /// The text of the command, in lines of at most `width` columns; in ASCII, or with Unicode.
    fn text(&self, width: usize, unicode: bool) -> String {
        terminal::render(&self.short, width, Style { unicode, ..Style::PLAIN })
    }

    /// The page of the command's `--html`.
    fn html(&self) -> String {
        html::render(&self.page)
    }

    /// Writes the page to a file; nothing is left of it if that fails.
    fn write_html(&self, path: PathBuf) -> PyResult<()> {
        let written = OutputFile::create(&path).and_then(|mut out| {
            out.write_all(self.html().as_bytes()).map_err(|error| out.failed(error))?;
            out.commit()
        });
        Ok(written.map_err(Failure::from)?)
    }

    /// Every table and chart of the page: the section, the kind, the title and the numbers.
    fn tables(&self) -> Vec<(String, &'static str, String, Table)> {
        let mut found = Vec::new();
        for section in &self.page.sections {
            for block in &section.blocks {
                let (kind, title, batch) = match block {
                    Block::Table(table) => {
                        ("table", table.caption.clone(), frames::of_table(table))
                    }
                    Block::Chart(chart) => {
                        ("chart", chart.title().to_owned(), frames::of_chart(chart))
                    }
                    _ => continue,
                };
                let table = Table::of(batch);
                found.push((section.title.clone(), kind, title, table));
            }
        }
        found
    }

    /// The requests, if they were wanted.
    #[getter]
    fn requests(&self) -> Option<Table> {
        self.requests.as_ref().map(Table::share)
    }
}

/// The options of a replay, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ReplayOptions {
    pace: String,
    passes: String,
    seed: u64,
    what_if: String,
    layout: Option<PathBuf>,
    requests: bool,
}

/// Another trace or drive that a report compares with.
struct Other<'a> {
    name: String,
    trace: &'a Trace,
    is_device: bool,
}

/// Replays a trace on a drive: the arguments are those of `prism report`.
#[pyfunction]
#[pyo3(signature = (trace, device, options, against_trace, against_device, progress))]
pub fn report(
    py: Python<'_>,
    trace: Bound<'_, Trace>,
    device: Arguments<DeviceOptions>,
    options: Arguments<ReplayOptions>,
    against_trace: Option<Bound<'_, Trace>>,
    against_device: Option<(String, Option<String>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let (drive, inline) = device.0.choice()?;
    let (named, against_text) = against_device.unzip();
    let inline_against = against_text.flatten().map(|text| (INLINE_AGAINST, text));
    let against_device = inline_against.as_ref().map(|(name, _)| (*name).to_owned()).or(named);
    let inline = inline.into_iter().chain(inline_against);
    let options = options.0;
    let pace = parsed("pace", &options.pace, parse_pace)?;
    let passes = parsed("passes", &options.passes, parse_passes)?;
    let what_ifs = parsed("what_if", &options.what_if, parse_what_ifs)?;
    let trace: &Trace = trace.get();
    let against_trace: Option<&Trace> = against_trace.as_ref().map(|other| other.get());
    let other = match (against_trace, against_device) {
        (Some(other), _) => {
            let name = other.for_analysis().info.name;
            Some(Other { name, trace: other, is_device: false })
        }
        (None, Some(name)) => Some(Other { name, trace, is_device: true }),
        (None, None) => None,
    };
    watch::run(py, progress, inline, |env| {
        let ranges = options.layout.as_deref().map(prism_host::load_layout).transpose()?;
        let ranges =
            ranges.map_or_else(Vec::new, |layout| NamedRange::of_regions(layout.regions()));
        let asked = AnalysisOptions {
            drive: &drive,
            options: Options { pace, passes },
            seed: options.seed,
            what_ifs: &what_ifs,
            ranges: &ranges,
        };
        let mut shown = other.as_ref().map(|other| other.name.clone());
        if let Some(other) = other.as_ref().filter(|other| other.is_device) {
            // A wrong name is reported before the work begins.
            let device = drive.compared(Some(&other.name)).device(env)?;
            if other.name == INLINE_AGAINST {
                shown = Some(device.name);
            }
        }
        let mut requests = options.requests.then(RequestTable::default);
        let analysis = Analysis::of(trace.for_analysis(), asked, env, &mut |finished| {
            if let Some(requests) = &mut requests {
                requests.add(finished, trace.symbols());
            }
            true
        })?;
        let compared = match &other {
            None => None,
            Some(other) => {
                let drive = other.is_device.then_some(other.name.as_str());
                let trace = other.trace.for_analysis();
                Some(Analysis::compared(trace, asked, drive, env)?)
            }
        };
        let compared = shown.as_deref().zip(compared.as_ref());
        let Report { json, short, page } = Report::new(analysis, compared);
        let requests = requests.map(|requests| requests.finish(trace.symbols()));
        Ok(Results::new(json, short, page).with_requests(requests))
    })
}
