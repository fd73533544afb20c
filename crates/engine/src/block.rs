//! A block device: what programs above a drive, the policy level of the flash library or a host FTL
//! use, whichever of them it is.
//!
//! A request is submitted at a time and completes later, in the time of the device. The caller lets
//! that time pass: event by event ([`BlockDevice::step`]), up to the next completion, or up to a
//! given time. Several requests are in flight at once, and complete in any order. Requests to the
//! same bytes that are in flight together take effect in an order that the device chooses.
//!
//! Bytes travel next to the request, in a buffer that the caller owns before and after. Simulations
//! of traces have none and pay nothing for them.
//!
//! ```
//! use prism_base::SimTime;
//! use prism_engine::block::{BlockDevice, HostOp, Request};
//!
//! /// Writes `bytes` at `offset` and waits until that is complete.
//! fn write(device: &mut dyn BlockDevice, offset: u64, bytes: Vec<u8>) -> Vec<u8> {
//!     let request = Request::new(HostOp::Write, offset, bytes.len() as u64, 1);
//!     device.submit_bytes(request, bytes, device.now()).expect("a valid request");
//!     let mut done = Vec::new();
//!     assert!(device.next_completion(&mut done) && done[0].tag == 1);
//!     device.take_bytes().expect("the buffer of the write").1
//! }
//! ```

mod request;

use prism_base::SimTime;

use crate::counts::FlashWork;

pub use request::{Completion, Cost, HostOp, Request, Status, SubmitError};

/// A device of bytes with addresses from 0 on, which keeps many requests in flight.
pub trait BlockDevice {
    /// Bytes for the host.
    fn capacity(&self) -> u64;

    /// Bytes of the smallest write, at a multiple of its length, for which the device does not read
    /// the rest first.
    fn unit(&self) -> u64;

    /// The time that the device has reached.
    fn now(&self) -> SimTime;

    /// Queues of the device; requests to each are fetched in their order.
    fn queues(&self) -> u16 {
        1
    }

    /// Whether another request may be submitted to `queue`.
    fn can_accept(&self, queue: u16) -> bool;

    /// Requests submitted and not completed.
    fn in_flight(&self) -> u32;

    /// Sums over requests.
    fn host_counts(&self) -> &HostCounts;

    /// Work that the device has done on its flash; `None` if it does not report that.
    fn flash_work(&self) -> Option<FlashWork> {
        None
    }

    /// Whether it refuses to write for good.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Prefetches what the device has to know for a request at `offset`, which will be submitted
    /// soon. This takes no simulated time.
    fn prefetch(&self, _offset: u64) {}

    /// Submits a request without bytes at `now`, which is not before [`BlockDevice::now`]. What it
    /// writes is unspecified content, and what it reads is dropped.
    ///
    /// # Errors
    /// [`SubmitError`]; the device is unchanged.
    ///
    /// # Panics
    /// If `now` lies in the past, or after an event that is pending ([`BlockDevice::advance`]
    /// first).
    fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError>;

    /// As [`BlockDevice::submit`], with the bytes of a write, or with a buffer for those of a read.
    /// The buffer of another request comes back unchanged.
    ///
    /// # Errors
    /// [`Refused`] with the buffer; the device is unchanged.
    ///
    /// # Panics
    /// As [`BlockDevice::submit`]; if the buffer of a read or write has another length than the
    /// request.
    fn submit_bytes(
        &mut self,
        request: Request,
        bytes: Vec<u8>,
        now: SimTime,
    ) -> Result<(), Refused>;

    /// The buffer of the first request to complete, of those that were submitted with one, whose
    /// buffer was not taken yet, and the tag of the request: so buffers come in the order of their
    /// completions. After a read that succeeded it has the bytes read. `None` if there is no other.
    fn take_bytes(&mut self) -> Option<(u64, Vec<u8>)>;

    /// The time of the next event; `None` if the device is idle.
    fn next_event(&self) -> Option<SimTime>;

    /// Lets time pass until the next event, which may complete requests. These are added to `out`.
    ///
    /// # Panics
    /// If there is no event.
    fn step(&mut self, out: &mut Vec<Completion>);

    /// Lets time pass until requests complete. Returns false if the device is idle before that.
    fn next_completion(&mut self, out: &mut Vec<Completion>) -> bool {
        self.next_completion_before(SimTime::NEVER, out)
    }

    /// As [`BlockDevice::next_completion`], but leaves the events at `end` and later.
    fn next_completion_before(&mut self, end: SimTime, out: &mut Vec<Completion>) -> bool {
        let before = out.len();
        while out.len() == before {
            if self.next_event().is_none_or(|at| at >= end) {
                return false;
            }
            self.step(out);
        }
        true
    }

    /// Lets time pass until `until`, events at that time included. Requests that complete are added
    /// to `out`, in the order in which they do.
    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>);

    /// Checks the conservation laws that hold at any time.
    ///
    /// # Panics
    /// If one is violated.
    fn assert_conserved(&self) {
        self.host_counts().assert_conserved(self.in_flight());
    }
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Why.
    pub error: SubmitError,
    /// The buffer that was submitted with it.
    pub bytes: Vec<u8>,
}

impl Request {
    /// Checks that a buffer of `bytes` bytes suits the request.
    ///
    /// # Panics
    /// If it does not, which is a bug of the caller.
    pub fn check_buffer(&self, bytes: usize) {
        let transfers = self.op == HostOp::Read || self.op.is_write();
        let suits = !transfers || bytes as u64 == self.len;
        assert!(suits, "a buffer of {bytes} bytes for {self:?}");
    }
}

/// Sums over the requests to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Requests submitted, flushes included.
    pub submitted: u64,
    /// Requests completed, flushes included.
    pub completed: u64,
    /// Of these, requests that failed ([`Status`]).
    pub failed: u64,
    /// Bytes of completed writes.
    pub bytes_written: u64,
    /// Bytes of completed reads.
    pub bytes_read: u64,
    /// Integral of requests in flight over time, in nanoseconds.
    pub in_flight_ns: u128,
    /// Sum of the latencies of completed requests, in nanoseconds.
    pub latency_ns: u128,
}

impl HostCounts {
    /// Checks that no request was lost and, if none is in flight, Little's law, exactly.
    ///
    /// # Panics
    /// If one is violated.
    pub fn assert_conserved(&self, in_flight: u32) {
        let accounted = self.completed + u64::from(in_flight);
        assert_eq!(self.submitted, accounted, "requests submitted = completed + in flight");
        if in_flight == 0 {
            let (depth, latency) = (self.in_flight_ns, self.latency_ns);
            assert_eq!(depth, latency, "integral of queue depth = sum of latencies");
        }
    }
}
