//! `prism reproduce`: repeats published results and compares them with ours.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use prism_experiments::Scale;
use prism_experiments::atc09::Results;
use prism_experiments::contract_micro::{Benchmark, Comparison};
use prism_experiments::unwritten::{
    ColdReads, Facts, INSTANCES, Observed, PHASE, Pair, READ_AHEADS, REMOVE_PHASE, Sequential,
    TRACED, TRACED_FIRST, judge_all, observe, observe_sequential, reads_of,
};
use prism_experiments::{linkedin, prism_ssd, sfs};
use prism_host::input::read_text;
use prism_host::jobs::run_all;
use prism_host::{HostError, LoadSpec, LoadedTrace, Progress, load_trace};
use prism_present::reproduction::atc09::Atc09;
use prism_present::reproduction::linkedin::LinkedIn;
use prism_present::reproduction::prism_ssd::PrismSsd;
use prism_present::reproduction::sfs::Sfs;
use prism_present::reproduction::{self, Reproduced, scale_name};
use prism_report::{Document, markdown};
use prism_trace::Source;

use crate::failure::Failure;
use crate::output::{json, write_whole};
use crate::report_files::{Paths, ReportFiles};

/// The results that can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Id {
    /// He et al., "The unwritten contract of solid state drives", EuroSys'17
    UnwrittenContract,
    /// Rajimwale et al., "Block management in solid-state devices", USENIX ATC'09
    Atc09,
    /// "Designing SSD-Friendly Applications", 2016
    #[value(name = "linkedin")]
    LinkedIn,
    /// Min et al., "SFS", FAST'12: the behaviour of its drives, and its file system
    Sfs,
    /// Shen et al., "One size never fits all" (Prism-SSD), ICDCS'19: key-value cache, file system
    PrismSsd,
}

/// Arguments of `prism reproduce`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism reproduce unwritten-contract --html contract.html
  prism reproduce atc09 --html atc09.html
  prism reproduce linkedin --scale quarter")]
pub struct Args {
    /// The result to repeat; without it, all are listed
    #[arg(value_name = "ID", value_enum)]
    id: Option<Id>,
    /// Folder with the traces of unwritten-contract, there or in its subfolders unwritten and
    /// app-fs: FS-APP-PATTERN.parquet of prism capture stack, or FS-APP.ftrace.zst
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
    /// Renew the tables of the Markdown page FILE, each of which stands between the lines
    /// `<!-- table: SECTION, N -->` and `<!-- end -->`
    #[arg(long, value_name = "FILE", requires = "id")]
    page: Option<PathBuf>,
}

fn parse_scale(text: &str) -> Result<Scale, String> {
    let known = [Scale::Full, Scale::Quarter];
    let found = known.into_iter().find(|&scale| scale_name(scale) == text);
    found.ok_or_else(|| "the scales are: full quarter".into())
}

/// Repeats the result and prints it next to the published one.
///
/// # Errors
/// [`Failure`] if no trace is found, one cannot be read, or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    match args.id {
        None => Ok(write_whole(Path::new("-"), list().as_bytes())?),
        Some(Id::UnwrittenContract) => unwritten_contract(args),
        Some(Id::Atc09) => atc09(args),
        Some(Id::LinkedIn) => linkedin(args),
        Some(Id::Sfs) => sfs(args),
        Some(Id::PrismSsd) => prism_ssd(args),
    }
}

fn list() -> String {
    let mut text = String::from("Results that prism reproduce can repeat:\n");
    for id in Id::value_variants() {
        if let Some(value) = id.to_possible_value() {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {}  {help}\n", value.get_name()));
        }
    }
    text
}

/// The result of a job of the unwritten contract.
enum ContractPart {
    Benchmark(Vec<Comparison>),
    Trace(Box<Result<Observed, HostError>>),
    Sequential(Pair, Result<Sequential, HostError>),
}

fn unwritten_contract(args: &Args) -> Result<(), Failure> {
    let (found, missing): (Vec<_>, Vec<_>) = Pair::all()
        .map(|pair| (pair, usual_trace(&args.traces, pair)))
        .partition(|(_, path)| path.is_some());
    if found.is_empty() {
        let dir = args.traces.display();
        return Err(Failure::Usage(format!(
            "{dir}: no trace named FS-APP-PATTERN.parquet (such as ext4-leveldb-rand.parquet) or \
             FS-APP.ftrace.zst is there or in its subfolders unwritten and app-fs; name the folder \
             of the traces with --traces"
        )));
    }
    let files = Files::open(args)?;
    let (scale, seed) = (args.scale, args.seed);
    let mut jobs: Vec<Box<dyn FnOnce() -> ContractPart + Send>> = Vec::new();
    for (pair, path) in found {
        let Some(path) = path else { continue };
        jobs.push(Box::new(move || ContractPart::Trace(Box::new(read(pair, path)))));
    }
    for pair in Pair::all() {
        for instances in INSTANCES {
            let name = format!("{}.parquet", pair.sequential(instances));
            let Some(path) = trace_file(&args.traces, &[name]) else { continue };
            let read = move || ContractPart::Sequential(pair, sequential(pair, instances, &path));
            jobs.push(Box::new(read));
        }
    }
    for benchmark in Benchmark::ALL {
        jobs.push(Box::new(move || ContractPart::Benchmark(benchmark.run(scale, seed))));
    }
    let parts = run_parts(jobs);
    let (mut comparisons, mut observed) = (Vec::new(), Vec::<Observed>::new());
    for part in parts {
        match part {
            ContractPart::Benchmark(some) => comparisons.extend(some),
            ContractPart::Trace(one) => observed.push((*one)?),
            // The usual traces come first.
            ContractPart::Sequential(pair, one) => {
                let known = observed.iter_mut().find(|observed| observed.facts.pair == pair);
                let one = one?;
                if let Some(known) = known {
                    known.facts.sequential.push(one);
                }
            }
        }
    }
    let facts: Vec<Facts> = observed.iter().map(|one| one.facts.clone()).collect();
    let missing = missing.into_iter().map(|(pair, _)| pair).collect();
    let judged = judge_all(&facts);
    let result = Reproduced { seed, scale, comparisons, observed, missing, judged };
    let text = json(&reproduction::json(&result));
    let document = reproduction::document(&result);
    files.write(&document, &text)
}

fn atc09(args: &Args) -> Result<(), Failure> {
    let files = Files::open(args)?;
    let (scale, seed) = (args.scale, args.seed);
    let pending = prism_experiments::atc09::jobs(scale, seed);
    let parts = run_parts(pending.into_iter().map(|part| || part.run()).collect());
    let found = Atc09 { seed, scale, results: Results::of(parts) };
    let document = reproduction::atc09::document(&found);
    let text = json(&reproduction::atc09::json(&found));
    files.write(&document, &text)
}

fn linkedin(args: &Args) -> Result<(), Failure> {
    let files = Files::open(args)?;
    let (scale, seed) = (args.scale, args.seed);
    let job = |part: linkedin::Part| move || part.run(scale, seed);
    let parts = run_parts(linkedin::Part::all().into_iter().map(job).collect());
    let result = LinkedIn::new(seed, scale, linkedin::Results::of(parts));
    let document = reproduction::linkedin::document(&result);
    let text = json(&reproduction::linkedin::json(&result));
    files.write(&document, &text)
}

fn sfs(args: &Args) -> Result<(), Failure> {
    let files = Files::open(args)?;
    let (scale, seed) = (args.scale, args.seed);
    let job = |part: sfs::Part| move || part.run(scale, seed);
    let parts = run_parts(sfs::Part::all(scale).into_iter().map(job).collect());
    let result = Sfs::new(seed, scale, sfs::Results::of(parts));
    let document = reproduction::sfs::document(&result);
    let text = json(&reproduction::sfs::json(&result));
    files.write(&document, &text)
}

fn prism_ssd(args: &Args) -> Result<(), Failure> {
    let files = Files::open(args)?;
    let (scale, seed) = (args.scale, args.seed);
    let job = |part: prism_ssd::Part| move || part.run(scale, seed);
    let parts = run_parts(prism_ssd::Part::all(scale, seed).into_iter().map(job).collect());
    let result = PrismSsd::new(seed, scale, prism_ssd::Results::of(parts));
    let document = reproduction::prism_ssd::document(&result);
    let text = json(&reproduction::prism_ssd::json(&result));
    files.write(&document, &text)
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

/// Runs `jobs` on all cores and shows progress.
fn run_parts<T: Send>(jobs: Vec<impl FnOnce() -> T + Send>) -> Vec<T> {
    let progress = Progress::on_stderr();
    progress.start_count("reproducing:", "parts", Some(jobs.len() as u64));
    let parts = run_all(jobs, |finished| progress.reached(finished as u64));
    progress.clear();
    parts
}

/// The trace of the usual run of `pair`: as `prism capture stack` names it, or the text of ftrace.
fn usual_trace(dir: &Path, pair: Pair) -> Option<PathBuf> {
    let names = [format!("{}.parquet", pair.usual()), format!("{}.ftrace.zst", pair.name())];
    trace_file(dir, &names)
}

/// The first of `names` that is in `dir` or in one of its subfolders.
fn trace_file(dir: &Path, names: &[String]) -> Option<PathBuf> {
    let folders = [dir.to_path_buf(), dir.join("unwritten"), dir.join("app-fs")];
    let path = |name: &String| folders.iter().map(|folder| folder.join(name)).collect::<Vec<_>>();
    names.iter().flat_map(path).find(|path| path.is_file())
}

/// Loads the phase `phase` of a trace, or all of it.
fn load(path: &Path, phase: Option<&str>) -> Result<LoadedTrace, HostError> {
    let phase = phase.map(str::to_owned);
    let spec = LoadSpec { paths: vec![path.to_path_buf()], phase, ..LoadSpec::default() };
    load_trace(&spec, &Progress::hidden())
}

fn read(pair: Pair, path: PathBuf) -> Result<Observed, HostError> {
    let mut trace = load(&path, Some(PHASE))?;
    let is_captured = path.extension().is_some_and(|ending| ending == "parquet");
    let device = if is_captured { TRACED } else { TRACED_FIRST };
    let phases = trace.info.facts.phase_names();
    let mut observed =
        observe(pair, device, &mut trace.spool, &trace.info.later_discards, &trace.info.symbols)?;
    for read_ahead in READ_AHEADS {
        let names = ColdReads::phases(read_ahead);
        if !names.iter().all(|name| phases.contains(name)) {
            continue;
        }
        let [ordered, random] = names.map(|name| -> Result<_, HostError> {
            Ok(reads_of(&mut load(&path, Some(&name))?.spool)?)
        });
        let cold = ColdReads { read_ahead, ordered: ordered?, random: random? };
        observed.facts.cold.push(cold);
    }
    Ok(observed)
}

fn sequential(pair: Pair, instances: u32, path: &Path) -> Result<Sequential, HostError> {
    let mut app = load(path, Some(PHASE))?;
    let later = std::mem::take(&mut app.info.later_discards);
    let symbols = &app.info.symbols;
    if instances == 1 {
        return Ok(observe_sequential(pair, instances, &mut app.spool, &later, symbols, None)?);
    }
    let mut whole = load(path, None)?;
    let mut removal = load(path, Some(REMOVE_PHASE))?;
    let removal = Some((&mut whole.spool as &mut dyn Source, &mut removal.spool as _));
    Ok(observe_sequential(pair, instances, &mut app.spool, &later, symbols, removal)?)
}
