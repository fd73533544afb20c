//! State of the units and epochs in the buffer.

use prism_base::SimTime;

/// State of a buffered unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// The place is not in use.
    #[default]
    Vacant,
    /// Partly written; the host may still write the rest.
    Partial,
    /// The rest of the unit is being read from flash.
    Filling,
    /// Complete, waiting for a program unit.
    Dirty,
    /// Its program is queued or in progress.
    InFlight,
}

impl State {
    /// Whether the content may be replaced.
    pub(crate) fn may_change(self) -> bool {
        matches!(self, Self::Partial | Self::Filling | Self::Dirty)
    }
}

/// The end of a list of waiting requests.
pub(crate) const NO_WAITER: u32 = u32::MAX;

/// A waiting request, and the next link of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) slot: u32,
    pub(crate) next: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self { slot: 0, next: NO_WAITER }
    }
}

/// A unit in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) lpn: u32,
    pub(crate) stream: u32,
    pub(crate) state: State,
    /// Trimmed in state `Filling`: dropped when the read ends.
    pub(crate) dropped: bool,
    /// Part of its content could not be read and was not written since.
    pub(crate) lost: bool,
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// First link of the requests that wait for it.
    pub(crate) waiters: u32,
    /// Bitmap of the written parts of the unit.
    pub(crate) covered: u64,
    /// When the wait of a partial unit for its rest ends.
    pub(crate) deadline: SimTime,
}

impl Entry {
    pub(crate) fn new(lpn: u32, version: u64, stream: u32, state: State) -> Self {
        let (waiters, covered, deadline) = (NO_WAITER, 0, SimTime::ZERO);
        let (dropped, lost, epoch) = (false, false, 0);
        Self { lpn, stream, state, dropped, lost, version, epoch, waiters, covered, deadline }
    }
}

impl Default for Entry {
    fn default() -> Self {
        Self::new(0, 0, 0, State::Vacant)
    }
}

/// Units that entered the buffer between two flushes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epoch {
    /// Units not yet on flash.
    pub(crate) outstanding: u64,
    /// Of these, dirty units without a waiting request.
    pub(crate) unwanted: u64,
}
