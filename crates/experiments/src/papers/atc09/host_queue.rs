//! A host's queue that issues requests as they arrive, or merges and aligns them.
//!
//! Section 3.4 compares "issuing the writes as they arrive" with "merging and aligning writes on
//! logical page boundaries". Here the drive gets one command at a time, the oldest first. The
//! aligned scheme cuts writes at the boundaries of logical pages. A piece is merged with all queued
//! pieces of the same page that adjoin it, and may wait for further pieces of its page. A request
//! completes when all its pieces are on flash.

use std::collections::VecDeque;

use prism_base::{Nanos, Rng, SimTime};
use prism_ssd::{Completion, Drive, HostOp, Request};

use crate::load::{Action, Host, run};

/// What the host does with queued writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// It issues them as they arrive.
    AsTheyArrive,
    /// It merges and aligns them; a part of a page waits this long for the rest of the page.
    Aligned { wait: Nanos },
}

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// In a closed loop.
    Closed {
        /// Requests in flight.
        depth: u32,
    },
    /// In an open loop, 0 to `gap_max` apart (uniform), as in the runs of the paper's simulator.
    Open {
        /// The longest time between two requests, twice the mean.
        gap_max: Nanos,
    },
}

/// A request of the workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    pub(super) op: HostOp,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// A queued request, or the part of one that lies in one logical page.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The index of its request.
    owner: u32,
    op: HostOp,
    begin: u64,
    end: u64,
    at: SimTime,
}

/// A request of which some pieces have not completed.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    arrived: SimTime,
    pieces_left: u32,
}

/// A host with a queue, which issues one command at a time.
pub(super) struct HostQueue<N> {
    scheme: Scheme,
    arrivals: Arrivals,
    /// Requests of the workload.
    count: u64,
    /// Bytes of a logical page.
    page: u64,
    next: N,
    gaps: Rng,
    /// When the next request arrives in an open loop.
    due: SimTime,
    queue: VecDeque<Piece>,
    /// All requests that have arrived.
    requests: Vec<OpenRequest>,
    /// The requests that each issued command belongs to.
    commands: Vec<Vec<u32>>,
    completed: u64,
    response_ns: u128,
}

/// Mean response in milliseconds of `count` requests that `next` returns.
pub(super) fn mean_response(
    mut drive: Drive,
    scheme: Scheme,
    arrivals: Arrivals,
    count: u64,
    seed: u64,
    next: impl FnMut() -> Io,
) -> f64 {
    let mut host = HostQueue::new(&drive, scheme, arrivals, count, seed, next);
    run(&mut drive, &mut host);
    host.response_ns as f64 / count as f64 / 1e6
}

impl<N: FnMut() -> Io> Host<Drive> for HostQueue<N> {
    fn next(&mut self, drive: &Drive) -> Action {
        let now = drive.now();
        while self.arrives(now) {
            let io = (self.next)();
            self.arrive(io, now);
        }
        if self.completed == self.count {
            return Action::End;
        }
        let mut wake = self.next_arrival();
        if drive.in_flight() == 0 {
            match self.dispatch(now) {
                Ok(request) => return Action::Submit(request),
                Err(at) => wake = wake.min(at),
            }
        }
        Action::Wait(wake)
    }

    fn completed(&mut self, done: &[Completion]) {
        for completion in done {
            self.complete(completion.tag as usize, completion.completed);
        }
    }
}

impl<N> HostQueue<N> {
    fn new(
        drive: &Drive,
        scheme: Scheme,
        arrivals: Arrivals,
        count: u64,
        seed: u64,
        next: N,
    ) -> Self {
        Self {
            scheme,
            arrivals,
            count,
            page: drive.device().ftl.mapping_unit.0,
            next,
            gaps: Rng::stream(seed, "atc09.gaps"),
            due: SimTime::ZERO,
            queue: VecDeque::new(),
            requests: Vec::new(),
            commands: Vec::new(),
            completed: 0,
            response_ns: 0,
        }
    }

    /// Whether a request arrives now; if so, an open loop draws when the next one does.
    fn arrives(&mut self, now: SimTime) -> bool {
        let arrived = self.requests.len() as u64;
        match self.arrivals {
            _ if arrived == self.count => false,
            Arrivals::Closed { depth } => arrived - self.completed < u64::from(depth),
            Arrivals::Open { gap_max } => {
                let arrives = self.due <= now;
                if arrives {
                    self.due += Nanos(self.gaps.below(gap_max.0));
                }
                arrives
            }
        }
    }

    /// When the next request of an open loop arrives.
    fn next_arrival(&self) -> SimTime {
        match self.arrivals {
            Arrivals::Open { .. } if (self.requests.len() as u64) < self.count => self.due,
            _ => SimTime::NEVER,
        }
    }

    fn arrive(&mut self, io: Io, at: SimTime) {
        let owner = self.requests.len() as u32;
        let (mut begin, end) = (io.offset, io.offset + io.len);
        let cut = io.op == HostOp::Write && self.scheme != Scheme::AsTheyArrive;
        let mut pieces_left = 0;
        while begin < end {
            let to = if cut { end.min((begin / self.page + 1) * self.page) } else { end };
            self.queue.push_back(Piece { owner, op: io.op, begin, end: to, at });
            begin = to;
            pieces_left += 1;
        }
        self.requests.push(OpenRequest { arrived: at, pieces_left });
    }

    fn complete(&mut self, command: usize, now: SimTime) {
        for owner in std::mem::take(&mut self.commands[command]) {
            let owner = &mut self.requests[owner as usize];
            owner.pieces_left -= 1;
            if owner.pieces_left == 0 {
                self.completed += 1;
                self.response_ns += u128::from(now.since(owner.arrived).0);
            }
        }
    }

    /// The next command, or else the earliest time at which a queued part of a page has waited long
    /// enough.
    fn dispatch(&mut self, now: SimTime) -> Result<Request, SimTime> {
        let mut wake = SimTime::NEVER;
        for place in 0..self.queue.len() {
            let (begin, end) = self.merged(place);
            let piece = self.queue[place];
            let until = self.deadline(&piece, end - begin);
            if until > now {
                wake = wake.min(until);
                continue;
            }
            let tag = self.commands.len() as u64;
            let taken = self.take(place, begin, end);
            self.commands.push(taken);
            return Ok(Request::new(piece.op, begin, end - begin, tag));
        }
        Err(wake)
    }

    /// The time until which `piece`, which was merged to `len` bytes, waits.
    fn deadline(&self, piece: &Piece, len: u64) -> SimTime {
        match self.scheme {
            Scheme::Aligned { wait } if piece.op == HostOp::Write && len < self.page => {
                piece.at + wait
            }
            Scheme::Aligned { .. } | Scheme::AsTheyArrive => piece.at,
        }
    }

    /// Whether `other` may be merged with a write in the page of `begin`.
    fn joins(&self, other: &Piece, begin: u64) -> bool {
        self.scheme != Scheme::AsTheyArrive
            && other.op == HostOp::Write
            && other.begin / self.page == begin / self.page
    }

    /// The range of bytes of the piece at `place`, merged with the queued pieces that adjoin it.
    fn merged(&self, place: usize) -> (u64, u64) {
        let first = self.queue[place];
        let (mut begin, mut end) = (first.begin, first.end);
        if first.op != HostOp::Write || self.scheme == Scheme::AsTheyArrive {
            return (begin, end);
        }
        loop {
            let before = (begin, end);
            for other in self.queue.iter().filter(|other| self.joins(other, first.begin)) {
                if other.begin <= end && other.end >= begin {
                    (begin, end) = (begin.min(other.begin), end.max(other.end));
                }
            }
            if (begin, end) == before {
                return before;
            }
        }
    }

    /// Removes the piece at `place` and those merged with it from the queue; returns the indices of
    /// their requests.
    fn take(&mut self, place: usize, begin: u64, end: u64) -> Vec<u32> {
        let piece = self.queue[place];
        if piece.op != HostOp::Write || self.scheme == Scheme::AsTheyArrive {
            self.queue.remove(place);
            return vec![piece.owner];
        }
        let inside =
            |other: &Piece| other.op == HostOp::Write && other.begin >= begin && other.end <= end;
        let owners = self.queue.iter().filter(|other| inside(other)).map(|other| other.owner);
        let owners = owners.collect();
        self.queue.retain(|other| !inside(other));
        owners
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;
    use prism_nand::Cause;

    use super::*;
    use crate::drives::{filled, preset, smaller};

    const PAGE: u64 = 32 << 10;

    fn drive() -> Drive {
        filled(smaller(&preset("atc09-gang"), Bytes(256 << 20)), 1)
    }

    /// Checks the reads to complete pages, and the pages written, for writes that arrive together.
    fn check(scheme: Scheme, writes: &[(u64, u64)], expected: (u64, u64)) {
        let (mut drive, count) = (drive(), writes.len());
        let mut all = writes.iter();
        let next = || {
            let &(offset, len) = all.next().expect("count requests at most");
            Io { op: HostOp::Write, offset, len }
        };
        let arrivals = Arrivals::Closed { depth: count as u32 };
        let mut host = HostQueue::new(&drive, scheme, arrivals, count as u64, 1, next);
        run(&mut drive, &mut host);
        let counts = drive.flash_counts();
        let found = (counts.reads[Cause::Rmw] / 8, counts.units[Cause::Host]);
        assert_eq!(found, expected, "{scheme:?} {writes:?}");
    }

    #[test]
    fn adjacent_writes_are_merged_into_a_page() {
        let aligned = Scheme::Aligned { wait: Nanos(0) };
        let quarter = PAGE / 4;
        let parts: Vec<(u64, u64)> = (0..4).map(|n| (n * quarter, quarter)).collect();
        check(Scheme::AsTheyArrive, &parts, (4, 4));
        check(aligned, &parts, (0, 1));
        // Writes with a gap between them are not merged.
        check(aligned, &[(0, quarter), (2 * quarter, quarter)], (2, 2));
        // A write over three pages, which fills the middle one, and an adjacent write.
        let long = (PAGE - quarter, PAGE + 2 * quarter);
        check(Scheme::AsTheyArrive, &[long], (2, 3));
        check(aligned, &[long], (2, 3));
        check(aligned, &[long, (2 * PAGE + quarter, 3 * quarter)], (1, 3));
    }

    #[test]
    fn a_part_of_a_page_waits_no_longer_than_allowed() {
        let response = |wait| {
            let scheme = Scheme::Aligned { wait: Nanos(wait) };
            let io = Io { op: HostOp::Write, offset: 0, len: 4096 };
            mean_response(drive(), scheme, Arrivals::Closed { depth: 1 }, 1, 1, || io)
        };
        let (at_once, later) = (response(0), response(3_000_000));
        assert!((later - at_once - 3.0).abs() < 1e-9, "{at_once} ms, {later} ms");
    }
}
