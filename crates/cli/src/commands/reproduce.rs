//! `prism reproduce`: repeats published results and compares them with ours.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use prism_experiments::Scale;
use prism_host::input::read_text;
use prism_host::{LoadedTrace, Progress, load_trace};
use prism_present::Trace;
use prism_present::reproduction::{Paper, Repetition, Traces, parse_scale};
use prism_report::{Document, markdown};

use crate::failure::Failure;
use crate::output::{json, write_whole};
use crate::process_env::ProcessEnv;
use crate::report_files::{Paths, ReportFiles};

/// Arguments of `prism reproduce`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism reproduce unwritten-contract --html contract.html
  prism reproduce atc09 --html atc09.html
  prism reproduce linkedin --scale quarter")]
pub struct Args {
    /// The result to repeat; without it, all are listed
    #[arg(value_name = "ID", value_parser = papers())]
    id: Option<Paper>,
    /// Folder with the traces of unwritten-contract, there or in its subfolders unwritten and
    /// app-fs: FS-APP-PATTERN.parquet of prism capture stack, or FS-APP.ftrace.zst; for sfs those
    /// of overwrites on ext4 and Btrfs, recorded with the --size and --write of docs/sfs.md; what
    /// has no trace is left out
    #[arg(long, value_name = "DIR", default_value = "samples")]
    traces: PathBuf,
    /// Amount of simulation: full or quarter
    #[arg(long, value_name = "SCALE", default_value = "full", value_parser = parse_scale)]
    scale: Scale,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a page with charts to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the result as JSON to FILE; `-` writes it to standard output instead of text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Renew the tables and lists of the Markdown page FILE, each of which stands between the lines
    /// `<!-- table: SECTION, N -->` (for a list, `<!-- notes: SECTION, N -->`) and `<!-- end -->`
    #[arg(long, value_name = "FILE", requires = "id")]
    page: Option<PathBuf>,
}

/// Repeats the result and prints it next to the published one.
///
/// # Errors
/// [`Failure`] if no trace is found, one cannot be read, or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Some(paper) = args.id else {
        return Ok(write_whole(Path::new("-"), list().as_bytes())?);
    };
    let traces = Traces::find(paper, &args.traces, Path::is_file)?;
    let files = Files::open(args)?;
    let repetition = Repetition { paper, scale: args.scale, seed: args.seed, traces };
    let load = |spec| {
        let LoadedTrace { info, spool } = load_trace(&spec, &Progress::hidden())?;
        Ok(Trace { info, records: Box::new(spool) })
    };
    let (value, document) = repetition.run(&load, &ProcessEnv::new())?;
    files.write(&document, &json(&value))
}

fn list() -> String {
    let mut text = String::from("Results that prism reproduce can repeat:\n");
    for (_, name, what) in Paper::ALL {
        text.push_str(&format!("  {name}  {what}\n"));
    }
    text
}

/// The names of the results, with help.
fn papers() -> impl TypedValueParser<Value = Paper> {
    let value = |(_, name, what)| PossibleValue::new(name).help(what);
    PossibleValuesParser::new(Paper::ALL.map(value)).try_map(|name| Paper::parse(&name))
}

/// The files of a result, opened before the work begins.
struct Files<'a> {
    report: ReportFiles,
    /// The page to be renewed, with its text.
    page: Option<(&'a Path, String)>,
}

impl<'a> Files<'a> {
    fn open(args: &'a Args) -> Result<Self, Failure> {
        let page = args.page.as_deref();
        let page = page.map(|page| Ok::<_, Failure>((page, read_text(page)?))).transpose()?;
        let (html, json) = (args.html.as_deref(), args.json.as_deref());
        let report = ReportFiles::open(Paths { html, json, requests: None, text: None })?;
        Ok(Self { report, page })
    }

    fn write(self, document: &Document, json: &str) -> Result<(), Failure> {
        let renew = |(path, text): (&'a Path, String)| {
            let renewed = markdown::renewed(&text, document);
            let failed = |error| Failure::Usage(format!("{}: {error}", path.display()));
            Ok::<_, Failure>((path, renewed.map_err(failed)?))
        };
        let page = self.page.map(renew).transpose()?;
        self.report.write(document, document.clone(), json, None)?;
        page.map_or(Ok(()), |(path, text)| Ok(write_whole(path, text.as_bytes())?))
    }
}
