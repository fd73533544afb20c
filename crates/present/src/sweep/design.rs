//! One design of a sweep: a value that any process can run on its own.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prism_base::OutOfMemory;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use twox_hash::XxHash64;

use crate::analysis::{Analysis, AnalysisOptions, Trace, WhatIfs};
use crate::drive_choice::{DriveChoice, Override};
use crate::env::{Env, Outside, Quiet, Step};
use crate::error::PresentError;
use crate::sweep::results;
use crate::sweep::scalar::Scalar;
use crate::sweep::study::names_digested;
use crate::sweep::workload::{Requests, TRACE, TraceSelection, Workload};

/// The version of Prism, on which results depend.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What designs need of the environment in addition to [`Env`].
pub trait SweepEnv: Env {
    /// The selected part of a trace.
    ///
    /// # Errors
    /// Why it cannot be read, or that it is no longer what it was when the sweep was planned.
    fn trace(&self, selection: &TraceSelection) -> Result<Trace, Outside>;

    /// A digest of the content of the file, or of the files, of a trace, a map or a snapshot.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn digest(&self, path: &Path) -> Result<String, Outside>;
}

/// A setting and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// As in the file of the sweep.
    pub name: String,
    /// Its value.
    pub value: Scalar,
}

/// The files that designs name, by the name that settings give them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// The folder that names are relative to.
    pub(super) folder: PathBuf,
    /// Texts of device files and job files.
    pub(super) texts: BTreeMap<String, String>,
    /// Digests of traces, maps and snapshots, which are read again by each process.
    pub(super) digests: BTreeMap<String, String>,
}

impl Files {
    /// Where the file called `name` is.
    pub(super) fn path(&self, name: &Path) -> PathBuf {
        self.folder.join(name)
    }

    /// The names of its files that `settings` have.
    pub(super) fn named_by(&self, settings: &[Setting]) -> BTreeSet<String> {
        let names = settings.iter().map(|setting| setting.value.text());
        let is_here =
            |name: &String| self.texts.contains_key(name) || self.digests.contains_key(name);
        names.filter(is_here).collect()
    }

    /// The files of these names alone.
    pub(super) fn only(&self, names: &BTreeSet<String>) -> Self {
        let of = |all: &BTreeMap<String, String>| {
            let found = names.iter().filter_map(|name| all.get_key_value(name));
            found.map(|(name, content)| (name.clone(), content.clone())).collect()
        };
        let (texts, digests) = (of(&self.texts), of(&self.digests));
        Self { folder: self.folder.clone(), texts, digests }
    }

    /// The text of a file that was read when the sweep was planned.
    pub(super) fn text(&self, name: &str) -> Result<&str, PresentError> {
        known(&self.texts, name)
    }

    /// The digest of a file that was read when the sweep was planned.
    pub(super) fn digest(&self, name: &str) -> Result<&str, PresentError> {
        known(&self.digests, name)
    }
}

fn known<'a>(files: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str, PresentError> {
    files.get(name).map(String::as_str).ok_or_else(|| {
        PresentError::refused(format!("{name}: the design does not have this file; plan it again"))
    })
}

/// One design: a complete set of settings, with the texts of the files that they name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Its number in the sweep, from 0.
    pub number: u64,
    /// Every setting, in the order of columns of the data set.
    pub settings: Vec<Setting>,
    /// A hash of all inputs: the settings, the content of files and the version of Prism.
    pub hash: String,
    /// Those that its settings name; designs that name the same ones share them.
    #[serde(serialize_with = "inner", deserialize_with = "shared")]
    pub(super) files: Arc<Files>,
}

/// The result of a design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The number of the design.
    pub number: u64,
    /// The hash of its inputs.
    pub hash: String,
    /// Numbers, texts and truth values by name; empty if the design failed.
    pub results: Map<String, Value>,
    /// Why the design failed.
    pub error: Option<String>,
}

fn inner<S: Serializer>(files: &Arc<Files>, serializer: S) -> Result<S::Ok, S::Error> {
    files.as_ref().serialize(serializer)
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Files>, D::Error> {
    Files::deserialize(deserializer).map(Arc::new)
}

impl Design {
    /// The design of these settings.
    pub(super) fn new(number: u64, settings: Vec<Setting>, files: Arc<Files>) -> Self {
        let mut hash = XxHash64::with_seed(0);
        let mut add = |text: &str| {
            hash.write(&(text.len() as u64).to_le_bytes());
            hash.write(text.as_bytes());
        };
        add(VERSION);
        for Setting { name, value } in &settings {
            add(name);
            add(&serde_json::to_string(value).expect("a plain value"));
            let text = value.text();
            for file in [files.texts.get(&text), files.digests.get(&text)].into_iter().flatten() {
                add(file);
            }
        }
        let hash = format!("{:016x}", hash.finish());
        Self { number, settings, hash, files }
    }

    /// Simulates the design. If it cannot be simulated, or if that panics, the row has the error.
    ///
    /// # Errors
    /// [`PresentError::Outside`] and [`PresentError::Source`] if a file cannot be read, which says
    /// nothing about the design.
    pub fn run(&self, env: &impl SweepEnv) -> Result<Row, PresentError> {
        let (results, error) = match catch_unwind(AssertUnwindSafe(|| self.results(env))) {
            Ok(Ok(results)) => (results, None),
            Ok(Err(PresentError::Refused(what))) => (Map::new(), Some(what)),
            Ok(Err(error)) => return Err(error),
            Err(payload) => (Map::new(), Some(reason(payload))),
        };
        Ok(Row { number: self.number, hash: self.hash.clone(), results, error })
    }

    fn results(&self, env: &impl SweepEnv) -> Result<Map<String, Value>, PresentError> {
        let inlined = Inlined { env, files: &self.files };
        self.check_files(env)?;
        let Workload { mut plan, requests } = self.workload(|_| "design:".into())?;
        match requests {
            Requests::Jobs(sections) => Ok(results::of_jobs(&plan.run(&sections, &inlined)?)),
            Requests::Trace(selection, options) => {
                if let Some(share) = plan.op {
                    plan.drive.overrides.push(blocks_for(&plan.drive, share, &inlined)?);
                }
                let given = AnalysisOptions {
                    drive: &plan.drive,
                    options,
                    seed: plan.seed,
                    what_ifs: &WhatIfs::Only(Vec::new()),
                    ranges: &[],
                };
                let trace = env.trace(&selection).map_err(PresentError::Outside)?;
                let quiet = Quiet(&inlined);
                let analysis = Analysis::of(trace, given, &quiet, &mut |_| true)?;
                Ok(results::of_trace(&analysis))
            }
        }
    }

    /// Checks that maps and snapshots are those that were planned; traces are checked where they
    /// are loaded.
    fn check_files(&self, env: &impl SweepEnv) -> Result<(), PresentError> {
        for Setting { name, value } in self.settings.iter().filter(|s| s.name != TRACE) {
            let text = value.text();
            let Some(planned) = self.files.digests.get(&text) else { continue };
            if !names_digested(name, &text) {
                continue;
            }
            let path = self.files.path(Path::new(&text));
            if env.digest(&path).map_err(PresentError::Outside)? != *planned {
                let what = "the file has changed since the sweep was planned; begin it again";
                return Err(PresentError::Outside(format!("{text}: {what}").into()));
            }
        }
        Ok(())
    }

    /// The name of its trace, if it has one.
    pub(super) fn trace(&self) -> Option<String> {
        let trace = self.settings.iter().find(|setting| setting.name == TRACE);
        trace.map(|setting| setting.value.text())
    }

    /// The drive and the requests; `at` says for messages where a setting was given.
    pub(super) fn workload(&self, at: impl Fn(&str) -> String) -> Result<Workload, PresentError> {
        Workload::of(&self.settings, &self.files, at)
    }
}

/// The number of blocks that gives the drive this effective over-provisioning.
fn blocks_for(drive: &DriveChoice, share: f64, env: &impl Env) -> Result<Override, PresentError> {
    let mut device = drive.device(env)?;
    crate::over_provisioning::set(&mut device, share).map_err(PresentError::Refused)?;
    let value = device.flash.blocks_per_plane.to_string();
    Ok(Override { field: "flash.blocks_per_plane".into(), value })
}

/// The text of a panic. One without a text is no bug: it is how an environment stops its work, and
/// goes on.
fn reason(payload: Box<dyn Any + Send>) -> String {
    if let Some(OutOfMemory { size }) = payload.downcast_ref() {
        return format!("not enough memory for the drive: a table of it needs {size}");
    }
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    match text {
        Some(text) => {
            let line = text.lines().next().unwrap_or_default();
            format!("a bug of Prism, please report it: {line}")
        }
        None => resume_unwind(payload),
    }
}

/// The environment with the texts of files that a design holds.
pub(super) struct Inlined<'a, E> {
    pub env: &'a E,
    pub files: &'a Files,
}

impl<E: Env> Env for Inlined<'_, E> {
    fn show(&self, step: Step<'_>) {
        self.env.show(step);
    }

    fn keeps_going(&self) -> bool {
        self.env.keeps_going()
    }

    fn seconds(&self) -> f64 {
        self.env.seconds()
    }

    fn cores(&self) -> usize {
        self.env.cores()
    }

    fn run_on<T: Send>(
        &self,
        threads: usize,
        jobs: Vec<impl FnOnce() -> T + Send>,
        finished: impl Fn(usize) + Sync,
    ) -> Vec<T> {
        self.env.run_on(threads, jobs, finished)
    }

    fn device_text(&self, path: &Path) -> Result<String, Outside> {
        Ok(self.files.text(&path.to_string_lossy())?.to_owned())
    }

    fn read_state(&self, path: &Path) -> Result<Vec<u8>, Outside> {
        self.env.read_state(&self.files.path(path))
    }

    fn write_state(&self, path: &Path, bytes: &[u8]) -> Result<(), Outside> {
        self.env.write_state(path, bytes)
    }
}
