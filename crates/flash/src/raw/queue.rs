//! The command queue of the raw level.

use std::ops::Deref;

use super::{Address, Raw};
use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::medium::PageState;
use crate::monitor::{Commands, Completion, ShareOp, ShareReply, level_queue};

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
}

level_queue!(Raw, raw);

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
