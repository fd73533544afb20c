//! Counts of the host FTL.

use prism_base::counts;

/// Work of the host FTL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFtlCounts {
    /// Units written for requests.
    pub written: u64,
    /// Units copied by cleaning, each time that this was tried.
    pub copied: u64,
    /// Zones emptied and reset.
    pub cleaned: u64,
    /// Units read to complete partly written ones (read-modify-write).
    pub completed: u64,
    /// Units unmapped by discards and zeroing.
    pub discarded: u64,
    /// Units of requests written again, because their zone failed during the first write.
    pub rewritten: u64,
    /// Units moved out of read-only zones; `copied` includes them.
    pub evacuated: u64,
    /// Units lost, because cleaning could not read them.
    pub lost: u64,
}

impl HostFtlCounts {
    /// Units written for any reason over those written for requests; `None` if no request wrote.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let all = self.written + self.copied + self.rewritten;
        (self.written > 0).then(|| all as f64 / self.written as f64)
    }
}

counts!(HostFtlCounts {
    values: written, copied, cleaned, completed, discarded, rewritten, evacuated, lost;
});
