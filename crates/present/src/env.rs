//! The environment of an analysis: only through it does this crate use files, clocks or threads.

use std::path::Path;

/// A failure of the environment, with its own text.
pub type Outside = Box<dyn std::error::Error + Send + Sync>;

/// The progress of a long step.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A step begins.
    Begin {
        /// What the step does.
        label: &'a str,
        /// What is counted.
        things: &'a str,
        /// Their number, if it is known.
        total: Option<u64>,
    },
    /// This many are done.
    Reached(u64),
    /// The step is over.
    End,
}

/// Files, threads, a clock and a display, provided by the front end.
pub trait Env: Sync {
    /// Shows the progress of a long step.
    fn show(&self, step: Step<'_>);

    /// Called from time to time by simulations that run in parallel; they end without a result
    /// when it returns false, and then a later call of [`Env::show`] has to unwind.
    fn keeps_going(&self) -> bool {
        true
    }

    /// Seconds on a clock. Only estimates of running time use it; no result depends on it.
    fn seconds(&self) -> f64;

    /// The number of simulations that run at once by default.
    fn cores(&self) -> usize;

    /// Runs `jobs`, at most `threads` at once. The results are in the order of the jobs.
    /// `finished` is called with the number of jobs that are done.
    fn run_on<T: Send>(
        &self,
        threads: usize,
        jobs: Vec<impl FnOnce() -> T + Send>,
        finished: impl Fn(usize) + Sync,
    ) -> Vec<T>;

    /// The text of a device file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn device_text(&self, path: &Path) -> Result<String, Outside>;

    /// The bytes of a snapshot of a drive.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn read_state(&self, path: &Path) -> Result<Vec<u8>, Outside>;

    /// Writes a snapshot of a drive.
    ///
    /// # Errors
    /// Why they cannot be written.
    fn write_state(&self, path: &Path, bytes: &[u8]) -> Result<(), Outside>;
}

/// Runs `jobs` on all cores and shows how many are done. When the environment does not go on, jobs
/// that have not begun are left out, and the last step unwinds.
#[cfg(feature = "experiments")]
pub(crate) fn run_all<T: Send>(
    env: &impl Env,
    label: &str,
    things: &str,
    jobs: Vec<impl FnOnce() -> T + Send>,
) -> Vec<T> {
    env.show(Step::Begin { label, things, total: Some(jobs.len() as u64) });
    let job = |job| move || env.keeps_going().then(job);
    let finished = |done: usize| env.show(Step::Reached(done as u64));
    let results = env.run_on(env.cores(), jobs.into_iter().map(job).collect(), finished);
    env.show(Step::End);
    results.into_iter().flatten().collect()
}

/// The same environment without a display, for simulations that run in parallel. Its steps unwind
/// when the environment does not go on.
#[derive(Debug)]
pub struct Quiet<'a, E>(pub &'a E);

/// The panic of a step that ends because the environment does not go on.
struct Stopped;

impl<E: Env> Env for Quiet<'_, E> {
    fn show(&self, step: Step<'_>) {
        if matches!(step, Step::Reached(_)) && !self.0.keeps_going() {
            std::panic::resume_unwind(Box::new(Stopped));
        }
    }

    fn keeps_going(&self) -> bool {
        self.0.keeps_going()
    }

    fn seconds(&self) -> f64 {
        self.0.seconds()
    }

    fn cores(&self) -> usize {
        self.0.cores()
    }

    fn run_on<T: Send>(
        &self,
        threads: usize,
        jobs: Vec<impl FnOnce() -> T + Send>,
        finished: impl Fn(usize) + Sync,
    ) -> Vec<T> {
        self.0.run_on(threads, jobs, finished)
    }

    fn device_text(&self, path: &Path) -> Result<String, Outside> {
        self.0.device_text(path)
    }

    fn read_state(&self, path: &Path) -> Result<Vec<u8>, Outside> {
        self.0.read_state(path)
    }

    fn write_state(&self, path: &Path, bytes: &[u8]) -> Result<(), Outside> {
        self.0.write_state(path, bytes)
    }
}
