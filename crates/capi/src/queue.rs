//! Completions of both queues: tags, and buffers that are too small.

use std::collections::BTreeMap;
use std::ffi::c_int;

use prism::raw::Completion;

use crate::ffi_boundary::OutStruct;
use crate::status::{Failure, Status, note, status_of};
use crate::structs::prism_completion;

/// Commands that were submitted and not completed. The tags passed to the library are numbers of
/// this table, since a completion does not say whether the command was a read.
#[derive(Default)]
pub(crate) struct Tags {
    next: u64,
    /// By number, the caller's tag, and whether it is a read.
    waiting: BTreeMap<u64, (u64, bool)>,
    /// A completion that did not fit into the caller's buffer.
    kept: Option<Completion>,
}

/// The direction of a command's transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Reads,
    Other,
}

impl Tags {
    /// The number of the next command to be submitted.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Notes that a command was submitted with the next number.
    pub(crate) fn submitted(&mut self, tag: u64, direction: Direction) {
        self.waiting.insert(self.next, (tag, direction == Direction::Reads));
        self.next += 1;
    }

    /// Commands whose completion was not taken.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a completion; returns 1, or 0 if none is left. If its data does not fit into the
    /// buffer, the completion stays, and only its length is returned.
    pub(crate) fn complete(
        &mut self,
        next: impl FnOnce() -> Option<Completion>,
        out: &OutStruct<prism_completion>,
        room: &mut [u8],
    ) -> Result<c_int, Failure> {
        let Some(done) = self.kept.take().or_else(next) else { return Ok(0) };
        let (tag, reads) = self.waiting[&done.tag];
        let data = if reads && done.result.is_ok() { &done.data[..] } else { &[] };
        let (status, message) = match &done.result {
            Ok(()) => (Status::PRISM_OK, None),
            Err(error) => (status_of(error), Some(error.to_string())),
        };
        let length = data.len();
        out.put(prism_completion {
            size: 0,
            tag,
            end_ns: done.end.0,
            length: length as u64,
            status: status as i32,
            reserved: 0,
        });
        let Some(to) = room.get_mut(..length) else {
            self.kept = Some(done);
            let what = format!("the next completion has {length} bytes: give it as many");
            return Err(Failure::new(Status::PRISM_ETOOSMALL, what));
        };
        to.copy_from_slice(data);
        self.waiting.remove(&done.tag);
        message.iter().for_each(|message| note(message));
        Ok(1)
    }
}

/// The failure of a submission to a full queue.
pub(crate) fn full() -> Failure {
    Failure::new(Status::PRISM_EFULL, "the queue is full: take a completion first")
}
