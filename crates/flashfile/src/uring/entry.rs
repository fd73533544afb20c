//! Writes of journal entries, which are submitted together with those of pages.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use io_uring::{opcode, types};
use rustix::io::Errno;

use super::ring::{bytes_done, errno_of};
use super::{Uring, Use};
use crate::buffers::Buffers;

impl Uring {
    /// The index of the buffer for entries: the one after those for pages.
    pub(super) fn entry_index(&self) -> usize {
        self.buffers.count()
    }

    pub(super) fn is_writing_entry(&self) -> bool {
        self.uses[self.entry_index()] != Use::Free
    }

    /// Starts to write an entry together with the ready pages; the next drain waits for it.
    pub(crate) fn write_entry(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        assert!(!self.is_writing_entry(), "a sync waits for its entry");
        self.check_failure()?;
        self.queue_writes()?;
        let long_enough = self.entry.as_ref().is_some_and(|entry| entry.size() >= bytes.len());
        if !long_enough {
            self.entry = Some(Buffers::new(1, bytes.len().next_power_of_two())?);
        }
        let buffers = self.entry.as_mut().expect("just made");
        buffers.of_mut(0)[..bytes.len()].copy_from_slice(bytes);
        let (fd, len) = (types::Fd(self.direct.as_raw_fd()), bytes.len());
        // What is longer than a write can be is written after it.
        let first = len.min(1 << 30) as u32;
        let write = opcode::Write::new(fd, buffers.address(0), first).offset(at);
        self.queue(self.entry_index(), Use::WritingEntry { at, len }, write.build())
    }

    /// The write of an entry has ended. Writes the rest of a short one, which also reveals its
    /// error.
    pub(super) fn finish_entry(&mut self, at: u64, len: usize, result: i32) {
        self.put_buffer(self.entry_index());
        let written = bytes_done(result).and_then(|done| {
            let (done, entry) = (done.unwrap_or(0), self.entry.as_ref());
            let bytes = &entry.ok_or(Errno::IO)?.of(0)[..len];
            if done == len {
                return Ok(());
            }
            errno_of(self.file.write_all_at(&bytes[done..], at + done as u64))
        });
        if let Err(error) = written {
            self.first_failure.get_or_insert(error);
        }
    }
}
