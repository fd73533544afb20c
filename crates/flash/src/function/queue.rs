//! The command queue of the function level.

use std::ops::Deref;

use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::function::{Function, Unit, check_oob};
use crate::medium::PageState;
use crate::monitor::{Commands, ShareOp, ShareReply, level_queue};
use crate::raw::{Address, Completion};

/// A command to be queued; it is returned if the queue is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads pages.
    Read {
        /// The first.
        at: Address,
        /// The buffer; its length gives the number of pages.
        data: Buffer,
    },
    /// Writes pages.
    Write {
        /// The first.
        at: Address,
        /// The data.
        data: Buffer,
        /// Out-of-band bytes of the first page, at most [`Function::oob_size`].
        oob: Vec<u8>,
    },
    /// Gives back a block or a page.
    Trim {
        /// Its address.
        at: Address,
        /// Block or page.
        unit: Unit,
    },
    /// Makes durable what was complete when the sync was submitted, and the writes of the same
    /// queue that were submitted before.
    Sync,
}

/// Commands in flight, of one thread at a time; each thread has a queue of its own. Completions
/// come to the queue that submitted the command.
///
/// On a device with timing, reads go before writes and writes before erases, as in a queue of the
/// [raw level](crate::raw::Queue), and completions are in time order. On other devices commands go
/// to the device at once, no lock is held while it works, and completions are in the order of
/// completion. A read waits for writes of its pages that were submitted to the same queue before, a
/// sync for all of them.
///
/// There is no cancellation, for the reason that [`raw::Queue`](crate::raw::Queue) gives. Dropping
/// a queue waits for its commands.
#[derive(Debug)]
pub struct Queue<R: Deref<Target = Function>> {
    function: R,
    depth: usize,
    commands: Commands,
}

impl<R: Deref<Target = Function>> Queue<R> {
    /// Queues a read of pages from `at` on into `data`, which has their size. The completion
    /// reports the result.
    ///
    /// # Errors
    /// The command itself, if the queue is full: take a completion first.
    pub fn submit_read(
        &mut self,
        at: Address,
        data: impl Into<Buffer>,
        tag: u64,
    ) -> Result<(), Command> {
        self.submit(Command::Read { at, data: data.into() }, tag)
    }

    /// Queues a write of whole pages from `at` on.
    ///
    /// # Errors
    /// As [`Queue::submit_read`].
    pub fn submit_write(
        &mut self,
        at: Address,
        data: impl Into<Buffer>,
        tag: u64,
    ) -> Result<(), Command> {
        self.submit_write_with_oob(at, data, Vec::new(), tag)
    }

    /// As [`Queue::submit_write`], with out-of-band bytes of the first page: at most
    /// [`Function::oob_size`].
    ///
    /// # Errors
    /// As [`Queue::submit_read`].
    pub fn submit_write_with_oob(
        &mut self,
        at: Address,
        data: impl Into<Buffer>,
        oob: impl Into<Vec<u8>>,
        tag: u64,
    ) -> Result<(), Command> {
        self.submit(Command::Write { at, data: data.into(), oob: oob.into() }, tag)
    }

    /// Queues a trim: it completes at once, and the erase follows after the commands queued for the
    /// block before.
    ///
    /// # Errors
    /// As [`Queue::submit_read`].
    pub fn submit_trim(&mut self, at: Address, unit: Unit, tag: u64) -> Result<(), Command> {
        self.submit(Command::Trim { at, unit }, tag)
    }

    /// Queues a sync of the writes that were submitted to this queue before, and of everything else
    /// that is complete.
    ///
    /// # Errors
    /// As [`Queue::submit_read`].
    pub fn submit_sync(&mut self, tag: u64) -> Result<(), Command> {
        self.submit(Command::Sync, tag)
    }

    /// Queues a command.
    ///
    /// # Errors
    /// As [`Queue::submit_read`].
    pub fn submit(&mut self, command: Command, tag: u64) -> Result<(), Command> {
        if self.len() >= self.depth {
            return Err(command);
        }
        let (function, queue) = (&*self.function, &mut self.commands);
        let (share, reads) = (&function.share, matches!(command, Command::Read { .. }));
        let (at, data, oob) = match command {
            Command::Read { at, data } => (at, data, Vec::new()),
            Command::Write { at, data, oob } => (at, data, oob),
            Command::Trim { at, unit } => {
                queue.done_at_once(share, tag, function.trim(at, unit), Buffer::default());
                return Ok(());
            }
            Command::Sync => {
                queue.submit(tag, ShareOp::Sync, Buffer::default(), Vec::new());
                return Ok(());
            }
        };
        let page = at.page;
        let oob_checked = check_oob(&function.geometry, oob.len());
        match oob_checked.and_then(|()| function.begin(at, data.len())) {
            Ok((block, 0)) => {
                function.end(block);
                queue.done_at_once(share, tag, Ok(()), data);
            }
            Ok((block, _)) if reads => {
                queue.submit(tag, ShareOp::Read { block, page, offset: 0 }, data, oob);
                function.submitted(block);
            }
            Ok((block, _)) => {
                function.table.note_begun(block);
                let oob = function.page_oob(block, page, oob);
                let pads = function.pads(block, page);
                queue.submit_padded(tag, ShareOp::Program { block, page }, data, oob, pads);
                function.submitted(block);
            }
            Err(error) => queue.done_at_once(share, tag, Err(error), data),
        }
        Ok(())
    }
}

level_queue!(Function, function);

impl<R: Deref<Target = Function>> Drop for Queue<R> {
    fn drop(&mut self) {
        while let Some(reply) = self.commands.complete_to_drop() {
            self.function.completion(reply);
        }
    }
}

impl Function {
    /// A command on a block was queued. On a device with timing the scheduler orders erases after
    /// it; on others its erase waits until the completion is taken.
    fn submitted(&self, block: u32) {
        if self.share.is_timed() {
            self.end(block);
        }
    }

    /// The completion of a command of a queue, after which its block may be erased.
    fn completion(&self, reply: ShareReply) -> Completion {
        let ShareReply { tag, op, end, result, data, oob } = reply;
        let result = match (op, result) {
            (ShareOp::Read { block, page, .. }, Ok(state)) => self.check_read(block, page, state),
            (ShareOp::Program { block, page }, Err(FlashError::OutOfOrder { expected, .. }))
                if !self.share.is_timed() =>
            {
                self.padded((block, page), expected, &data, &oob)
            }
            (_, result) => result.map(|_| ()),
        };
        if let Some(block) = op.block().filter(|_| !self.share.is_timed()) {
            self.end(block);
        }
        Completion { tag, end, result, data }
    }

    /// The error of a read of pages that are not all written.
    pub(super) fn check_read(&self, block: u32, page: u32, state: PageState) -> Result<()> {
        let path = self.share.path();
        match state {
            PageState::Written => Ok(()),
            PageState::Erased => {
                let first = self.share.write_pointer(block)?.max(page);
                Err(FlashError::Unwritten { at: path.address(block, first) })
            }
            PageState::Torn => Err(FlashError::Torn { at: path.address(block, page) }),
        }
    }
}
