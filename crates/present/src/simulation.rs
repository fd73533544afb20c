//! Runs jobs on a simulated drive.

use prism_base::Bytes;
use prism_ssd::scale::Scaled;
use prism_ssd::{Drive, Preparation};
use prism_workload::fio::run::Row;
use prism_workload::fio::{self, AtReadOnly, Job, RunResult, Section, Setting};
use prism_workload::{Finished, Observer, Progress};

use crate::drive::charts::{Charts, Unwatched, Watched};
use crate::drive::{End, Run};
use crate::drive_choice::{Capacity, DriveChoice};
use crate::env::{Env, Quiet, Step};
use crate::error::PresentError;
use crate::initial_state::State;
use crate::over_provisioning;

/// The default capacity of a simulated drive: small enough to fill and clean within seconds,
/// large enough for a few dies.
const CAPACITY: Bytes = Bytes(8 << 30);

/// The options of a simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The drive.
    pub drive: DriveChoice,
    /// Seed of everything random.
    pub seed: u64,
    /// Effective over-provisioning, if it is to be changed.
    pub op: Option<f64>,
    /// fio options that every job gets after its own.
    pub settings: Vec<Setting>,
}

/// A drive and the jobs to run on it.
pub struct Setup {
    /// The description of the drive.
    pub scaled: Scaled,
    /// The jobs.
    pub jobs: Vec<Job>,
    drive: Drive,
    prepared: Preparation,
    chosen: bool,
    state: State,
    seed: u64,
}

/// A finished simulation: everything that a report is made from.
pub struct Simulated {
    /// The jobs, clones counted.
    pub jobs: Vec<Job>,
    /// The drive, and how it was scaled.
    pub scaled: Scaled,
    /// Whether its capacity was chosen by the user.
    pub chosen: bool,
    /// The initial state of the drive.
    pub state: State,
    /// What the preparation of that state took.
    pub prepared: Preparation,
    /// Seed of everything random.
    pub seed: u64,
    /// What was measured.
    pub outcome: RunResult,
    /// The drive at the end.
    pub end: End,
}

impl Plan {
    /// Makes the drive and the jobs.
    ///
    /// # Errors
    /// [`PresentError`] if one of them cannot be made.
    pub fn setup(&self, sections: &[Section], env: &impl Env) -> Result<Setup, PresentError> {
        let (scaled, jobs) = self.check(sections, env)?;
        let (drive, prepared) = self.drive.prepared(&scaled.device, self.seed, env)?;
        let chosen = matches!(self.drive.capacity, Some(Capacity::Bytes(_)));
        let (state, seed) = (self.drive.state.clone(), self.seed);
        Ok(Setup { scaled, jobs, drive, prepared, chosen, state, seed })
    }

    /// The drive's description and the jobs, before the drive is made.
    ///
    /// # Errors
    /// [`PresentError`] if one of them is invalid.
    pub fn check(
        &self,
        sections: &[Section],
        env: &impl Env,
    ) -> Result<(Scaled, Vec<Job>), PresentError> {
        let mut scaled = self.drive.scaled_for_jobs(self.drive.device(env)?, CAPACITY.0)?;
        if self.drive.capacity.is_none() {
            scaled.changes.insert(0, format!("{CAPACITY} because no --capacity is given"));
        }
        if let Some(share) = self.op {
            over_provisioning::set(&mut scaled.device, share).map_err(PresentError::Refused)?;
            let effective = 100.0 * scaled.device.over_provisioning().effective;
            scaled.changes.push(format!(
                "{} blocks per plane for {effective:.2} % effective over-provisioning",
                scaled.device.flash.blocks_per_plane
            ));
        }
        let target = fio::Target::of(&scaled.device);
        let jobs = fio::jobs(sections, &self.settings, target, self.seed);
        let jobs = jobs.map_err(|error| PresentError::Refused(error.to_string()))?;
        Ok((scaled, jobs))
    }

    /// Runs the simulation without charts and progress.
    ///
    /// # Errors
    /// [`PresentError`] if the drive or the jobs cannot be made, or have no end.
    pub fn run(&self, sections: &[Section], env: &impl Env) -> Result<Simulated, PresentError> {
        let env = &Quiet(env);
        Ok(self.setup(sections, env)?.run(AtReadOnly::GoOn, env, None)?.0)
    }
}

impl Setup {
    /// Runs the jobs. With `each`, which is called for every measured request, there are charts;
    /// the run is interrupted when it returns false. A run without it is faster.
    ///
    /// # Errors
    /// [`PresentError`] if the jobs have no end, or the run was interrupted.
    pub fn run(
        mut self,
        at_read_only: AtReadOnly,
        env: &impl Env,
        each: Option<&mut dyn FnMut(&Finished) -> bool>,
    ) -> Result<(Simulated, Option<Charts>), PresentError> {
        let (label, things) = ("simulating:", "requests");
        env.show(Step::Begin { label, things, total: None });
        let reached = |at: Progress| env.show(Step::Reached(at.submitted));
        let charts = Charts::new(self.scaled.device.capacity(), 1, None);
        let mut watched =
            each.map(|each| Watched { charts, each, reached: &reached, interrupted: false });
        let observer: &mut dyn Observer = match &mut watched {
            Some(watched) => watched,
            None => &mut Unwatched {
                reached: &|at| {
                    reached(at);
                    true
                },
            },
        };
        let outcome = fio::run_until(&mut self.drive, &self.jobs, observer, at_read_only);
        env.show(Step::End);
        Ok((self.done(outcome)?, watched.map(|watched| watched.charts)))
    }

    fn done(self, outcome: Result<RunResult, fio::RunError>) -> Result<Simulated, PresentError> {
        let outcome = outcome.map_err(|error| PresentError::Refused(error.to_string()))?;
        Ok(Simulated {
            end: End::of(&self.drive, None),
            jobs: self.jobs,
            scaled: self.scaled,
            chosen: self.chosen,
            state: self.state,
            prepared: self.prepared,
            seed: self.seed,
            outcome,
        })
    }
}

impl Simulated {
    /// What was measured of the drive.
    #[must_use]
    pub fn run(&self) -> Run<'_> {
        Run { measured: &self.outcome.total, device: &self.scaled.device, end: &self.end }
    }

    /// The name of a row: that of its first job, and the number of the others.
    #[must_use]
    pub fn row_name(&self, row: &Row) -> String {
        let name = &self.jobs[row.first].name;
        if row.jobs > 1 { format!("{name} (and {} more)", row.jobs - 1) } else { name.clone() }
    }
}
