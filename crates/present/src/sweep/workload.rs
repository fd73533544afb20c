//! What a design simulates: a drive, and jobs or a trace on it.

use std::path::Path;

use prism_base::{Bytes, Named, Nanos};
use prism_replay::{Options, Pace, Passes};
use prism_ssd::DriveSpec;
use prism_trace::{Format, LoadSpec, LogicalBlock};
use prism_workload::fio::{self, FioError, JobReader, Section};

use crate::drive_choice::{DriveChoice, check_fields};
use crate::env::Env;
use crate::error::PresentError;
use crate::initial_state::parse_state;
use crate::pace::{parse_pace, parse_passes};
use crate::simulation::Plan;
use crate::sweep::design::{Files, Setting};
use crate::sweep::settings::{self, is_of_jobs};

/// The setting that names a job file.
pub(super) const JOBS: &str = "jobs";
/// The setting that names a trace.
pub(super) const TRACE: &str = "trace";
/// The setting that names the map of a trace.
pub(super) const MAP: &str = "map";
/// The settings of a trace and its replay.
pub(super) const OF_TRACES: [&str; 10] = [
    TRACE,
    "format",
    MAP,
    "blkparse_format",
    "block_size",
    "disorder",
    "phase",
    "source",
    "pace",
    "passes",
];
/// What the names of settings of one of several jobs begin with.
const OF_JOB: &str = "job.";

/// The part of a trace that is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSelection {
    /// Its file, and which part of it.
    pub spec: LoadSpec,
    /// The digest of the content of the file when the sweep was planned.
    pub digest: String,
}

/// The requests.
pub(super) enum Requests {
    Jobs(Vec<Section>),
    Trace(Box<TraceSelection>, Options),
}

/// A drive and the requests to it.
pub(super) struct Workload {
    pub plan: Plan,
    pub requests: Requests,
}

impl Workload {
    /// What `settings` describe; `at` says for messages where a setting was given.
    ///
    /// # Errors
    /// [`PresentError::Refused`] if a setting is unknown, or has no valid value.
    pub fn of(
        settings: &[Setting],
        files: &Files,
        at: impl Fn(&str) -> String,
    ) -> Result<Self, PresentError> {
        let mut plan = empty_plan();
        let (mut jobs, mut of_one_job, mut of_trace) = (None, Vec::new(), Vec::new());
        for Setting { name, value } in settings {
            let text = value.text();
            match name.as_str() {
                JOBS => jobs = Some(text),
                name if OF_TRACES.contains(&name) => of_trace.push((name, text)),
                name if name.starts_with(OF_JOB) => of_one_job.push((name, text)),
                name => settings::change(&mut plan, &at(name), name, &text)?,
            }
        }
        let has_trace = of_trace.iter().any(|&(name, _)| name == TRACE);
        if !has_trace {
            if let Some((name, _)) = of_trace.first() {
                let what = format!("{} {name}: this is for a trace: give one", at(name));
                return Err(PresentError::refused(what));
            }
            let sections = sections(&mut plan, jobs, &of_one_job, files, &at)?;
            return Ok(Self { plan, requests: Requests::Jobs(sections) });
        }
        let of_jobs = |s: &&Setting| s.name == JOBS || is_fio_option(&s.name);
        if let Some(Setting { name, .. }) = settings.iter().find(of_jobs) {
            let what = format!("{} {name}: a design runs a trace or jobs, not both", at(name));
            return Err(PresentError::refused(what));
        }
        let (selection, options) = trace(&of_trace, files, &at)?;
        Ok(Self { plan, requests: Requests::Trace(Box::new(selection), options) })
    }

    /// Checks what does not depend on how settings are combined: that the fields of the device
    /// exist and can be read, and so do the values of options of jobs.
    ///
    /// # Errors
    /// [`PresentError::Refused`] if one does not; `at` says where a field was given.
    pub fn check(&self, env: &impl Env, at: impl Fn(&str) -> String) -> Result<(), PresentError> {
        let drive = &self.plan.drive;
        check_fields(&drive.name, &drive.all_overrides(), env, at)?;
        let Requests::Jobs(sections) = &self.requests else { return Ok(()) };
        // Any drive does: what depends on the drive is an error of the design.
        let any = DriveSpec::preset(DriveSpec::DEFAULT_PRESET).expect("a preset");
        let jobs = fio::jobs(sections, &[], fio::Target::of(&any), self.plan.seed);
        match jobs {
            Ok(_) | Err(FioError::Job { .. }) => Ok(()),
            Err(error) => Err(PresentError::Refused(error.to_string())),
        }
    }
}

/// Whether a setting is a fio option, of all jobs or of one.
pub(super) fn is_fio_option(name: &str) -> bool {
    name.starts_with(OF_JOB) || is_of_jobs(name) && name != JOBS && !OF_TRACES.contains(&name)
}

fn empty_plan() -> Plan {
    let drive = DriveChoice {
        name: DriveSpec::DEFAULT_PRESET.into(),
        capacity: None,
        state: parse_state("filled").expect("a state"),
        save_state: None,
        faults: None,
        wear: None,
        retention: None,
        overrides: Vec::new(),
    };
    Plan { drive, seed: 1, op: None, settings: Vec::new() }
}

/// The jobs of a file, or one without a file, with the options of `plan` and those of single jobs
/// after their own.
fn sections(
    plan: &mut Plan,
    file: Option<String>,
    of_one_job: &[(&str, String)],
    files: &Files,
    at: &impl Fn(&str) -> String,
) -> Result<Vec<Section>, PresentError> {
    let of_all = std::mem::take(&mut plan.settings);
    let mut sections = match file {
        Some(name) => {
            let mut reader = JobReader::new();
            let read = reader.file(&name, files.text(&name)?).and_then(|()| reader.finish());
            read.map_err(|error| PresentError::Refused(error.to_string()))?
        }
        None if of_all.is_empty() && of_one_job.is_empty() => {
            let what = "there is no workload: give a trace, jobs, or fio options such as \
                        rw = \"randwrite\"";
            return Err(PresentError::refused(what));
        }
        None => {
            let name = "job".into();
            vec![Section { name, settings: Vec::new(), defaults: 0, begins_file: false }]
        }
    };
    for section in &mut sections {
        section.settings.extend(of_all.iter().cloned());
    }
    for (name, value) in of_one_job {
        let wrong = |what: String| PresentError::Refused(format!("{} {name}: {what}", at(name)));
        let Some((job, option)) = name[OF_JOB.len()..].rsplit_once('.') else {
            return Err(wrong("write job.NAME.OPTION".into()));
        };
        let known: Vec<String> = sections.iter().map(|section| section.name.clone()).collect();
        let mut of_job = sections.iter_mut().filter(|section| section.name == job).peekable();
        if of_job.peek().is_none() {
            return Err(wrong(format!("no job is called {job:?}; jobs are {}", known.join(", "))));
        }
        for section in of_job {
            section.settings.push(settings::option(&at(name), option, value)?);
        }
    }
    Ok(sections)
}

/// The trace and how it is replayed.
fn trace(
    given: &[(&str, String)],
    files: &Files,
    at: &impl Fn(&str) -> String,
) -> Result<(TraceSelection, Options), PresentError> {
    let mut spec = LoadSpec::default();
    let mut digest = String::new();
    let mut options = Options { pace: Pace::Open { speed: 1.0 }, passes: Passes::Steady };
    for (name, text) in given {
        let wrong =
            |what: String| PresentError::Refused(format!("{} {name}={text}: {what}", at(name)));
        match *name {
            TRACE => {
                spec.paths.push(files.path(Path::new(text)));
                files.digest(text)?.clone_into(&mut digest);
            }
            "format" => spec.format = Some(format(text).map_err(wrong)?),
            MAP => spec.map = Some(files.path(Path::new(text))),
            "blkparse_format" => spec.blkparse_format = Some(text.clone()),
            "block_size" => {
                let size = Bytes::parse(text).map_err(|error| wrong(error.to_string()))?;
                let block = LogicalBlock::new(size).map_err(|error| wrong(error.to_string()))?;
                spec.nvme_block = Some(block);
            }
            "disorder" => {
                let time = Nanos::parse(text).map_err(|error| wrong(error.to_string()))?;
                spec.disorder = Some(time);
            }
            "phase" => spec.phase = Some(text.clone()),
            "source" => spec.source = Some(text.clone()),
            "pace" => options.pace = parse_pace(text).map_err(wrong)?,
            "passes" => options.passes = parse_passes(text).map_err(wrong)?,
            _ => unreachable!("{name} is a setting of traces"),
        }
    }
    Ok((TraceSelection { spec, digest }, options))
}

fn format(text: &str) -> Result<Format, String> {
    Format::from_name(text)
        .ok_or_else(|| format!("there is no such format; formats are {}", Format::names()))
}

#[cfg(test)]
mod tests {
    use prism_workload::fio::options;

    use super::*;

    #[test]
    fn no_setting_has_two_meanings() {
        let own = settings::OWN.into_iter().chain(OF_TRACES).chain([JOBS]);
        for name in own {
            assert!(options::find(name).is_none() && !options::fio_has(name), "{name}");
        }
    }
}
