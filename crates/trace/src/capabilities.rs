//! What a format can carry at all, so that every report says what it could not see.

use serde::{Deserialize, Serialize};

/// What a source tells about its requests. `false` means: cannot be in it, or was not
/// recorded; a report then says so instead of printing a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The operation; without it every request is taken as a read.
    #[serde(default = "told")]
    pub operation: bool,
    /// Addresses on a device; without them the reader lays out what is named.
    #[serde(default = "told")]
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

impl Capabilities {
    /// Times to the nanosecond, addresses, reads and writes, and nothing else: what the
    /// formats of published data sets start from.
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

/// What files say that were stored before there were traces of caches: every source told
/// its operations and addresses.
fn told() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_before_tells_operations_and_addresses() {
        let all = Capabilities { discard: true, ..Capabilities::READS_AND_WRITES };
        let mut stored = serde_json::to_value(all).expect("JSON");
        for name in ["operation", "address"] {
            let told = stored.as_object_mut().and_then(|object| object.remove(name));
            assert_eq!(told, Some(true.into()), "{name}");
        }
        assert_eq!(serde_json::from_value::<Capabilities>(stored).expect("capabilities"), all);
    }
}
