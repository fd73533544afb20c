//! `prism report`: replays a trace on a drive and reports the result.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_contract::rules::NamedRange;
use prism_host::input::Input;
use prism_present::analysis::{Analysis, AnalysisOptions, Trace, WhatIfs, parse_what_ifs};
use prism_present::contract::fail_on::{self, Gate};
use prism_present::drive_choice::is_device;
use prism_present::report::Report;

use crate::device_args::DeviceArgs;
use crate::failure::Failure;
use crate::output::{JsonArg, json};
use crate::process_env::ProcessEnv;
use crate::replay_args::ReplayArgs;
use crate::report_files::{Paths, ReportFiles};
use crate::requests::{self, Requests};
use crate::trace_args::TraceArgs;

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
    /// Layout of the device, which gives names to offenders: a file written by `prism trace
    /// layout`, or an image or device with ext4, XFS or F2FS
    #[arg(long, value_name = "FILE.toml|IMAGE")]
    layout: Option<PathBuf>,
    /// Fixes to simulate: all (that apply), none, or a list such as merge,streams
    #[arg(long = "what-if", value_name = "all|none|CHANGES", default_value = "all",
          value_parser = parse_what_ifs)]
    what_ifs: WhatIfs,
    /// Compare with another trace, or with another drive (a preset or a TOML file), to which --set
    /// does not apply
    #[arg(long, value_name = "TRACE|PRESET|FILE.toml")]
    against: Option<PathBuf>,
    /// Exit with 1 if this condition holds: the score of a rule, write_amplification, p99 (with a
    /// unit) or lifetime_days compared with a number, such as 'request_scale<0.5'; a value that
    /// the trace does not determine also fails. May be given several times
    #[arg(long, value_name = "CONDITION", value_parser = fail_on::parse)]
    fail_on: Vec<Gate>,
    /// Write the report, with charts, as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every request of the measured passes, with its times and costs, as Parquet
    #[arg(long, value_name = "FILE.parquet", value_parser = requests::file())]
    requests: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// Reads the trace, replays it on a drive, scores it by the rules, simulates fixes, and reports.
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
    let drive = args.device.choice();
    let asked = AnalysisOptions {
        drive: &drive,
        options: args.replay.options(),
        seed: args.replay.seed,
        what_ifs: &args.what_ifs,
        ranges: &ranges,
    };
    let trace = trace(args, &args.trace.paths)?;
    let mut requests = Requests::to(outputs.requests.take(), || trace.info.symbols.clone())?;
    let analysis =
        Analysis::of(trace, asked, &ProcessEnv::new(), &mut |finished| requests.add(finished));
    outputs.requests = requests.finish()?;
    let analysis = analysis?;
    let other = match &args.against {
        Some(name) => Some((name.display().to_string(), compared(args, asked, name)?)),
        None => None,
    };
    let failed = failed(&args.fail_on, &analysis);
    let other = other.as_ref().map(|(name, other)| (name.as_str(), other));
    let Report { json: object, short, page } = Report::new(analysis, other);
    outputs.write(&short, page, &json(&object), None)?;
    match failed {
        Some(why) => Err(Failure::Finding(why)),
        None => Ok(()),
    }
}

/// Refuses to read standard input twice, and a file of `--against` that cannot be opened.
fn check_input(args: &Args) -> Result<(), Failure> {
    let is_input = |path: &PathBuf| path.as_os_str() == "-";
    if args.against.as_ref().is_some_and(is_input) && args.trace.paths.iter().any(is_input) {
        let why = "--against -: standard input is already the trace; name a file";
        return Err(Failure::Usage(why.into()));
    }
    // A wrong name is reported before the work begins.
    match &args.against {
        Some(name) if !is_input(name) && !is_device(&name.to_string_lossy()) => {
            Ok(Input::open(name).map(drop)?)
        }
        _ => Ok(()),
    }
}

/// The named address ranges of a file system.
fn named_ranges(path: &Path) -> Result<Vec<NamedRange>, Failure> {
    let layout = prism_host::load_layout(path)?;
    Ok(NamedRange::of_regions(layout.regions()))
}

/// The trace of the files `paths`.
fn trace(args: &Args, paths: &[PathBuf]) -> Result<Trace, Failure> {
    let loaded = args.trace.select.load(paths)?;
    Ok(Trace { info: loaded.info, records: Box::new(loaded.spool) })
}

/// The analysis with another drive, or of another trace.
fn compared(args: &Args, asked: AnalysisOptions<'_>, name: &Path) -> Result<Analysis, Failure> {
    let path = name.to_string_lossy();
    let drive = is_device(&path).then_some(&*path);
    let trace = match drive {
        Some(_) => trace(args, &args.trace.paths)?,
        None => trace(args, &[name.to_path_buf()])?,
    };
    Ok(Analysis::compared(trace, asked, drive, &ProcessEnv::new())?)
}

/// Why the command fails, if a condition holds.
fn failed(gates: &[Gate], analysis: &Analysis) -> Option<String> {
    let why: Vec<String> =
        gates.iter().filter_map(|gate| gate.fails(analysis.value(gate.quantity))).collect();
    (!why.is_empty()).then(|| why.join("; "))
}
