//! Options of a replay.

/// When requests are submitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Open loop: at the times of the trace, divided by `speed`, whether or not the drive keeps up.
    /// Shows the latency at this load.
    Open {
        /// 1 is as recorded, 2 is twice as fast.
        speed: f64,
    },
    /// Closed loop: as soon as fewer than `depth` requests are in flight; times are ignored. Shows
    /// the throughput of the drive.
    Closed {
        /// Requests in flight.
        depth: u32,
    },
    /// Each request follows the completion that it followed in the trace, after the same think time
    /// divided by `speed`: think times and barriers are kept, while queueing is that of the
    /// simulated drive. Needs a trace with completions.
    Dependent {
        /// 1 is as recorded, 2 halves think times.
        speed: f64,
    },
}

/// How often a trace is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// This many times; all of them are measured.
    Fixed(u32),
    /// At most this many times, and no further pass once as many mapping units are programmed; all
    /// passes are measured.
    UpTo {
        /// Passes.
        passes: u32,
        /// Mapping units programmed.
        units: u64,
    },
    /// Until the steady-state test passes; the round after it is measured. If the drive becomes
    /// read-only before, the search ends, and the passes of the last round are measured.
    Steady,
    /// Until the drive becomes read-only, after which no request is submitted; all passes are
    /// measured. Has the same limits as the search for the steady state.
    UntilReadOnly,
}

impl Passes {
    /// Whether the trace is repeated until the drive is in some state, however often that is.
    #[must_use]
    pub fn is_search(self) -> bool {
        matches!(self, Self::Steady | Self::UntilReadOnly)
    }
}

/// Options of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// When requests are submitted.
    pub pace: Pace,
    /// How often the trace is repeated.
    pub passes: Passes,
}
