//! The environment of an analysis in the command line: files, threads, a clock, a progress bar.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use prism_host::{
    LoadSpec, LoadedTrace, Progress, clock, digest, input, jobs, load_trace, read_state,
    write_state,
};
use prism_present::sweep::{SweepEnv, TraceSelection};
use prism_present::{Env, Outside, Step, Trace};

/// Traces of a sweep that are held at once, the ones used last: each takes up to 84 MB of memory.
const TRACES_HELD: usize = 4;

/// The files and threads of this process, and its standard error.
#[derive(Debug)]
pub struct ProcessEnv {
    progress: Progress,
    /// The traces of a sweep, the one used last at the end.
    traces: Mutex<Vec<(TraceSelection, LoadedTrace)>>,
}

impl ProcessEnv {
    /// An environment with a progress bar on standard error, if that is a terminal.
    #[must_use]
    pub fn new() -> Self {
        Self { progress: Progress::on_stderr(), traces: Mutex::new(Vec::new()) }
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
        // Another thread that needs the same trace waits until it is there.
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = match traces.iter().position(|(held, _)| held == selection) {
            Some(place) => traces.remove(place),
            None => (selection.clone(), loaded(selection)?),
        };
        let (info, records) = (loaded.1.info.clone(), Box::new(loaded.1.spool.another()));
        traces.push(loaded);
        let surplus = traces.len().saturating_sub(TRACES_HELD);
        traces.drain(..surplus);
        Ok(Trace { info, records })
    }

    fn digest(&self, path: &Path) -> Result<String, Outside> {
        Ok(digest(path)?)
    }
}

/// Reads a trace that must still be what it was when the sweep was planned.
fn loaded(selection: &TraceSelection) -> Result<LoadedTrace, Outside> {
    let path = &selection.path;
    if digest(path)? != selection.digest {
        let what = "the file has changed since the sweep was planned; begin it again";
        return Err(format!("{}: {what}", path.display()).into());
    }
    let spec = LoadSpec {
        paths: vec![path.clone()],
        format: selection.format,
        map: selection.map.clone(),
        blkparse_format: selection.blkparse_format.clone(),
        nvme_block: selection.block_size,
        disorder: selection.disorder,
        phase: selection.phase.clone(),
        source: selection.source.clone(),
    };
    Ok(load_trace(&spec, &Progress::hidden())?)
}
