//! What a log over zones has done.

/// What the log has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Units written for requests.
    pub written: u64,
    /// Units copied by cleaning.
    pub copied: u64,
    /// Zones emptied and reset.
    pub cleaned: u64,
    /// Units read to complete those that a request wrote in part.
    pub completed: u64,
    /// Units unmapped by discards and zeroing.
    pub discarded: u64,
    /// Units written once more, because their write has failed with its zone.
    pub rewritten: u64,
    /// Units moved out of zones that could only be read; they are copies as well.
    pub evacuated: u64,
    /// Units given up, because a copy could not read them.
    pub lost: u64,
}

impl LogCounts {
    /// Units written for any reason over those written for requests; `None` if there are none.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let all = self.written + self.copied + self.rewritten;
        (self.written > 0).then(|| all as f64 / self.written as f64)
    }

    /// Adds what another stretch of time has done.
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

    /// What was done since `before`.
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
