//! Memory that may outlive the process: a mapped file, in the server.

/// Bytes, of which a later process finds what this one wrote, if they are those of a mapped file.
pub trait Memory: Send {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes, to be changed. A change outlives a crash of the process at once, and a loss of
    /// power after the next sync.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Begins to make durable what was written up to now, without waiting. Returns the number of
    /// this sync; a later one has no smaller number.
    fn begin_sync(&mut self) -> u64;

    /// The number of the last sync that is complete; `None` if one has failed. What was written
    /// before a sync began is durable when it is complete.
    fn synced(&self) -> Option<u64>;

    /// Waits until the sync with this number is complete or has failed.
    fn wait_sync(&mut self, number: u64);
}

/// Memory that goes with the process, so that there is nothing to wait for.
impl Memory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn begin_sync(&mut self) -> u64 {
        0
    }

    fn synced(&self) -> Option<u64> {
        Some(0)
    }

    fn wait_sync(&mut self, _number: u64) {}
}
