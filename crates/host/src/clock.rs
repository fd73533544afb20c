//! The machine's own clock, for benchmarks and forecasts: no result depends on it.

use rustix::time::{ClockId, clock_gettime};

/// CPU time that this process has used, in seconds.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds on a monotonic clock, for measuring and estimating durations.
#[must_use]
pub fn seconds() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
