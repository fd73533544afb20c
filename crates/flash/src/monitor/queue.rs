//! Operations of a share in flight on a device without timing. No lock is held while they are.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_base::{Nanos, SimTime, Slab};
use prism_nand::Cause;

use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::medium::{ImmediateQueue, MediumError, MediumQueue, Op, PageState, Reply, Request};
use crate::monitor::state::{Access, Program, Unsynced};
use crate::monitor::{Share, Urgency};

/// An operation on a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareOp {
    /// Reads from `offset` of a page on.
    Read { block: u32, page: u32, offset: u32 },
    /// Programs pages.
    Program { block: u32, page: u32 },
    /// Erases a block, after the operations on it that were submitted before.
    Erase { block: u32 },
    /// Makes durable what was complete when it was submitted, and the programs of this queue that
    /// were submitted before.
    Sync,
}

impl ShareOp {
    pub(crate) fn block(self) -> Option<u32> {
        match self {
            Self::Read { block, .. } | Self::Program { block, .. } | Self::Erase { block } => {
                Some(block)
            }
            Self::Sync => None,
        }
    }

    /// The page; 0 for operations on none.
    pub(crate) fn page(self) -> u32 {
        match self {
            Self::Read { page, .. } | Self::Program { page, .. } => page,
            Self::Erase { .. } | Self::Sync => 0,
        }
    }
}

/// An operation with its memory.
#[derive(Debug)]
struct Task {
    number: u64,
    tag: u64,
    op: ShareOp,
    data: Buffer,
    oob: Vec<u8>,
    /// It was out of order on a block that was replaced, and waits for earlier programs.
    again: bool,
}

/// What is in flight.
#[derive(Debug, Default)]
enum Flight {
    #[default]
    None,
    Read {
        number: u64,
        tag: u64,
        op: ShareOp,
        virtual_block: u32,
        entry: u64,
    },
    Program {
        number: u64,
        tag: u64,
        op: ShareOp,
        program: Program,
    },
    Sync {
        tag: u64,
        number: u64,
        marks: Unsynced,
    },
}

/// A completed operation.
#[derive(Debug)]
pub(crate) struct ShareReply {
    pub(crate) tag: u64,
    pub(crate) op: ShareOp,
    /// Its end, on a device with timing.
    pub(crate) end: SimTime,
    pub(crate) result: Result<PageState>,
    pub(crate) data: Buffer,
    /// Its out-of-band bytes.
    pub(crate) oob: Vec<u8>,
}

/// Operations of one thread at a time.
///
/// A read waits for programs of its pages that were submitted before, an erase for everything on
/// its block, a sync for all programs; nothing else waits.
pub(crate) struct ShareQueue {
    share: Share,
    medium: Box<dyn MediumQueue>,
    flights: Slab<Flight>,
    in_flight: usize,
    waiting: VecDeque<Task>,
    done: VecDeque<ShareReply>,
    /// Programs that are complete before earlier ones of their block, which they wait for: until
    /// then their pages do not count. By number, with the block.
    held: BTreeMap<u64, (u32, ShareReply)>,
    submitted: u64,
    /// Programs in flight by number: block and first page.
    programs: BTreeMap<u64, (u32, u32)>,
}

impl std::fmt::Debug for ShareQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in flight, {} waiting", self.in_flight, self.waiting.len())
    }
}

impl ShareQueue {
    pub(crate) fn new(share: &Share, depth: usize) -> Self {
        let medium = &share.path().medium;
        let queue = Arc::clone(medium).queue(depth);
        let immediate = || Box::new(ImmediateQueue::new(Arc::clone(medium))) as _;
        Self {
            share: share.clone(),
            medium: queue.unwrap_or_else(immediate),
            flights: Slab::new(),
            in_flight: 0,
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            held: BTreeMap::new(),
            submitted: 0,
            programs: BTreeMap::new(),
        }
    }

    /// Operations whose reply was not taken.
    pub(crate) fn len(&self) -> usize {
        self.in_flight + self.waiting.len() + self.done.len() + self.held.len()
    }

    /// Completes an operation that needs no work of the device, or was refused.
    pub(crate) fn done_at_once(&mut self, tag: u64, result: Result<()>, data: Buffer) {
        let result = result.map(|()| PageState::Written);
        self.done_now(tag, ShareOp::Sync, result, (data, Vec::new()));
    }

    fn done_now(
        &mut self,
        tag: u64,
        op: ShareOp,
        result: Result<PageState>,
        (data, oob): (Buffer, Vec<u8>),
    ) {
        let end = SimTime::ZERO;
        self.done.push_back(ShareReply { tag, op, end, result, data, oob });
    }

    /// Submits an operation; it does not wait for the device.
    pub(crate) fn submit(&mut self, tag: u64, op: ShareOp, data: Buffer, oob: Vec<u8>) {
        self.submitted += 1;
        let task = Task { number: self.submitted, tag, op, data, oob, again: false };
        if self.is_blocked(&task, self.waiting.len()) {
            self.waiting.push_back(task);
        } else {
            self.begin(task);
        }
    }

    /// Whether a task has to wait for others; `before` of those that wait were submitted earlier.
    fn is_blocked(&self, task: &Task, before: usize) -> bool {
        if self.waiting.is_empty() && self.programs.is_empty() && self.in_flight == 0 {
            return false;
        }
        let mut earlier = self.waiting.iter().take(before);
        match task.op {
            ShareOp::Sync => {
                let first = self.programs.keys().next();
                first.is_some_and(|&number| number < task.number)
                    || earlier.any(|other| matches!(other.op, ShareOp::Program { .. }))
            }
            ShareOp::Read { block, page, offset } => {
                let bytes = u64::from(offset) + task.data.len() as u64;
                let end = u64::from(page) + bytes / u64::from(self.share.path().page_size);
                self.programs.values().any(|&(of, first)| of == block && u64::from(first) <= end)
                    || earlier.any(|other| other.op.block() == Some(block))
            }
            ShareOp::Program { block, .. } => {
                let behind =
                    |(&number, &(of, _)): (&u64, &(u32, u32))| of == block && number < task.number;
                task.again && self.programs.iter().any(behind)
                    || earlier.any(|other| other.op.block() == Some(block))
            }
            ShareOp::Erase { block } => {
                let on_block = |place: u32| match &self.flights[place] {
                    Flight::Read { op, .. } | Flight::Program { op, .. } => {
                        op.block() == Some(block)
                    }
                    Flight::None | Flight::Sync { .. } => false,
                };
                (0..self.flights.places()).any(on_block)
                    || earlier.any(|other| other.op.block() == Some(block))
            }
        }
    }

    fn access(block: u32, page: u32) -> Access {
        let (ready, urgency) = (SimTime::ZERO, Urgency::Normal);
        Access { block, page, cause: Cause::Host, ready, urgency }
    }

    fn begin(&mut self, task: Task) {
        let Task { number, tag, op, data, oob, .. } = task;
        let begun = match op {
            ShareOp::Read { block, page, offset } => {
                let path = self.share.path();
                let open = path.check_open().and_then(|()| path.check_page(page));
                open.and_then(|()| path.virtual_block(block)).map(|virtual_block| {
                    let entry = path.map.entry(virtual_block);
                    let flight = Flight::Read { number, tag, op, virtual_block, entry };
                    (flight, Op::Read { block: entry as u32, page, offset })
                })
            }
            ShareOp::Program { block, page } => {
                let pages = (data.len() / self.share.path().page_size as usize) as u32;
                let program = self.share.begin_program(Self::access(block, page), pages);
                program.map(|program| {
                    self.programs.insert(number, (block, page));
                    let flight = Flight::Program { number, tag, op, program };
                    (flight, Op::Program { block: program.block, page })
                })
            }
            ShareOp::Erase { block } => {
                let erased = self.share.erase(Self::access(block, 0));
                let result = erased.map(|_| PageState::Erased);
                return self.done_now(tag, op, result, (data, oob));
            }
            ShareOp::Sync => self
                .share
                .begin_sync()
                .map(|(number, marks)| (Flight::Sync { tag, number, marks }, Op::Sync)),
        };
        match begun {
            Ok((flight, op)) => {
                let place = self.flights.take();
                self.flights[place] = flight;
                self.in_flight += 1;
                self.medium.submit(Request { tag: place.into(), op, data, oob });
            }
            Err(error) => self.done_now(tag, op, Err(error), (data, oob)),
        }
    }

    fn process(&mut self, reply: Reply) {
        let place = reply.tag as u32;
        let flight = std::mem::take(&mut self.flights[place]);
        self.flights.give(place);
        self.in_flight -= 1;
        let Reply { result, data, oob, .. } = reply;
        match flight {
            Flight::None => unreachable!("the medium replies to requests"),
            Flight::Read { number, tag, op, virtual_block, entry } => {
                let path = self.share.path();
                let (block, page) = (op.block().unwrap_or(0), op.page());
                let still_there = path.virtual_block(block) == Ok(virtual_block);
                if !still_there || path.map.entry(virtual_block) != entry {
                    // The block moved, was erased or went to another share meanwhile.
                    self.begin(Task { number, tag, op, data, oob, again: false });
                } else {
                    let result = result.map_err(|error| path.named(error, block, page));
                    if let (Ok(_), ShareOp::Read { offset, .. }) = (&result, op) {
                        path.count_read(Cause::Host, offset, data.len());
                    }
                    self.done_now(tag, op, result, (data, oob));
                }
            }
            Flight::Program { number, tag, op, program } => {
                self.end_program(number, tag, op, program, result, (data, oob));
            }
            Flight::Sync { tag, number, marks } => {
                let ended = self.share.end_sync(number, marks, result.map(drop));
                let result = ended.map(|()| PageState::Written);
                self.done_now(tag, ShareOp::Sync, result, (data, oob));
            }
        }
        self.release_held();
        self.begin_waiting();
    }

    /// Completes programs without earlier ones of their block in flight.
    fn release_held(&mut self) {
        let programs = &self.programs;
        let is_first = |number: &u64, block: u32| {
            programs.range(..number).all(|(_, &(other, _))| other != block)
        };
        let free = |(number, held): &(&u64, &(u32, ShareReply))| is_first(number, held.0);
        let numbers: Vec<u64> = self.held.iter().filter(free).map(|(&number, _)| number).collect();
        for number in numbers {
            self.done.extend(self.held.remove(&number).map(|(_, reply)| reply));
        }
    }

    fn end_program(
        &mut self,
        number: u64,
        tag: u64,
        op: ShareOp,
        program: Program,
        result: Result<PageState, MediumError>,
        (data, oob): (Buffer, Vec<u8>),
    ) {
        self.programs.remove(&number);
        let (block, page) = (op.block().unwrap_or(0), op.page());
        let earlier = |(&other, &(of, _)): (&u64, &(u32, u32))| of == block && other < number;
        let again = self.programs.iter().any(earlier);
        let out_of_order = matches!(result, Err(MediumError::OutOfOrder { .. }));
        let access = Self::access(block, page);
        match self.share.end_program(access, program, result.map(drop)) {
            Ok(None) => {
                let (end, result) = (SimTime::ZERO, Ok(PageState::Written));
                self.held.insert(number, (block, ShareReply { tag, op, end, result, data, oob }));
            }
            Ok(Some(next)) if next > page => self.program_rest(tag, op, next, data),
            Ok(Some(_)) => self.begin(Task { number, tag, op, data, oob, again: false }),
            Err(FlashError::OutOfOrder { .. }) if out_of_order && again => {
                // An earlier program of the block failed and is on its way to another block.
                let after = self.waiting.iter().position(|other| other.number > number);
                let task = Task { number, tag, op, data, oob, again: true };
                self.waiting.insert(after.unwrap_or(self.waiting.len()), task);
            }
            Err(error) => self.done_now(tag, op, Err(error), (data, oob)),
        }
    }

    /// Some pages of a program were programmed before the block failed: programs the others, and
    /// waits for them, as this is rare.
    fn program_rest(&mut self, tag: u64, op: ShareOp, next: u32, data: Buffer) {
        let (block, page) = (op.block().unwrap_or(0), op.page());
        let done = (next - page) as usize * self.share.path().page_size as usize;
        let rest = self.share.program(Self::access(block, next), &data[done..], &[]);
        let result = rest.map(|_| PageState::Written);
        self.done_now(tag, op, result, (data, Vec::new()));
    }

    fn begin_waiting(&mut self) {
        let mut place = 0;
        while place < self.waiting.len() {
            if self.is_blocked(&self.waiting[place], place) {
                place += 1;
            } else {
                let task = self.waiting.remove(place).expect("just seen");
                self.begin(task);
            }
        }
    }

    /// Takes a reply, if there is one, without waiting. Only one reply of the medium is processed:
    /// the caller's next operation goes to the device before the next data is checked.
    pub(crate) fn take(&mut self) -> Option<ShareReply> {
        loop {
            if let Some(reply) = self.done.pop_front() {
                return Some(reply);
            }
            let reply = self.medium.take()?;
            self.process(reply);
        }
    }

    /// Begins the next sync together with the programs that it waits for, if a caller waits without
    /// a time limit and has nothing else in flight.
    fn sync_in_flight(&mut self) {
        let only_programs = self.in_flight > 0 && self.in_flight == self.programs.len();
        let is_next = self.waiting.front().is_some_and(|task| task.op == ShareOp::Sync);
        if !only_programs || !is_next || !self.medium.can_sync_in_flight() {
            return;
        }
        let Some(Task { tag, op, data, oob, .. }) = self.waiting.pop_front() else { return };
        match self.share.begin_sync() {
            Ok((number, marks)) => {
                let place = self.flights.take();
                self.flights[place] = Flight::Sync { tag, number, marks };
                self.in_flight += 1;
                self.medium.sync_in_flight(place.into());
            }
            Err(error) => self.done_now(tag, op, Err(error), (data, oob)),
        }
    }

    /// Waits for a reply; false if `timeout` is over, or nothing is in flight.
    pub(crate) fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        while self.done.is_empty() {
            if timeout.is_none() {
                self.sync_in_flight();
            }
            if !self.medium.wait(timeout) {
                return false;
            }
            match self.medium.take() {
                Some(reply) => self.process(reply),
                None => return false,
            }
        }
        true
    }

    /// See [`MediumQueue::event_fd`].
    pub(crate) fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.medium.event_fd()
    }
}

impl Drop for ShareQueue {
    /// Waits for the operations in flight; those that wait for others are not begun.
    fn drop(&mut self) {
        self.waiting.clear();
        while self.in_flight > 0 && self.medium.wait(None) {
            while let Some(reply) = self.medium.take() {
                self.process(reply);
            }
        }
    }
}
