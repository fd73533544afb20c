//! Commands on a device with timing: they are queued by LUN, issued in the order of virtual time,
//! and complete when the share's clock has reached their end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use prism_base::{Nanos, SimTime};
use prism_nand::Cause;

use crate::buffer::Buffer;
use crate::error::Result;
use crate::medium::PageState;
use crate::monitor::schedule::{Choice, Item, LunQueues};
use crate::monitor::{Pads, Share, ShareOp, ShareReply};

/// The number of no queue: that of blocking calls.
const BLOCKING: u64 = 0;

/// A queue with commands whose completion was not taken.
#[derive(Debug, Default)]
struct QueueState {
    len: usize,
    /// Completions in order: by their end, then by number.
    done: BTreeMap<(SimTime, u64), ShareReply>,
    /// The numbers of its writes that were not issued.
    writes: BTreeSet<u64>,
    /// Syncs that wait for them: number and tag.
    syncs: VecDeque<(u64, u64)>,
    /// The latest end of a write.
    written: SimTime,
}

/// The commands of all queues of a share, in virtual time.
#[derive(Debug)]
pub(crate) struct Scheduler {
    luns: LunQueues,
    page_size: usize,
    queues: BTreeMap<u64, QueueState>,
    opened: u64,
    submitted: u64,
    ended: u64,
    /// The times of the last page read and the last page written.
    took: [Nanos; 2],
}

impl Scheduler {
    pub(super) fn new(blocks_per_lun: u32, page_size: u32) -> Self {
        Self {
            luns: LunQueues::new(blocks_per_lun),
            page_size: page_size as usize,
            queues: BTreeMap::new(),
            opened: 0,
            submitted: 0,
            ended: 0,
            took: [Nanos::ZERO; 2],
        }
    }

    /// Whether no command on the block is queued.
    pub(crate) fn is_idle(&self, block: u32) -> bool {
        self.luns.is_idle(block)
    }

    /// Whether reads or writes are queued.
    pub(crate) fn has_pages(&self) -> bool {
        self.luns.has_pages()
    }

    /// The time that a LUN needs from `now` on for commands in flight and queued, in nanoseconds.
    pub(crate) fn load(&self, lun: u32, now: SimTime) -> u64 {
        let (free, [reads, writes]) = self.luns.load(lun);
        free.0.saturating_sub(now.0) + reads * self.took[0].0 + writes * self.took[1].0
    }

    /// The end of the operations issued to a LUN.
    pub(crate) fn free(&self, lun: u32) -> SimTime {
        self.luns.load(lun).0
    }

    /// The LUN of the block is not free before `end`.
    pub(crate) fn occupy(&mut self, block: u32, end: SimTime) {
        self.luns.occupy(block, end);
    }

    /// Issues the commands that could start before `now`.
    pub(crate) fn settle(&mut self, share: &Share, now: SimTime) {
        while let Some(choice) = self.luns.next().filter(|choice| choice.ready < now) {
            self.begin(share, choice);
        }
    }

    /// Issues the next command; returns whether there was one.
    pub(crate) fn step(&mut self, share: &Share) -> bool {
        let next = self.luns.next();
        next.inspect(|&choice| self.begin(share, choice)).is_some()
    }

    /// Executes an operation of a blocking call when it is its turn: `call` gets the time at which
    /// it begins, and returns its end.
    pub(crate) fn call<T>(
        &mut self,
        share: &Share,
        (op, now): (ShareOp, SimTime),
        call: impl FnOnce(SimTime) -> Result<(T, SimTime)>,
    ) -> Result<(T, SimTime)> {
        self.submitted += 1;
        let number = self.submitted;
        let pages = u32::from(!matches!(op, ShareOp::Erase { .. }));
        let none = (Buffer::default(), Vec::new());
        let mut item = Item::new((number, (BLOCKING, 0)), op, pages, none, now);
        item.awaited = pages == 0;
        self.luns.push(item);
        let choice = loop {
            let choice = self.luns.next().expect("the operation is queued");
            if choice.number == number {
                break choice;
            }
            self.begin(share, choice);
        };
        let Item { op, .. } = self.luns.remove(choice);
        let (value, end) = call(choice.ready)?;
        self.issued(op, choice.ready, end);
        Ok((value, end))
    }

    /// Notes the time of an operation.
    fn issued(&mut self, op: ShareOp, begin: SimTime, end: SimTime) {
        self.luns.occupy(op.block().unwrap_or(0), end);
        match op {
            ShareOp::Read { .. } => self.took[0] = end.since(begin),
            ShareOp::Program { .. } => self.took[1] = end.since(begin),
            ShareOp::Erase { .. } | ShareOp::Sync => {}
        }
    }

    /// Issues a command, or its next page.
    fn begin(&mut self, share: &Share, choice: Choice) {
        let item = self.luns.chosen(choice);
        let (op, ready, done) = (item.op, choice.ready, item.done);
        let at = share.access(item.block(), item.page, Cause::Host, ready);
        let offset = match op {
            ShareOp::Read { offset, .. } if done == 0 => offset,
            _ => 0,
        };
        let bytes = (item.data.len() - done).min(self.page_size - offset as usize);
        let data = &mut item.data[done..done + bytes];
        let result = match op {
            ShareOp::Read { .. } => share.read(at, offset, data, &mut []),
            ShareOp::Program { .. } => {
                let (pads, oob) =
                    if done == 0 { (&item.pads, &item.oob[..]) } else { (&Pads::NONE, &[][..]) };
                let programmed = share.program_padded(at, pads, data, oob);
                programmed.map(|program| (PageState::Written, program.end))
            }
            _ => share.erase(at).map(|end| (PageState::Written, end)),
        };
        match result {
            Ok((PageState::Written, end)) => {
                self.issued(op, ready, end);
                let is_erase = matches!(op, ShareOp::Erase { .. });
                if is_erase || self.luns.begun(choice, bytes) == 0 {
                    self.finish(share, choice, end, Ok(PageState::Written));
                }
            }
            Ok((state, _)) => self.finish(share, choice, ready, Ok(state)),
            Err(error) => self.finish(share, choice, ready, Err(error)),
        }
    }

    fn finish(&mut self, share: &Share, choice: Choice, end: SimTime, result: Result<PageState>) {
        let Item { number, from: (queue, tag), op, data, oob, .. } = self.luns.remove(choice);
        self.put_done(queue, ShareReply { tag, op, end, result, data, oob });
        let state = self.queues.get_mut(&queue).expect("a queue with commands");
        if state.writes.remove(&number) {
            state.written = state.written.max(end);
            self.sync(share, queue);
        }
    }

    pub(super) fn put_done(&mut self, queue: u64, reply: ShareReply) {
        self.ended += 1;
        // A queue that was dropped does not take completions.
        if let Some(state) = self.queues.get_mut(&queue) {
            state.done.insert((reply.end, self.ended), reply);
        }
    }

    /// The next completion of a queue that has ended by `now`.
    fn take(&mut self, queue: u64, now: SimTime) -> Option<ShareReply> {
        let state = self.queues.get_mut(&queue)?;
        let first = state.done.first_entry().filter(|first| first.key().0 <= now)?;
        state.len -= 1;
        Some(first.remove())
    }

    /// Executes the syncs of a queue that no longer wait for writes.
    fn sync(&mut self, share: &Share, queue: u64) {
        loop {
            let state = self.queues.entry(queue).or_default();
            let first = state.writes.first().copied().unwrap_or(u64::MAX);
            let Some(&(_, tag)) = state.syncs.front().filter(|(number, _)| *number < first) else {
                break;
            };
            state.syncs.pop_front();
            let (end, result) = (state.written, share.sync_issued());
            self.put_done(queue, ShareReply::without_work(tag, end, result, Buffer::default()));
        }
    }
}

/// A queue of a share on a device with timing.
#[derive(Debug)]
pub(crate) struct TimedQueue {
    share: Share,
    number: u64,
}

impl TimedQueue {
    pub(crate) fn new(share: &Share) -> Self {
        let mut all = share.scheduler();
        all.opened += 1;
        Self { number: all.opened, share: share.clone() }
    }

    /// Queues a command, or a sync of this queue's writes.
    pub(crate) fn submit(&self, tag: u64, op: ShareOp, data: Buffer, oob: Vec<u8>) {
        self.submit_padded(tag, op, data, oob, Pads::NONE);
    }

    /// As [`TimedQueue::submit`], of a write before which these pages may be padded.
    pub(crate) fn submit_padded(
        &self,
        tag: u64,
        op: ShareOp,
        data: Buffer,
        oob: Vec<u8>,
        pads: Pads,
    ) {
        let now = match self.share.now() {
            Ok(now) => now,
            Err(error) => {
                let (result, end) = (Err(error), SimTime::ZERO);
                return self.put(ShareReply { tag, op, end, result, data, oob });
            }
        };
        let all = &mut *self.share.scheduler();
        all.settle(&self.share, now);
        all.submitted += 1;
        let number = all.submitted;
        let state = all.queues.entry(self.number).or_default();
        state.len += 1;
        let pages = match op {
            ShareOp::Sync => {
                state.written = state.written.max(now);
                state.syncs.push_back((number, tag));
                return all.sync(&self.share, self.number);
            }
            ShareOp::Erase { .. } => 0,
            ShareOp::Program { .. } => {
                state.writes.insert(number);
                data.len() / all.page_size
            }
            ShareOp::Read { offset, .. } => {
                (offset as usize + data.len()).div_ceil(all.page_size).max(1)
            }
        };
        let from = (self.number, tag);
        let mut item = Item::new((number, from), op, pages as u32, (data, oob), now);
        item.pads = pads;
        all.luns.push(item);
    }

    /// Adds a command that has taken effect.
    pub(crate) fn put(&self, reply: ShareReply) {
        self.share.complete(self.expect(), reply);
    }

    /// Expects a command that [`Share::complete`] will complete; returns the number of the queue.
    pub(crate) fn expect(&self) -> u64 {
        self.share.scheduler().queues.entry(self.number).or_default().len += 1;
        self.number
    }

    /// Commands whose completion was not taken.
    pub(crate) fn len(&self) -> usize {
        self.share.scheduler().queues.get(&self.number).map_or(0, |state| state.len)
    }

    /// When the next command completes. Issues those that start before, and not after `latest`.
    pub(crate) fn next_end(&self, latest: SimTime) -> Option<SimTime> {
        let mut all = self.share.scheduler();
        loop {
            let state = all.queues.get(&self.number).filter(|state| state.len > 0)?;
            let first = state.done.first_key_value().map(|(&(end, _), _)| end);
            // A command that can start when another ends is chosen after that completion was taken.
            match all.luns.next() {
                Some(choice)
                    if choice.ready <= latest && first.is_none_or(|end| choice.ready < end) =>
                {
                    all.begin(&self.share, choice);
                }
                _ => return first,
            }
        }
    }

    /// The next completion, whatever the time is.
    pub(crate) fn take(&self) -> Option<ShareReply> {
        let end = self.next_end(SimTime(u64::MAX))?;
        self.share.scheduler().take(self.number, end)
    }

    /// The next completion, if the share's clock has reached it.
    pub(crate) fn poll(&self) -> Option<ShareReply> {
        let now = self.share.now().unwrap_or(SimTime(u64::MAX));
        let mut all = self.share.scheduler();
        all.settle(&self.share, now);
        all.take(self.number, now)
    }

    /// Advances the share's clock to the next completion, by at most `timeout`; returns whether it
    /// is reached.
    pub(crate) fn wait(&self, timeout: Option<Nanos>) -> bool {
        self.wait_for(timeout, |latest| self.next_end(latest))
    }

    /// As [`TimedQueue::wait`], with another function for [`TimedQueue::next_end`].
    pub(crate) fn wait_for(
        &self,
        timeout: Option<Nanos>,
        next_end: impl FnOnce(SimTime) -> Option<SimTime>,
    ) -> bool {
        if self.len() == 0 {
            return false;
        }
        let now = self.share.now().unwrap_or(SimTime(u64::MAX));
        let latest =
            timeout.map_or(SimTime(u64::MAX), |timeout| SimTime(now.0.saturating_add(timeout.0)));
        match next_end(latest).filter(|&end| end <= latest) {
            Some(end) => {
                let _ = self.share.reach(end);
                true
            }
            None => {
                // The clock has no end to go to.
                if timeout.is_some() {
                    let _ = self.share.reach(latest);
                }
                false
            }
        }
    }

    /// Advances the share's clock to the next completion, and takes it.
    pub(crate) fn complete(&self) -> Option<ShareReply> {
        let reply = self.take()?;
        // A released share has no clock, and its commands have failed.
        let _ = self.share.reach(reply.end);
        Some(reply)
    }

    /// Issues this queue's erases, and the commands before them; returns the end of the last.
    pub(crate) fn issue_all(&self) -> Option<SimTime> {
        let mut all = self.share.scheduler();
        loop {
            let state = all.queues.get(&self.number)?;
            // Writes of the policy level may wait for programs of its own.
            if state.done.len() == state.len || !all.luns.has_next() {
                return state.done.last_key_value().map(|(&(end, _), _)| end);
            }
            all.step(&self.share);
        }
    }

    /// Issues commands, erases of these LUNs first, until one of this queue's erases there is
    /// issued; returns its end.
    pub(crate) fn issue_erase(&self, luns: &[u32]) -> Option<SimTime> {
        let all = &mut *self.share.scheduler();
        luns.iter().for_each(|&lun| all.luns.set_urgent(lun, true));
        let end = loop {
            let done = all.queues.get(&self.number).into_iter().flat_map(|state| &state.done);
            let mut blocks = done.filter_map(|((end, _), reply)| Some((end, reply.op.block()?)));
            let first = blocks.find(|&(_, block)| luns.contains(&all.luns.lun(block)));
            if let Some((&end, _)) = first {
                break Some(end);
            }
            if !luns.iter().any(|&lun| all.luns.has_erases(lun)) || !all.step(&self.share) {
                break None;
            }
        };
        luns.iter().for_each(|&lun| all.luns.set_urgent(lun, false));
        end
    }
}

impl Drop for TimedQueue {
    /// The commands take effect, and their completions are dropped.
    fn drop(&mut self) {
        self.issue_all();
        // The buffers of completions are dropped without the scheduler's lock: to free memory of
        // the caller may take a lock of the caller's.
        let replies = self.share.scheduler().queues.remove(&self.number);
        drop(replies);
    }
}
