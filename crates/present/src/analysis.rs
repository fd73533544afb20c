//! The analysis of a trace on a drive: replays it, scores it by the rules, simulates fixes.

use prism_base::{Bytes, Nanos};
use prism_contract::advice::{self, advice};
use prism_contract::blocks::DriveBlocks;
use prism_contract::rules::{Findings, NamedRange, Ranges, Rules, Subject};
use prism_contract::terms::{self, Probe, terms};
use prism_contract::what_if::{Change, Comparison, Run, Skipped};
use prism_replay::{
    BlockDevice, HostFtl, HostFtlError, LaidOut, Layout, Options, Pace, Passes, ReplayError,
    ReplayResult, SteadyState, ZoneRuleCheck,
};
use prism_ssd::scale::fit_for_speed;
use prism_ssd::{Drive, DriveSpec, HostOp, Preparation, Scaled};
use prism_trace::{Extents, Records, Source, TraceInfo};
use prism_workload::Finished;

use crate::contract::Contract;
use crate::contract::fail_on::Quantity;
use crate::drive::charts::{Charts, Watched};
use crate::drive::writers::Writers;
use crate::drive::{End, Facts, Speed};
use crate::drive_choice::{Capacity, DriveChoice};
use crate::env::{Env, Step};
use crate::error::PresentError;
use crate::fixes::Fixes;
use crate::initial_state::StateSource;
use crate::zoned::ZonedFacts;

/// A trace that has been read.
pub struct Trace {
    /// Its format, summary and names.
    pub info: TraceInfo,
    /// The selected records.
    pub records: Box<dyn Records>,
}

/// The drive and the options of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisOptions<'a> {
    /// The drive.
    pub drive: &'a DriveChoice,
    /// How the trace is replayed.
    pub options: Options,
    /// Seed of everything random.
    pub seed: u64,
    /// Which fixes are simulated.
    pub what_ifs: &'a WhatIfs,
    /// The names of address ranges of the device.
    pub ranges: &'a [NamedRange],
}

/// The largest drive that a trace is fitted to by itself: above it, addresses that the trace does
/// not touch are left out. Such a drive takes 10 MB, and its spare flash is used up by few passes.
const FITTED_MAX: Bytes = Bytes(4 << 30);

/// Which fixes are simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhatIfs {
    /// All that apply to the trace and the drive.
    All,
    /// Those with these keys; none if the list is empty.
    Only(Vec<String>),
}

const SNAPSHOT: &str = "The drive starts from a snapshot, which fits no changed drive; to \
                        simulate changes, use --state filled, preconditioned or steady.";

const ZONED: &str = "The drive is zoned and the trace runs on a host FTL: the changes apply only \
                     to drives that clean by themselves.";

/// The analysis of a trace on a drive.
pub struct Analysis {
    /// The trace, the drive and the replay.
    pub facts: Facts,
    /// What the host FTL did, if the drive is zoned.
    pub zoned: Option<ZonedFacts>,
    /// The charts of the replay.
    pub charts: Charts,
    /// The rules, and the fixes.
    pub contract: Contract,
}

impl Analysis {
    /// Analyses `trace`. `each` is called for every measured request; the replay is interrupted
    /// when it returns false.
    ///
    /// # Errors
    /// [`PresentError`] if the trace or the device cannot be read, or the trace does not fit
    /// the drive.
    pub fn of<E: Env>(
        trace: Trace,
        given: AnalysisOptions<'_>,
        env: &E,
        each: &mut dyn FnMut(&Finished) -> bool,
    ) -> Result<Self, PresentError> {
        let Trace { info, records } = trace;
        check_source(given.options, &info)?;
        let full = given.drive.device(env)?;
        let space = Space::of(&info.touched, given.drive, &full);
        check_ranges(given.ranges, &info, &space.layout)?;
        let scaled = scaled(given.drive, &full, space.layout.span())?;
        check_fits(&info, &space, scaled.device.capacity())?;
        if given.options.passes == Passes::UntilReadOnly && scaled.device.faults.is_none() {
            let what = "--passes until-read-only needs a drive that ages: give --faults KIND";
            return Err(PresentError::refused(what));
        }
        let began = env.seconds();
        let described = match given.drive.capacity {
            Some(Capacity::Bytes(_)) => scaled.device.clone(),
            Some(Capacity::Device) | None => full.clone(),
        };
        let (drive, prepared) = prepared(given, &scaled.device, space.layout.span(), env)?;
        let mut work = Work { given, env, info, space, records, full, described };
        let run = main_run(&scaled.device, given);
        let timed = match &run {
            Some(run) => work.speed_drive(run)?,
            None => None,
        };
        let (drive, zoned, (outcome, charts)) = match timed {
            Some(_) => work.replayed(drive, &mut |_| true)?,
            None => work.replayed(drive, each)?,
        };
        let (speed, charts) = match timed {
            Some((scaled, run)) => {
                let (speed, charts) = work.timed(scaled, run, &outcome, &drive, each)?;
                (Some(speed), charts)
            }
            None => (None, charts),
        };
        let took = Nanos(((env.seconds() - began) * 1e9) as u64);
        let findings = work.judged(&scaled)?;
        let Work { info, space, records, full, described, .. } = work;
        // A host FTL becomes read-only before its drive does.
        let end = End::of(&drive, zoned.and_then(|zoned| zoned.read_only));
        let facts = Facts {
            trace: info,
            layout: space.layout,
            described,
            scaled,
            state: given.drive.state.clone(),
            prepared,
            options: given.options,
            seed: given.seed,
            outcome,
            speed,
            end,
        };
        let fixes = Fixes { facts: &facts, records: &*records, env, what_ifs: given.what_ifs };
        let run = run.filter(|_| zoned.is_none());
        let (what_ifs, skipped) = match &run {
            Some(run) => fixes.simulated(run, &drive, took)?,
            None => (Vec::new(), Vec::new()),
        };
        let mut contract = decided(&facts, &full, findings, what_ifs, skipped, &drive);
        if run.is_none() && *given.what_ifs != WhatIfs::Only(Vec::new()) {
            contract.unsimulated = Some(if zoned.is_some() { ZONED } else { SNAPSHOT });
        }
        Ok(Self { facts, zoned, charts, contract })
    }

    /// The 99th percentile of the latency of reads and writes together.
    #[must_use]
    pub fn p99(&self) -> Option<Nanos> {
        let measured = self.facts.timed();
        let mut both = measured.latency_of(HostOp::Read).clone();
        both.merge(measured.latency_of(HostOp::Write));
        (both.count() > 0).then(|| both.quantile(0.99))
    }

    /// The value of `quantity`; `None` if the trace does not determine it.
    #[must_use]
    pub fn value(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Score(rule) => self.contract.findings.score(rule),
            Quantity::WriteAmplification => self.facts.write_amplification(),
            Quantity::P99 => self.p99().map(|p99| p99.0 as f64),
            Quantity::LifetimeDays => self.facts.lifetime().map(|life| life.days),
        }
    }
}

/// Refuses names of address ranges for a trace of several devices.
fn check_ranges(
    ranges: &[NamedRange],
    trace: &TraceInfo,
    layout: &Layout,
) -> Result<(), PresentError> {
    let devices = layout.ranges().len();
    if ranges.is_empty() || devices < 2 {
        return Ok(());
    }
    Err(PresentError::Refused(format!(
        "{}: --layout describes one device, but the trace has {devices}; choose one with \
         --source",
        trace.name
    )))
}

fn check_fits(trace: &TraceInfo, space: &Space, capacity: Bytes) -> Result<(), PresentError> {
    let layout = &space.layout;
    if layout.span() == 0 && space.whole.span() > 0 && trace.summary.flushes == 0 {
        return Err(PresentError::Refused(format!(
            "{}: the trace only discards, and its addresses end beyond a drive fitted to a trace; \
             give --capacity device",
            trace.name
        )));
    }
    if layout.span() <= capacity.0 {
        return Ok(());
    }
    Err(PresentError::Refused(format!(
        "{}: the trace reads and writes {} of addresses, more than the drive's {} bytes \
         ({capacity}); give --capacity {}B or more, or choose a part of the trace with --source",
        trace.name,
        Bytes(layout.span()),
        capacity.0,
        Bytes(layout.span()).div_ceil(Bytes(1 << 20)) << 20,
    )))
}

/// Checks that the trace has requests, and completions if the pace needs them.
fn check_source(options: Options, trace: &TraceInfo) -> Result<(), PresentError> {
    let wrong = |what: &str| Err(PresentError::Refused(format!("{}: {what}", trace.name)));
    if trace.summary.requests + trace.summary.flushes == 0 {
        return wrong("no request is left to replay; choose another --phase or --source");
    }
    if matches!(options.pace, Pace::Dependent { .. }) && !trace.facts.capabilities.completion {
        return wrong("--pace dependent needs completions, which this trace lacks; use open");
    }
    Ok(())
}

/// The drive, scaled to the trace; a zoned one to the host FTL that serves the trace.
fn scaled(choice: &DriveChoice, full: &DriveSpec, span: u64) -> Result<Scaled, PresentError> {
    if !full.is_zoned() {
        return choice.scaled(full.clone(), span);
    }
    let addresses = HostFtl::addresses_for(full, span);
    let addresses = addresses.map_err(|error| choice.refused(error))?;
    choice.scaled(full.clone(), addresses)
}

/// The drive in the requested state; a zoned one so that its host FTL is in that state.
fn prepared(
    given: AnalysisOptions<'_>,
    device: &DriveSpec,
    span: u64,
    env: &impl Env,
) -> Result<(Drive, Preparation), PresentError> {
    if !device.is_zoned() {
        return given.drive.prepared(device, given.seed, env);
    }
    let state = match given.drive.state.source {
        StateSource::Prepared(state) => HostFtl::drive_state(device, span, state),
        StateSource::File(_) => None,
    };
    let Some(state) = state else { return Err(given.drive.refused(HostFtlError::State)) };
    let mut choice = given.drive.clone();
    choice.state.source = StateSource::Prepared(state);
    choice.prepared(device, given.seed, env)
}

/// The replay with which fixes are compared; none for a snapshot, which fits no changed drive.
fn main_run(device: &DriveSpec, given: AnalysisOptions<'_>) -> Option<Run> {
    let StateSource::Prepared(state) = given.drive.state.source else { return None };
    Some(Run::new(device.clone(), given.options, state, given.seed))
}

/// The addresses of a trace.
struct Space {
    /// All of them, for the rules.
    whole: Layout,
    /// Those on the drive.
    layout: Layout,
}

impl Space {
    fn of(touched: &Extents, drive: &DriveChoice, full: &DriveSpec) -> Self {
        let most = match drive.capacity {
            None => FITTED_MAX,
            Some(Capacity::Device) => full.capacity(),
            Some(Capacity::Bytes(capacity)) => capacity,
        };
        Self { whole: Layout::whole(touched), layout: Layout::packed(touched, most.0) }
    }
}

type Replayed = (ReplayResult, Charts);

/// A running analysis.
struct Work<'a, E> {
    given: AnalysisOptions<'a>,
    env: &'a E,
    info: TraceInfo,
    space: Space,
    records: Box<dyn Records>,
    /// The drive before it is scaled.
    full: DriveSpec,
    /// The drive that the report is about.
    described: DriveSpec,
}

impl<E: Env> Work<'_, E> {
    /// Replays the trace on the drive itself or, if it is zoned, on a host FTL over it.
    fn replayed(
        &mut self,
        mut drive: Drive,
        each: &mut dyn FnMut(&Finished) -> bool,
    ) -> Result<(Drive, Option<ZonedFacts>, Replayed), PresentError> {
        let options = self.given.options;
        let Some(shape) = drive.device().zone_shape() else {
            let replayed = self.replay(&mut drive, options, each)?;
            return Ok((drive, None, replayed));
        };
        let layout = &self.space.layout;
        let bare = ZoneRuleCheck::of(&mut LaidOut::new(&mut *self.records, layout), shape)?;
        let log = match self.given.drive.capacity {
            None => HostFtl::fitted(drive, layout.span()),
            Some(_) => HostFtl::new(drive, layout.span()),
        };
        let mut log = log.map_err(|error| self.given.drive.refused(error))?;
        let over_provisioning = log.over_provisioning();
        let replayed = self.replay(&mut log, options, each)?;
        let (read_only, log_counts) = (log.read_only(), replayed.0.host_ftl);
        let facts = ZonedFacts { shape, bare, over_provisioning, log: log_counts, read_only };
        Ok((log.into_drive(), Some(facts), replayed))
    }

    /// The drive with all dies, and the run on it, if `run` is on a drive that lacks some.
    fn speed_drive(&self, run: &Run) -> Result<Option<(Scaled, Run)>, PresentError> {
        let apart = self.given.drive.capacity != Some(Capacity::Device) && !run.device.is_zoned();
        if !apart {
            return Ok(None);
        }
        let wide = fit_for_speed(&self.full, run.device.capacity());
        let wide = wide.map_err(|error| self.given.drive.refused(error))?;
        // Without a closed form the fitted drive is the only one in a steady state.
        let settles = matches!(run.options.passes, Passes::Steady | Passes::UntilReadOnly);
        if wide.device == run.device || settles && !wide.device.has_steady_state() {
            return Ok(None);
        }
        let passes = match run.options.passes {
            Passes::Steady | Passes::UntilReadOnly => Passes::Fixed(1),
            fixed @ (Passes::Fixed(_) | Passes::UpTo { .. }) => fixed,
        };
        let options = Options { passes, ..run.options };
        let timed = Run::new(wide.device.clone(), options, run.state, run.seed);
        Ok(Some((wide, timed)))
    }

    /// Replays the trace on the drive with all dies, in the steady state of the main replay, which
    /// had the result `outcome` on `drive`.
    fn timed(
        &mut self,
        scaled: Scaled,
        mut run: Run,
        outcome: &ReplayResult,
        drive: &Drive,
        each: &mut dyn FnMut(&Finished) -> bool,
    ) -> Result<(Speed, Charts), PresentError> {
        let given = self.given.options.passes;
        let settles = matches!(given, Passes::Steady | Passes::UntilReadOnly);
        if settles && outcome.steady != SteadyState::NoWrites {
            let distinct = Bytes(self.info.summary.unique_written_bytes);
            run.cleaning = Some(outcome.cleaning(drive.device(), distinct));
        }
        let prepared =
            Drive::prepared(run.device.clone(), run.initial_state(), run.seed, |_, _| true);
        let prepared = prepared.map_err(|error| self.given.drive.refused(error))?;
        let (mut drive, _) = prepared.expect("the preparation is never interrupted");
        let (outcome, charts) = self.replay(&mut drive, run.options, each)?;
        Ok((Speed { scaled, run, outcome }, charts))
    }

    fn replay<B: BlockDevice>(
        &mut self,
        drive: &mut B,
        options: Options,
        each: &mut dyn FnMut(&Finished) -> bool,
    ) -> Result<Replayed, PresentError> {
        let per_pass = self.info.summary.requests + self.info.summary.flushes;
        let (total, shown) = match options.passes {
            Passes::Fixed(passes) | Passes::UpTo { passes, .. } => {
                (Some(per_pass * u64::from(passes)), passes)
            }
            Passes::Steady | Passes::UntilReadOnly => (None, 1),
        };
        let env = self.env;
        env.show(Step::Begin { label: "replaying:", things: "requests", total });
        let reached = |at: prism_workload::Progress| {
            env.show(Step::Reached(u64::from(at.passes) * per_pass + at.submitted));
        };
        let writers = Writers::of(&self.info);
        let span = Bytes(self.space.layout.span().max(1));
        let charts = Charts::new(span, shown, writers);
        let mut watched = Watched { charts, each, reached: &reached, interrupted: false };
        let mut source = LaidOut::new(&mut *self.records, &self.space.layout);
        let outcome = prism_replay::replay(drive, &mut source, &options, &mut watched);
        env.show(Step::End);
        match outcome {
            Ok(outcome) => Ok((outcome, watched.charts)),
            Err(ReplayError::Source(error)) => Err(error.into()),
            Err(error) => Err(PresentError::Refused(format!("{}: {error}", self.info.name))),
        }
    }

    /// The five rules over the trace.
    fn judged(&mut self, scaled: &Scaled) -> Result<Findings, PresentError> {
        let subject = Subject::of(&scaled.device, self.full.flash.channels);
        let layout = &self.space.whole;
        let ranges = Ranges::new(self.given.ranges.to_vec(), layout.span());
        let mut rules = Rules::new(subject, ranges);
        let (label, total) = ("checking the rules:", Some(self.records.count()));
        self.env.show(Step::Begin { label, things: "requests", total });
        let mut source = LaidOut::new(&mut *self.records, layout);
        let (mut batch, mut done) = (Vec::new(), 0);
        source.rewind()?;
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            rules.add_all(&batch);
            done += batch.len() as u64;
            self.env.show(Step::Reached(done));
        }
        let later = &self.info.later_discards;
        for record in later.iter().filter_map(|record| layout.placed(record)) {
            rules.after(&record);
        }
        self.env.show(Step::End);
        Ok(rules.finish(&self.info.symbols))
    }
}

/// The contract: findings and simulations, and the terms and advice that follow from them.
fn decided(
    facts: &Facts,
    full: &DriveSpec,
    findings: Findings,
    what_ifs: Vec<Comparison>,
    skipped: Vec<Skipped>,
    drive: &Drive,
) -> Contract {
    let (worn, timed, described) = (&facts.outcome.window, facts.timed(), &facts.described);
    let probe = Probe::of(full, facts.seed);
    let lifetime = facts.lifetime().map(|life| life.days);
    let ratio = facts.write_amplification();
    let terms = terms(&terms::Inputs::of((worn, ratio), timed, described, lifetime, probe));
    let inputs = advice::Inputs::of(&findings, (worn, ratio, drive), (timed, described), &what_ifs);
    let (advice, blocks) = (advice(&inputs), DriveBlocks::of(drive));
    Contract { findings, blocks, what_ifs, skipped, unsimulated: None, terms, advice }
}

/// Parses the fixes to simulate: `all`, `none`, or a list of keys.
///
/// # Errors
/// The keys that exist, if one does not.
pub fn parse_what_ifs(text: &str) -> Result<WhatIfs, String> {
    let keys: Vec<&str> = text.split(',').map(str::trim).collect();
    match keys.as_slice() {
        ["all"] => Ok(WhatIfs::All),
        ["none"] => Ok(WhatIfs::Only(Vec::new())),
        _ => {
            if let Some(wrong) = keys.iter().find(|key| !Change::KEYS.contains(key)) {
                let known = Change::KEYS.join(", ");
                return Err(format!("{wrong:?} is unknown; known are all, none, {known}"));
            }
            Ok(WhatIfs::Only(keys.into_iter().map(str::to_owned).collect()))
        }
    }
}
