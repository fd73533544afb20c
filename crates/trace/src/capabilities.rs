//! What a trace can contain, so that every report says what it cannot show.

use serde::{Deserialize, Serialize};

/// What a trace contains about its requests. `false` means that the format cannot contain it,
/// or that it was not recorded; a report then says so instead of printing a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The operation; without it every request counts as a read.
    #[serde(default = "yes")]
    pub operation: bool,
    /// Addresses on a device; without them the reader assigns addresses to what is named.
    #[serde(default = "yes")]
    pub address: bool,
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
    /// Queue times in addition to issue times.
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

impl Capabilities {
    /// Times in nanoseconds, addresses, reads and writes, and nothing else: the base for
    /// formats of published data sets.
    pub const READS_AND_WRITES: Self = Self {
        operation: true,
        address: true,
        discard: false,
        write_zeroes: false,
        flush: false,
        fua: false,
        sync_meta: false,
        completion: false,
        queue: false,
        process: false,
        file: false,
        stream: false,
        clock_ns: 1,
    };
}

/// The value for files that were stored before traces of caches were supported: every source
/// contained operations and addresses.
fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_files_have_operations_and_addresses() {
        let all = Capabilities { discard: true, ..Capabilities::READS_AND_WRITES };
        let mut stored = serde_json::to_value(all).expect("JSON");
        for name in ["operation", "address"] {
            let removed = stored.as_object_mut().and_then(|object| object.remove(name));
            assert_eq!(removed, Some(true.into()), "{name}");
        }
        assert_eq!(serde_json::from_value::<Capabilities>(stored).expect("capabilities"), all);
    }
}
