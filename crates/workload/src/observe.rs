//! Observer of a run: each measured request, the number of requests in flight, and progress.

use prism_base::{SimTime, Symbol};
use prism_ssd::Completion;

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// First byte on the device; 0 for a flush.
    pub offset: u64,
    /// Issue time on the clock of the trace or of the job.
    pub issue_ns: i64,
    /// The placement handle of a write; 0 by default.
    pub handle: u16,
    /// Origin of the request.
    pub issuer: Issuer,
    /// The pass through the trace, from 0 at the first measured one.
    pub pass: u32,
    /// Start of the measured passes, the zero of time in charts.
    pub origin: SimTime,
    /// When it was due.
    pub arrival: SimTime,
    /// The completion of the drive.
    pub completion: Completion,
    /// Requests in flight just before it was submitted.
    pub in_flight: u32,
}

/// Origin of a request, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The device of the trace.
    pub device: Symbol,
    /// The command of the process, or the name of the job.
    pub comm: Symbol,
    /// The file.
    pub file: Symbol,
    /// The phase of the trace.
    pub phase: Symbol,
    /// The process; -1 is unknown.
    pub pid: i32,
}

impl Issuer {
    /// An unknown origin.
    pub const UNKNOWN: Self = Self {
        device: Symbol::NONE,
        comm: Symbol::NONE,
        file: Symbol::NONE,
        phase: Symbol::NONE,
        pid: -1,
    };
}

/// Receives every measured request.
pub trait Observer {
    /// Whether it uses [`Observer::finished`] and [`Observer::in_flight`]. If not, jobs do not call
    /// them, which saves time.
    fn needs_requests(&self) -> bool {
        true
    }

    /// Called for each completed request, in the order of completion.
    fn finished(&mut self, finished: &Finished);

    /// Called, in order of time, when the number of requests in flight changes to `requests` at
    /// `at`, counted from the start of the measurement.
    fn in_flight(&mut self, at: SimTime, requests: u32);

    /// Called from time to time; returning false interrupts the run.
    fn keep_going(&mut self, progress: Progress) -> bool;
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Completed passes.
    pub passes: u32,
    /// Requests submitted in the current pass.
    pub submitted: u64,
    /// Whether the current requests are measured.
    pub measuring: bool,
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn needs_requests(&self) -> bool {
        false
    }

    fn finished(&mut self, _: &Finished) {}

    fn in_flight(&mut self, _: SimTime, _: u32) {}

    fn keep_going(&mut self, _: Progress) -> bool {
        true
    }
}
