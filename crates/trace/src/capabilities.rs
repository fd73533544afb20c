//! What a format can carry at all, so that every report says what it could not see.

use serde::{Deserialize, Serialize};

/// What a source tells about its requests. `false` means: cannot be in it, or was not
/// recorded; a report then says so instead of printing a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Discards (TRIM).
    pub discard: bool,
    /// Write-zeroes.
    pub write_zeroes: bool,
    /// Flushes.
    pub flush: bool,
    /// Force unit access.
    pub fua: bool,
    /// Sync and metadata flags.
    pub sync_meta: bool,
    /// Completion times.
    pub completion: bool,
    /// Queue times apart from issue times.
    pub queue: bool,
    /// Process number and command.
    pub process: bool,
    /// Inode or file name.
    pub file: bool,
    /// Write hints or streams.
    pub stream: bool,
    /// Smallest step of its clock in nanoseconds.
    pub clock_ns: u64,
}
