//! A trace on a drive, all of it: loaded, replayed, judged by the rules, its fixes simulated.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use prism_base::{Bytes, Nanos};
use prism_contract::advice::{self, advice};
use prism_contract::blocks::DriveBlocks;
use prism_contract::rules::{Findings, NamedRange, Ranges, Rules, Subject};
use prism_contract::terms::{self, Probe, terms};
use prism_contract::what_if::{
    Change, Comparison, Figures, Original, Plan, Run, Skipped, TraceFacts, WhatIfError, plan,
    simulate,
};
use prism_host::parquet::RequestsWriter;
use prism_host::{HostError, LoadedTrace, OutputFile, Progress, clock, jobs};
use prism_replay::{
    BareWrites, BlockDevice, HostLog, LaidOut, Layout, LogError, Options, Outcome, Pace, Passes,
    ReplayError,
};
use prism_ssd::{Device, Drive, DriveHealth, HostOp, Preparation, Scaled};
use prism_trace::Source;
use prism_workload::{Finished, Silent};

use crate::contract_report::Contract;
use crate::contract_report::fail_on::Quantity;
use crate::device_args::DeviceArgs;
use crate::drive_report::{Charts, Facts, Wear};
use crate::failure::Failure;
use crate::initial_state::{State, StateSource};
use crate::replay_args::ReplayArgs;
use crate::trace_args::SelectArgs;
use crate::zoned_report::ZonedFacts;

/// What is to be analysed, and how.
#[derive(Clone, Copy, Debug)]
pub struct Subjects<'a> {
    /// Files of the trace.
    pub paths: &'a [PathBuf],
    /// What of them.
    pub select: &'a SelectArgs,
    /// The drive.
    pub device: &'a DeviceArgs,
    /// How it is replayed.
    pub replay: &'a ReplayArgs,
    /// Which fixes are simulated.
    pub what_ifs: &'a WhatIfs,
    /// What lies where on the device.
    pub ranges: &'a [NamedRange],
}

/// Which fixes are simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhatIfs {
    /// All that make sense.
    All,
    /// Those with these keys; none if there are none.
    Only(Vec<String>),
}

const SAVED_STATE: &str = "The drive begins with a saved state, which fits no changed drive; \
                           simulate changes with --state filled, preconditioned or steady.";

const ZONED: &str = "The drive is zoned and the trace goes through a log of the host's: the fixes \
                     are about drives that clean by themselves.";

/// Draws the charts, and hands each request on to whoever writes them down.
type Drawn = Charts<Box<dyn FnMut(&Finished)>>;

/// A trace on a drive, analysed.
pub struct Analysis {
    trace: LoadedTrace,
    layout: Layout,
    scaled: Scaled,
    prepared: Preparation,
    outcome: Outcome,
    buffered: Bytes,
    wear: Wear,
    slc_wear: Option<Wear>,
    health: Option<DriveHealth>,
    state: State,
    options: Options,
    seed: u64,
    /// What it means that the drive is zoned.
    pub zoned: Option<ZonedFacts>,
    /// The charts of the replay.
    pub charts: Drawn,
    /// The rules, and the fixes.
    pub contract: Contract,
    /// The file of the requests, written.
    pub requests: Option<OutputFile>,
}

impl Analysis {
    /// Analyses what `given` names. Every measured request goes to `requests`, if there is
    /// such a file.
    ///
    /// # Errors
    /// [`Failure`] if the trace or the device cannot be read, or the trace does not fit the
    /// drive.
    pub fn of(given: Subjects<'_>, requests: Option<OutputFile>) -> Result<Self, Failure> {
        let mut trace = given.select.load(given.paths)?;
        check_source(given.replay, &trace)?;
        let layout = Layout::of(&mut trace.spool).map_err(HostError::from)?;
        check_ranges(given.ranges, &trace, &layout)?;
        let scaled = scaled(given.device, layout.span())?;
        check_fits(&trace, &layout, scaled.device.capacity())?;
        let progress = Progress::on_stderr();
        if given.replay.passes == Passes::UntilReadOnly && scaled.device.faults.is_none() {
            let what = "--passes until-read-only needs a drive that ages: give --faults KIND";
            return Err(Failure::Usage(what.into()));
        }
        let began = clock::seconds();
        let (drive, prepared) = prepared(given, &scaled.device, layout.span(), &progress)?;
        let writer = match requests {
            Some(file) => Some(RequestsWriter::create(file, trace.symbols.clone())?),
            None => None,
        };
        let (drive, zoned, (outcome, charts, writer)) =
            replayed(given, &mut trace, &layout, drive, writer, &progress)?;
        let took = Nanos(((clock::seconds() - began) * 1e9) as u64);
        let findings = judge(&mut trace, &layout, &scaled, given, &progress)?;
        let run = main_run(&scaled, given).filter(|_| zoned.is_none());
        let (what_ifs, skipped) = match &run {
            Some(run) => fixes(&trace, &layout, run, &outcome, &drive, given, took, &progress)?,
            None => (Vec::new(), Vec::new()),
        };
        let unit = scaled.device.ftl.mapping_unit;
        let mut contract = decided(findings, what_ifs, skipped, &outcome, &drive, given)?;
        if run.is_none() && *given.what_ifs != WhatIfs::Only(Vec::new()) {
            contract.unsimulated = Some(if zoned.is_some() { ZONED } else { SAVED_STATE });
        }
        let requests = match writer {
            Some(writer) => Some(writer.finish()?),
            None => None,
        };
        Ok(Self {
            buffered: Bytes(u64::from(drive.buffered_units()) * unit.0),
            wear: Wear::of(drive.engine().nand().erase_counts()),
            slc_wear: Wear::of_slc(drive.engine().nand()),
            health: drive.health().map(|health| DriveHealth {
                // A log stops writing while its drive still could.
                read_only: zoned.and_then(|zoned| zoned.read_only).or(health.read_only),
                ..health
            }),
            contract,
            trace,
            layout,
            scaled,
            prepared,
            outcome,
            state: given.device.state.clone(),
            options: given.replay.options(),
            seed: given.replay.seed,
            zoned,
            charts,
            requests,
        })
    }

    /// What a report on the drive is made from.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            trace: &self.trace,
            layout: &self.layout,
            scaled: &self.scaled,
            state: &self.state,
            prepared: &self.prepared,
            options: self.options,
            seed: self.seed,
            outcome: &self.outcome,
            buffered: self.buffered,
            wear: self.wear,
            slc_wear: self.slc_wear,
            health: self.health,
        }
    }

    /// The main figures, as fixes are compared by them.
    #[must_use]
    pub fn p99(&self) -> Option<Nanos> {
        let mut both = self.outcome.measured.latency_of(HostOp::Read).clone();
        both.merge(self.outcome.measured.latency_of(HostOp::Write));
        (both.count() > 0).then(|| both.quantile(0.99))
    }

    /// The value of what a condition compares; none where the trace does not tell.
    #[must_use]
    pub fn value(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Score(rule) => self.contract.findings.score(rule),
            Quantity::WriteAmplification => self.outcome.measured.write_amplification(),
            Quantity::P99 => self.p99().map(|p99| p99.0 as f64),
            Quantity::LifetimeDays => self.facts().lifetime().map(|life| life.days),
        }
    }
}

/// Names of parts belong to one device.
fn check_ranges(
    ranges: &[NamedRange],
    trace: &LoadedTrace,
    layout: &Layout,
) -> Result<(), Failure> {
    let devices = layout.places().len();
    if ranges.is_empty() || devices < 2 {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{}: --layout tells what lies where on one device, and the trace has {devices}; choose it \
         with --source",
        trace.name
    )))
}

fn check_fits(trace: &LoadedTrace, layout: &Layout, capacity: Bytes) -> Result<(), Failure> {
    if layout.span() <= capacity.0 {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{}: the trace reaches up to byte {}, beyond the drive's {} bytes ({capacity}); give \
         --capacity {}B or more",
        trace.name,
        layout.span(),
        capacity.0,
        Bytes(layout.span()).div_ceil(Bytes(1 << 20)) << 20,
    )))
}

/// What the arguments ask for must be in the trace.
fn check_source(replay: &ReplayArgs, trace: &LoadedTrace) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::Usage(format!("{}: {what}", trace.name)));
    if trace.summary.requests + trace.summary.flushes == 0 {
        return wrong("no request is left to replay; choose another --phase or --source");
    }
    if matches!(replay.pace, Pace::Dependent { .. }) && !trace.facts.capabilities.completion {
        return wrong("--pace dependent needs completions, which this trace has not; use open");
    }
    Ok(())
}

/// The drive, made to fit the trace, or the log that the trace needs on a zoned one.
fn scaled(device: &DeviceArgs, span: u64) -> Result<Scaled, Failure> {
    let full = device.device()?;
    if !full.is_zoned() {
        return device.scaled(span);
    }
    let addresses = HostLog::addresses_for(&full, span);
    device.scaled(addresses.map_err(|error| Failure::Usage(format!("{}: {error}", device.device)))?)
}

/// The drive in the state that was asked for; a zoned one so that a log over it is.
fn prepared(
    given: Subjects<'_>,
    device: &Device,
    span: u64,
    progress: &Progress,
) -> Result<(Drive, Preparation), Failure> {
    let seed = given.replay.seed;
    if !device.is_zoned() {
        return given.device.prepared(device, seed, progress);
    }
    let state = match given.device.state.source {
        StateSource::Prepared(state) => HostLog::drive_state(device, span, state),
        StateSource::File(_) => None,
    };
    let Some(state) = state else {
        return Err(Failure::Usage(format!("{}: {}", given.device.device, LogError::State)));
    };
    let mut args = given.device.clone();
    args.state.source = StateSource::Prepared(state);
    args.prepared(device, seed, progress)
}

type Replayed = (Outcome, Drawn, Option<RequestsWriter>);

/// Replays the trace: on the drive itself, or, if it is zoned, on a log over it.
fn replayed(
    given: Subjects<'_>,
    trace: &mut LoadedTrace,
    layout: &Layout,
    mut drive: Drive,
    writer: Option<RequestsWriter>,
    progress: &Progress,
) -> Result<(Drive, Option<ZonedFacts>, Replayed), Failure> {
    let Some(shape) = drive.device().zone_shape() else {
        let replayed = replay(given.replay, trace, layout, &mut drive, writer, progress)?;
        return Ok((drive, None, replayed));
    };
    let mut source = LaidOut::new(&mut trace.spool, layout);
    let bare = BareWrites::of(&mut source, shape).map_err(HostError::from)?;
    let named = |error| Failure::Usage(format!("{}: {error}", given.device.device));
    let log = match given.device.capacity {
        None => HostLog::fitted(drive, layout.span()),
        Some(_) => HostLog::new(drive, layout.span()),
    };
    let mut log = log.map_err(named)?;
    let over_provisioning = log.over_provisioning();
    let replayed = replay(given.replay, trace, layout, &mut log, writer, progress)?;
    let (read_only, log_counts) = (log.read_only(), replayed.0.log);
    let facts = ZonedFacts { shape, bare, over_provisioning, log: log_counts, read_only };
    Ok((log.into_drive(), Some(facts), replayed))
}

fn replay<B: BlockDevice>(
    args: &ReplayArgs,
    trace: &mut LoadedTrace,
    layout: &Layout,
    drive: &mut B,
    writer: Option<RequestsWriter>,
    progress: &Progress,
) -> Result<Replayed, Failure> {
    let per_pass = trace.summary.requests + trace.summary.flushes;
    let total = match args.passes {
        Passes::Fixed(passes) => Some(per_pass * u64::from(passes)),
        Passes::Steady | Passes::UntilReadOnly => None,
    };
    progress.start_count("replaying:", "requests", total);
    let shared = Rc::new(RefCell::new((writer, None::<HostError>)));
    let sink = shared.clone();
    let each: Box<dyn FnMut(&Finished)> = Box::new(move |finished: &Finished| {
        let (writer, failed) = &mut *sink.borrow_mut();
        if let (Some(writer), None) = (writer, &failed) {
            *failed = writer.add(finished).err();
        }
    });
    let bar = progress.clone();
    let watch = shared.clone();
    let keep_going = move |at: prism_workload::Progress| {
        bar.reached(u64::from(at.passes) * per_pass + at.submitted);
        watch.borrow().1.is_none()
    };
    let shown = match args.passes {
        Passes::Fixed(passes) => passes,
        Passes::Steady | Passes::UntilReadOnly => 1,
    };
    let mut charts = Charts::new(drive.drive().device().capacity(), shown, each, keep_going);
    let mut source = LaidOut::new(&mut trace.spool, layout);
    let outcome = prism_replay::replay(drive, &mut source, &args.options(), &mut charts);
    progress.clear();
    let (writer, failed) = shared.take();
    if let Some(error) = failed {
        return Err(error.into());
    }
    match outcome {
        Ok(outcome) => Ok((outcome, charts, writer)),
        Err(ReplayError::Source(error)) => Err(HostError::from(error).into()),
        Err(error) => Err(Failure::Usage(format!("{}: {error}", trace.name))),
    }
}

/// The five rules over the trace.
fn judge(
    trace: &mut LoadedTrace,
    layout: &Layout,
    scaled: &Scaled,
    given: Subjects<'_>,
    progress: &Progress,
) -> Result<Findings, Failure> {
    let channels = given.device.device()?.flash.channels;
    let subject = Subject::of(&scaled.device, channels);
    let mut rules = Rules::new(subject, Ranges::new(given.ranges.to_vec(), layout.span()));
    progress.start_count("judging:", "requests", Some(trace.spool.len()));
    let mut source = LaidOut::new(&mut trace.spool, layout);
    let (mut batch, mut done) = (Vec::new(), 0);
    source.rewind().map_err(HostError::from)?;
    loop {
        source.next_batch(&mut batch).map_err(HostError::from)?;
        if batch.is_empty() {
            break;
        }
        rules.add_all(&batch);
        done += batch.len() as u64;
        progress.reached(done);
    }
    for record in trace.later_discards.iter().filter_map(|record| layout.placed(record)) {
        rules.after(&record);
    }
    progress.clear();
    Ok(rules.finish(&trace.symbols))
}

/// The replay with which fixes are compared; none for a saved state, which fits no changed
/// drive.
fn main_run(scaled: &Scaled, given: Subjects<'_>) -> Option<Run> {
    let StateSource::Prepared(state) = given.device.state.source else { return None };
    let (device, options) = (scaled.device.clone(), given.replay.options());
    Some(Run::new(device, options, state, given.replay.seed))
}

/// The contract, with what follows from findings and simulations: terms and advice.
fn decided(
    findings: Findings,
    what_ifs: Vec<Comparison>,
    skipped: Vec<Skipped>,
    outcome: &Outcome,
    drive: &Drive,
    given: Subjects<'_>,
) -> Result<Contract, Failure> {
    let measured = &outcome.measured;
    let probe = Probe::of(&given.device.device()?, given.replay.seed);
    let terms = terms(&terms::Inputs::of(measured, drive.device(), probe));
    let advice = advice(&advice::Inputs::of(&findings, measured, drive, &what_ifs));
    let blocks = DriveBlocks::of(drive);
    Ok(Contract { findings, blocks, what_ifs, skipped, unsimulated: None, terms, advice })
}

type Fixes = (Vec<Comparison>, Vec<Skipped>);

#[allow(clippy::too_many_arguments, reason = "each is one fact of the main replay")]
fn fixes(
    trace: &LoadedTrace,
    layout: &Layout,
    run: &Run,
    outcome: &Outcome,
    drive: &Drive,
    given: Subjects<'_>,
    took: Nanos,
    progress: &Progress,
) -> Result<Fixes, Failure> {
    if *given.what_ifs == WhatIfs::Only(Vec::new()) {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut reader = trace.spool.reader();
    let mut source = LaidOut::new(&mut reader, layout);
    let facts =
        TraceFacts::of(&mut source, run.device.ftl.mapping_unit).map_err(HostError::from)?;
    let keep = |change: &Change| match given.what_ifs {
        WhatIfs::All => true,
        WhatIfs::Only(keys) => keys.iter().any(|key| key == change.key()),
    };
    let plan = plan(&facts, run, &given.device.device()?, outcome).only(keep);
    let original = Original::of(&outcome.measured);
    let figures = simulated(trace, layout, &plan, &original, outcome, took, progress);
    let main = Figures::of(outcome, drive, run.raw, &original);
    Ok(plan.compare(&main, &figures))
}

/// Runs the simulations of `plan` side by side.
fn simulated(
    trace: &LoadedTrace,
    layout: &Layout,
    plan: &Plan,
    original: &Original,
    outcome: &Outcome,
    took: Nanos,
    progress: &Progress,
) -> Vec<Result<Figures, WhatIfError>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let forecast = plan.estimate(outcome, took, cores);
    let seconds = forecast.as_secs_f64().ceil();
    let label = format!("{} what-ifs, about {seconds} s:", plan.what_ifs.len());
    progress.start_count(&label, "simulations", Some(plan.jobs.len() as u64));
    let one = |job: &prism_contract::what_if::Job| {
        let (job, mut reader) = (job.clone(), trace.spool.reader());
        move || {
            let mut source = LaidOut::new(&mut reader, layout);
            simulate(&job.run, job.rewriting.as_ref(), &mut source, original, &mut Silent)
        }
    };
    let work: Vec<_> = plan.jobs.iter().map(one).collect();
    let figures = jobs::run_on(cores, work, |done| progress.reached(done as u64));
    progress.clear();
    figures
}

/// Reads `--what-if`.
///
/// # Errors
/// What there is.
pub fn parse_what_ifs(text: &str) -> Result<WhatIfs, String> {
    let keys: Vec<&str> = text.split(',').map(str::trim).collect();
    match keys.as_slice() {
        ["all"] => Ok(WhatIfs::All),
        ["none"] => Ok(WhatIfs::Only(Vec::new())),
        _ => {
            if let Some(wrong) = keys.iter().find(|key| !Change::KEYS.contains(key)) {
                let known = Change::KEYS.join(", ");
                return Err(format!("there is no {wrong:?}; there are all, none, {known}"));
            }
            Ok(WhatIfs::Only(keys.into_iter().map(str::to_owned).collect()))
        }
    }
}

/// Whether `text` names a drive: a preset, or a device file.
#[must_use]
pub fn is_device(text: &str) -> bool {
    let is_file = std::path::Path::new(text).extension().is_some_and(|e| e == "toml");
    let mut presets = Device::preset_names().chain(Device::zoned_preset_names());
    is_file || presets.any(|name| name == text)
}
