//! The machine's own clock, for benchmarks only: no result depends on it.

use rustix::time::{ClockId, clock_gettime};

/// Processor time that this process has used, in seconds.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
