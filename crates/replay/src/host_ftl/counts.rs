//! Counts of the host FTL.

/// Work of the host FTL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFtlCounts {
    /// Units written for requests.
    pub written: u64,
    /// Units copied by cleaning.
    pub copied: u64,
    /// Zones emptied and reset.
    pub cleaned: u64,
    /// Units read to complete partly written ones (read-modify-write).
    pub completed: u64,
    /// Units unmapped by discards and zeroing.
    pub discarded: u64,
    /// Units written again, because their zone failed during the first write.
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

    /// Adds the counts of another period.
    pub fn add(&mut self, other: &Self) {
        self.written += other.written;
        self.copied += other.copied;
        self.cleaned += other.cleaned;
        self.completed += other.completed;
        self.discarded += other.discarded;
        self.rewritten += other.rewritten;
        self.evacuated += other.evacuated;
        self.lost += other.lost;
    }

    /// The counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            written: self.written - before.written,
            copied: self.copied - before.copied,
            cleaned: self.cleaned - before.cleaned,
            completed: self.completed - before.completed,
            discarded: self.discarded - before.discarded,
            rewritten: self.rewritten - before.rewritten,
            evacuated: self.evacuated - before.evacuated,
            lost: self.lost - before.lost,
        }
    }
}
