//! `prism sim`: runs jobs with fio options on a simulated drive.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use prism_present::sim::{self, fio_json};
use prism_present::simulation::Plan;
use prism_present::sweep;
use prism_workload::fio::{self, JobReader, Section, options};

use crate::device_args::DeviceArgs;
use crate::failure::Failure;
use crate::output::{JsonArg, json};
use crate::process_env::ProcessEnv;
use crate::report_files::{Paths, ReportFiles};
use crate::requests::{self, Requests};

/// Arguments of `prism sim`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    override_usage = "prism sim [OPTIONS] [JOBFILE.fio]... [--OPTION=VALUE]...",
    after_help = help()
)]
pub struct Args {
    #[command(flatten)]
    device: DeviceArgs,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the report, with charts, as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every measured request, with its times and costs, as Parquet
    #[arg(long, value_name = "FILE.parquet", value_parser = requests::file())]
    requests: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
    /// Format of the text: Prism's own, or JSON with the keys of fio 3 (json+ with all latencies)
    #[arg(long, value_name = "FORMAT", default_value = "normal")]
    output_format: OutputFormat,
    /// Write the text to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// End all jobs when an ageing drive becomes read-only; by default they continue, and refused
    /// requests are counted
    #[arg(long)]
    until_read_only: bool,
    /// Cut the power after N completed requests, recover the drive, and report what it had
    /// acknowledged and what of that is lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cut_power_after: Option<u64>,
    /// Run every combination of these values, such as gc=greedy,fifo op=7%,15% iodepth=1,32.
    /// Axes: gc, op, scheduler, frontiers, mapping, device, capacity, state, seed, a field of
    /// the device (ftl.victim), or a fio option
    #[arg(long, value_name = "AXIS=VALUE,VALUE...")]
    sweep: Vec<String>,
    /// Simulations of a sweep that run in parallel [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Job files, and jobs as fio options
    #[arg(last = true, hide = true)]
    fio_args: Vec<String>,
}

/// The format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Prism's report.
    Normal,
    /// fio's JSON.
    Json,
    /// fio's JSON with every latency that occurred.
    #[value(name = "json+")]
    JsonPlus,
}

/// The fio options, and examples.
fn help() -> String {
    let mut lines = vec![String::from("fio options (docs/spec/fio-options.md describes each):")];
    let mut line = String::from(" ");
    for option in options::OPTIONS.iter().filter(|option| option.role != options::Role::Harmless) {
        if line.len() + 1 + option.name.len() > 90 {
            lines.push(std::mem::replace(&mut line, " ".into()));
        }
        line = format!("{line} {}", option.name);
    }
    lines.push(line);
    format!(
        "{}\n\nExamples:
  prism sim --name=log --rw=randwrite --bs=4k --iodepth=32 --io_size=16g
  prism sim jobs.fio --device consumer-nvme --output-format=json --output out.json
  prism sim --name=a --rw=randrw --rwmixread=70 --runtime=10 --time_based --rate_iops=20k
  prism sim --name=w --rw=randwrite --iodepth=32 --loops=2 \\
      --sweep gc=greedy,fifo op=7%,15%,28%
  prism sim samples/jobs/cache.fio --set ftl.placement_handles=2 --sweep fdp=0,1",
        lines.join("\n")
    )
}

/// Runs the jobs on a drive and reports.
///
/// # Errors
/// [`Failure`] if an option, a job file or the device is invalid, the jobs do not fit the drive,
/// or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let sections = read_jobs(&args.fio_args)?;
    let plan = Plan { drive: args.device.choice(), seed: args.seed, op: None, settings: vec![] };
    if !args.sweep.is_empty() {
        return sweep_all(args, &sections, &plan);
    }
    if args.jobs.is_some() {
        return Err(Failure::Usage("--jobs is for --sweep; a single run uses one core".into()));
    }
    let mut files = ReportFiles::open(Paths {
        html: args.html.as_deref(),
        json: args.json.path(),
        requests: args.requests.as_deref(),
        text: args.output.as_deref(),
    })?;
    if args.output_format != OutputFormat::Normal && !files.has_text() {
        let what = "standard output is in use: --output-format=json needs --output FILE";
        return Err(Failure::Usage(what.into()));
    }
    let env = ProcessEnv::new();
    if let Some(requests) = args.cut_power_after {
        return cut_power(args, requests, &sections, &plan, files);
    }
    let setup = plan.setup(&sections, &env)?;
    if args.until_read_only && setup.scaled.device.faults.is_none() {
        let what = "--until-read-only needs a drive that ages: give --faults KIND";
        return Err(Failure::Usage(what.into()));
    }
    let at_read_only =
        if args.until_read_only { fio::AtReadOnly::Stop } else { fio::AtReadOnly::GoOn };
    let names = fio::run::symbols(&setup.jobs).0;
    let mut requests = Requests::to(files.requests.take(), || names)?;
    let mut each = |finished: &_| requests.add(finished);
    let watched = args.html.is_some() || args.requests.is_some();
    let ran = setup.run(at_read_only, &env, watched.then_some(&mut each));
    files.requests = requests.finish()?;
    let (simulated, charts) = ran?;
    let text = match args.output_format {
        OutputFormat::Normal => None,
        format => {
            Some(json(&fio_json::output(&simulated, &sections, format == OutputFormat::JsonPlus)))
        }
    };
    let short = sim::document(&simulated);
    let page = sim::page(short.clone(), charts);
    files.write(&short, page, &json(&sim::json(&simulated)), text.as_deref())
}

fn cut_power(
    args: &Args,
    requests: u64,
    sections: &[Section],
    plan: &Plan,
    files: ReportFiles,
) -> Result<(), Failure> {
    let others = [
        ("--requests", args.requests.is_some()),
        ("--save-state", plan.drive.save_state.is_some()),
        ("--until-read-only", args.until_read_only),
        ("--output-format=json", args.output_format != OutputFormat::Normal),
    ];
    if let Some((flag, _)) = others.into_iter().find(|(_, given)| *given) {
        let what = format!("--cut-power-after has a report of its own; leave out {flag}");
        return Err(Failure::Usage(what));
    }
    let cut = plan.cut_power(requests, sections, &ProcessEnv::new())?;
    let document = cut.document();
    files.write(&document, document.clone(), &json(&cut.json()), None)?;
    if cut.breaks_a_promise() {
        let what = format!("{} units lost durable data", cut.after.broken.len());
        return Err(Failure::Finding(what));
    }
    Ok(())
}

fn sweep_all(args: &Args, sections: &[Section], plan: &Plan) -> Result<(), Failure> {
    let single = [
        ("--html", args.html.is_some()),
        ("--requests", args.requests.is_some()),
        ("--save-state", plan.drive.save_state.is_some()),
        ("--until-read-only", args.until_read_only),
        ("--cut-power-after", args.cut_power_after.is_some()),
    ];
    if let Some((flag, _)) = single.into_iter().find(|(_, given)| *given) {
        let what = format!("{flag} applies only to a single run; leave out --sweep");
        return Err(Failure::Usage(what));
    }
    if args.output_format != OutputFormat::Normal {
        let what = "--output-format=json applies only to a single run; use --json with --sweep";
        return Err(Failure::Usage(what.into()));
    }
    let files = ReportFiles::open(Paths {
        html: None,
        json: args.json.path(),
        requests: None,
        text: args.output.as_deref(),
    })?;
    let threads = args.jobs.map(usize::from);
    let result = sweep::run(&args.sweep, sections, plan, threads, &ProcessEnv::new())?;
    let document = result.document();
    files.write(&document, document.clone(), &json(&result), None)
}

/// The jobs of the command line, then those of the job files that it names.
fn read_jobs(fio_args: &[String]) -> Result<Vec<Section>, Failure> {
    let mut reader = JobReader::new();
    for name in reader.arguments(fio_args).map_err(Failure::usage)? {
        let text = prism_host::input::read_text_or_stdin(Path::new(&name))?;
        reader.file(&name, &text).map_err(Failure::usage)?;
    }
    reader.finish().map_err(Failure::usage)
}
