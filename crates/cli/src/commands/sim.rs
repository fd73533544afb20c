//! `prism sim`: jobs in the words of fio in, what a drive makes of them out.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::{Args as ClapArgs, ValueEnum};
use prism_base::Bytes;
use prism_host::parquet::RequestsWriter;
use prism_host::{HostError, Progress};
use prism_ssd::scale::Scaled;
use prism_ssd::{Drive, DriveHealth, Preparation};
use prism_workload::Finished;
use prism_workload::fio::{self, Job, JobReader, Outcome, Section, Setting, words};

use crate::device_args::{Capacity, DeviceArgs};
use crate::drive_report::charts::with_charts;
use crate::drive_report::{Charts, Wear};
use crate::failure::Failure;
use crate::output::{JsonArg, json};
use crate::over_provisioning;
use crate::report_files::{Paths, ReportFiles};
use crate::sim_report::{Facts, SimObject, document, fio_json};
use crate::sweep;

/// Capacity of a simulated drive where none is asked for: small enough to fill and clean
/// within seconds, large enough for a few dies.
const CAPACITY: Bytes = Bytes(8 << 30);

/// Arguments of `prism sim`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    override_usage = "prism sim [OPTIONS] [JOBFILE.fio]... [--WORD=VALUE]...",
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
    #[arg(long, value_name = "FILE.parquet")]
    requests: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
    /// The text: Prism's own, or JSON with the keys of fio 3 (json+ with all latencies)
    #[arg(long, value_name = "FORMAT", default_value = "normal")]
    output_format: OutputFormat,
    /// Write the text to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// End all jobs when the drive, which ages, writes no more; else they go on, and what is
    /// refused is counted
    #[arg(long)]
    until_read_only: bool,
    /// Run every combination of these values, as gc=greedy,fifo op=7%,15% iodepth=1,32.
    /// Axes: gc, op, scheduler, frontiers, mapping, device, capacity, state, seed, a field of
    /// the device (ftl.victim), or a word of fio
    #[arg(long, value_name = "AXIS=VALUE,VALUE...")]
    sweep: Vec<String>,
    /// Simulations of a sweep that run at once [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Job files, and jobs as words of fio
    #[arg(last = true, hide = true)]
    words: Vec<String>,
}

/// What the text is.
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

/// Examples, and the words that are taken.
fn help() -> String {
    let mut lines =
        vec![String::from("Words of fio (docs/spec/fio-words.md says what each does):")];
    let mut line = String::from(" ");
    for word in words::WORDS.iter().filter(|word| word.role != words::Role::Harmless) {
        if line.len() + 1 + word.name.len() > 90 {
            lines.push(std::mem::replace(&mut line, " ".into()));
        }
        line = format!("{line} {}", word.name);
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
/// [`Failure`] if a word, a job file or the device cannot be read, the jobs do not fit the
/// drive, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let sections = read_jobs(&args.words)?;
    let plan = Plan { device: args.device.clone(), seed: args.seed, op: None, words: vec![] };
    if !args.sweep.is_empty() {
        return sweep_all(args, &sections, &plan);
    }
    if args.jobs.is_some() {
        return Err(Failure::Usage("--jobs is for --sweep; a single run takes one core".into()));
    }
    let mut files = ReportFiles::open(Paths {
        html: args.html.as_deref(),
        json: args.json.path(),
        requests: args.requests.as_deref(),
        text: args.output.as_deref(),
    })?;
    if args.output_format != OutputFormat::Normal && !files.has_text() {
        let what = "standard output is taken: --output-format=json needs an --output FILE";
        return Err(Failure::Usage(what.into()));
    }
    let progress = Progress::on_stderr();
    let setup = plan.setup(&sections, &progress)?;
    if args.until_read_only && setup.scaled.device.faults.is_none() {
        let what = "--until-read-only needs a drive that ages: give --faults KIND";
        return Err(Failure::Usage(what.into()));
    }
    let writer = match files.requests.take() {
        Some(file) => Some(RequestsWriter::create(file, fio::run::symbols(&setup.jobs).0)?),
        None => None,
    };
    let at_read_only =
        if args.until_read_only { fio::AtReadOnly::Stop } else { fio::AtReadOnly::GoOn };
    let (simulated, charts, writer) = watch(setup, at_read_only, writer, &progress)?;
    if let Some(writer) = writer {
        files.requests = Some(writer.finish()?);
    }
    let facts = simulated.facts(&args.device, args.seed);
    let text = match args.output_format {
        OutputFormat::Normal => None,
        format => {
            Some(json(&fio_json::output(&facts, &sections, format == OutputFormat::JsonPlus)))
        }
    };
    let mut charts = charts.sections();
    charts[0].lead = "What was measured, in simulated time.".into();
    let short = document(&facts);
    let page = with_charts(short.clone(), charts);
    files.write(&short, page, &json(&SimObject::new(&facts)), text.as_deref())
}

fn sweep_all(args: &Args, sections: &[Section], plan: &Plan) -> Result<(), Failure> {
    let single = [
        ("--html", args.html.is_some()),
        ("--requests", args.requests.is_some()),
        ("--save-state", plan.device.save_state.is_some()),
        ("--until-read-only", args.until_read_only),
    ];
    if let Some((flag, _)) = single.into_iter().find(|(_, given)| *given) {
        let what = format!("{flag} is about a single run; leave out --sweep");
        return Err(Failure::Usage(what));
    }
    if args.output_format != OutputFormat::Normal {
        let what = "--output-format=json is about a single run; a --sweep has --json";
        return Err(Failure::Usage(what.into()));
    }
    let files = ReportFiles::open(Paths {
        html: None,
        json: args.json.path(),
        requests: None,
        text: args.output.as_deref(),
    })?;
    let threads = args.jobs.map(usize::from);
    let result = sweep::run(&args.sweep, sections, plan, threads)?;
    let document = result.document();
    files.write(&document, document.clone(), &json(&result), None)
}

/// The jobs of the command line, then those of the files that it names.
fn read_jobs(words: &[String]) -> Result<Vec<Section>, Failure> {
    let wrong = |error: fio::FioError| Failure::Usage(error.to_string());
    let mut reader = JobReader::new();
    for name in reader.arguments(words).map_err(wrong)? {
        let text = prism_host::input::read_text_or_stdin(Path::new(&name))?;
        reader.file(&name, &text).map_err(wrong)?;
    }
    reader.finish().map_err(wrong)
}

/// One simulation, as it is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The drive.
    pub device: DeviceArgs,
    /// Seed of everything random.
    pub seed: u64,
    /// Effective over-provisioning, if it is to be changed.
    pub op: Option<f64>,
    /// Words that every job gets behind its own.
    pub words: Vec<Setting>,
}

/// A drive and the jobs that are to work on it.
pub struct Setup {
    /// The drive as it is described.
    pub scaled: Scaled,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The drive.
    pub drive: Drive,
    /// What its initial state took.
    pub prepared: Preparation,
}

/// A simulation that is done.
pub struct Simulated {
    /// The drive as it is described.
    pub scaled: Scaled,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// What the drive's initial state took.
    pub prepared: Preparation,
    /// What was measured.
    pub outcome: Outcome,
    /// What the host wrote and the drive had not yet programmed at the end.
    pub buffered: Bytes,
    /// Erases at the end.
    pub wear: Wear,
    /// Those of blocks of one bit a cell, where the drive has such beside others.
    pub slc_wear: Option<Wear>,
    /// What age had left of the drive at the end, if it ages.
    pub health: Option<DriveHealth>,
}

impl Plan {
    /// Makes the drive and the jobs.
    ///
    /// # Errors
    /// [`Failure`] if one of them cannot be.
    pub fn setup(&self, sections: &[Section], progress: &Progress) -> Result<Setup, Failure> {
        let (scaled, jobs) = self.check(sections)?;
        let (drive, prepared) = self.device.prepared(&scaled.device, self.seed, progress)?;
        Ok(Setup { scaled, jobs, drive, prepared })
    }

    /// The drive's description and the jobs, before the drive is made.
    ///
    /// # Errors
    /// [`Failure`] if one of them makes no sense.
    pub fn check(&self, sections: &[Section]) -> Result<(Scaled, Vec<Job>), Failure> {
        let mut scaled = self.device.scaled(CAPACITY.0)?;
        if self.device.capacity.is_none() {
            scaled.changes.insert(0, format!("{CAPACITY} because no --capacity is given"));
        }
        if let Some(share) = self.op {
            over_provisioning::set(&mut scaled.device, share).map_err(Failure::Usage)?;
            let effective = 100.0 * scaled.device.over_provisioning().effective;
            scaled.changes.push(format!(
                "{} blocks a plane for {effective:.2} % effective over-provisioning",
                scaled.device.flash.blocks_per_plane
            ));
        }
        let target = fio::Target::of(&scaled.device);
        let jobs = fio::jobs(sections, &self.words, target, self.seed);
        let jobs = jobs.map_err(|error| Failure::Usage(error.to_string()))?;
        Ok((scaled, jobs))
    }

    /// Runs it from beginning to end, unwatched.
    ///
    /// # Errors
    /// [`Failure`] if the drive or the jobs cannot be made, or have no end.
    pub fn run(&self, sections: &[Section]) -> Result<Simulated, Failure> {
        let mut setup = self.setup(sections, &Progress::hidden())?;
        let outcome = fio::run(&mut setup.drive, &setup.jobs, &mut prism_workload::Silent);
        setup.done(outcome)
    }
}

impl Setup {
    fn done(self, outcome: Result<Outcome, fio::RunError>) -> Result<Simulated, Failure> {
        let outcome = outcome.map_err(|error| Failure::Usage(error.to_string()))?;
        let unit = self.scaled.device.ftl.mapping_unit.0;
        Ok(Simulated {
            outcome,
            buffered: Bytes(u64::from(self.drive.buffered_units()) * unit),
            wear: Wear::of(self.drive.engine().nand().erase_counts()),
            slc_wear: Wear::of_slc(self.drive.engine().nand()),
            health: self.drive.health(),
            scaled: self.scaled,
            prepared: self.prepared,
            jobs: self.jobs,
        })
    }
}

impl Simulated {
    /// What a report is made from.
    #[must_use]
    pub fn facts(&self, device: &DeviceArgs, seed: u64) -> Facts<'_> {
        Facts {
            jobs: &self.jobs,
            scaled: &self.scaled,
            chosen: matches!(device.capacity, Some(Capacity::Bytes(_))),
            state: device.state.clone(),
            prepared: &self.prepared,
            seed,
            outcome: &self.outcome,
            buffered: self.buffered,
            wear: self.wear,
            slc_wear: self.slc_wear,
            health: self.health,
        }
    }
}

type Watched<'a> = (Simulated, Charts<Box<dyn FnMut(&Finished) + 'a>>, Option<RequestsWriter>);

/// Runs the jobs, with charts, progress and the file of requests.
fn watch<'a>(
    mut setup: Setup,
    at_read_only: fio::AtReadOnly,
    writer: Option<RequestsWriter>,
    progress: &Progress,
) -> Result<Watched<'a>, Failure> {
    progress.start_count("simulating:", "requests", None);
    let shared = Rc::new(RefCell::new((writer, None::<HostError>)));
    let sink = shared.clone();
    let each: Box<dyn FnMut(&Finished) + 'a> = Box::new(move |finished: &Finished| {
        let (writer, failed) = &mut *sink.borrow_mut();
        if let (Some(writer), None) = (writer, &failed) {
            *failed = writer.add(finished).err();
        }
    });
    let (bar, check) = (progress.clone(), shared.clone());
    let keep_going = move |at: prism_workload::Progress| {
        bar.reached(at.submitted);
        check.borrow().1.is_none()
    };
    let mut charts = Charts::new(setup.scaled.device.capacity(), 1, each, keep_going);
    let outcome = fio::run_until(&mut setup.drive, &setup.jobs, &mut charts, at_read_only);
    progress.clear();
    let (writer, failed) = shared.take();
    if let Some(error) = failed {
        return Err(error.into());
    }
    Ok((setup.done(outcome)?, charts, writer))
}
