//! Operations of a medium that are in flight: submitted, and completed later.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_base::Nanos;

use super::{Medium, MediumError, PageState};
use crate::buffer::Buffer;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads as many bytes as the buffer has, from `offset` of the page on; they may continue on
    /// the next pages of the block.
    Read {
        /// The block.
        block: u32,
        /// The first page.
        page: u32,
        /// The first byte of it.
        offset: u32,
    },
    /// Programs as many pages as the buffer has. Programs of one block are executed in the order of
    /// their submission.
    Program {
        /// The block.
        block: u32,
        /// The first page.
        page: u32,
    },
    /// Makes all operations durable that were complete when it was submitted.
    Sync,
}

/// An operation and its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number, which the reply has too.
    pub tag: u64,
    /// The operation.
    pub op: Op,
    /// The data; empty for a sync.
    pub data: Buffer,
    /// Out-of-band bytes of the first page.
    pub oob: Vec<u8>,
}

/// A completed operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The number of its request.
    pub tag: u64,
    /// The result; for a read the state of the first page that is not written, if there is one.
    pub result: Result<PageState, MediumError>,
    /// The data.
    pub data: Buffer,
    /// The out-of-band bytes.
    pub oob: Vec<u8>,
}

/// Operations of one thread at a time. Replies come to the queue of their requests, in the order of
/// completion. A queue that is dropped waits for its operations.
pub trait MediumQueue: Send {
    /// Submits an operation, without waiting for the device. Operations beyond what the device
    /// takes at once are submitted to it as others complete.
    fn submit(&mut self, request: Request);

    /// Takes a reply, if there is one, without waiting.
    fn take(&mut self) -> Option<Reply>;

    /// Waits until there is a reply to take, or `timeout` is over. Returns whether there is one;
    /// false at once if no operation is in flight.
    fn wait(&mut self, timeout: Option<Nanos>) -> bool;

    /// Whether [`MediumQueue::sync_in_flight`] may be called.
    fn can_sync_in_flight(&self) -> bool {
        false
    }

    /// Makes everything durable that is complete, and the programs of this queue in flight, and
    /// waits for that: one wait instead of one for the programs and one for the sync. Their
    /// replies, and one with `tag` and the result, are there to take then. To be called while only
    /// programs are in flight.
    ///
    /// # Panics
    /// Unless [`MediumQueue::can_sync_in_flight`].
    fn sync_in_flight(&mut self, _tag: u64) {
        unreachable!("this queue has no such sync")
    }

    /// A file descriptor for event loops, which is readable when [`MediumQueue::take`] should be
    /// called; `None` if operations are complete as soon as they are submitted.
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Executes one operation now.
pub fn execute(medium: &dyn Medium, mut request: Request) -> Reply {
    let (data, oob) = (&mut request.data, &mut request.oob);
    let result = match request.op {
        Op::Read { block, page, offset } => medium.read(block, page, offset, data, oob),
        Op::Program { block, page } => {
            medium.program(block, page, data, oob).map(|()| PageState::Written)
        }
        Op::Sync => medium.sync().map(|()| PageState::Written),
    };
    Reply { tag: request.tag, result, data: request.data, oob: request.oob }
}

/// The queue of a medium whose operations do not wait for anything: they are executed when they are
/// submitted.
pub(crate) struct ImmediateQueue {
    medium: Arc<dyn Medium>,
    replies: VecDeque<Reply>,
}

impl ImmediateQueue {
    pub(crate) fn new(medium: Arc<dyn Medium>) -> Self {
        Self { medium, replies: VecDeque::new() }
    }
}

impl MediumQueue for ImmediateQueue {
    fn submit(&mut self, request: Request) {
        let reply = execute(&*self.medium, request);
        self.replies.push_back(reply);
    }

    fn take(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    fn wait(&mut self, _timeout: Option<Nanos>) -> bool {
        !self.replies.is_empty()
    }
}
