//! The command queue of the raw level.

use std::ops::Deref;
use std::os::fd::BorrowedFd;

use prism_base::{Nanos, SimTime};

use super::{Address, Raw};
use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::medium::PageState;
use crate::monitor::{Completion, ShareOp, ShareQueue, ShareReply, TimedCommands};

/// A command to be queued. The completion returns its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads a part of a page: as many bytes as `data` has, from `offset` on.
    Read {
        /// The page.
        at: Address,
        /// The first byte of the page that is read.
        offset: u32,
        /// The buffer to read into.
        data: Buffer,
    },
    /// Writes a page.
    Write {
        /// The page.
        at: Address,
        /// The page's new content.
        data: Buffer,
        /// Its first out-of-band bytes.
        oob: Vec<u8>,
    },
    /// Erases a block.
    Erase {
        /// The block.
        at: Address,
    },
    /// Makes durable what was complete when the sync was submitted, and the writes of the same
    /// queue that were submitted before.
    Sync,
}

impl Command {
    /// Reads the first bytes of a page, as many as `data` has.
    #[must_use]
    pub fn read(at: Address, data: impl Into<Buffer>) -> Self {
        Self::Read { at, offset: 0, data: data.into() }
    }

    /// Writes a page without out-of-band bytes.
    #[must_use]
    pub fn write(at: Address, data: impl Into<Buffer>) -> Self {
        Self::Write { at, data: data.into(), oob: Vec::new() }
    }
}

#[derive(Debug)]
enum Mode {
    /// On a device with timing, commands take effect at once and complete at their end.
    Timed(TimedCommands),
    /// On others the device works while the caller goes on.
    Direct(ShareQueue),
}

/// Commands in flight, of one thread at a time; each thread has a queue of its own. Completions
/// come to the queue that submitted the command, in the order of completion.
///
/// On a device with timing, commands start at the time of the share's clock, and those on one LUN
/// are executed in the order of submission. On other devices no lock is held while the device
/// works. A read waits for writes of its page that were submitted to the same queue before, an
/// erase for all earlier commands on its block, a sync for all earlier writes; writes of a block
/// are executed in order. Nothing else waits, and nothing is ordered between queues. A read during
/// which another queue erases the block fails or returns what was there before.
///
/// There is no cancellation: the kernel cannot take a request back from a disk, so a buffer would
/// have to wait for its completion all the same. Dropping a queue waits for what is in flight.
#[derive(Debug)]
pub struct Queue<R> {
    raw: R,
    depth: usize,
    mode: Mode,
}

impl<R: Deref<Target = Raw>> Queue<R> {
    /// A queue for `raw` with at most `depth` commands in flight. `raw` is a reference, or an
    /// [`Arc`](std::sync::Arc) if the queue has to outlive the function that makes it.
    #[must_use]
    pub fn new(raw: R, depth: usize) -> Self {
        let depth = depth.max(1);
        let mode = if raw.share.is_timed() {
            Mode::Timed(TimedCommands::default())
        } else {
            Mode::Direct(ShareQueue::new(&raw.share, depth))
        };
        Self { raw, depth, mode }
    }

    /// The raw level below the queue.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// Submits a command, without waiting for the device.
    ///
    /// # Errors
    /// The command itself, if the queue is full: take a completion first. Errors of the command are
    /// reported by its completion.
    pub fn submit(&mut self, command: Command, tag: u64) -> Result<(), Command> {
        if self.len() == self.depth {
            return Err(command);
        }
        match &mut self.mode {
            Mode::Timed(commands) => commands.push(self.raw.execute(command, tag)),
            Mode::Direct(queue) => {
                let (op, data, oob) = match self.raw.check(command) {
                    Ok(checked) => checked,
                    Err((error, data)) => {
                        queue.done_at_once(tag, Err(error), data);
                        return Ok(());
                    }
                };
                queue.submit(tag, op, data, oob);
            }
        }
        Ok(())
    }

    /// Commands in flight: those whose completion was not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.mode {
            Mode::Timed(commands) => commands.len(),
            Mode::Direct(queue) => queue.len(),
        }
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next completion, if there is one, without waiting. On a device with timing, commands are
    /// complete when the share's clock has reached their end.
    pub fn poll(&mut self) -> Option<Completion> {
        match &mut self.mode {
            Mode::Timed(commands) => commands.poll(&self.raw.share),
            Mode::Direct(queue) => queue.take().map(|reply| self.raw.completion(reply)),
        }
    }

    /// Waits until there is a completion to take; returns whether there is one. Returns false at
    /// once if no command is in flight, and if for the time of `timeout` no operation of the device
    /// completed. On a device with timing the share's clock advances.
    ///
    /// Without a time limit, a sync goes to the disk together with the writes before it if nothing
    /// else is in flight: their completions come when it is complete.
    pub fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        match &mut self.mode {
            Mode::Timed(commands) => commands.wait(&self.raw.share, timeout),
            Mode::Direct(queue) => queue.wait(timeout),
        }
    }

    /// Waits for the next completion; `None` if no command is in flight.
    pub fn complete(&mut self) -> Option<Completion> {
        match &mut self.mode {
            Mode::Timed(commands) => commands.complete(&self.raw.share),
            Mode::Direct(queue) => {
                queue.wait(None);
                queue.take().map(|reply| self.raw.completion(reply))
            }
        }
    }

    /// A file descriptor for event loops (epoll), which becomes readable when a command completes.
    /// Before each sleep, [`Queue::poll`] until there is no completion: that submits the last
    /// commands, and completions for which no disk was needed do not make it readable. It changes
    /// when another thread takes over the queue. `None` on a device whose commands are complete as
    /// soon as they are submitted, or in virtual time.
    ///
    /// A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread
    /// to complete operations. Poll and sleep again.
    #[must_use]
    pub fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.mode {
            Mode::Timed(_) => None,
            Mode::Direct(queue) => queue.event_fd(),
        }
    }
}

/// A command that was checked, or its error and its buffer.
type Checked = Result<(ShareOp, Buffer, Vec<u8>), (FlashError, Buffer)>;

impl Raw {
    /// Checks a command and translates its address.
    fn check(&self, command: Command) -> Checked {
        match command {
            Command::Read { at, offset, data } => {
                let length = self.check_length(offset as usize + data.len(), 0);
                match length.and_then(|()| self.block(at)) {
                    Ok(block) => {
                        Ok((ShareOp::Read { block, page: at.page, offset }, data, Vec::new()))
                    }
                    Err(error) => Err((error, data)),
                }
            }
            Command::Write { at, data, oob } => {
                match self.check_page(&data, &oob).and_then(|()| self.block(at)) {
                    Ok(block) => Ok((ShareOp::Program { block, page: at.page }, data, oob)),
                    Err(error) => Err((error, data)),
                }
            }
            Command::Erase { at } => match self.block(at) {
                Ok(block) => Ok((ShareOp::Erase { block }, Buffer::default(), Vec::new())),
                Err(error) => Err((error, Buffer::default())),
            },
            Command::Sync => Ok((ShareOp::Sync, Buffer::default(), Vec::new())),
        }
    }

    /// Executes a command at the time of the share's clock.
    fn execute(&self, command: Command, tag: u64) -> Completion {
        let now = self.share.now().unwrap_or(SimTime::ZERO);
        let (end, data) = match command {
            Command::Read { at, offset, mut data } => {
                (self.read_from(at, offset, &mut data, &mut [], now), data)
            }
            Command::Write { at, data, oob } => (self.write_from(at, &data, &oob, now), data),
            Command::Erase { at } => (self.erase_from(at, now), Buffer::default()),
            Command::Sync => (self.share.sync().map(|()| now), Buffer::default()),
        };
        match end {
            Ok(end) => Completion { tag, end, result: Ok(()), data },
            Err(error) => Completion { tag, end: now, result: Err(error), data },
        }
    }

    fn completion(&self, reply: ShareReply) -> Completion {
        let ShareReply { tag, op, result, data, .. } = reply;
        let at = || self.share.path().address(op.block().unwrap_or(0), op.page());
        let result = match (op, result) {
            (_, Err(error)) => Err(error),
            (ShareOp::Read { .. }, Ok(PageState::Erased)) => {
                Err(FlashError::Unwritten { at: at() })
            }
            (ShareOp::Read { .. }, Ok(PageState::Torn)) => Err(FlashError::Torn { at: at() }),
            (_, Ok(_)) => Ok(()),
        };
        Completion { tag, end: SimTime::ZERO, result, data }
    }
}
