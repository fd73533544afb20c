//! The command queue of the raw level.

use std::ops::Deref;
use std::os::fd::BorrowedFd;

use prism_base::Nanos;

use super::{Address, Raw};
use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::medium::PageState;
use crate::monitor::{Commands, Completion, ShareOp, ShareReply};

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

/// Commands in flight, of one thread at a time; each thread has a queue of its own. Completions
/// come to the queue that submitted the command, in the order of completion.
///
/// A read waits for writes of its page that were submitted to the same queue before, an erase for
/// all earlier commands on its block, a sync for all earlier writes; writes of a block are executed
/// in order, and commands on a block after an earlier erase of it.
///
/// On a device without timing nothing else waits, nothing is ordered between queues, and no lock is
/// held while the device works. A read during which another queue erases the block fails or returns
/// what was there before.
///
/// On a device with timing the rules hold over all queues of a share. The next command of a LUN is
/// chosen when the LUN becomes free: reads go before writes and writes before erases, except for an
/// erase for which a command waits, which counts as a write. [`PASSED_MAX`] limits how many later
/// pages go before a command. Blocking calls take their turn in the same order. Completions are in
/// the order of time.
///
/// [`PASSED_MAX`]: crate::function::PASSED_MAX
///
/// There is no cancellation: the kernel cannot take a request back from a disk, so a buffer would
/// have to wait for its completion all the same. Dropping a queue waits for what is in flight.
#[derive(Debug)]
pub struct Queue<R> {
    raw: R,
    depth: usize,
    commands: Commands,
}

impl<R: Deref<Target = Raw>> Queue<R> {
    /// A queue for `raw` with at most `depth` commands in flight. `raw` is a reference, or an
    /// [`Arc`](std::sync::Arc) if the queue has to outlive the function that makes it.
    #[must_use]
    pub fn new(raw: R, depth: usize) -> Self {
        let depth = depth.max(1);
        Self { depth, commands: Commands::new(&raw.share, depth), raw }
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
        match self.raw.checked(command) {
            Ok((op, data, oob)) => self.commands.submit(tag, op, data, oob),
            Err((error, data)) => {
                self.commands.done_at_once(&self.raw.share, tag, Err(error), data);
            }
        }
        Ok(())
    }

    /// Commands in flight: those whose completion was not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next completion, if there is one, without waiting. On a device with timing, commands are
    /// complete when the share's clock has reached their end.
    pub fn poll(&mut self) -> Option<Completion> {
        self.commands.poll().map(|reply| self.raw.completion(reply))
    }

    /// Waits until there is a completion to take; returns whether there is one. Returns false at
    /// once if no command is in flight, and if for the time of `timeout` no operation of the device
    /// completed. On a device with timing the share's clock advances.
    ///
    /// Without a time limit, a sync goes to the disk together with the writes before it if nothing
    /// else is in flight: their completions come when it is complete.
    pub fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        self.commands.wait(timeout)
    }

    /// Waits for the next completion; `None` if no command is in flight.
    pub fn complete(&mut self) -> Option<Completion> {
        self.commands.complete().map(|reply| self.raw.completion(reply))
    }

    /// A file descriptor for event loops (epoll), which becomes readable when a command completes.
    /// Before each sleep, [`Queue::poll`] until there is no completion: that submits the last
    /// commands, and completions for which no disk was needed do not make it readable. It changes
    /// when another thread takes over the queue, and the one before is to be removed from the event
    /// loop, because it may stay open. `None` on a device whose commands are complete as
    /// soon as they are submitted, or in virtual time.
    ///
    /// A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread
    /// to complete operations. Poll and sleep again.
    #[must_use]
    pub fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.commands.event_fd()
    }
}

/// A command that was checked, or its error and its buffer.
type Checked = Result<(ShareOp, Buffer, Vec<u8>), (FlashError, Buffer)>;

impl Raw {
    /// Checks a command and translates its address.
    fn checked(&self, command: Command) -> Checked {
        match command {
            Command::Read { at, offset, data } => {
                let length = self.check_length(offset, data.len(), 0);
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

    fn completion(&self, reply: ShareReply) -> Completion {
        let ShareReply { tag, op, end, result, data, .. } = reply;
        let at = || self.share.path().address(op.block().unwrap_or(0), op.page());
        let result = match (op, result) {
            (_, Err(error)) => Err(error),
            (ShareOp::Read { .. }, Ok(PageState::Erased)) => {
                Err(FlashError::Unwritten { at: at() })
            }
            (ShareOp::Read { .. }, Ok(PageState::Torn)) => Err(FlashError::Torn { at: at() }),
            (_, Ok(_)) => Ok(()),
        };
        Completion { tag, end, result, data }
    }
}
