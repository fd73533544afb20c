//! Real time: calls return when a real device would have completed them.
//!
//! The timeline is that of virtual time; a share's clock is the wall clock since real time began. A
//! call starts at wall-clock time, or later if the share's clock is ahead, and waits for its end.
//! So a program measures the latencies of the model, as long as the host's own work takes less time
//! than the device's.

use prism_base::{Nanos, SimTime};

/// A wall clock. The caller passes it, as this crate reads no clock.
pub trait WallClock: Send + Sync {
    /// Nanoseconds since some moment; never less than before.
    fn now(&self) -> Nanos;

    /// Returns when [`WallClock::now`] is `time` or more.
    fn wait_until(&self, time: Nanos);
}

/// A clock, and when real time began on it.
#[derive(Clone, Copy)]
pub(crate) struct Wall {
    clock: &'static dyn WallClock,
    origin: Nanos,
}

impl std::fmt::Debug for Wall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wall since {}", self.origin)
    }
}

impl Wall {
    pub fn new(clock: &'static dyn WallClock) -> Self {
        Self { clock, origin: clock.now() }
    }

    /// Time since real time began.
    pub fn now(self) -> SimTime {
        SimTime(self.clock.now().0.saturating_sub(self.origin.0))
    }

    /// Waits until `time` after real time began.
    pub fn wait_until(self, time: SimTime) {
        self.clock.wait_until(Nanos(self.origin.0.saturating_add(time.0)));
    }
}
