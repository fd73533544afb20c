//! What the drive keeps of each request, and of requests that wait for a flush.

use prism_base::SimTime;

use crate::request::{Cost, HostOp, Request, Status};

/// A request inside the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) request: Request,
    pub(crate) submitted: SimTime,
    pub(crate) cost: Cost,
    pub(crate) status: Status,
    /// Flash reads in flight.
    pub(crate) reads_left: u32,
    /// Units that have to be on flash before it is done.
    pub(crate) units_left: u32,
    /// All its units are in the buffer.
    pub(crate) admitted: bool,
    /// Next mapping unit to go into the buffer, and the end.
    pub(crate) next: u32,
    pub(crate) end: u32,
    /// When it began to wait for the buffer.
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

/// A request waits for the epoch to be durable, and what comes then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) epoch: u64,
    pub(crate) slot: u32,
    pub(crate) then: Then,
}

/// What a request does once the flush it waits for is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// The flush came before it: its own work comes next.
    Perform,
    /// Its own work was what had to become durable.
    Finish,
}
