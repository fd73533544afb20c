//! Simulates the fixes of a report.

use prism_base::{Bytes, Nanos};
use prism_contract::what_if::{
    Change, Comparison, Drives, FigureSource, Figures, Job, MainRuns, Original, Plan, Run, Skipped,
    TraceFacts, WhatIfError, plan, simulate,
};
use prism_replay::LaidOut;
use prism_ssd::Drive;
use prism_trace::{Records, Source};

use crate::analysis::WhatIfs;
use crate::drive::Facts;
use crate::drive::charts::Unwatched;
use crate::env::{Env, Step};
use crate::error::PresentError;

/// The fixes of an analysis.
pub(crate) struct Fixes<'a, E> {
    /// The main replay.
    pub facts: &'a Facts,
    /// The trace.
    pub records: &'a dyn Records,
    /// Shows progress and runs simulations in parallel.
    pub env: &'a E,
    /// Which fixes are simulated.
    pub what_ifs: &'a WhatIfs,
}

type Simulated = Result<Figures, WhatIfError>;

impl<E: Env> Fixes<'_, E> {
    /// Simulates the requested fixes that apply. The main replay was `run`, at the end of which the
    /// drive was `drive`; with its preparation it took `took`.
    pub fn simulated(
        &self,
        run: &Run,
        drive: &Drive,
        took: Nanos,
    ) -> Result<(Vec<Comparison>, Vec<Skipped>), PresentError> {
        if *self.what_ifs == WhatIfs::Only(Vec::new()) {
            return Ok((Vec::new(), Vec::new()));
        }
        let facts = self.facts;
        let mut reader = self.records.reader();
        let mut source = LaidOut::new(&mut *reader, &facts.layout);
        let trace = TraceFacts::of(&mut source, run.device.ftl.mapping_unit)?;
        let keep = |change: &Change| match self.what_ifs {
            WhatIfs::All => true,
            WhatIfs::Only(keys) => keys.iter().any(|key| key == change.key()),
        };
        let wear = (run, &facts.outcome);
        let speed = facts.speed.as_ref().map_or(wear, |speed| (&speed.run, &speed.outcome));
        let runs = MainRuns { wear, speed };
        let plan = plan(&trace, runs).only(keep);
        let distinct = Bytes(facts.trace.summary.unique_written_bytes);
        let original = Original {
            drives: facts.described.geometry().raw().0 as f64 / run.raw.0 as f64,
            ..Original::of(facts.timed(), distinct)
        };
        let main = Figures {
            speed: Figures::of_speed(speed.1, &original),
            ..Figures::of(&facts.outcome, drive, run.raw, &original)
        };
        let figures = self.run(&plan, runs, &main, &original, took);
        let (mut comparisons, skipped) = plan.compare(&main, &figures);
        if facts.too_short().is_some() {
            for Comparison { before, after, .. } in &mut comparisons {
                (before.lifetime_days, after.lifetime_days) = (None, None);
            }
        }
        Ok((comparisons, skipped))
    }

    /// Runs the simulations of `plan` in parallel: first those that depend on no other.
    fn run(
        &self,
        plan: &Plan,
        runs: MainRuns<'_>,
        main: &Figures,
        original: &Original,
        took: Nanos,
    ) -> Vec<Simulated> {
        let seconds = plan.estimate(runs, took, self.env.cores()).as_secs_f64().ceil();
        let label = format!("{} what-ifs, about {seconds} s:", plan.what_ifs.len());
        let total = Some(plan.jobs.len() as u64);
        self.env.show(Step::Begin { label: &label, things: "simulations", total });
        let mut figures: Vec<Option<Simulated>> = vec![None; plan.jobs.len()];
        let mut done = 0;
        for depend in [false, true] {
            let all = (0..).zip(&plan.jobs);
            let mut now: Vec<(usize, &Job)> =
                all.filter(|(_, job)| job.cleaning_of.is_some() == depend).collect();
            // The longest first, so that no thread is left with one at the end.
            now.sort_by_key(|(_, job)| std::cmp::Reverse(job.requests));
            let (places, jobs): (Vec<usize>, Vec<Job>) =
                now.into_iter().map(|(place, job)| (place, prepared(job, main, &figures))).unzip();
            let results = self.in_parallel(jobs, original, done);
            done += places.len() as u64;
            for (place, result) in places.into_iter().zip(results) {
                figures[place] = Some(result);
            }
        }
        self.env.show(Step::End);
        figures.into_iter().map(|one| one.expect("every job ran")).collect()
    }

    fn in_parallel(&self, jobs: Vec<Job>, original: &Original, done: u64) -> Vec<Simulated> {
        let drives = &Drives::of(jobs.iter().map(|job| &job.run));
        let env = self.env;
        let one = |job: Job| {
            let mut reader = self.records.reader();
            let layout = &self.facts.layout;
            move || {
                let mut source = LaidOut::new(&mut *reader, layout);
                let begins = (drives, &mut source as &mut dyn Source);
                let mut observer = Unwatched { reached: &|_| env.keeps_going() };
                simulate(&job.run, job.rewriting.as_ref(), begins, original, &mut observer)
            }
        };
        let work: Vec<_> = jobs.into_iter().map(one).collect();
        let finished = |more: usize| env.show(Step::Reached(done + more as u64));
        env.run_on(env.cores(), work, finished)
    }
}

/// `job`, on a drive that is cleaned as much as the simulation that it depends on found.
fn prepared(job: &Job, main: &Figures, figures: &[Option<Simulated>]) -> Job {
    let mut job = job.clone();
    let cleaning = match job.cleaning_of {
        None => return job,
        Some(FigureSource::Main) => Some(main.cleaning),
        Some(FigureSource::Job(place)) => match &figures[place] {
            Some(Ok(figures)) => Some(figures.cleaning),
            // The comparison fails with that simulation, whatever this one finds.
            _ => Some(main.cleaning),
        },
    };
    job.run.cleaning = cleaning;
    job
}
