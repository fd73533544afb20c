//! The host link: when the data of a command has crossed it.

use prism_base::{Bytes, Nanos, SimTime};
use prism_nand::timing::transfer_time;

use crate::spec::{ControllerSpec, Duplex};

/// A link on which transfers are made in the order of the calls. Commands and completions take no
/// time on it.
#[derive(Debug)]
pub(super) struct Link {
    bandwidth: Option<u64>,
    duplex: Duplex,
    /// When it is free for data from the host, and for data to the host.
    free: [SimTime; 2],
    /// The length of the last transfer and its time: most transfers are as long as the last one,
    /// which saves a division.
    last: (u64, Nanos),
}

impl Link {
    pub(super) fn new(spec: &ControllerSpec) -> Self {
        Self {
            bandwidth: spec.link_bandwidth,
            duplex: spec.link_duplex,
            free: [SimTime::ZERO; 2],
            last: (0, Nanos::ZERO),
        }
    }

    /// Transfers `len` bytes from the host, from `begin` on or when the link is free. Returns the
    /// end.
    #[inline]
    pub(super) fn receive(&mut self, begin: SimTime, len: u64) -> SimTime {
        let time = self.time(len);
        self.occupy(0, begin, time)
    }

    /// As [`Link::receive`], to the host.
    #[inline]
    pub(super) fn send(&mut self, begin: SimTime, len: u64) -> SimTime {
        let time = self.time(len);
        self.occupy(1, begin, time)
    }

    /// Occupies the direction to the host for `time`.
    pub(super) fn occupy_out(&mut self, begin: SimTime, time: Nanos) -> SimTime {
        self.occupy(1, begin, time)
    }

    #[inline]
    fn occupy(&mut self, direction: usize, begin: SimTime, time: Nanos) -> SimTime {
        let end = begin.max(self.free[direction]) + time;
        match self.duplex {
            Duplex::Full => self.free[direction] = end,
            Duplex::Half => self.free = [end; 2],
        }
        end
    }

    #[inline]
    fn time(&mut self, len: u64) -> Nanos {
        if self.last.0 != len {
            let time = self.bandwidth.map_or(Nanos::ZERO, |rate| transfer_time(Bytes(len), rate));
            self.last = (len, time);
        }
        self.last.1
    }
}
