//! Memory that may outlive the process: a mapped file, in the server.

/// Bytes, of which a later process finds what this one wrote, if they are those of a mapped file.
pub trait Memory: Send {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes, to be changed. A change outlives a crash of the process at once, and a loss of
    /// power after the next sync.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Begins to make durable what was written up to now. Returns a number, which
    /// [`Memory::synced`] reaches when that is done.
    fn begin_sync(&mut self) -> u64;

    /// The number of the last sync that is done.
    fn synced(&self) -> u64;
}

/// Memory that goes with the process.
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

    fn synced(&self) -> u64 {
        0
    }
}
