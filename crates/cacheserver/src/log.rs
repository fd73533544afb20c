//! What the operator reads on standard error.

use std::fmt::Arguments;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::open::Backend;

/// With `-v`: errors.
pub const ERRORS: u32 = 1;
/// With `-vv`: the coming and going of clients too.
pub const CLIENTS: u32 = 2;

/// Writes a line.
pub fn line(text: Arguments<'_>) {
    // One write, so that lines of several processes do not mix. A failure is no reason not to
    // serve.
    let _ = std::io::stderr().write_all(format!("prism: {text}\n").as_bytes());
}

/// Time between two lines about damaged items.
const DAMAGE_PAUSE: Duration = Duration::from_secs(60);

/// Troubles of the device that were reported, which is done whatever the operator wants to see.
#[derive(Debug, Default)]
pub struct Troubles {
    has_failed: bool,
    /// Reads of damaged items.
    damaged: u64,
    /// When the last line about these was written.
    at: Option<Instant>,
}

impl Troubles {
    /// Reports a failure of the device, once, and items that could not be read, once in a while.
    pub fn report(&mut self, cache: &Backend) {
        if let Some(failure) = cache.failure().filter(|_| !self.has_failed) {
            line(format_args!("the device has failed, no more items are stored: {failure}"));
            self.has_failed = true;
        }
        let damaged = cache.counts().damaged_reads;
        let is_soon = self.at.is_some_and(|at| at.elapsed() < DAMAGE_PAUSE);
        if damaged > self.damaged && !is_soon {
            line(format_args!(
                "items that are damaged on flash or cannot be read, and were dropped: {} \
                 (`reads_lost` of `stats flash`)",
                damaged - self.damaged
            ));
            (self.damaged, self.at) = (damaged, Some(Instant::now()));
        }
    }
}
