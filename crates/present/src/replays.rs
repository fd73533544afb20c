//! The replays of an analysis: on a drive fitted to the trace, for wear, and on a drive with all
//! dies, for speed.

use prism_base::Bytes;
use prism_contract::what_if::Run;
use prism_replay::{
    HostFtl, HostFtlError, LaidOut, Layout, Options, Passes, ReplayDevice, ReplayError,
    ReplayResult, SteadyState, ZoneRuleCheck,
};
use prism_ssd::scale::fit_for_speed;
use prism_ssd::{Drive, DriveSpec, Preparation, Scaled};
use prism_trace::{Extents, Records, TraceInfo};
use prism_workload::{Finished, Observer};

use crate::analysis::AnalysisOptions;
use crate::drive::Speed;
use crate::drive::charts::{Charts, Unwatched, Watched};
use crate::drive::writers::Writers;
use crate::drive_choice::{Capacity, DriveChoice};
use crate::env::{Env, Step};
use crate::error::PresentError;
use crate::initial_state::{self, StateSource};
use crate::zoned::ZonedFacts;

/// The largest drive that a trace is fitted to by itself: above it, addresses that the trace does
/// not touch are left out. Such a drive takes 10 MB, and its spare flash is used up by few passes.
const FITTED_MAX: Bytes = Bytes(4 << 30);

/// The drive, scaled to the trace; a zoned one to the host FTL that serves the trace.
pub(crate) fn scaled(
    choice: &DriveChoice,
    full: &DriveSpec,
    span: u64,
) -> Result<Scaled, PresentError> {
    if !full.is_zoned() {
        return choice.scaled(full.clone(), span);
    }
    let addresses = HostFtl::addresses_for(full, span);
    let addresses = addresses.map_err(|error| choice.refused(error))?;
    choice.scaled(full.clone(), addresses)
}

/// The drive in the requested state; a zoned one so that its host FTL is in that state.
pub(crate) fn prepared(
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

/// The addresses of a trace.
pub(crate) struct Space {
    /// All of them, for the rules.
    pub whole: Layout,
    /// Those on the drive.
    pub layout: Layout,
}

impl Space {
    pub fn of(touched: &Extents, drive: &DriveChoice, full: &DriveSpec) -> Self {
        let most = match drive.capacity {
            None => FITTED_MAX,
            Some(Capacity::Device) => full.capacity(),
            Some(Capacity::Bytes(capacity)) => capacity,
        };
        Self { whole: Layout::whole(touched), layout: Layout::packed(touched, most.0) }
    }
}

/// There are no charts if no caller watches the requests.
type Replayed = (ReplayResult, Option<Charts>);

/// Called for each measured request; a replay is interrupted when it returns false.
type Each<'a> = &'a mut dyn FnMut(&Finished) -> bool;

/// The replays of an analysis.
pub(crate) struct Replays<'a, E> {
    pub given: AnalysisOptions<'a>,
    pub env: &'a E,
    pub info: TraceInfo,
    pub space: Space,
    pub records: Box<dyn Records>,
    /// The drive before it is scaled.
    pub full: DriveSpec,
}

impl<E: Env> Replays<'_, E> {
    /// Replays the trace on the drive itself or, if it is zoned, on a host FTL over it.
    pub fn replayed(
        &mut self,
        mut drive: Drive,
        each: Option<Each<'_>>,
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
    pub fn speed_drive(&self, run: &Run) -> Result<Option<(Scaled, Run)>, PresentError> {
        let apart = self.given.drive.capacity != Some(Capacity::Device) && !run.device.is_zoned();
        if !apart {
            return Ok(None);
        }
        let wide = fit_for_speed(&self.full, run.device.capacity());
        let wide = wide.map_err(|error| self.given.drive.refused(error))?;
        // Without a closed form the fitted drive is the only one in a steady state.
        let passes = run.options.passes;
        if wide.device == run.device || passes.is_search() && !wide.device.has_steady_state() {
            return Ok(None);
        }
        let passes = if passes.is_search() { Passes::Fixed(1) } else { passes };
        let options = Options { passes, ..run.options };
        let timed = Run::new(wide.device.clone(), options, run.state, run.seed);
        Ok(Some((wide, timed)))
    }

    /// Replays the trace on the drive with all dies, in the steady state of the main replay, which
    /// had the result `outcome` on `drive`.
    pub fn timed(
        &mut self,
        scaled: Scaled,
        mut run: Run,
        outcome: &ReplayResult,
        drive: &Drive,
        each: Each<'_>,
    ) -> Result<(Speed, Option<Charts>), PresentError> {
        if self.given.options.passes.is_search() && outcome.steady != SteadyState::NoWrites {
            let distinct = Bytes(self.info.summary.unique_written_bytes);
            run.cleaning = Some(outcome.cleaning(drive.device(), distinct));
        }
        let prepared = initial_state::shown(self.env, |reached| {
            Drive::prepared(run.device.clone(), run.initial_state(), run.seed, reached)
        });
        let (mut drive, _) = prepared.map_err(|error| self.given.drive.refused(error))?;
        let (outcome, charts) = self.replay(&mut drive, run.options, Some(each))?;
        Ok((Speed { scaled, run, outcome }, charts))
    }

    fn replay<B: ReplayDevice>(
        &mut self,
        drive: &mut B,
        options: Options,
        each: Option<Each<'_>>,
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
        let span = Bytes(self.space.layout.span().max(1));
        let mut watched = each.map(|each| {
            let charts = Charts::new(span, shown, Writers::of(&self.info));
            Watched { charts, each, reached: &reached, interrupted: false }
        });
        let observer: &mut dyn Observer = match &mut watched {
            Some(watched) => watched,
            None => &mut Unwatched {
                reached: &|at| {
                    reached(at);
                    true
                },
            },
        };
        let mut source = LaidOut::new(&mut *self.records, &self.space.layout);
        let outcome = prism_replay::replay(drive, &mut source, &options, observer);
        env.show(Step::End);
        match outcome {
            Ok(outcome) => Ok((outcome, watched.map(|watched| watched.charts))),
            Err(ReplayError::Source(error)) => Err(error.into()),
            Err(error) => Err(PresentError::Refused(format!("{}: {error}", self.info.name))),
        }
    }
}
