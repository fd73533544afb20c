//! How a trace is replayed.

/// When requests are submitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At the trace's own times, divided by `speed`, whether or not the drive keeps up.
    /// Shows what happens to latency at this load.
    Open {
        /// 1 is as recorded, 2 is twice as fast.
        speed: f64,
    },
    /// As soon as fewer than `depth` requests are in flight; times are ignored. Shows
    /// what throughput the drive can give.
    Closed {
        /// Requests in flight.
        depth: u32,
    },
    /// Each request as long after the completion it followed in the trace as it was
    /// then, divided by `speed`: think times and barriers are kept, queueing is the
    /// simulated drive's own. Needs a trace with completions.
    Dependent {
        /// 1 is as recorded, 2 is think times halved.
        speed: f64,
    },
}

/// How often a trace is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// This many times; all of them are measured.
    Fixed(u32),
    /// Until the steady-state test passes; what follows is measured. A drive that becomes
    /// read-only meanwhile ends the search, and the passes of its last round are measured.
    Steady,
    /// Until the drive writes no more; all of it is measured, and nothing is submitted after
    /// that. Given up as the search for the steady state is.
    UntilReadOnly,
}

/// All of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// When requests are submitted.
    pub pace: Pace,
    /// How often the trace is repeated.
    pub passes: Passes,
}
