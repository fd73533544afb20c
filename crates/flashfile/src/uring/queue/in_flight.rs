//! A sync of programs in flight: the entry of the journal is written next to the pages that it
//! names, so the thread waits once for both and once for the sync, instead of three times.
//!
//! Only a caller that waits until the sync is complete gets this: syncs of other threads wait for
//! it, and must not depend on a thread that does something else.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use io_uring::opcode;
use io_uring::types::Fd;
use prism_flash::{MediumError, Op};

use super::{ENTRY, UringQueue, bytes_done};
use crate::buffers::Aligned;
use crate::commit::{Commit, InFlight};

impl UringQueue {
    /// Makes the programs in flight durable with everything before. `None` if that has to wait for
    /// something else.
    pub(super) fn commit_in_flight(&mut self) -> Option<Result<(), MediumError>> {
        if self.outside > 0 || !self.later.is_empty() {
            return None;
        }
        let mut programs = Vec::with_capacity(self.in_flight);
        for flight in (0..self.flights.places()).filter_map(|place| self.flights[place].as_ref()) {
            let Op::Program { block, page } = flight.request.op else { return None };
            let (epoch, headers) = (flight.epoch, &flight.headers[..]);
            programs.push(InFlight { block, page, epoch, headers });
        }
        let commit = self.file.begin_in_flight(&mut programs)?;
        let written = self.write_entry(&commit);
        Some(self.file.end_in_flight(commit, written))
    }

    /// Writes an entry, and waits for it and for the programs in flight.
    fn write_entry(&mut self, commit: &Commit) -> io::Result<()> {
        let pushed = self.push_write(commit);
        let left = |queue: &Self| {
            let writes = pushed.is_ok() && queue.entry_written.is_none();
            queue.in_flight + usize::from(writes)
        };
        while left(self) > 0 {
            self.enter(left(self), None);
            while self.process_one() {}
        }
        pushed?;
        let done = self.entry_written.take().unwrap_or_default();
        let done = bytes_done(done)?.unwrap_or(0);
        // The rest of a short one, which also reveals its error.
        self.direct().file.write_all_at(&commit.bytes[done..], commit.at + done as u64)
    }

    fn push_write(&mut self, commit: &Commit) -> io::Result<()> {
        let len = commit.bytes.len();
        let memory = self.entry.take().filter(|memory| memory.len() >= len);
        let mut memory = memory.map_or_else(|| Aligned::new(len), Ok)?;
        memory.as_mut()[..len].copy_from_slice(&commit.bytes);
        let direct = Fd(self.direct().direct.as_raw_fd());
        let write = opcode::Write::new(direct, memory.as_ref().as_ptr(), len as u32);
        self.entry = Some(memory);
        self.push_entry(&write.offset(commit.at).build().user_data(ENTRY));
        Ok(())
    }
}
