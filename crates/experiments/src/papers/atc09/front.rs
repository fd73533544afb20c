//! A queue in front of a drive: requests as they arrive, or merged and aligned.
//!
//! Section 3.4 compares "issuing the writes as they arrive" with "merging and aligning writes on
//! logical page boundaries". Here the drive is given so many commands at a time, oldest first.
//! The aligned scheme cuts writes at the boundaries of logical pages; a piece takes along all
//! that wait for the same page and adjoin it, and may wait for more of its page to come. A
//! request is complete when all its pieces are on flash.

use std::collections::VecDeque;

use prism_base::{Nanos, Rng, SimTime};
use prism_ssd::{Completion, Drive, HostOp, Request};

use crate::load::{Action, Host, run};

/// What is done with writes that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Nothing.
    AsTheyArrive,
    /// They are merged and aligned; a part of a page waits so long for its rest.
    Aligned { wait: Nanos },
}

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// So many are outstanding at any time.
    Closed {
        /// How many.
        depth: u32,
    },
    /// One every 0 to `gap_max`, uniform, as in the runs of the paper's simulator.
    Open {
        /// The longest gap, twice the mean.
        gap_max: Nanos,
    },
}

/// A request of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    pub(super) op: HostOp,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// A request, or the part of it in one logical page.
#[derive(Clone, Copy, Debug)]
struct Piece {
    owner: u32,
    op: HostOp,
    begin: u64,
    end: u64,
    at: SimTime,
}

/// A request that is not complete.
#[derive(Clone, Copy, Debug)]
struct Owner {
    arrived: SimTime,
    left: u32,
}

/// A host's queue, from which the drive is given one command at a time.
pub(super) struct Front<N> {
    scheme: Scheme,
    arrivals: Arrivals,
    /// Requests of the run.
    count: u64,
    /// Bytes of a logical page.
    page: u64,
    next: N,
    gaps: Rng,
    /// When the next request arrives in an open loop.
    due: SimTime,
    waiting: VecDeque<Piece>,
    owners: Vec<Owner>,
    /// The requests that wait for each command given to the drive.
    commands: Vec<Vec<u32>>,
    completed: u64,
    response_ns: u128,
}

/// Mean response in milliseconds of `count` requests of `next`.
pub(super) fn mean_response(
    mut drive: Drive,
    scheme: Scheme,
    arrivals: Arrivals,
    count: u64,
    seed: u64,
    next: impl FnMut() -> Io,
) -> f64 {
    let mut front = Front::new(&drive, scheme, arrivals, count, seed, next);
    run(&mut drive, &mut front);
    front.response_ns as f64 / count as f64 / 1e6
}

impl<N: FnMut() -> Io> Host<Drive> for Front<N> {
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

impl<N> Front<N> {
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
            waiting: VecDeque::new(),
            owners: Vec::new(),
            commands: Vec::new(),
            completed: 0,
            response_ns: 0,
        }
    }

    /// Whether a request arrives now; in an open loop the next one is then due later.
    fn arrives(&mut self, now: SimTime) -> bool {
        let arrived = self.owners.len() as u64;
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

    /// When the next request arrives whatever completes.
    fn next_arrival(&self) -> SimTime {
        match self.arrivals {
            Arrivals::Open { .. } if (self.owners.len() as u64) < self.count => self.due,
            _ => SimTime::NEVER,
        }
    }

    fn arrive(&mut self, io: Io, at: SimTime) {
        let owner = self.owners.len() as u32;
        let (mut begin, end) = (io.offset, io.offset + io.len);
        let cut = io.op == HostOp::Write && self.scheme != Scheme::AsTheyArrive;
        let mut left = 0;
        while begin < end {
            let to = if cut { end.min((begin / self.page + 1) * self.page) } else { end };
            self.waiting.push_back(Piece { owner, op: io.op, begin, end: to, at });
            begin = to;
            left += 1;
        }
        self.owners.push(Owner { arrived: at, left });
    }

    fn complete(&mut self, command: usize, now: SimTime) {
        for owner in std::mem::take(&mut self.commands[command]) {
            let owner = &mut self.owners[owner as usize];
            owner.left -= 1;
            if owner.left == 0 {
                self.completed += 1;
                self.response_ns += u128::from(now.since(owner.arrived).0);
            }
        }
    }

    /// The next command for the drive, or when something that waits for the rest of its page
    /// has waited long enough.
    fn dispatch(&mut self, now: SimTime) -> Result<Request, SimTime> {
        let mut wake = SimTime::NEVER;
        for place in 0..self.waiting.len() {
            let (begin, end) = self.merged(place);
            let piece = self.waiting[place];
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

    /// Until when `piece`, which has grown to `len` bytes, waits.
    fn deadline(&self, piece: &Piece, len: u64) -> SimTime {
        match self.scheme {
            Scheme::Aligned { wait } if piece.op == HostOp::Write && len < self.page => {
                piece.at + wait
            }
            Scheme::Aligned { .. } | Scheme::AsTheyArrive => piece.at,
        }
    }

    /// Whether `other` may become one command with something in the page of `begin`.
    fn joins(&self, other: &Piece, begin: u64) -> bool {
        self.scheme != Scheme::AsTheyArrive
            && other.op == HostOp::Write
            && other.begin / self.page == begin / self.page
    }

    /// What the piece at `place` grows to with those that wait and adjoin it.
    fn merged(&self, place: usize) -> (u64, u64) {
        let first = self.waiting[place];
        let (mut begin, mut end) = (first.begin, first.end);
        if first.op != HostOp::Write || self.scheme == Scheme::AsTheyArrive {
            return (begin, end);
        }
        loop {
            let before = (begin, end);
            for other in self.waiting.iter().filter(|other| self.joins(other, first.begin)) {
                if other.begin <= end && other.end >= begin {
                    (begin, end) = (begin.min(other.begin), end.max(other.end));
                }
            }
            if (begin, end) == before {
                return before;
            }
        }
    }

    /// Takes out the piece at `place` and those that it has taken along; returns whose they
    /// are.
    fn take(&mut self, place: usize, begin: u64, end: u64) -> Vec<u32> {
        let piece = self.waiting[place];
        if piece.op != HostOp::Write || self.scheme == Scheme::AsTheyArrive {
            self.waiting.remove(place);
            return vec![piece.owner];
        }
        let inside =
            |other: &Piece| other.op == HostOp::Write && other.begin >= begin && other.end <= end;
        let owners = self.waiting.iter().filter(|other| inside(other)).map(|other| other.owner);
        let owners = owners.collect();
        self.waiting.retain(|other| !inside(other));
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

    /// Reads to complete pages, and pages written, for writes that are all there at once.
    fn check(scheme: Scheme, writes: &[(u64, u64)], expected: (u64, u64)) {
        let (mut drive, count) = (drive(), writes.len());
        let mut all = writes.iter();
        let next = || {
            let &(offset, len) = all.next().expect("count requests at most");
            Io { op: HostOp::Write, offset, len }
        };
        let arrivals = Arrivals::Closed { depth: count as u32 };
        let mut front = Front::new(&drive, scheme, arrivals, count as u64, 1, next);
        run(&mut drive, &mut front);
        let counts = drive.flash_counts();
        let found = (counts.reads[Cause::Rmw] / 8, counts.units[Cause::Host]);
        assert_eq!(found, expected, "{scheme:?} {writes:?}");
    }

    #[test]
    fn neighbours_become_one_page() {
        let aligned = Scheme::Aligned { wait: Nanos(0) };
        let quarter = PAGE / 4;
        let parts: Vec<(u64, u64)> = (0..4).map(|n| (n * quarter, quarter)).collect();
        check(Scheme::AsTheyArrive, &parts, (4, 4));
        check(aligned, &parts, (0, 1));
        // With a gap between them nothing is merged.
        check(aligned, &[(0, quarter), (2 * quarter, quarter)], (2, 2));
        // A write over three pages, of which the middle one is whole, and its neighbour.
        let long = (PAGE - quarter, PAGE + 2 * quarter);
        check(Scheme::AsTheyArrive, &[long], (2, 3));
        check(aligned, &[long], (2, 3));
        check(aligned, &[long, (2 * PAGE + quarter, 3 * quarter)], (1, 3));
    }

    #[test]
    fn a_part_waits_for_its_rest_and_no_longer() {
        let response = |wait| {
            let scheme = Scheme::Aligned { wait: Nanos(wait) };
            let io = Io { op: HostOp::Write, offset: 0, len: 4096 };
            mean_response(drive(), scheme, Arrivals::Closed { depth: 1 }, 1, 1, || io)
        };
        let (at_once, later) = (response(0), response(3_000_000));
        assert!((later - at_once - 3.0).abs() < 1e-9, "{at_once} ms, {later} ms");
    }
}
