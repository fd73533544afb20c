//! The queues of the LUNs of a device with timing, and the choice of the next command.
//!
//! The scheduler chooses the next command of a LUN when the LUN becomes free: reads go before
//! writes, writes before erases, and an erase for which a command waits as if it were a write. To
//! prevent starvation, at most [`PASSED_MAX`] pages of later commands go before a command. Never
//! reordered are: writes of one block; a read of a page and an earlier write of it; an erase and
//! other commands on its block.

use std::collections::{BTreeSet, VecDeque};

use prism_base::SimTime;

use crate::buffer::Buffer;
use crate::monitor::{Pads, ShareOp};

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

impl Class {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Erase];

    fn of(op: ShareOp) -> Self {
        match op {
            ShareOp::Read { .. } => Self::Read,
            ShareOp::Program { .. } => Self::Write,
            ShareOp::Erase { .. } => Self::Erase,
            ShareOp::Sync => unreachable!("a sync waits for writes, not for a LUN"),
        }
    }
}

/// A command on a block. Reads and writes are issued page by page.
#[derive(Debug)]
pub(super) struct Item {
    /// Number in the order of submission.
    pub(super) number: u64,
    /// Its queue, and its tag there.
    pub(super) from: (u64, u64),
    pub(super) op: ShareOp,
    /// The next page.
    pub(super) page: u32,
    /// Pages left.
    pub(super) left: u32,
    /// Bytes that are complete.
    pub(super) done: usize,
    pub(super) data: Buffer,
    /// Out-of-band bytes of the first page.
    pub(super) oob: Vec<u8>,
    /// Of a write, pages before it that may be padded.
    pub(super) pads: Pads,
    pub(super) submitted: SimTime,
    /// A command waits for this one: an erase then has the priority of a write.
    pub(super) awaited: bool,
    /// Pages of classes of higher priority, submitted to its LUN before.
    ahead: u64,
}

impl Item {
    /// A command on `pages` pages, 0 for an erase.
    pub(super) fn new(
        (number, from): (u64, (u64, u64)),
        op: ShareOp,
        pages: u32,
        (data, oob): (Buffer, Vec<u8>),
        submitted: SimTime,
    ) -> Self {
        Self {
            number,
            from,
            op,
            page: op.page(),
            left: pages,
            done: 0,
            data,
            oob,
            pads: Pads::NONE,
            submitted,
            awaited: false,
            ahead: 0,
        }
    }

    pub(super) fn block(&self) -> u32 {
        self.op.block().expect("a command on a block")
    }

    fn covers(&self, page: u32) -> bool {
        (self.page..self.page + self.left).contains(&page)
    }
}

#[derive(Debug, Default)]
struct Lun {
    /// The end of the last operation issued.
    free: SimTime,
    /// By class, in the order of submission.
    items: [VecDeque<Item>; 3],
    /// Pages of reads and of writes that were submitted, and that were issued or cancelled.
    submitted: [u64; 2],
    begun: [u64; 2],
    /// An allocation waits for an erased block of this LUN.
    urgent: bool,
    /// The command to be issued next.
    next: Option<Choice>,
}

impl Lun {
    /// The commands of a class on the block of `item` that were submitted before it.
    fn earlier<'a>(&'a self, class: Class, item: &'a Item) -> impl Iterator<Item = &'a Item> {
        let earlier = self.items[class as usize].iter().take_while(|o| o.number < item.number);
        earlier.filter(|other| other.block() == item.block())
    }
}

/// The command chosen by the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Choice {
    /// When it begins.
    pub(super) ready: SimTime,
    /// 0 for a command that must not wait longer, else by class.
    rank: u8,
    pub(super) number: u64,
    lun: u32,
    class: Class,
    /// In the queue of its class.
    place: usize,
}

/// The queues of all LUNs of a share.
#[derive(Debug)]
pub(super) struct LunQueues {
    blocks_per_lun: u32,
    luns: Vec<Lun>,
    /// The next command of each LUN that has one, the next of all first.
    next: BTreeSet<Choice>,
    /// By block and class: queued commands.
    queued: Vec<[u32; 3]>,
}

impl LunQueues {
    pub(super) fn new(blocks_per_lun: u32) -> Self {
        let (luns, next, queued) = (Vec::new(), BTreeSet::new(), Vec::new());
        Self { blocks_per_lun, luns, next, queued }
    }

    /// The LUN of a block.
    pub(super) fn lun(&self, block: u32) -> u32 {
        block / self.blocks_per_lun
    }

    /// The LUN of a block, which gets its queues.
    fn lun_of(&mut self, block: u32) -> u32 {
        let lun = self.lun(block);
        if self.luns.len() <= lun as usize {
            self.luns.resize_with(lun as usize + 1, Lun::default);
            self.queued.resize(self.luns.len() * self.blocks_per_lun as usize, [0; 3]);
        }
        lun
    }

    /// Whether no command on the block is queued.
    pub(super) fn is_idle(&self, block: u32) -> bool {
        self.queued.get(block as usize).is_none_or(|queued| *queued == [0; 3])
    }

    /// Whether a LUN has queued erases.
    pub(super) fn has_erases(&self, lun: u32) -> bool {
        let lun = self.luns.get(lun as usize);
        lun.is_some_and(|lun| !lun.items[Class::Erase as usize].is_empty())
    }

    /// Whether reads or writes are queued.
    pub(super) fn has_pages(&self) -> bool {
        self.luns.iter().flat_map(|lun| &lun.items[..2]).any(|items| !items.is_empty())
    }

    /// The end of the LUN's operations in flight, and its queued pages of reads and of writes.
    pub(super) fn load(&self, lun: u32) -> (SimTime, [u64; 2]) {
        let pages = |lun: &Lun| [0, 1].map(|class| lun.submitted[class] - lun.begun[class]);
        let lun = self.luns.get(lun as usize);
        lun.map_or((SimTime::ZERO, [0; 2]), |lun| (lun.free, pages(lun)))
    }

    /// The LUN of the block is not free before `end`.
    pub(super) fn occupy(&mut self, block: u32, end: SimTime) {
        let number = self.lun_of(block);
        let lun = &mut self.luns[number as usize];
        lun.free = lun.free.max(end);
        self.choose(number);
    }

    /// Whether erases of a LUN go first.
    pub(super) fn set_urgent(&mut self, lun: u32, urgent: bool) {
        if let Some(state) = self.luns.get_mut(lun as usize) {
            state.urgent = urgent;
            self.choose(lun);
        }
    }

    /// Queues a command on its LUN.
    pub(super) fn push(&mut self, mut item: Item) {
        let (block, class) = (item.block(), Class::of(item.op));
        let number = self.lun_of(block);
        let lun = &mut self.luns[number as usize];
        item.ahead = lun.submitted[..class as usize].iter().sum();
        let queued = &mut self.queued[block as usize];
        if class != Class::Erase {
            lun.submitted[class as usize] += u64::from(item.left);
            if queued[Class::Erase as usize] > 0 {
                let erases = lun.items[Class::Erase as usize].iter_mut();
                erases.filter(|erase| erase.block() == block).for_each(|e| e.awaited = true);
            }
        }
        queued[class as usize] += 1;
        lun.items[class as usize].push_back(item);
        self.choose(number);
    }

    /// Chooses the next command of a LUN again, after a change of what that depends on.
    fn choose(&mut self, number: u32) {
        let next = self.next_of(number);
        let known = std::mem::replace(&mut self.luns[number as usize].next, next);
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

    /// Whether a command is queued that does not wait for others.
    pub(super) fn has_next(&self) -> bool {
        !self.next.is_empty()
    }

    fn next_of(&self, number: u32) -> Option<Choice> {
        let lun = &self.luns[number as usize];
        let choice = |class: Class| {
            let items = &lun.items[class as usize];
            let place = items.iter().position(|item| !self.has_to_wait(lun, class, item))?;
            let item = &items[place];
            let passed = lun.begun[..class as usize].iter().sum::<u64>().saturating_sub(item.ahead);
            let first = passed >= PASSED_MAX || class == Class::Erase && lun.urgent;
            let as_class = if item.awaited { Class::Write } else { class };
            let rank = if first { 0 } else { 1 + as_class as u8 };
            let ready = lun.free.max(item.submitted);
            Some(Choice { ready, rank, number: item.number, lun: number, class, place })
        };
        Class::ALL.into_iter().filter_map(choice).min()
    }

    /// Whether a command waits for earlier ones on its block.
    fn has_to_wait(&self, lun: &Lun, class: Class, item: &Item) -> bool {
        let [reads, writes, erases] = self.queued[item.block() as usize].map(|queued| queued > 0);
        let has_earlier = |class| lun.earlier(class, item).next().is_some();
        match class {
            Class::Read => {
                writes && lun.earlier(Class::Write, item).any(|write| write.covers(item.page))
                    || erases && has_earlier(Class::Erase)
            }
            Class::Write => erases && has_earlier(Class::Erase),
            Class::Erase => {
                reads && has_earlier(Class::Read) || writes && has_earlier(Class::Write)
            }
        }
    }

    /// The command that was chosen.
    pub(super) fn chosen(&mut self, choice: Choice) -> &mut Item {
        &mut self.luns[choice.lun as usize].items[choice.class as usize][choice.place]
    }

    /// Notes that the next page of the chosen command was issued, with `bytes` of its data. Returns
    /// the number of pages left.
    pub(super) fn begun(&mut self, choice: Choice, bytes: usize) -> u32 {
        let item = self.chosen(choice);
        item.page += 1;
        item.left -= 1;
        item.done += bytes;
        let left = item.left;
        self.luns[choice.lun as usize].begun[choice.class as usize] += 1;
        self.choose(choice.lun);
        left
    }

    /// Removes the chosen command; its remaining pages are cancelled.
    pub(super) fn remove(&mut self, choice: Choice) -> Item {
        let lun = &mut self.luns[choice.lun as usize];
        let item = lun.items[choice.class as usize].remove(choice.place);
        let item = item.expect("the chosen command is queued");
        if choice.class != Class::Erase {
            lun.begun[choice.class as usize] += u64::from(item.left);
        }
        self.queued[item.block() as usize][choice.class as usize] -= 1;
        self.choose(choice.lun);
        item
    }
}
