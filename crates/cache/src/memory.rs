//! Memory that may outlive the process: a mapped file, in the server.

/// Bytes, of which a later process finds what this one wrote, if they are those of a mapped file.
pub trait Memory: Send {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes, to be changed. A change outlives a crash of the process at once, and a loss of
    /// power after the next sync.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Begins to make durable what was written up to now.
    fn begin_sync(&mut self);
}

/// Memory that goes with the process.
impl Memory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn begin_sync(&mut self) {}
}
