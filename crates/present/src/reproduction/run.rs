//! Repeats published results.

use std::path::Path;

use prism_experiments::Scale;
use prism_experiments::{atc09, linkedin, prism_ssd};
use prism_report::Document;
use prism_trace::LoadSpec;
use serde_json::Value;

use super::atc09::Atc09;
use super::contract_run::{TraceFiles, unwritten_contract};
use super::linkedin::LinkedIn;
use super::prism_ssd::PrismSsd;
use super::scale_name;
use super::sfs_run::{KernelTraces, sfs};
use crate::analysis::Trace;
use crate::env::{Env, Outside, run_all};
use crate::error::PresentError;

/// The publications whose results can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// He et al., "The unwritten contract of solid state drives", EuroSys'17
    UnwrittenContract,
    /// Rajimwale et al., "Block management in solid-state devices", USENIX ATC'09
    Atc09,
    /// "Designing SSD-Friendly Applications", 2016
    LinkedIn,
    /// Min et al., "SFS", FAST'12
    Sfs,
    /// Shen et al., "One size never fits all" (Prism-SSD), ICDCS'19
    PrismSsd,
}

impl Paper {
    /// Every publication, its name in options, and what it is.
    pub const ALL: [(Self, &'static str, &'static str); 5] = [
        (
            Self::UnwrittenContract,
            "unwritten-contract",
            "He et al., \"The unwritten contract of solid state drives\", EuroSys'17",
        ),
        (
            Self::Atc09,
            "atc09",
            "Rajimwale et al., \"Block management in solid-state devices\", USENIX ATC'09",
        ),
        (Self::LinkedIn, "linkedin", "\"Designing SSD-Friendly Applications\", 2016"),
        (
            Self::Sfs,
            "sfs",
            "Min et al., \"SFS\", FAST'12: the behaviour of its drives, and its file system",
        ),
        (
            Self::PrismSsd,
            "prism-ssd",
            "Shen et al., \"One size never fits all\" (Prism-SSD), ICDCS'19: key-value cache, file \
             system, graph engine",
        ),
    ];

    /// Reads a name.
    ///
    /// # Errors
    /// The names that exist.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, name, _)| *name == text);
        found.map(|(paper, ..)| paper).ok_or_else(|| {
            let names = Self::ALL.map(|(_, name, _)| name).join(", ");
            format!("{text:?} is no publication; they are {names}")
        })
    }
}

/// Reads the amount of simulation.
///
/// # Errors
/// The amounts that exist.
pub fn parse_scale(text: &str) -> Result<Scale, String> {
    let known = [Scale::Full, Scale::Quarter];
    let found = known.into_iter().find(|&scale| scale_name(scale) == text);
    found.ok_or_else(|| "the scales are: full quarter".into())
}

/// How a result is repeated.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// The publication.
    pub paper: Paper,
    /// How much is simulated.
    pub scale: Scale,
    /// Seed of everything random.
    pub seed: u64,
    /// Its traces.
    pub traces: Traces,
}

/// The traces that a publication needs or can use.
#[derive(Clone, Debug)]
pub enum Traces {
    /// It has none.
    None,
    /// Those of [`Paper::UnwrittenContract`].
    Contract(TraceFiles),
    /// Those of [`Paper::Sfs`], which may be missing.
    Kernel(KernelTraces),
}

impl Traces {
    /// The traces of `paper` in `folder`.
    ///
    /// # Errors
    /// [`PresentError::Refused`] if it needs some and there is none.
    pub fn find(
        paper: Paper,
        folder: &Path,
        is_file: impl Fn(&Path) -> bool,
    ) -> Result<Self, PresentError> {
        Ok(match paper {
            Paper::UnwrittenContract => Self::Contract(TraceFiles::find(folder, is_file)?),
            Paper::Sfs => Self::Kernel(KernelTraces::find(folder, is_file)),
            Paper::Atc09 | Paper::LinkedIn | Paper::PrismSsd => Self::None,
        })
    }
}

fn no_traces() -> PresentError {
    PresentError::refused("its traces were not looked for: find them by Traces::find")
}

/// Reads a trace.
pub type LoadTrace<'a> = &'a (dyn Fn(LoadSpec) -> Result<Trace, Outside> + Sync);

pub(super) const LABEL: &str = "reproducing:";
pub(super) const THINGS: &str = "parts";

impl Repetition {
    /// Repeats the result on all cores: its JSON and its document.
    ///
    /// # Errors
    /// [`PresentError`] if a trace cannot be read.
    pub fn run(
        self,
        load: LoadTrace<'_>,
        env: &impl Env,
    ) -> Result<(Value, Document), PresentError> {
        let Self { paper, scale, seed, traces } = self;
        Ok(match paper {
            Paper::UnwrittenContract => {
                let Traces::Contract(traces) = traces else { return Err(no_traces()) };
                let found = unwritten_contract(traces, scale, seed, load, env)?;
                (super::json(&found), super::document(&found))
            }
            Paper::Atc09 => {
                let jobs = atc09::jobs(scale, seed).into_iter().map(|part| || part.run());
                let parts = run_all(env, LABEL, THINGS, jobs.collect());
                let found = Atc09 { seed, scale, results: atc09::Results::of(parts) };
                (super::atc09::json(&found), super::atc09::document(&found))
            }
            Paper::LinkedIn => {
                let job = |part: linkedin::Part| move || part.run(scale, seed);
                let jobs = linkedin::Part::all().into_iter().map(job);
                let parts = run_all(env, LABEL, THINGS, jobs.collect());
                let found = LinkedIn::new(seed, scale, linkedin::Results::of(parts));
                (super::linkedin::json(&found), super::linkedin::document(&found))
            }
            Paper::Sfs => {
                let Traces::Kernel(traces) = traces else { return Err(no_traces()) };
                let found = sfs(traces, scale, seed, load, env)?;
                (super::sfs::json(&found), super::sfs::document(&found))
            }
            Paper::PrismSsd => {
                let job = |part: prism_ssd::Part| move || part.run(scale, seed);
                let jobs = prism_ssd::Part::all(scale, seed).into_iter().map(job);
                let parts = run_all(env, LABEL, THINGS, jobs.collect());
                let found = PrismSsd::new(seed, scale, prism_ssd::Results::of(parts));
                (super::prism_ssd::json(&found), super::prism_ssd::document(&found))
            }
        })
    }
}
