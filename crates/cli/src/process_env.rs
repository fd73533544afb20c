//! The environment of an analysis in the command line: files, threads, a clock, a progress bar.

use std::path::Path;
use std::thread;

use prism_host::{
    LoadedTrace, Progress, TraceCache, clock, digest, input, jobs, read_state, write_state,
};
use prism_present::sweep::{SweepEnv, TraceSelection};
use prism_present::{Env, Outside, Step, Trace};

/// The files and threads of this process, and its standard error.
#[derive(Debug)]
pub struct ProcessEnv {
    progress: Progress,
    /// The traces of a sweep.
    traces: TraceCache,
}

impl ProcessEnv {
    /// An environment with a progress bar on standard error, if that is a terminal.
    #[must_use]
    pub fn new() -> Self {
        Self { progress: Progress::on_stderr(), traces: TraceCache::default() }
    }
}

impl Default for ProcessEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl Env for ProcessEnv {
    fn show(&self, step: Step<'_>) {
        match step {
            Step::Begin { label, things, total } => self.progress.start_count(label, things, total),
            Step::Reached(done) => self.progress.reached(done),
            Step::End => self.progress.clear(),
        }
    }

    fn seconds(&self) -> f64 {
        clock::seconds()
    }

    fn cores(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn run_on<T: Send>(
        &self,
        threads: usize,
        jobs: Vec<impl FnOnce() -> T + Send>,
        finished: impl Fn(usize) + Sync,
    ) -> Vec<T> {
        jobs::run_on(threads, jobs, finished)
    }

    fn device_text(&self, path: &Path) -> Result<String, Outside> {
        Ok(input::read_text(path)?)
    }

    fn read_state(&self, path: &Path) -> Result<Vec<u8>, Outside> {
        Ok(read_state(path)?)
    }

    fn write_state(&self, path: &Path, bytes: &[u8]) -> Result<(), Outside> {
        Ok(write_state(path, bytes)?)
    }
}

impl SweepEnv for ProcessEnv {
    fn trace(&self, selection: &TraceSelection) -> Result<Trace, Outside> {
        let LoadedTrace { info, spool } = self.traces.load(&selection.spec, &selection.digest)?;
        Ok(Trace { info, records: Box::new(spool) })
    }

    fn digest(&self, path: &Path) -> Result<String, Outside> {
        Ok(digest(path)?)
    }
}
