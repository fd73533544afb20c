//! A queue in front of a drive: requests as they arrive, or merged and aligned.
//!
//! Section 3.4 compares "issuing the writes as they arrive" with "merging and aligning writes on
//! logical page boundaries". Here the drive is given so many commands at a time, oldest first.
//! The aligned scheme cuts writes at the boundaries of logical pages; a piece takes along all
//! that wait for the same page and adjoin it, and may wait for more of its page to come. A
//! request is complete when all its pieces are on flash.

use std::collections::VecDeque;

use prism_base::{Nanos, Rng, SimTime};
use prism_ssd::{Drive, HostOp, Request};

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

/// Drive and queue.
pub(super) struct Front {
    drive: Drive,
    scheme: Scheme,
    /// Commands that the drive is given at once.
    in_service: u32,
    page: u64,
    waiting: VecDeque<Piece>,
    owners: Vec<Owner>,
    /// Who waits for each command given to the drive.
    commands: Vec<Vec<u32>>,
    completed: u64,
    response_ns: u128,
}

impl Front {
    pub(super) fn new(drive: Drive, scheme: Scheme, in_service: u32) -> Self {
        Self {
            page: drive.device().ftl.mapping_unit.0,
            drive,
            scheme,
            in_service,
            waiting: VecDeque::new(),
            owners: Vec::new(),
            commands: Vec::new(),
            completed: 0,
            response_ns: 0,
        }
    }

    /// Mean response in milliseconds of `count` requests of `next`.
    pub(super) fn run(
        mut self,
        arrivals: Arrivals,
        count: u64,
        seed: u64,
        mut next: impl FnMut() -> Io,
    ) -> f64 {
        let mut gaps = Rng::stream(seed, "atc09.gaps");
        let mut due = SimTime::ZERO;
        let mut done = Vec::new();
        while self.completed < count {
            let arrived = self.owners.len() as u64;
            let now = self.drive.now();
            let outstanding = arrived - self.completed;
            let comes = arrived < count
                && match arrivals {
                    Arrivals::Closed { depth } => outstanding < u64::from(depth),
                    Arrivals::Open { .. } => due <= now,
                };
            if comes {
                if let Arrivals::Open { gap_max } = arrivals {
                    due += Nanos(gaps.below(gap_max.0));
                }
                self.arrive(next(), now);
                continue;
            }
            let wake = self.dispatch();
            let opens = matches!(arrivals, Arrivals::Open { .. }) && arrived < count;
            let arrival = if opens { due } else { SimTime::NEVER };
            let other = arrival.min(wake);
            match self.drive.next_event() {
                Some(at) if at <= other => self.drive.step(&mut done),
                _ => self.drive.advance(other, &mut done),
            }
            let now = self.drive.now();
            for completion in done.drain(..) {
                self.complete(completion.tag as usize, now);
            }
        }
        self.drive.assert_conserved();
        self.response_ns as f64 / count as f64 / 1e6
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

    /// Gives the drive what it may have; returns when something that waits for the rest of
    /// its page has waited long enough.
    fn dispatch(&mut self) -> SimTime {
        let now = self.drive.now();
        let mut wake = SimTime::NEVER;
        let mut place = 0;
        while self.drive.in_flight() < self.in_service && place < self.waiting.len() {
            let (begin, end) = self.merged(place);
            let piece = self.waiting[place];
            let until = self.deadline(&piece, end - begin);
            if until > now {
                wake = wake.min(until);
                place += 1;
                continue;
            }
            let tag = self.commands.len() as u64;
            let request = Request::new(piece.op, begin, end - begin, tag);
            self.drive.submit(request, now).expect("its queue is deeper, and it is large enough");
            let taken = self.take(place, begin, end);
            self.commands.push(taken);
            // What was looked at before has nothing new to wait for.
        }
        wake
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
    use prism_ssd::{Device, InitialState, fit};

    use super::*;

    const PAGE: u64 = 32 << 10;

    fn drive() -> Drive {
        let device = Device::preset("atc09-gang").expect("a preset");
        let device = fit(&device, Bytes(256 << 20)).expect("a smaller one").device;
        let made = Drive::prepared(device, InitialState::Filled, 1, |_, _| true);
        made.expect("a sound device").expect("nobody gives up").0
    }

    /// Reads to complete pages, and pages written, for writes that are all there at once.
    fn check(scheme: Scheme, writes: &[(u64, u64)], expected: (u64, u64)) {
        let mut front = Front::new(drive(), scheme, 1);
        for &(offset, len) in writes {
            front.arrive(Io { op: HostOp::Write, offset, len }, SimTime::ZERO);
        }
        let mut done = Vec::new();
        while front.completed < writes.len() as u64 {
            let wake = front.dispatch();
            match front.drive.next_event() {
                Some(at) if at <= wake => front.drive.step(&mut done),
                _ => front.drive.advance(wake, &mut done),
            }
            let now = front.drive.now();
            done.drain(..).for_each(|one| front.complete(one.tag as usize, now));
        }
        let counts = front.drive.flash_counts();
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
            let front = Front::new(drive(), Scheme::Aligned { wait: Nanos(wait) }, 1);
            let io = Io { op: HostOp::Write, offset: 0, len: 4096 };
            front.run(Arrivals::Closed { depth: 1 }, 1, 1, || io)
        };
        let (at_once, later) = (response(0), response(3_000_000));
        assert!((later - at_once - 3.0).abs() < 1e-9, "{at_once} ms, {later} ms");
    }
}
