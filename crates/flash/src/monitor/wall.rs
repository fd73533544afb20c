//! Real time: calls come back when a real device would be done.
//!
//! The timeline stays what it is; a share's clock is the world's, counted from when real time
//! began. A call begins at the world's time, or later if the share's clock is ahead of it, and
//! waits for its end. So what a program measures with a watch is what the model says, as
//! long as the host does its own part of the work in less time than the device.

use prism_base::{Nanos, SimTime};

/// The clock of the world, which this crate does not know.
pub trait WallClock: Send + Sync {
    /// Nanoseconds since some moment; never less than before.
    fn now(&self) -> Nanos;

    /// Comes back when [`WallClock::now`] is `time` or more.
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

    /// The time of the world.
    pub fn now(self) -> SimTime {
        SimTime(self.clock.now().0.saturating_sub(self.origin.0))
    }

    /// Waits until it is `time` in the world.
    pub fn wait_until(self, time: SimTime) {
        self.clock.wait_until(Nanos(self.origin.0.saturating_add(time.0)));
    }
}
