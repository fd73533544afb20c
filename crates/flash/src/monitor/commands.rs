//! The commands of one queue of the raw or the function level, on a device with or without timing.

use std::os::fd::BorrowedFd;

use prism_base::{Nanos, SimTime};

use crate::buffer::Buffer;
use crate::error::Result;
use crate::medium::PageState;
use crate::monitor::{Pads, Share, ShareOp, ShareQueue, ShareReply, TimedQueue};

/// The completion of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The tag passed to the queue with the command.
    pub tag: u64,
    /// When the command was complete, in the time of the share.
    pub end: SimTime,
    /// Its result.
    pub result: Result<()>,
    /// The buffer of the command; empty for a command that has none.
    pub data: Buffer,
}

/// What the queues of the raw and the function level have in common: `$field` is the level.
macro_rules! level_queue {
    ($level:ident, $field:ident) => {
        impl<R: Deref<Target = $level>> Queue<R> {
            /// A queue with at most `depth` commands in flight. The level is a reference, or an
            /// [`Arc`](std::sync::Arc) if the queue has to outlive the function that makes it.
            #[must_use]
            pub fn new($field: R, depth: usize) -> Self {
                let depth = depth.max(1);
                let commands = crate::monitor::Commands::new(&$field.share, depth);
                Self { depth, commands, $field }
            }

            /// The level below the queue.
            pub fn $field(&self) -> &$level {
                &self.$field
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

            /// The next completion, if there is one, without waiting. On a device with timing,
            /// commands are complete when the share's clock has reached their end.
            pub fn poll(&mut self) -> Option<Completion> {
                self.commands.poll().map(|reply| self.$field.completion(reply))
            }

            /// Waits until there is a completion to take; returns whether there is one. Returns
            /// false at once if no command is in flight, and if for the time of `timeout` no
            /// operation of the device completed. On a device with timing the share's clock
            /// advances.
            ///
            /// Without a time limit, a sync goes to the disk together with the writes before it if
            /// nothing else is in flight: their completions come when it is complete.
            pub fn wait(&mut self, timeout: Option<prism_base::Nanos>) -> bool {
                self.commands.wait(timeout)
            }

            /// Waits for the next completion; `None` if no command is in flight.
            pub fn complete(&mut self) -> Option<Completion> {
                self.commands.complete().map(|reply| self.$field.completion(reply))
            }

            /// A file descriptor for event loops (epoll), which becomes readable when a command
            /// completes. Before each sleep, [`Queue::poll`] until there is no completion: that
            /// submits the last commands, and completions for which no disk was needed do not make
            /// it readable. It changes when another thread takes over the queue, and the one before
            /// is to be removed from the event loop, because it may stay open. `None` on a device
            /// whose commands are complete as soon as they are submitted, or in virtual time.
            ///
            /// A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts
            /// the thread to complete operations. Poll and sleep again.
            #[must_use]
            pub fn event_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
                self.commands.event_fd()
            }
        }
    };
}
pub(crate) use level_queue;

/// Commands of one thread at a time.
#[derive(Debug)]
pub(crate) enum Commands {
    /// On a device with timing, the queues of a share are scheduled together.
    Timed(TimedQueue),
    /// On others the device works while the caller goes on.
    Direct(ShareQueue),
}

impl Commands {
    pub(crate) fn new(share: &Share, depth: usize) -> Self {
        if share.is_timed() {
            Self::Timed(TimedQueue::new(share))
        } else {
            Self::Direct(ShareQueue::new(share, depth))
        }
    }

    /// Submits an operation, without waiting for the device.
    pub(crate) fn submit(&mut self, tag: u64, op: ShareOp, data: Buffer, oob: Vec<u8>) {
        match self {
            Self::Timed(queue) => queue.submit(tag, op, data, oob),
            Self::Direct(queue) => queue.submit(tag, op, data, oob),
        }
    }

    /// As [`Commands::submit`], of a write before which, on a device with timing, these pages may
    /// be padded.
    pub(crate) fn submit_padded(
        &mut self,
        tag: u64,
        op: ShareOp,
        data: Buffer,
        oob: Vec<u8>,
        pads: Pads,
    ) {
        match self {
            Self::Timed(queue) => queue.submit_padded(tag, op, data, oob, pads),
            Self::Direct(queue) => queue.submit(tag, op, data, oob),
        }
    }

    /// Completes an operation that needs no work of the device, or was refused.
    pub(crate) fn done_at_once(
        &mut self,
        share: &Share,
        tag: u64,
        result: Result<()>,
        data: Buffer,
    ) {
        match self {
            Self::Timed(queue) => {
                let end = share.now().unwrap_or(SimTime::ZERO);
                queue.put(ShareReply::without_work(tag, end, result, data));
            }
            Self::Direct(queue) => queue.done_at_once(tag, result, data),
        }
    }

    /// Operations whose completion was not taken.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Timed(queue) => queue.len(),
            Self::Direct(queue) => queue.len(),
        }
    }

    /// The next completion, if there is one, without waiting.
    pub(crate) fn poll(&mut self) -> Option<ShareReply> {
        match self {
            Self::Timed(queue) => queue.poll(),
            Self::Direct(queue) => queue.take(),
        }
    }

    /// Waits for a completion to take; false if none is in flight, or `timeout` is over.
    pub(crate) fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        match self {
            Self::Timed(queue) => queue.wait(timeout),
            Self::Direct(queue) => queue.wait(timeout),
        }
    }

    /// Waits for the next completion.
    pub(crate) fn complete(&mut self) -> Option<ShareReply> {
        match self {
            Self::Timed(queue) => queue.complete(),
            Self::Direct(queue) => {
                queue.wait(None);
                queue.take()
            }
        }
    }

    /// The next completion of a queue that is dropped: the clock does not advance.
    pub(crate) fn complete_to_drop(&mut self) -> Option<ShareReply> {
        match self {
            Self::Timed(queue) => queue.take(),
            Self::Direct(_) => self.complete(),
        }
    }

    pub(crate) fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Timed(_) => None,
            Self::Direct(queue) => queue.event_fd(),
        }
    }
}

impl ShareReply {
    /// The completion of a command whose result is that of the operation.
    pub(crate) fn completion(self) -> Completion {
        let Self { tag, end, result, data, .. } = self;
        Completion { tag, end, result: result.map(drop), data }
    }

    /// The reply to an operation that needs no work of the device.
    pub(crate) fn without_work(tag: u64, end: SimTime, result: Result<()>, data: Buffer) -> Self {
        let result = result.map(|()| PageState::Written);
        Self { tag, op: ShareOp::Sync, end, result, data, oob: Vec::new() }
    }
}
