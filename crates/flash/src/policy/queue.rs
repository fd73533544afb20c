//! The queue of the policy level: reads, writes, trims and flushes in flight.

use std::collections::VecDeque;
use std::ops::Deref;
use std::os::fd::BorrowedFd;

use prism_base::{Nanos, SimTime, Slab};
use prism_nand::Cause;

use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::monitor::{Completion, Share, ShareReply, TimedQueue, Urgency};
use crate::policy::Policy;
use crate::policy::reads::{ReadOrSync, RunQueue, RunRead, join};

/// A read that was submitted.
#[derive(Debug, Default)]
struct Read {
    tag: u64,
    address: u64,
    data: Buffer,
    /// The device reads into the buffer, which is not here.
    lent: bool,
    /// Its pieces in flight.
    left: usize,
    /// Some of its data has moved: all is looked up again when nothing is in flight.
    moved: bool,
    failed: Option<FlashError>,
}

/// Reads on a device without timing.
#[derive(Debug)]
struct Direct {
    share: Share,
    runs: RunQueue,
    reads: Slab<Read>,
    /// Reads whose data was not looked up.
    gathered: Vec<u32>,
    /// Flushes in flight.
    flushes: usize,
    done: VecDeque<Completion>,
}

/// Reads that are looked up and joined together, if the device has enough to do meanwhile.
const GATHERED_MAX: usize = 4;
/// Operations of the device in flight up to which a read is begun at its submission.
const BUSY: usize = 8;

#[derive(Debug)]
enum Mode {
    /// The level computes the end of a command when it is submitted.
    Timed(TimedQueue),
    Direct(Box<Direct>),
}

/// Commands in flight, of one thread at a time; each thread has a queue of its own.
/// Completions come to the queue that submitted the command, in the order of completion.
///
/// On a device without timing the places of the data are looked up under the lock of the level, for
/// which a submission waits while a write programs or a flush with trims syncs; the lock is not
/// held while the device works, and reads go on during other flushes. What follows each other on
/// flash is read together: the parts of a read, and, while more than eight operations are in
/// flight, up to four reads. A read finds what was written before its submission, and of a later
/// write some units, all, or none. On a device with timing reads begin at the time of the share's
/// clock, which advances when completions are awaited.
///
/// There is no cancellation, for the reason that [`raw::Queue`](crate::raw::Queue) gives. Dropping
/// a queue waits for its commands.
#[derive(Debug)]
pub struct Queue<R: Deref<Target = Policy>> {
    policy: R,
    depth: usize,
    share: Share,
    mode: Mode,
}

impl<R: Deref<Target = Policy>> Queue<R> {
    /// A queue with at most `depth` commands in flight. `policy` is a reference, or an
    /// [`Arc`](std::sync::Arc) if the queue has to outlive the function that makes it.
    #[must_use]
    pub fn new(policy: R, depth: usize) -> Self {
        let (depth, share) = (depth.max(1), policy.share());
        let mode = if share.is_timed() {
            Mode::Timed(TimedQueue::new(&share))
        } else {
            Mode::Direct(Box::new(Direct {
                share: share.clone(),
                runs: RunQueue::new(&share, depth),
                reads: Slab::new(),
                gathered: Vec::new(),
                flushes: 0,
                done: VecDeque::new(),
            }))
        };
        Self { policy, depth, share, mode }
    }

    /// The level below the queue.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Submits a read of as many bytes as `data` has, from `address` on; see [`Policy::read`].
    /// The completion has its result, and the buffer.
    ///
    /// # Errors
    /// The buffer, if the queue is full: take a completion first.
    pub fn submit(
        &mut self,
        address: u64,
        data: impl Into<Buffer>,
        tag: u64,
    ) -> Result<(), Buffer> {
        let mut data = data.into();
        if self.len() >= self.depth {
            return Err(data);
        }
        if let Mode::Direct(direct) = &mut self.mode {
            direct.submit(&self.policy, address, data, tag);
            return Ok(());
        }
        let mut inner = self.policy.lock();
        let end = inner.range_of(address, data.len() as u64).and_then(|(range, offset)| {
            range.begin_read(offset, &mut data, Cause::Host, Urgency::Normal)
        });
        drop(inner);
        self.complete_at(tag, end, data);
        Ok(())
    }

    /// Submits a write of `data` from `address` on; see [`Policy::write`]. It finds its place after
    /// everything submitted before it, and reads submitted after it find its data. The completion
    /// has its result, and the buffer.
    ///
    /// On a device with timing it completes when flash has taken the data of the program units that
    /// it fills, or at once if all of its data is buffered; other commands are in flight meanwhile.
    /// Program units wait in memory until a LUN takes them, and reads go before them.
    /// Without timing the work is done during the submission, as by [`Policy::write`].
    ///
    /// # Errors
    /// The buffer, if the queue is full: take a completion first.
    pub fn submit_write(
        &mut self,
        address: u64,
        data: impl Into<Buffer>,
        tag: u64,
    ) -> Result<(), Buffer> {
        self.submit_write_with_handle(address, data, 0, tag)
    }

    /// As [`Queue::submit_write`], as data of a placement handle; see
    /// [`Policy::write_with_handle`].
    ///
    /// # Errors
    /// The same.
    pub fn submit_write_with_handle(
        &mut self,
        address: u64,
        data: impl Into<Buffer>,
        handle: u32,
        tag: u64,
    ) -> Result<(), Buffer> {
        let data = data.into();
        if self.len() >= self.depth {
            return Err(data);
        }
        let mut inner = self.policy.lock();
        let found = inner.range_of(address, data.len() as u64);
        let (end, data) = match (found, &self.mode) {
            (Err(error), _) => (Err(error), data),
            (Ok((range, offset)), Mode::Direct(_)) => {
                (range.begin_write(offset, &data, handle, Urgency::Normal), data)
            }
            (Ok((range, offset)), Mode::Timed(queue)) => {
                range.submit_write(offset, data, handle, (queue.expect(), tag));
                return Ok(());
            }
        };
        drop(inner);
        self.complete_at(tag, end, data);
        Ok(())
    }

    /// Submits a trim, which takes effect at once; see [`Policy::trim`].
    ///
    /// # Errors
    /// [`FlashError::Busy`] if the queue is full: take a completion first. Errors of the trim are
    /// reported by its completion.
    pub fn submit_trim(&mut self, address: u64, bytes: u64, tag: u64) -> Result<()> {
        self.check_room()?;
        let end = self.policy.lock().begin_trim(address, bytes);
        self.complete_at(tag, end, Buffer::default());
        Ok(())
    }

    /// Submits zeros for these addresses: whole units are trimmed, parts of units written.
    ///
    /// # Errors
    /// As [`Queue::submit_trim`].
    pub fn submit_write_zeroes(&mut self, address: u64, bytes: u64, tag: u64) -> Result<()> {
        self.check_room()?;
        let end = self.policy.lock().begin_write_zeroes(address, bytes);
        self.complete_at(tag, end, Buffer::default());
        Ok(())
    }

    /// When the next command completes, on a device with timing; `None` on others, or if no
    /// command is in flight, or none is known to end by `latest`.
    pub(super) fn next_end(&self, latest: SimTime) -> Option<SimTime> {
        match &self.mode {
            Mode::Timed(queue) => next_end(queue, &self.policy, latest),
            Mode::Direct(_) => None,
        }
    }

    /// The end of a command that has taken effect; if it has failed, that is now.
    fn complete_at(&mut self, tag: u64, end: Result<SimTime>, data: Buffer) {
        match &mut self.mode {
            Mode::Timed(queue) => {
                let now = self.share.now().unwrap_or(SimTime::ZERO);
                let (end, result) = end.map_or_else(|error| (now, Err(error)), |end| (end, Ok(())));
                queue.put(ShareReply::without_work(tag, end, result, data));
            }
            Mode::Direct(direct) => direct.complete(tag, end.map(drop), data),
        }
    }

    fn check_room(&self) -> Result<()> {
        if self.len() >= self.depth {
            let what = "the queue is full; take a completion first";
            return Err(FlashError::Busy { what: what.into() });
        }
        Ok(())
    }

    /// Submits a flush: its completion says that everything written and trimmed before the
    /// submission is durable, by whichever thread. A submission programs what is buffered; the
    /// sync then runs while the caller goes on, unless there are trims: these are written and
    /// synced during the submission, as by [`Policy::flush`].
    ///
    /// # Errors
    /// [`FlashError::Busy`] if the queue is full: take a completion first. Errors of the flush are
    /// reported by its completion.
    pub fn submit_flush(&mut self, tag: u64) -> Result<()> {
        self.check_room()?;
        if let Mode::Direct(direct) = &mut self.mode {
            direct.submit_flush(&self.policy, tag);
            return Ok(());
        }
        let end = self.policy.lock().begin_flush();
        self.complete_at(tag, end, Buffer::default());
        Ok(())
    }

    /// Commands in flight: those whose completion was not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.mode {
            Mode::Timed(queue) => queue.len(),
            Mode::Direct(direct) => direct.reads.in_use() + direct.flushes + direct.done.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next completion, if there is one, without waiting. On a device with timing,
    /// commands are complete when the share's clock has reached their end.
    pub fn poll(&mut self) -> Option<Completion> {
        match &mut self.mode {
            Mode::Timed(queue) => {
                // A released share has no clock, and its commands have failed.
                let now = self.share.now().unwrap_or(SimTime(u64::MAX));
                next_end(queue, &self.policy, now);
                queue.poll().map(ShareReply::completion)
            }
            Mode::Direct(direct) => direct.poll(&self.policy),
        }
    }

    /// Waits until there is a completion to take; returns whether there is one. Returns false at
    /// once if no command is in flight, and if for the time of `timeout` no operation of the device
    /// completed. On a device with timing the share's clock advances.
    pub fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        match &mut self.mode {
            Mode::Timed(queue) => {
                queue.wait_for(timeout, |latest| next_end(queue, &self.policy, latest))
            }
            Mode::Direct(direct) => direct.wait(&self.policy, timeout),
        }
    }

    /// Waits for the next completion; `None` if no command is in flight.
    pub fn complete(&mut self) -> Option<Completion> {
        match &mut self.mode {
            Mode::Timed(queue) => {
                next_end(queue, &self.policy, SimTime(u64::MAX))?;
                queue.complete().map(ShareReply::completion)
            }
            Mode::Direct(direct) => {
                direct.wait(&self.policy, None);
                direct.done.pop_front()
            }
        }
    }

    /// See [`raw::Queue::event_fd`](crate::raw::Queue::event_fd).
    #[must_use]
    pub fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.mode {
            Mode::Timed(_) => None,
            Mode::Direct(direct) => direct.runs.event_fd(),
        }
    }
}

impl<R: Deref<Target = Policy>> Drop for Queue<R> {
    /// Program units of its writes that wait are given to the controller, so that nothing refers to
    /// the buffers of the queue.
    fn drop(&mut self) {
        let has_commands = matches!(&self.mode, Mode::Timed(queue) if queue.len() > 0);
        // A thread that panicked with the lock leaves nothing that could be programmed.
        if has_commands && let Ok(mut inner) = self.policy.inner.lock() {
            inner.program_waiting();
        }
    }
}

/// When the next command of a queue on a device with timing completes. Program units that wait are
/// programmed up to that time, or to `latest`.
fn next_end(queue: &TimedQueue, policy: &Policy, latest: SimTime) -> Option<SimTime> {
    if queue.len() == 0 {
        return None;
    }
    loop {
        // With the lock, or another thread could begin the programs between the two questions.
        let mut inner = policy.lock();
        let known = queue.next_end(latest);
        match inner.next_dispatch() {
            Some(at) if at <= latest && known.is_none_or(|end| at < end) => inner.dispatch(at),
            _ => return known,
        }
    }
}

impl Direct {
    fn submit(&mut self, policy: &Policy, address: u64, data: Buffer, tag: u64) {
        let place = self.reads.take();
        self.reads[place] = Read { tag, address, data, ..Read::default() };
        self.gathered.push(place);
        if self.runs.len() <= BUSY || self.gathered.len() >= GATHERED_MAX {
            self.begin(policy);
        }
    }

    fn submit_flush(&mut self, policy: &Policy, tag: u64) {
        let mut inner = policy.lock();
        let has_trims = inner.has_trims();
        let begun = if has_trims { inner.flush() } else { inner.program_all() };
        drop(inner);
        if has_trims || begun.is_err() {
            self.complete(tag, begun, Buffer::default());
        } else {
            self.flushes += 1;
            self.runs.submit_sync(tag);
        }
    }

    fn complete(&mut self, tag: u64, result: Result<()>, data: Buffer) {
        self.done.push_back(Completion { tag, end: SimTime::ZERO, result, data });
    }

    /// Looks up the data of the gathered reads, and submits what is on flash.
    fn begin(&mut self, policy: &Policy) {
        if self.gathered.is_empty() {
            return;
        }
        let gathered = std::mem::take(&mut self.gathered);
        let mut inner = policy.lock();
        let mut pieces = Vec::new();
        for &place in &gathered {
            let Read { address, data, failed, .. } = &mut self.reads[place];
            let looked_up =
                inner.range_of(*address, data.len() as u64).and_then(|(range, offset)| {
                    range.plan_read(offset, (place as usize, &mut data[..]), &mut pieces)
                });
            *failed = looked_up.err();
        }
        let runs = join(&self.share, pieces);
        drop(inner);
        let runs = runs.unwrap_or_else(|error| {
            gathered.iter().for_each(|&place| self.reads[place].failed = Some(error.clone()));
            Vec::new()
        });
        for piece in runs.iter().flat_map(|run| &run.pieces) {
            self.reads[piece.to.0 as u32].left += 1;
        }
        for run in runs {
            let first = &mut self.reads[run.pieces[0].to.0 as u32];
            // A run that is all of a read goes to its buffer without a copy.
            first.lent = run.pieces.len() == 1 && run.len == first.data.len();
            let own = first.lent.then(|| std::mem::take(&mut first.data));
            let data = own.unwrap_or_else(|| self.runs.buffer(run.len));
            self.runs.submit(run, data);
        }
        for place in gathered {
            if self.reads[place].left == 0 {
                self.end(policy, place);
            }
        }
    }

    /// Completes a read that has nothing in flight, or begins it again if its data has moved.
    fn end(&mut self, policy: &Policy, place: u32) {
        let read = &mut self.reads[place];
        if std::mem::take(&mut read.moved) && read.failed.is_none() {
            self.gathered.push(place);
            return self.begin(policy);
        }
        let Read { tag, data, failed, .. } = std::mem::take(read);
        self.reads.give(place);
        self.complete(tag, failed.map_or(Ok(()), Err), data);
    }

    fn process(&mut self, policy: &Policy, taken: ReadOrSync) {
        match taken {
            ReadOrSync::Run(read) => self.process_run(policy, read),
            ReadOrSync::Sync { tag, result } => {
                self.flushes -= 1;
                self.complete(tag, result, Buffer::default());
            }
        }
    }

    fn process_run(&mut self, policy: &Policy, RunRead { run, result, data }: RunRead) {
        let first = run.pieces[0].to.0 as u32;
        let is_lent = std::mem::take(&mut self.reads[first].lent);
        let mut ended = Vec::new();
        for (piece, part) in run.parts(&data) {
            let (place, to) = (piece.to.0 as u32, piece.to.1);
            let read = &mut self.reads[place];
            match &result {
                Ok(true) if is_lent => {}
                Ok(true) => read.data[to..to + piece.len].copy_from_slice(part),
                Ok(false) => read.moved = true,
                Err(error) => drop(read.failed.get_or_insert_with(|| error.clone())),
            }
            read.left -= 1;
            if read.left == 0 {
                ended.push(place);
            }
        }
        if is_lent {
            self.reads[first].data = data;
        } else {
            self.runs.give(data);
        }
        ended.into_iter().for_each(|place| self.end(policy, place));
    }

    fn poll(&mut self, policy: &Policy) -> Option<Completion> {
        loop {
            self.begin(policy);
            if let Some(done) = self.done.pop_front() {
                return Some(done);
            }
            let taken = self.runs.take()?;
            self.process(policy, taken);
        }
    }

    fn wait(&mut self, policy: &Policy, timeout: Option<Nanos>) -> bool {
        loop {
            self.begin(policy);
            if !self.done.is_empty() {
                return true;
            }
            if !self.runs.wait(timeout) {
                return false;
            }
            let Some(taken) = self.runs.take() else { return false };
            self.process(policy, taken);
        }
    }
}
