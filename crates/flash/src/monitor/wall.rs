//! Real time: calls return when a real device would have completed them.
//!
//! The timeline is that of virtual time, which goes on: a share's clock is the latest time that any
//! share had reached when real time began, plus the wall-clock time since then. A call starts at
//! the time of the share's clock and waits for its end. So a program measures the latencies of the
//! model, as long as the host's own work takes less time than the device's.

use prism_base::{Nanos, SimTime};

/// A wall clock. The caller passes it, as this crate reads no clock.
pub trait WallClock: Send + Sync {
    /// Nanoseconds since some moment; never less than before.
    fn now(&self) -> Nanos;

    /// Returns when [`WallClock::now`] is `time` or more.
    fn wait_until(&self, time: Nanos);
}

/// A clock, when real time began on it, and in the time of the shares.
#[derive(Clone, Copy)]
pub(crate) struct Wall {
    clock: &'static dyn WallClock,
    origin: Nanos,
    begin: SimTime,
}

impl std::fmt::Debug for Wall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wall since {}", self.origin)
    }
}

impl Wall {
    /// Real time that begins now, at `begin` in the time of the shares.
    pub fn new(clock: &'static dyn WallClock, begin: SimTime) -> Self {
        Self { clock, origin: clock.now(), begin }
    }

    /// The time of the shares.
    pub fn now(self) -> SimTime {
        self.begin + Nanos(self.clock.now().0.saturating_sub(self.origin.0))
    }

    /// Waits until `time` in the time of the shares.
    pub fn wait_until(self, time: SimTime) {
        let since = time.0.saturating_sub(self.begin.0);
        self.clock.wait_until(Nanos(self.origin.0.saturating_add(since)));
    }
}
