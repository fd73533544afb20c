//! State of the requests in the drive, and of those that wait for a flush.

use prism_base::SimTime;

use prism_engine::block::{Cost, HostOp, Request, Status};

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) request: Request,
    pub(crate) submitted: SimTime,
    pub(crate) cost: Cost,
    pub(crate) status: Status,
    /// Flash reads in flight.
    pub(crate) reads_left: u32,
    /// Units that have to be on flash before it completes.
    pub(crate) units_left: u32,
    /// All its units are in the buffer.
    pub(crate) admitted: bool,
    /// The next mapping unit to enter the buffer, and the one after the last.
    pub(crate) next: u32,
    pub(crate) end: u32,
    /// When it began to wait for buffer space.
    pub(crate) waits_since: SimTime,
}

impl Slot {
    pub(crate) fn new(request: Request, submitted: SimTime) -> Self {
        Self {
            request,
            submitted,
            cost: Cost::default(),
            status: Status::Done,
            reads_left: 0,
            units_left: 0,
            admitted: false,
            next: 0,
            end: 0,
            waits_since: SimTime::ZERO,
        }
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new(Request::new(HostOp::Flush, 0, 0, 0), SimTime::ZERO)
    }
}

/// A request that waits for an epoch to be durable, and how it continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) epoch: u64,
    pub(crate) slot: u32,
    pub(crate) then: Then,
}

/// How a request continues after the flush it waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// It was a preflush: the command is performed next.
    Perform,
    /// The effects of the command were flushed: it completes.
    Finish,
}
