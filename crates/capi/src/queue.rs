//! What the queues of all levels have in common: tags, buffers and completions.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use prism::function::{self, Function};
use prism::raw::{self, Completion, Raw};
use prism::{Buffer, Nanos, Share, policy};

use crate::buffer::{Lent, prism_buffer};
use crate::ffi_boundary::{OutStruct, lock, number};
use crate::policy::OpenPolicy;
use crate::status::{Failure, Status, note, status_of};
use crate::structs::prism_completion;

/// No limit of a wait.
pub const PRISM_FOREVER: u64 = u64::MAX;

/// Limit of a queue's depth: more would only cost memory.
const DEPTH_MAX: u32 = 1 << 16;

/// Longer waits, of 30 years, count as unlimited; no sum with them overflows.
const WAIT_NS_MAX: u64 = 1_000_000_000_000_000_000;

/// Limit of a queue's memory for copies that is kept for later commands, in commands.
const SPARE_MAX: usize = 64;

/// A queue of the library.
pub(crate) trait LibraryQueue: Send + 'static {
    type Command;
    fn submit(&mut self, command: Self::Command, tag: u64) -> Result<(), Self::Command>;
    fn poll(&mut self) -> Option<Completion>;
    fn wait(&mut self, timeout: Option<Nanos>) -> bool;
    fn complete(&mut self) -> Option<Completion>;
    fn event_fd(&self) -> Option<BorrowedFd<'_>>;
}

macro_rules! library_queue {
    ($($queue:ty, $command:ty, |$self:ident, $given:pat_param, $tag:ident| $submit:expr;)*) => {$(
        impl LibraryQueue for $queue {
            type Command = $command;

            fn submit(&mut $self, $given: $command, $tag: u64) -> Result<(), $command> {
                $submit
            }

            fn poll(&mut self) -> Option<Completion> {
                self.poll()
            }

            fn wait(&mut self, timeout: Option<Nanos>) -> bool {
                self.wait(timeout)
            }

            fn complete(&mut self) -> Option<Completion> {
                self.complete()
            }

            fn event_fd(&self) -> Option<BorrowedFd<'_>> {
                self.event_fd()
            }
        }
    )*};
}

library_queue! {
    raw::Queue<Arc<Raw>>, raw::Command, |self, command, tag| self.submit(command, tag);
    function::Queue<Arc<Function>>, function::Command, |self, command, tag| {
        self.submit(command, tag)
    };
    policy::Queue<OpenPolicy>, PolicyCommand, |self, command, tag| {
        match command {
            PolicyCommand::Read(address, data) => {
                let full = |data| PolicyCommand::Read(address, data);
                self.submit(address, data, tag).map_err(full)
            }
            PolicyCommand::Write(address, data, handle) => {
                let full = |data| PolicyCommand::Write(address, data, handle);
                self.submit_write_with_handle(address, data, handle, tag).map_err(full)
            }
            PolicyCommand::Trim(address, bytes) => {
                let full = |_| PolicyCommand::Trim(address, bytes);
                self.submit_trim(address, bytes, tag).map_err(full)
            }
            PolicyCommand::Flush => self.submit_flush(tag).map_err(|_| PolicyCommand::Flush),
        }
    };
}

/// A command for the policy level.
pub(crate) enum PolicyCommand {
    /// The address, and the buffer to read into.
    Read(u64, Buffer),
    /// The address, the data, and its placement handle.
    Write(u64, Buffer, u32),
    /// The address and the bytes.
    Trim(u64, u64),
    Flush,
}

/// The direction of a command's transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Reads,
    Other,
}

/// Whether a call waits for a completion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Waits,
    Polls,
}

/// A command whose completion was not taken.
struct Waiting {
    tag: u64,
    direction: Direction,
    /// The caller's buffer, if the command has one.
    lent: Option<Lent>,
}

/// A queue behind a handle. Its lock is held while a call waits for a completion: the queue is for
/// one thread at a time, and other queues go on.
pub(crate) struct CommandQueue<Q: LibraryQueue>(Mutex<State<Q>>);

struct State<Q: LibraryQueue> {
    queue: Q,
    depth: usize,
    next: u64,
    /// By the number that the library has as its tag: a completion does not say what its command
    /// was.
    waiting: BTreeMap<u64, Waiting>,
    /// A completion that did not fit into the caller's memory.
    kept: Option<Completion>,
    /// Memory of earlier commands whose data was copied.
    spare: Vec<Buffer>,
}

/// Checks the depth of a queue to be opened.
pub(crate) fn depth_of(depth: u32) -> Result<usize, Failure> {
    if (1..=DEPTH_MAX).contains(&depth) {
        return Ok(depth as usize);
    }
    let what = format!("the depth is {depth}, and between 1 and {DEPTH_MAX}");
    Err(Failure::argument(what))
}

impl<Q: LibraryQueue> CommandQueue<Q> {
    /// A queue of the library for at most `depth` commands.
    pub(crate) fn new(queue: Q, depth: usize) -> Self {
        let (waiting, kept, spare) = (BTreeMap::new(), None, Vec::new());
        Self(Mutex::new(State { queue, depth, next: 0, waiting, kept, spare }))
    }

    /// Submits a command without data.
    pub(crate) fn submit(&self, tag: u64, command: Q::Command) -> Result<c_int, Failure> {
        let mut state = lock(&self.0);
        state.check_room()?;
        state.submit(Waiting { tag, direction: Direction::Other, lent: None }, command)
    }

    /// Submits a read of `length` bytes, which the completion copies.
    pub(crate) fn submit_read(
        &self,
        tag: u64,
        length: usize,
        share: &Share,
        command: impl FnOnce(Buffer) -> Q::Command,
    ) -> Result<c_int, Failure> {
        let mut state = lock(&self.0);
        state.check_room()?;
        let memory = state.memory(length, share);
        state.submit(Waiting { tag, direction: Direction::Reads, lent: None }, command(memory))
    }

    /// Submits a write of a copy of `data`.
    pub(crate) fn submit_write(
        &self,
        tag: u64,
        data: &[u8],
        share: &Share,
        command: impl FnOnce(Buffer) -> Q::Command,
    ) -> Result<c_int, Failure> {
        let mut state = lock(&self.0);
        state.check_room()?;
        let mut memory = state.memory(data.len(), share);
        memory.copy_from_slice(data);
        state.submit(Waiting { tag, direction: Direction::Other, lent: None }, command(memory))
    }

    /// Submits a command on the first `length` bytes of a buffer.
    pub(crate) fn submit_buffer(
        &self,
        tag: u64,
        direction: Direction,
        (buffer, length): (*mut prism_buffer, usize),
        command: impl FnOnce(Buffer) -> Q::Command,
    ) -> Result<c_int, Failure> {
        let mut state = lock(&self.0);
        state.check_room()?;
        let (lent, memory) = Lent::take(buffer, length)?;
        state.submit(Waiting { tag, direction, lent: Some(lent) }, command(memory))
    }

    /// Commands whose completion was not taken.
    pub(crate) fn len(&self) -> Result<c_int, Failure> {
        number(lock(&self.0).waiting.len())
    }

    /// Waits until there is a completion to take; returns whether there is one.
    pub(crate) fn wait(&self, timeout_ns: u64) -> c_int {
        let mut state = lock(&self.0);
        let timeout = Some(Nanos(timeout_ns)).filter(|timeout| timeout.0 <= WAIT_NS_MAX);
        (state.kept.is_some() || state.queue.wait(timeout)).into()
    }

    /// The descriptor for event loops.
    pub(crate) fn event_fd(&self) -> Result<c_int, Failure> {
        let what = "this queue has no descriptor: its commands are complete as soon as they are \
                    submitted, or in virtual time; poll it";
        let fd = lock(&self.0).queue.event_fd().map(|fd| fd.as_raw_fd());
        fd.ok_or_else(|| Failure::new(Status::PRISM_EINVALID, what))
    }

    /// Takes a completion; returns 1, or 0 if there is none. If its data does not fit into the
    /// caller's memory, the completion stays, and only its length is returned.
    pub(crate) fn take(
        &self,
        patience: Patience,
        out: &OutStruct<prism_completion>,
        room: &mut [u8],
    ) -> Result<c_int, Failure> {
        let mut state = lock(&self.0);
        let next = match (state.kept.take(), patience) {
            (Some(kept), _) => Some(kept),
            (None, Patience::Waits) => state.queue.complete(),
            (None, Patience::Polls) => state.queue.poll(),
        };
        next.map_or(Ok(0), |done| state.deliver(done, out, room))
    }
}

impl<Q: LibraryQueue> State<Q> {
    fn check_room(&self) -> Result<(), Failure> {
        if self.waiting.len() < self.depth {
            return Ok(());
        }
        let what = "the queue is full: take a completion first";
        Err(Failure::new(Status::PRISM_EFULL, what))
    }

    /// Memory for a copy of `length` bytes: that of an earlier command, or new.
    fn memory(&mut self, length: usize, share: &Share) -> Buffer {
        match self.spare.pop() {
            Some(mut memory) if memory.capacity() >= length => {
                memory.set_len(length);
                memory
            }
            _ => share.device().buffer(length),
        }
    }

    fn submit(&mut self, waiting: Waiting, command: Q::Command) -> Result<c_int, Failure> {
        let submitted = self.queue.submit(command, self.next);
        assert!(submitted.is_ok(), "there is room in the queue");
        self.waiting.insert(self.next, waiting);
        self.next += 1;
        Ok(0)
    }

    fn deliver(
        &mut self,
        done: Completion,
        out: &OutStruct<prism_completion>,
        room: &mut [u8],
    ) -> Result<c_int, Failure> {
        let waiting = &self.waiting[&done.tag];
        let reads = waiting.direction == Direction::Reads && done.result.is_ok();
        let length = if reads { done.data.len() } else { 0 };
        let status = done.result.as_ref().map_or_else(status_of, |_| Status::PRISM_OK);
        out.put(prism_completion {
            size: 0,
            tag: waiting.tag,
            end_ns: done.end.0,
            length: length as u64,
            status: status as i32,
            reserved: 0,
            buffer: waiting.lent.as_ref().map_or(std::ptr::null_mut(), Lent::handle),
        });
        if waiting.lent.is_none() {
            let Some(to) = room.get_mut(..length) else {
                self.kept = Some(done);
                let what = format!("the next completion has {length} bytes: give it as many");
                return Err(Failure::new(Status::PRISM_ETOOSMALL, what));
            };
            to.copy_from_slice(&done.data[..length]);
        }
        if let Err(error) = &done.result {
            note(&error.to_string());
        }
        match self.waiting.remove(&done.tag).and_then(|waiting| waiting.lent) {
            Some(lent) => lent.give_back(done.data),
            None if done.data.capacity() > 0 && self.spare.len() < SPARE_MAX => {
                self.spare.push(done.data);
            }
            None => {}
        }
        Ok(1)
    }
}

impl<Q: LibraryQueue> Drop for State<Q> {
    /// Waits for the commands with buffers, so that these can be used again.
    fn drop(&mut self) {
        while self.waiting.values().any(|waiting| waiting.lent.is_some()) {
            let Some(done) = self.queue.complete() else { break };
            let lent = self.waiting.remove(&done.tag).and_then(|waiting| waiting.lent);
            if let Some(lent) = lent {
                lent.give_back(done.data);
            }
        }
    }
}
