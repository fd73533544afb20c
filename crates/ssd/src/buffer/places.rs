//! What the buffer keeps of each unit and each epoch.

use prism_base::SimTime;

/// Where a buffered unit stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// The place is not in use.
    #[default]
    Vacant,
    /// Written in part; the host may still write the rest.
    Partial,
    /// The rest of the unit is being read from flash.
    Filling,
    /// Complete, waiting for a program unit.
    Dirty,
    /// Its program is queued or runs.
    InFlight,
}

impl State {
    /// Whether new content may take the place of the old.
    pub(crate) fn may_change(self) -> bool {
        matches!(self, Self::Partial | Self::Filling | Self::Dirty)
    }
}

/// The end of a list of those who wait.
pub(crate) const NOBODY: u32 = u32::MAX;

/// One who waits, and the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) slot: u32,
    pub(crate) next: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self { slot: 0, next: NOBODY }
    }
}

/// A unit in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) lpn: u32,
    pub(crate) stream: u32,
    pub(crate) state: State,
    /// Trimmed while it was being filled: dropped as soon as that ends.
    pub(crate) dropped: bool,
    /// Part of its content could not be read, and was not written since.
    pub(crate) lost: bool,
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// Requests that wait for it.
    pub(crate) waiters: u32,
    /// Parts of the unit that were written, as bits.
    pub(crate) covered: u64,
    /// Until when a partial unit waits for its rest.
    pub(crate) deadline: SimTime,
}

impl Entry {
    pub(crate) fn new(lpn: u32, version: u64, stream: u32, state: State) -> Self {
        let (waiters, covered, deadline) = (NOBODY, 0, SimTime::ZERO);
        let (dropped, lost, epoch) = (false, false, 0);
        Self { lpn, stream, state, dropped, lost, version, epoch, waiters, covered, deadline }
    }
}

impl Default for Entry {
    fn default() -> Self {
        Self::new(0, 0, 0, State::Vacant)
    }
}

/// Units that came between two flushes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epoch {
    /// Units not yet on flash.
    pub(crate) outstanding: u64,
    /// Of these, units that wait for a program unit and for which nobody waits by himself.
    pub(crate) unwanted: u64,
}
