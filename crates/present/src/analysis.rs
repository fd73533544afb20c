//! The analysis of a trace on a drive: replays it, scores it by the rules, simulates fixes.

use prism_base::{Bytes, Nanos};
use prism_contract::advice::{self, advice};
use prism_contract::blocks::DriveBlocks;
use prism_contract::rules::{Findings, NamedRange, Ranges, Rules, Subject};
use prism_contract::terms::{self, Probe, terms};
use prism_contract::what_if::{Change, Comparison, Run, Skipped};
use prism_replay::{LaidOut, Layout, Options, Pace, Passes};
use prism_ssd::{Drive, DriveSpec, Scaled};
use prism_trace::{Records, Source, TraceInfo};
use prism_workload::Finished;

use crate::contract::Contract;
use crate::contract::fail_on::Quantity;
use crate::drive::charts::Charts;
use crate::drive::{End, Facts};
use crate::drive_choice::{Capacity, DriveChoice};
use crate::env::{Env, Step};
use crate::error::PresentError;
use crate::fixes::Fixes;
use crate::initial_state::StateSource;
use crate::replays::{Replays, Space, prepared, scaled};
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
    /// The analysis that another one is compared with: of another trace, or on the drive `device`,
    /// a preset or a device file. It simulates no fixes.
    ///
    /// # Errors
    /// As [`Analysis::of`].
    pub fn compared(
        trace: Trace,
        asked: AnalysisOptions<'_>,
        device: Option<&str>,
        env: &impl Env,
    ) -> Result<Self, PresentError> {
        let (drive, none) = (asked.drive.compared(device), WhatIfs::Only(Vec::new()));
        let asked = AnalysisOptions { drive: &drive, what_ifs: &none, ..asked };
        Self::of(trace, asked, env, &mut |_| true)
    }

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
        check_ages(given.options, &scaled.device)?;
        let began = env.seconds();
        let described = match given.drive.capacity {
            Some(Capacity::Bytes(_)) => scaled.device.clone(),
            Some(Capacity::Device) | None => full.clone(),
        };
        let (drive, prepared) = prepared(given, &scaled.device, space.layout.span(), env)?;
        let mut replays = Replays { given, env, info, space, records, full };
        let run = main_run(&scaled.device, given);
        let wide = match &run {
            Some(run) => replays.speed_drive(run)?,
            None => None,
        };
        // Requests are shown to the caller on the drive from which latencies come.
        let (each, timed_each) =
            if wide.is_some() { (None, Some(each)) } else { (Some(each), None) };
        let (drive, zoned, (outcome, charts)) = replays.replayed(drive, each)?;
        let (speed, charts) = match (wide, timed_each) {
            (Some((scaled, run)), Some(each)) => {
                let (speed, charts) = replays.timed(scaled, run, &outcome, &drive, each)?;
                (Some(speed), charts)
            }
            _ => (None, charts),
        };
        let charts = charts.expect("one of the replays has charts");
        let took = Nanos(((env.seconds() - began) * 1e9) as u64);
        let findings = judged(&mut replays, given.ranges, &scaled)?;
        let Replays { info, space, records, full, .. } = replays;
        // A host FTL becomes read-only before its drive does.
        let end = End::of(&drive, zoned.and_then(|zoned| zoned.read_only));
        let mut facts = Facts {
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
            unlevelled_days: None,
        };
        let fixes = Fixes { facts: &facts, records: &*records, env, what_ifs: given.what_ifs };
        let run = run.filter(|_| zoned.is_none());
        let (what_ifs, skipped) = match &run {
            Some(run) => fixes.simulated(run, &drive, took)?,
            None => (Vec::new(), Vec::new()),
        };
        facts.unlevelled_days = unlevelled_days(&what_ifs);
        let mut contract = decided(&facts, &full, findings, what_ifs, skipped, &drive);
        if run.is_none() && *given.what_ifs != WhatIfs::Only(Vec::new()) {
            contract.unsimulated = Some(if zoned.is_some() { ZONED } else { SNAPSHOT });
        }
        Ok(Self { facts, zoned, charts, contract })
    }

    /// The 99th percentile of the latency of reads and writes together.
    #[must_use]
    pub fn p99(&self) -> Option<Nanos> {
        let both = self.facts.timed().reads_and_writes();
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
    let whole_mib = |span: u64| Bytes(span).div_ceil(Bytes(1 << 20)) << 20;
    let (touched, all) = (layout.span(), space.whole.span());
    if touched == 0 && all > 0 && trace.summary.flushes == 0 {
        return Err(PresentError::Refused(format!(
            "{}: the trace only discards, and a drive fitted to a trace has no addresses that are \
             only discarded; give --capacity {}B",
            trace.name,
            whole_mib(all)
        )));
    }
    if touched <= capacity.0 {
        return Ok(());
    }
    Err(PresentError::Refused(format!(
        "{}: the trace reads and writes {} of addresses, more than the drive's {} bytes \
         ({capacity}); give --capacity {}B or more, or choose a part of the trace with --source",
        trace.name,
        Bytes(touched),
        capacity.0,
        whole_mib(touched),
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

/// Checks that a drive that is to be used until it is read-only ages.
fn check_ages(options: Options, device: &DriveSpec) -> Result<(), PresentError> {
    if options.passes == Passes::UntilReadOnly && device.faults.is_none() {
        let what = "--passes until-read-only needs a drive that ages: give --faults KIND";
        return Err(PresentError::refused(what));
    }
    Ok(())
}

/// The replay with which fixes are compared; none for a snapshot, which fits no changed drive.
fn main_run(device: &DriveSpec, given: AnalysisOptions<'_>) -> Option<Run> {
    let StateSource::Prepared(state) = given.drive.state.source else { return None };
    Some(Run::new(device.clone(), given.options, state, given.seed))
}

/// Days until the first block is worn out without wear levelling, if that was simulated.
fn unlevelled_days(what_ifs: &[Comparison]) -> Option<f64> {
    let is_levelling = |what_if: &&Comparison| matches!(what_if.change, Change::Levelling { .. });
    what_ifs.iter().find(is_levelling)?.before.lifetime_days
}

/// The five rules over the trace.
fn judged<E: Env>(
    replays: &mut Replays<'_, E>,
    ranges: &[NamedRange],
    scaled: &Scaled,
) -> Result<Findings, PresentError> {
    let subject = Subject::of(&scaled.device, replays.full.flash.channels);
    let layout = &replays.space.whole;
    let symbols = &replays.info.symbols;
    let devices =
        layout.ranges().iter().map(|place| (place.start, symbols.name(place.device).to_owned()));
    let named = Ranges::new(ranges.to_vec(), layout.span());
    let mut rules = Rules::new(subject, named.of_devices(devices));
    let (label, total) = ("checking the rules:", Some(replays.records.count()));
    replays.env.show(Step::Begin { label, things: "requests", total });
    let mut source = LaidOut::new(&mut *replays.records, layout);
    let (mut batch, mut done) = (Vec::new(), 0);
    source.rewind()?;
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        rules.add_all(&batch);
        done += batch.len() as u64;
        replays.env.show(Step::Reached(done));
    }
    let later = &replays.info.later_discards;
    for record in later.iter().filter_map(|record| layout.placed(record)) {
        rules.after(&record);
    }
    replays.env.show(Step::End);
    Ok(rules.finish(&replays.info.symbols))
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
    let inputs = advice::Inputs {
        state: facts.state.name.clone(),
        ..advice::Inputs::of(&findings, (worn, ratio, drive), (timed, described), &what_ifs)
    };
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
