//! The queues of the LUNs of a device with timing, and the scheduler.
//!
//! The scheduler chooses the next command of a LUN when the LUN becomes free: reads go before
//! writes, writes before erases. To prevent starvation, at most [`PASSED_MAX`] pages of later
//! commands go before a command. Never reordered are: writes on one LUN; a read of a page and an
//! earlier write of it; an erase and earlier commands on its block.

use std::collections::{BTreeSet, VecDeque};

use prism_base::SimTime;

use crate::buffer::Buffer;

/// Pages of later commands that may go before a queued one: the number that the schedulers of the
/// simulated drive allow, so that a stream of reads delays a write for some milliseconds.
pub const PASSED_MAX: u64 = 64;

/// Classes of commands, by priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Read,
    Write,
    Erase,
}

/// A command on pages of one block, some of which may be complete.
#[derive(Debug)]
pub(super) struct Item {
    /// Number in the order of submission.
    pub(super) number: u64,
    /// The queue and the tag; `None` for a blocking call.
    pub(super) tag: Option<(u64, u64)>,
    pub(super) block: u32,
    /// The next page.
    pub(super) page: u32,
    /// Pages left.
    pub(super) left: u32,
    /// Bytes that are complete.
    pub(super) done: usize,
    pub(super) data: Buffer,
    /// Out-of-band bytes of the first page.
    pub(super) oob: Vec<u8>,
    pub(super) submitted: SimTime,
    /// Pages of classes of higher priority, submitted to its LUN before.
    ahead: u64,
}

impl Item {
    pub(super) fn new(
        number: u64,
        tag: Option<(u64, u64)>,
        (block, page, left): (u32, u32, u32),
        (data, oob): (Buffer, Vec<u8>),
        submitted: SimTime,
    ) -> Self {
        Self { number, tag, block, page, left, done: 0, data, oob, submitted, ahead: 0 }
    }

    fn covers(&self, block: u32, page: u32) -> bool {
        self.block == block && (self.page..self.page + self.left).contains(&page)
    }
}

#[derive(Debug)]
struct Lun {
    /// The end of the last operation issued.
    free: SimTime,
    /// Reads and writes.
    items: [VecDeque<Item>; 2],
    erases: VecDeque<Item>,
    /// Pages of reads and of writes that were submitted, and that were issued or cancelled.
    submitted: [u64; 2],
    begun: [u64; 2],
    /// An allocation waits for an erased block of this LUN.
    urgent: bool,
    /// The command to be issued next.
    next: Option<Choice>,
}

/// The command chosen by the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Choice {
    /// When it begins.
    pub(super) ready: SimTime,
    /// 0 for a command that must not wait longer, else by class.
    rank: u8,
    number: u64,
    pub(super) lun: u32,
    pub(super) class: Class,
    /// In the queue of its class.
    place: usize,
}

/// The queues of all LUNs.
#[derive(Debug)]
pub(super) struct Queues {
    luns: Vec<Lun>,
    /// The next command of each LUN that has one, the next of all first.
    next: BTreeSet<Choice>,
    /// By block: queued reads and writes.
    waiting: Vec<u32>,
    /// Queued reads and writes, in total.
    len: usize,
    /// Queued erases, in total.
    erases: usize,
}

impl Queues {
    pub(super) fn new(luns: u32, blocks: u32) -> Self {
        let lun = || Lun {
            free: SimTime::ZERO,
            items: [VecDeque::new(), VecDeque::new()],
            erases: VecDeque::new(),
            submitted: [0; 2],
            begun: [0; 2],
            urgent: false,
            next: None,
        };
        Self {
            luns: (0..luns).map(|_| lun()).collect(),
            next: BTreeSet::new(),
            waiting: vec![0; blocks as usize],
            len: 0,
            erases: 0,
        }
    }

    /// Queued reads and writes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Queued erases.
    pub(super) fn erases(&self) -> usize {
        self.erases
    }

    /// Whether no read or write of a block is queued.
    pub(super) fn is_idle(&self, block: u32) -> bool {
        self.waiting[block as usize] == 0
    }

    /// The end of the LUN's operations in flight, and its queued pages of reads and of writes.
    pub(super) fn load(&self, lun: u32) -> (SimTime, [u64; 2]) {
        let lun = &self.luns[lun as usize];
        (lun.free, [lun.submitted[0] - lun.begun[0], lun.submitted[1] - lun.begun[1]])
    }

    /// The LUN is not free before `end`.
    pub(super) fn occupy(&mut self, lun: u32, end: SimTime) {
        let state = &mut self.luns[lun as usize];
        state.free = state.free.max(end);
        self.choose(lun);
    }

    /// Whether erases of a LUN go first.
    pub(super) fn set_urgent(&mut self, lun: u32, urgent: bool) {
        self.luns[lun as usize].urgent = urgent;
        self.choose(lun);
    }

    /// Queues a command on a LUN.
    pub(super) fn push(&mut self, lun: u32, class: Class, mut item: Item) {
        let state = &mut self.luns[lun as usize];
        item.ahead = state.submitted[..class as usize].iter().sum();
        if class == Class::Erase {
            self.erases += 1;
            state.erases.push_back(item);
        } else {
            self.len += 1;
            self.waiting[item.block as usize] += 1;
            state.submitted[class as usize] += u64::from(item.left);
            state.items[class as usize].push_back(item);
        }
        self.choose(lun);
    }

    /// Chooses the next command of a LUN again, after a change of what that depends on.
    fn choose(&mut self, lun: u32) {
        let next = self.next_of(lun);
        let known = std::mem::replace(&mut self.luns[lun as usize].next, next);
        if known != next {
            known.inspect(|known| assert!(self.next.remove(known), "it was chosen before"));
            self.next.extend(next);
        }
    }

    /// The next command: that with the earliest start; among those, by class; among those, the
    /// oldest.
    pub(super) fn next(&self) -> Option<Choice> {
        self.next.first().copied()
    }

    fn next_of(&self, number: u32) -> Option<Choice> {
        let lun = &self.luns[number as usize];
        let [reads, writes] = &lun.items;
        let depends = |read: &Item| {
            let earlier = writes.iter().take_while(|write| write.number < read.number);
            earlier.into_iter().any(|write| write.covers(read.block, read.page))
        };
        let read = reads.iter().position(|read| !depends(read));
        let write = (!writes.is_empty()).then_some(0);
        let erase = lun.erases.iter().position(|erase| self.is_idle(erase.block));
        let choice = |class: Class, queue: &VecDeque<Item>, place: Option<usize>| {
            let place = place?;
            let item = &queue[place];
            let passed = lun.begun[..class as usize].iter().sum::<u64>().saturating_sub(item.ahead);
            let first = passed >= PASSED_MAX || class == Class::Erase && lun.urgent;
            let rank = if first { 0 } else { 1 + class as u8 };
            let ready = lun.free.max(item.submitted);
            Some(Choice { ready, rank, number: item.number, lun: number, class, place })
        };
        let all = [
            choice(Class::Read, reads, read),
            choice(Class::Write, writes, write),
            choice(Class::Erase, &lun.erases, erase),
        ];
        all.into_iter().flatten().min()
    }

    /// The command that was chosen.
    pub(super) fn chosen(&mut self, choice: Choice) -> &mut Item {
        let lun = &mut self.luns[choice.lun as usize];
        match choice.class {
            Class::Erase => &mut lun.erases[choice.place],
            class => &mut lun.items[class as usize][choice.place],
        }
    }

    /// Notes that the next page of the chosen command was issued.
    pub(super) fn begun(&mut self, choice: Choice, page_size: usize) {
        let item = self.chosen(choice);
        item.page += 1;
        item.left -= 1;
        item.done += page_size;
        self.luns[choice.lun as usize].begun[choice.class as usize] += 1;
        self.choose(choice.lun);
    }

    /// Removes the chosen command; its remaining pages are cancelled.
    pub(super) fn remove(&mut self, choice: Choice) -> Item {
        let lun = &mut self.luns[choice.lun as usize];
        let item = match choice.class {
            Class::Erase => {
                self.erases -= 1;
                lun.erases.remove(choice.place)
            }
            class => {
                self.len -= 1;
                lun.items[class as usize].remove(choice.place)
            }
        };
        let item = item.expect("the chosen command is queued");
        if choice.class != Class::Erase {
            lun.begun[choice.class as usize] += u64::from(item.left);
            self.waiting[item.block as usize] -= 1;
        }
        self.choose(choice.lun);
        item
    }
}
