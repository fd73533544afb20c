//! Runs jobs from text on small drives, and records their I/Os.

use prism_base::{Bytes, SimTime};
use prism_ssd::{Drive, DriveSpec, HostOp, InitialState, fit};
use prism_workload::fio::{self, FioError, Job, JobReader, RunResult, Target, jobs};
use prism_workload::{Finished, Observer, Progress};

/// Capacity of [`drive`].
pub const CAPACITY: u64 = 64 << 20;

/// A preset as a drive of 64 MiB.
pub fn fitted(preset: &DriveSpec) -> DriveSpec {
    fit(preset, Bytes(CAPACITY)).unwrap().device
}

pub fn prepared(device: DriveSpec, state: InitialState) -> Drive {
    Drive::prepared(device, state, 1, |_| true).unwrap().unwrap().0
}

/// A default drive of 64 MiB, filled.
pub fn drive() -> Drive {
    prepared(fitted(&DriveSpec::preset("dc-tlc").unwrap()), InitialState::Filled)
}

/// The jobs of a file, for [`drive`].
pub fn parse(text: &str) -> Result<Vec<Job>, FioError> {
    parse_for(text, CAPACITY)
}

pub fn parse_for(text: &str, target: impl Into<Target>) -> Result<Vec<Job>, FioError> {
    let mut reader = JobReader::new();
    reader.file("jobs.fio", text)?;
    jobs(&reader.finish()?, &[], target, 1)
}

/// One job with these options, parsed.
pub fn one(options: &str) -> Vec<Job> {
    parse(&format!("[job]\n{}\n", options.replace(' ', "\n"))).unwrap()
}

/// One issued I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    pub op: HostOp,
    pub offset: u64,
    pub len: u64,
    pub at: u64,
    pub done: u64,
    pub in_flight: u32,
    pub handle: u16,
}

/// An observer that records everything.
#[derive(Debug, Default)]
pub struct Log {
    pub issued: Vec<Issued>,
    pub deepest: u32,
}

impl Observer for Log {
    fn finished(&mut self, finished: &Finished) {
        let since = |at: SimTime| at.since(finished.origin).0;
        self.issued.push(Issued {
            op: finished.completion.op,
            offset: finished.offset,
            len: finished.completion.len,
            at: since(finished.arrival),
            done: since(finished.completion.completed),
            in_flight: finished.in_flight,
            handle: finished.handle,
        });
    }

    fn in_flight(&mut self, _: SimTime, requests: u32) {
        self.deepest = self.deepest.max(requests);
    }

    fn keep_going(&mut self, _: Progress) -> bool {
        true
    }
}

impl Log {
    /// Offsets in the order of issue, in KiB.
    pub fn offsets(&mut self) -> Vec<u64> {
        self.issued.sort_by_key(|io| io.at);
        self.issued.iter().map(|io| io.offset / 1024).collect()
    }

    /// The number of I/Os of `op`.
    pub fn count(&self, op: HostOp) -> usize {
        self.issued.iter().filter(|io| io.op == op).count()
    }
}

/// Runs jobs on a new drive.
pub fn run(jobs: &[Job]) -> (RunResult, Log) {
    let mut log = Log::default();
    let outcome = fio::run(&mut drive(), jobs, &mut log).unwrap();
    (outcome, log)
}

/// Runs one job with these options.
pub fn run_one(options: &str) -> (RunResult, Log) {
    run(&one(options))
}
