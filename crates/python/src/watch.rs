//! Runs work without the interpreter's lock, shows its progress, and stops it on Ctrl-C.
//!
//! Python runs handlers of signals only on its main thread, when that asks for it. So the thread
//! that called Prism asks from time to time, where the work reports its progress, and unwinds when
//! a handler has raised an exception. Simulations on other threads are ended by a flag.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use prism_host::progress::Display;
use prism_host::{
    LoadedTrace, Progress, clock, digest, input, jobs, read_state, within_memory, write_state,
};
use prism_present::sweep::{SweepEnv, TraceSelection};
use prism_present::{Env, Outside, Step, Trace};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::sweep::TRACES;

/// How often signals are checked and progress is shown: a person notices no delay, and the work
/// does not become slower.
const INTERVAL: Duration = Duration::from_millis(50);

/// The panic of work that stops because an exception was raised.
struct Stopped;

/// Shows progress, and checks for signals.
struct Watcher {
    /// The thread that called, on which signals are handled.
    caller: ThreadId,
    /// An object with the methods `begin`, `reached` and `end`.
    shown: Option<Py<PyAny>>,
    begun: Instant,
    /// Nanoseconds after `begun` at which signals were checked last.
    checked: AtomicU64,
    /// The progress of the current step.
    done: AtomicU64,
    /// Whether a step has begun and not ended.
    in_step: AtomicBool,
    stopped: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Watcher {
    fn new(shown: Option<Py<PyAny>>) -> Self {
        Self {
            caller: thread::current().id(),
            shown,
            begun: Instant::now(),
            checked: AtomicU64::new(0),
            done: AtomicU64::new(0),
            in_step: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            raised: Mutex::new(None),
        }
    }

    /// Whether the work goes on. On the thread of the caller this handles signals.
    fn goes_on(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        if thread::current().id() == self.caller {
            let now = self.begun.elapsed();
            let last = Duration::from_nanos(self.checked.load(Ordering::Relaxed));
            if now.saturating_sub(last) >= INTERVAL {
                self.checked.store(now.as_nanos() as u64, Ordering::Relaxed);
                self.call(|shown, py| match self.in_step.load(Ordering::Relaxed) {
                    true => shown.call_method1(py, "reached", (self.done.load(Ordering::Relaxed),)),
                    false => Ok(py.None()),
                });
            }
        }
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Handles signals and calls the object that shows progress.
    fn call(&self, show: impl FnOnce(&Py<PyAny>, Python<'_>) -> PyResult<Py<PyAny>>) {
        if self.stopped.load(Ordering::Relaxed) {
            return;
        }
        let result = Python::attach(|py| {
            py.check_signals()?;
            self.shown.as_ref().map_or(Ok(()), |shown| show(shown, py).map(drop))
        });
        if let Err(error) = result {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Unwinds if the work is to stop.
    fn check(&self) {
        if !self.goes_on() {
            resume_unwind(Box::new(Stopped));
        }
    }
}

impl Display for Watcher {
    fn begin(&self, label: &str, things: &str, total: Option<u64>) {
        self.done.store(0, Ordering::Relaxed);
        self.in_step.store(true, Ordering::Relaxed);
        self.call(|shown, py| shown.call_method1(py, "begin", (label, things, total)));
        self.check();
    }

    fn reached(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        // Another thread only leaves its number; the caller unwinds.
        if thread::current().id() == self.caller {
            self.check();
        }
    }

    fn end(&self) {
        let done = self.done.load(Ordering::Relaxed);
        self.in_step.store(false, Ordering::Relaxed);
        self.call(|shown, py| shown.call_method1(py, "end", (done,)));
        self.check();
    }
}

/// The environment of work: files, threads, a clock, and a display of Python.
pub struct PythonEnv {
    watcher: Arc<Watcher>,
    /// The texts of drives without a file, by their names.
    inline: Vec<InlineDrive>,
}

/// The name and the text of a drive without a file.
pub type InlineDrive = (&'static str, String);

/// The name of a drive without a file, which a file is unlikely to have.
pub const INLINE_DEVICE: &str = "<device>.toml";
/// The same, of the drive that a report compares with.
pub const INLINE_AGAINST: &str = "<against>.toml";

impl PythonEnv {
    /// Shows the progress of reading.
    pub fn progress(&self) -> Progress {
        Progress::shown_by(self.watcher.clone())
    }

    /// Called from time to time by work that reports no progress: unwinds if it is to stop.
    pub fn check(&self) {
        self.watcher.check();
    }
}

impl Env for PythonEnv {
    fn show(&self, step: Step<'_>) {
        match step {
            Step::Begin { label, things, total } => self.watcher.begin(label, things, total),
            Step::Reached(done) => self.watcher.reached(done),
            Step::End => self.watcher.end(),
        }
    }

    fn keeps_going(&self) -> bool {
        self.watcher.goes_on()
    }

    fn seconds(&self) -> f64 {
        clock::seconds()
    }

    fn cores(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    /// The jobs run on other threads, so that the caller handles signals at any time.
    fn run_on<T: Send>(
        &self,
        threads: usize,
        jobs: Vec<impl FnOnce() -> T + Send>,
        finished: impl Fn(usize) + Sync,
    ) -> Vec<T> {
        thread::scope(|scope| {
            let (runs, ended) = mpsc::channel::<()>();
            let finished = &finished;
            let work = scope.spawn(move || {
                // It is dropped when the work ends in any way.
                let _runs = runs;
                jobs::run_on(threads, jobs, finished)
            });
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(INTERVAL) {
                self.watcher.goes_on();
            }
            work.join().unwrap_or_else(|payload| resume_unwind(payload))
        })
    }

    fn device_text(&self, path: &Path) -> Result<String, Outside> {
        let inline = self.inline.iter().find(|(name, _)| path == Path::new(name));
        inline.map_or_else(|| Ok(input::read_text(path)?), |(_, text)| Ok(text.clone()))
    }

    fn read_state(&self, path: &Path) -> Result<Vec<u8>, Outside> {
        Ok(read_state(path)?)
    }

    fn write_state(&self, path: &Path, bytes: &[u8]) -> Result<(), Outside> {
        Ok(write_state(path, bytes)?)
    }
}

impl SweepEnv for PythonEnv {
    fn trace(&self, selection: &TraceSelection) -> Result<Trace, Outside> {
        let LoadedTrace { info, spool } = TRACES.load(&selection.spec, &selection.digest)?;
        Ok(Trace { info, records: Box::new(spool) })
    }

    fn digest(&self, path: &Path) -> Result<String, Outside> {
        Ok(digest(path)?)
    }
}

/// Runs `work` without the interpreter's lock. `shown` shows its progress; `inline` are the drives
/// without a file.
///
/// # Errors
/// The failure of `work`, or the exception of a handler of a signal.
pub fn run<T: Send>(
    py: Python<'_>,
    shown: Option<Py<PyAny>>,
    inline: impl IntoIterator<Item = InlineDrive>,
    work: impl FnOnce(&PythonEnv) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let watcher = Arc::new(Watcher::new(shown));
    let env = PythonEnv { watcher: watcher.clone(), inline: inline.into_iter().collect() };
    let result = py.detach(|| {
        let guarded = AssertUnwindSafe(|| within_memory(|| work(&env)).map_err(Failure::from));
        catch_unwind(guarded)
    });
    let raised = watcher.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(error) = raised {
        return Err(error);
    }
    match result {
        Ok(result) => Ok(result??),
        Err(payload) => resume_unwind(payload),
    }
}
