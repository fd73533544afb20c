//! The simulations that the changes of a trace need, how long they take, and the comparisons that
//! follow from their figures.

use prism_base::{Bytes, Nanos};
use prism_replay::{Pace, ReplayResult, SteadyState};
use prism_workload::Measured;

use super::change::Change;
use super::figures::Figures;
use super::simulate::{Run, WhatIfError};

/// The most nanoseconds that a request takes in an estimate, and those of preparing a drive.
const REQUEST_MAX: f64 = 2_000.0;
const PREPARATION: f64 = 200e6;

const NO_FLASH: &str = "the drive with a block-level mapping programmed no flash in its passes";

/// A simulation to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The drive and the pace.
    pub run: Run,
    /// The change that rewrites the trace; `None` replays the trace as it is.
    pub rewriting: Option<Change>,
    /// If the job measures speed on a drive in steady state, the simulation whose cleaning decides
    /// that state; [`Run::cleaning`] is set from it before the job runs.
    pub cleaning_of: Option<FigureSource>,
    /// The approximate number of requests that the job replays.
    pub requests: u64,
}

/// The simulation that figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureSource {
    /// The main replay.
    Main,
    /// The job with this index in [`Plan::jobs`].
    Job(usize),
}

/// The simulations that the figures of one side of a comparison come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Of write amplification, wear and lifetime.
    pub wear: FigureSource,
    /// Of latency and throughput.
    pub speed: FigureSource,
}

/// The two runs of the main replay.
#[derive(Clone, Copy, Debug)]
pub struct MainRuns<'a> {
    /// The run on the drive fitted to the trace, and its result.
    pub wear: (&'a Run, &'a ReplayResult),
    /// The run on the drive with all dies, and its result; the same as `wear` if there is only one.
    pub speed: (&'a Run, &'a ReplayResult),
}

/// A change and the simulations that show its effect.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// The change.
    pub change: Change,
    /// The simulations without the change.
    pub before: Sources,
    /// The simulations with the change.
    pub after: Sources,
    /// Whole sentences that describe the drive and the pace of the simulations; `None` if
    /// the change is compared with the main replay.
    pub note: Option<String>,
    /// If speed is that of a closed loop and the main replay is none: its queue depth before the
    /// change.
    pub loop_depth: Option<u32>,
}

/// A change that is not simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    /// The change.
    pub change: Change,
    /// The reason, as the part of a sentence after "because".
    pub reason: String,
}

/// The changes to simulate and the simulations that they need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The changes, in the order of the rules.
    pub what_ifs: Vec<WhatIf>,
    /// The simulations, without duplicates.
    pub jobs: Vec<Job>,
    /// Changes that make no sense for this trace and drive.
    pub skipped: Vec<Skipped>,
}

/// The figures of a simulated what-if.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The change.
    pub change: Change,
    /// The figures without the change.
    pub before: Figures,
    /// The figures with the change.
    pub after: Figures,
    /// The simulation that wear before the change comes from. If it is not the main replay, the
    /// change shows a price on another drive and is no improvement of the drive in the main replay.
    pub against: FigureSource,
    /// As in [`WhatIf::note`].
    pub note: Option<String>,
    /// As in [`WhatIf::loop_depth`].
    pub loop_depth: Option<u32>,
}

impl Plan {
    /// The approximate number of requests that all jobs replay.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.jobs.iter().map(|job| job.requests).sum()
    }

    /// The approximate time that the jobs take on `threads` threads. `main` is the time that
    /// the main replays took, including the preparation of their drives.
    #[must_use]
    pub fn estimate(&self, runs: MainRuns<'_>, main: Nanos, threads: usize) -> Nanos {
        let (wear, speed) = (runs.wear.1, runs.speed.1);
        let apart = if runs.wear.0 == runs.speed.0 { 0 } else { speed.measured.passes };
        let all = u64::from(passes(wear)) + u64::from(apart);
        let replayed = requests_per_pass(wear) * all.max(1);
        // In a short replay most of the time is preparation.
        let request = (main.0 as f64 / replayed.max(1) as f64).min(REQUEST_MAX);
        let cost = |job: &Job| request * job.requests as f64 + PREPARATION.min(main.0 as f64);
        let all: f64 = self.jobs.iter().map(cost).sum();
        let longest = self.jobs.iter().map(cost).fold(0.0, f64::max);
        Nanos((all / threads.max(1) as f64).max(longest) as u64)
    }

    /// Whether the job at `source` replays at the times of the trace.
    fn is_open(&self, source: FigureSource) -> bool {
        match source {
            FigureSource::Main => false,
            FigureSource::Job(job) => matches!(self.jobs[job].run.options.pace, Pace::Open { .. }),
        }
    }

    /// Pairs the figures without and with each change. `figures` are those of the jobs, in
    /// the same order. Changes whose jobs failed are added to the skipped ones.
    ///
    /// # Panics
    /// If the length of `figures` differs from the number of jobs.
    #[must_use]
    pub fn compare(
        mut self,
        main: &Figures,
        figures: &[Result<Figures, WhatIfError>],
    ) -> (Vec<Comparison>, Vec<Skipped>) {
        assert_eq!(self.jobs.len(), figures.len(), "figures of every job");
        let one = |source| match source {
            FigureSource::Main => Ok(*main),
            FigureSource::Job(index) => figures[index].clone(),
        };
        let resolve = |of: Sources| Ok(Figures { speed: one(of.speed)?.speed, ..one(of.wear)? });
        let mut comparisons = Vec::new();
        for WhatIf { change, before, after, note, loop_depth } in std::mem::take(&mut self.what_ifs)
        {
            let (against, open) = (before.wear, self.is_open(after.speed));
            match (resolve(before), resolve(after)) {
                (Ok(before), Ok(_))
                    if change == Change::PageMap && before.flash_bytes == Bytes(0) =>
                {
                    self.skipped.push(Skipped { change, reason: NO_FLASH.into() });
                }
                (Ok(before), Ok(after)) => {
                    let (before, after) = match change {
                        Change::Levelling { .. } => (
                            before.until_first_block_wears_out(),
                            after.until_first_block_wears_out(),
                        ),
                        _ => (before, after),
                    };
                    let (before, mut after) = comparable(&change, before, after);
                    if open {
                        // Work cannot be done before it is due: a shorter replay only lacks a wait.
                        let (ours, theirs) = (&mut after.speed, &before.speed);
                        ours.bytes_per_second = ours.bytes_per_second.min(theirs.bytes_per_second);
                        ours.iops = ours.iops.min(theirs.iops);
                    }
                    comparisons.push(Comparison {
                        change,
                        before,
                        after,
                        against,
                        note,
                        loop_depth,
                    });
                }
                (Err(error), _) | (_, Err(error)) => {
                    let error: WhatIfError = error;
                    self.skipped.push(Skipped { change, reason: error.to_string() });
                }
            }
        }
        (comparisons, self.skipped)
    }
}

/// The figures without those of wear where these are estimates: an estimate knows which addresses
/// are written, and not in which order or with which hints.
fn comparable(change: &Change, mut before: Figures, mut after: Figures) -> (Figures, Figures) {
    let estimated = |figures: &Figures| figures.steady == SteadyState::OutOfReach;
    let by_size = matches!(change, Change::OverProvisioning { .. } | Change::Depth { .. });
    if (estimated(&before) || estimated(&after)) && !by_size {
        for figures in [&mut before, &mut after] {
            (figures.write_amplification, figures.lifetime_days) = (None, None);
        }
    }
    (before, after)
}

/// Requests per pass, flushes included.
pub(super) fn requests_per_pass(outcome: &ReplayResult) -> u64 {
    let all = |m: &Measured| m.latency.iter().map(prism_base::Latencies::count).sum::<u64>();
    all(&outcome.measured) / u64::from(outcome.measured.passes.max(1))
}

/// Passes of a replay, including the warm-up passes.
pub(super) fn passes(outcome: &ReplayResult) -> u32 {
    outcome.warm_up_passes + outcome.measured.passes
}
