//! The wall clock for flash in real time: no result depends on it.

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use prism_base::Nanos;
use prism_flash::WallClock;

/// How late the system may wake a sleeping thread: for this time before its end, a wait spins.
const WAKE_LATE: Nanos = Nanos(120_000);

/// The time of this process's first call.
static BEGIN: OnceLock<Instant> = OnceLock::new();

/// A monotonic clock, for flash in real time. Waits are exact to about a microsecond: they spin at
/// the end.
#[derive(Clone, Copy, Debug)]
pub struct RealClock;

/// The clock that every device can use.
pub static REAL: RealClock = RealClock;

impl WallClock for RealClock {
    fn now(&self) -> Nanos {
        // Through the C library, which uses the vDSO instead of a system call where it can.
        Nanos(BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64)
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
