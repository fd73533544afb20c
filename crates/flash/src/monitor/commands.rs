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
