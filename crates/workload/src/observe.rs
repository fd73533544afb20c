//! How a run is watched: each measured request, the requests in flight, and progress.

use prism_base::{SimTime, Symbol};
use prism_ssd::Completion;

/// A request that is done.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// First byte on the device; 0 for a flush.
    pub offset: u64,
    /// When it was issued, on the clock of the trace or of the job.
    pub issue_ns: i64,
    /// The placement handle of a write; 0 if none is named.
    pub handle: u16,
    /// Who asked for it.
    pub issuer: Issuer,
    /// The pass through the trace, from 0 at the first measured one.
    pub pass: u32,
    /// Start of the measured passes, from which charts count.
    pub origin: SimTime,
    /// When it should have been submitted.
    pub arrival: SimTime,
    /// What the drive says.
    pub completion: Completion,
    /// Requests in flight just before it was submitted.
    pub in_flight: u32,
}

/// Who asked for a request, as far as that is known.
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
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        device: Symbol::NONE,
        comm: Symbol::NONE,
        file: Symbol::NONE,
        phase: Symbol::NONE,
        pid: -1,
    };
}

/// Sees every measured request.
pub trait Observer {
    /// A request is done. Requests come in the order of their completion.
    fn finished(&mut self, finished: &Finished);

    /// The number of requests in flight changes to `requests` at `at`, counted from the start
    /// of what is measured. Calls come in the order of time.
    fn in_flight(&mut self, at: SimTime, requests: u32);

    /// Called now and then; returning false ends the run as interrupted.
    fn keep_going(&mut self, progress: Progress) -> bool;
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Passes done.
    pub passes: u32,
    /// Requests of the current pass submitted.
    pub submitted: u64,
    /// Whether what is submitted now is measured.
    pub measuring: bool,
    /// Write amplification of the last round of the search for a steady state, once there is
    /// one.
    pub last_round: Option<f64>,
}

/// An observer that looks at nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn finished(&mut self, _: &Finished) {}

    fn in_flight(&mut self, _: SimTime, _: u32) {}

    fn keep_going(&mut self, _: Progress) -> bool {
        true
    }
}
