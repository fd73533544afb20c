//! The clock of the world, for flash in real time: no result depends on it.

use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

use prism_base::Nanos;
use prism_flash::WallClock;
use rustix::time::{ClockId, clock_gettime};

/// How late the system may wake a sleeper: so much before the end it is waited for awake.
const WAKE_LATE: Nanos = Nanos(120_000);

/// `CLOCK_MONOTONIC`, for flash in real time. Waits are exact to about a microsecond: their
/// last part is spent awake.
#[derive(Clone, Copy, Debug)]
pub struct RealClock;

/// The clock that every device can use.
pub static REAL: RealClock = RealClock;

impl WallClock for RealClock {
    fn now(&self) -> Nanos {
        let time = clock_gettime(ClockId::Monotonic);
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    fn wait_until(&self, time: Nanos) {
        loop {
            let left = time.0.saturating_sub(self.now().0);
            if left == 0 {
                return;
            }
            match left.checked_sub(WAKE_LATE.0) {
                Some(sleep) if sleep > 0 => thread::sleep(Duration::from_nanos(sleep)),
                _ => spin_loop(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_ends_early() {
        for wait in [0, 10_000, 300_000] {
            let until = Nanos(REAL.now().0 + wait);
            REAL.wait_until(until);
            assert!(REAL.now() >= until, "{wait}");
        }
    }
}
