//! `prism report`: a trace in, what a drive makes of it out.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_contract::rules::NamedRange;
use prism_host::input::Input;
use prism_report::Document;
use serde::Serialize;

use crate::against::{Against, AgainstObject};
use crate::analysis::{Analysis, Subjects, WhatIfs, is_device, parse_what_ifs};
use crate::contract_report::fail_on::{self, Gate};
use crate::contract_report::{AdviceObject, LeftOutObject, RulesObject, TermObject, WhatIfObject};
use crate::contract_report::{advice, tables, terms};
use crate::device_args::DeviceArgs;
use crate::drive_report::{ReportObject, charts, document};
use crate::failure::Failure;
use crate::output::{JsonArg, json};
use crate::replay_args::ReplayArgs;
use crate::report_files::{Paths, ReportFiles};
use crate::trace_args::TraceArgs;
use crate::zoned_report::ZonedObject;

/// Arguments of `prism report`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism report samples/ext4-sqlite-wal.ftrace.zst
  prism report samples/f2fs-rocksdb.ftrace.zst --phase app --html report.html
  prism report samples/formats/msr.csv --device consumer-nvme --requests r.parquet
  prism report samples/ext4-sqlite-wal.ftrace.zst --layout samples/layouts/ext4-4GiB.toml
  prism report samples/formats/msr.csv --against consumer-nvme --fail-on 'write_amplification>2'
  blkparse -i sda | prism report - --capacity 64GiB --json -")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    replay: ReplayArgs,
    /// What lies where on the device: a layout that `prism trace layout` wrote, or an image
    /// or device whose file system (ext4, XFS, F2FS) tells; offenders get names from it
    #[arg(long, value_name = "FILE.toml|IMAGE")]
    layout: Option<PathBuf>,
    /// Fixes to simulate: all (that make sense), none, or some of them, as merge,streams
    #[arg(long = "what-if", value_name = "all|none|CHANGES", default_value = "all",
          value_parser = parse_what_ifs)]
    what_ifs: WhatIfs,
    /// Compare with another trace, or with another drive (a preset or a TOML file)
    #[arg(long, value_name = "TRACE|PRESET|FILE.toml")]
    against: Option<PathBuf>,
    /// Exit with 1 if this holds: a rule's score, write_amplification, p99 (with a unit) or
    /// lifetime_days, against a number, as 'request_scale<0.5'; what the trace does not tell fails
    /// too. May be given several times
    #[arg(long, value_name = "CONDITION", value_parser = fail_on::parse)]
    fail_on: Vec<Gate>,
    /// Write the report, with charts, as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every request of the measured passes, with its times and costs, as Parquet
    #[arg(long, value_name = "FILE.parquet")]
    requests: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// Everything that the JSON of a report has.
#[derive(Serialize)]
struct Object {
    #[serde(flatten)]
    report: ReportObject,
    rules: RulesObject,
    what_if: Vec<WhatIfObject>,
    what_if_left_out: Vec<LeftOutObject>,
    terms: Vec<TermObject>,
    advice: Vec<AdviceObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zoned: Option<ZonedObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<AgainstObject>,
}

/// Reads the trace, replays it on a drive, judges it, simulates its fixes, and reports.
///
/// # Errors
/// [`Failure`] if the trace or the device cannot be read, the trace does not fit the
/// drive, or an output cannot be written; and if a condition of `--fail-on` holds, after all
/// outputs are written.
pub fn run(args: &Args) -> Result<(), Failure> {
    check_input(args)?;
    let mut outputs = ReportFiles::open(Paths {
        html: args.html.as_deref(),
        json: args.json.path(),
        requests: args.requests.as_deref(),
        text: None,
    })?;
    let ranges = match &args.layout {
        Some(path) => named_ranges(path)?,
        None => Vec::new(),
    };
    let given = Subjects {
        paths: &args.trace.paths,
        select: &args.trace.select,
        device: &args.device,
        replay: &args.replay,
        what_ifs: &args.what_ifs,
        ranges: &ranges,
    };
    let analysis = Analysis::of(given, outputs.requests.take())?;
    let other = match &args.against {
        Some(name) => Some((name.display().to_string(), compared(given, name)?)),
        None => None,
    };
    let against = other.as_ref().map(|(name, other)| Against::new(&analysis, other, name));
    let object = json(&object(&analysis, against.as_ref()));
    let (short, long) = documents(&analysis, against.as_ref());
    let failed = failed(&args.fail_on, &analysis);
    let Analysis { charts: drawn, requests, .. } = analysis;
    outputs.requests = requests;
    outputs.write(&short, charts::with_charts(long, drawn.sections()), &object, None)?;
    match failed {
        Some(why) => Err(Failure::Finding(why)),
        None => Ok(()),
    }
}

/// Standard input can be read once.
fn check_input(args: &Args) -> Result<(), Failure> {
    let is_input = |path: &PathBuf| path.as_os_str() == "-";
    if args.against.as_ref().is_some_and(is_input) && args.trace.paths.iter().any(is_input) {
        let why = "--against -: standard input is the trace itself; name a file";
        return Err(Failure::Usage(why.into()));
    }
    // A name that is wrong is said before the work, not after half of it.
    match &args.against {
        Some(name) if !is_input(name) && !is_device(&name.to_string_lossy()) => {
            Ok(Input::open(name).map(drop)?)
        }
        _ => Ok(()),
    }
}

/// The parts of a file system, by name.
fn named_ranges(path: &Path) -> Result<Vec<NamedRange>, Failure> {
    let layout = prism_host::load_layout(path)?;
    let named = |region: &prism_trace::fs_layout::Region| NamedRange {
        start: region.start,
        end: region.end,
        label: region.label.clone(),
    };
    Ok(layout.regions().iter().map(named).collect())
}

/// The same with another drive, or another trace.
fn compared(given: Subjects<'_>, name: &Path) -> Result<Analysis, Failure> {
    let none = &WhatIfs::Only(Vec::new());
    if is_device(&name.to_string_lossy()) {
        let device = DeviceArgs {
            device: name.to_string_lossy().into_owned(),
            save_state: None,
            ..given.device.clone()
        };
        return Analysis::of(Subjects { device: &device, what_ifs: none, ..given }, None);
    }
    let paths = [name.to_path_buf()];
    Analysis::of(Subjects { paths: &paths, what_ifs: none, ..given }, None)
}

fn object(analysis: &Analysis, against: Option<&Against>) -> Object {
    Object {
        report: ReportObject::new(&analysis.facts()),
        rules: RulesObject::new(&analysis.contract),
        what_if: WhatIfObject::all(&analysis.contract),
        what_if_left_out: LeftOutObject::all(&analysis.contract),
        terms: TermObject::all(&analysis.contract.terms),
        advice: AdviceObject::all(&analysis.contract.advice),
        zoned: analysis.zoned.as_ref().map(ZonedObject::new),
        against: against.map(Against::object),
    }
}

/// What fits a screen, and what a page has beside.
fn documents(analysis: &Analysis, against: Option<&Against>) -> (Document, Document) {
    let facts = analysis.facts();
    let (contract, head) = (&analysis.contract, document::head(&facts));
    let mut short = head.clone().with(contract.verdicts());
    let mut long = head.with(contract.verdicts());
    if let Some(against) = against {
        short = short.with(against.section());
        long = long.with(against.section());
    }
    if let Some(zoned) = &analysis.zoned {
        short = short.with(zoned.section());
        long = long.with(zoned.section());
    }
    short = short.with(document::brief(&facts));
    short.sections.extend(document::aged(&facts));
    short.sections.extend(tables::section(contract, false));
    short = short.with(document::limits(&facts));
    long = long.with(document::summary(&facts));
    long.sections.extend(tables::section(contract, true));
    long = long.with(advice::section(&contract.advice));
    long = long.with(terms::section(&contract.terms));
    long.sections.extend(contract.sections(facts.scaled.device.capacity()));
    long.sections.extend(document::sections(&facts));
    (short, long)
}

/// Why the command fails, if a condition holds.
fn failed(gates: &[Gate], analysis: &Analysis) -> Option<String> {
    let why: Vec<String> =
        gates.iter().filter_map(|gate| gate.fails(analysis.value(gate.quantity))).collect();
    (!why.is_empty()).then(|| why.join("; "))
}
