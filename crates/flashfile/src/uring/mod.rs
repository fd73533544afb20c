//! Pages by io_uring with direct I/O: writes are asynchronous and submitted in batches, and many
//! reads are in flight.
//!
//! A write is copied to a buffer and submitted when enough others are ready: while the disk works,
//! the next batch is assembled. Until a write is complete, reads are served from its buffer. A
//! drain submits all writes; no wait is for an operation that was not submitted.
//!
//! Every operation has a buffer of its own, which is not accessed until the kernel is done with it.
//! The unsafe call in `ring` relies on that. `ahead` has the prefetched reads, `entry` the entries
//! of the journal.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::thread::{self, ThreadId};

use io_uring::{IoUring, opcode, types};
use prism_base::hash::FastMap;
use rustix::io::Errno;

use crate::buffers::Buffers;
use ring::errno_of;

mod ahead;
mod entry;
mod ring;
#[cfg(test)]
mod tests;

/// What a buffer is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    /// A write of the page, submitted or ready.
    Writing {
        page_at: u64,
    },
    /// A write of an entry of the journal.
    WritingEntry {
        at: u64,
        len: usize,
    },
    /// The kernel reads into it.
    Reading(Read),
    /// It was read, with this result.
    Read(Read, Result<(), Errno>),
    /// The kernel reads into it, and the result is not needed any more.
    Abandoned,
}

/// Limit of writes submitted together; at most half of the depth, so that the disk has others
/// meanwhile. System calls and disk requests are the largest costs of a write, and neighbours that
/// are submitted together are merged into one request.
const WRITES_AT_ONCE: usize = 8;

/// Writes that are submitted together, at `depth`.
fn at_once(depth: usize) -> usize {
    WRITES_AT_ONCE.min(depth.div_ceil(2))
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    at: u64,
    len: usize,
    /// The number of prefetches before it.
    hint: u64,
}

/// A file with pages in flight.
pub(crate) struct Uring {
    ring: IoUring,
    /// The thread that has used the ring, as long as it is the only one.
    alone: Option<ThreadId>,
    /// Through the page cache.
    file: File,
    /// With direct I/O.
    direct: File,
    page_size: usize,
    /// Limit of writes in flight, and of reads in flight.
    depth: usize,
    buffers: Buffers,
    /// One buffer, for entries of the journal.
    entry: Option<Buffers>,
    /// The use of each buffer, and then of that for entries.
    uses: Vec<Use>,
    free: Vec<usize>,
    /// Buffers of writes to be submitted next.
    ready: Vec<usize>,
    /// Buffers of writes by offset in the file, including those that are ready.
    writing: FastMap<u64, usize>,
    reading: FastMap<u64, usize>,
    prefetches: u64,
    /// Completed reads that are not yet fetched.
    arrived: usize,
    /// Operations that are submitted, or will be with the next system call.
    in_flight: usize,
    failed: FastMap<u64, Errno>,
    first_failure: Option<Errno>,
    /// The buffer that the last read returned to its caller.
    held: Option<usize>,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} operations in flight on {:?}", self.in_flight, self.direct)
    }
}

impl Uring {
    /// Takes the same file twice, opened with and without direct I/O.
    ///
    /// # Errors
    /// If the kernel has no io_uring for this process, or the file system no direct I/O.
    pub(crate) fn new(
        file: File,
        direct: File,
        page_size: usize,
        depth: usize,
    ) -> io::Result<Self> {
        // One for each write in flight, each prefetch and each ready write, one for a read without
        // a prefetch or held by its caller, and one so that at least one is in flight if none is
        // free.
        let mut buffers = Buffers::new(2 * depth + at_once(depth) + 2, page_size)?;
        // File systems report an unsuitable alignment only at the first transfer.
        direct.read_at(buffers.of_mut(0), 0)?;
        let count = buffers.count();
        Ok(Self {
            ring: ring::new(depth, true)?,
            alone: Some(thread::current().id()),
            file,
            direct,
            page_size,
            depth,
            buffers,
            entry: None,
            uses: vec![Use::Free; count + 1],
            free: (0..count).rev().collect(),
            ready: Vec::new(),
            writing: FastMap::default(),
            reading: FastMap::default(),
            prefetches: 0,
            arrived: 0,
            in_flight: 0,
            failed: FastMap::default(),
            first_failure: None,
            held: None,
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Copies a page and starts to write it.
    pub(crate) fn write(&mut self, page_at: u64, bytes: &[u8]) -> io::Result<()> {
        assert!(bytes.len() == self.page_size, "a whole page is written");
        let at_once = at_once(self.depth);
        if self.ready.len() >= at_once {
            self.give_writes()?;
        }
        self.check_failure()?;
        self.forget_reads(page_at);
        let index = self.take_buffer()?;
        self.buffers.of_mut(index).copy_from_slice(bytes);
        self.uses[index] = Use::Writing { page_at };
        self.writing.insert(page_at, index);
        self.ready.push(index);
        self.take_completions();
        if self.ready.len() >= at_once && self.writing.len() <= self.depth {
            self.give_writes()?;
        }
        Ok(())
    }

    /// Submits the ready writes, at most `depth` in flight.
    fn give_writes(&mut self) -> io::Result<()> {
        self.queue_writes()?;
        self.submit()
    }

    /// Queues the ready writes for the next submission.
    fn queue_writes(&mut self) -> io::Result<()> {
        while self.writing.len() > self.depth {
            // Waits for a whole batch. Waiting for a single write was slower for random writes and
            // no faster for sequential ones, although it keeps more in flight.
            self.reap(at_once(self.depth))?;
        }
        let fd = types::Fd(self.direct.as_raw_fd());
        for index in std::mem::take(&mut self.ready) {
            let Use::Writing { page_at } = self.uses[index] else {
                unreachable!("a ready buffer is a write")
            };
            let pointer = self.buffers.address(index);
            let entry = opcode::Write::new(fd, pointer, self.page_size as u32).offset(page_at);
            if let Err(error) = self.queue(index, Use::Writing { page_at }, entry.build()) {
                self.written(page_at, errno_of(Err(error)));
            }
        }
        Ok(())
    }

    /// The write of a page has ended.
    fn written(&mut self, page_at: u64, result: Result<(), Errno>) {
        self.writing.remove(&page_at);
        if let Err(error) = result {
            self.failed.insert(page_at, error);
            self.first_failure.get_or_insert(error);
        }
    }

    /// The bytes, until the next call.
    pub(crate) fn read(&mut self, page_at: u64, from: u64, len: usize) -> io::Result<&[u8]> {
        self.release();
        if let Some(&error) = self.failed.get(&page_at) {
            return Err(error.into());
        }
        if let Some(&index) = self.writing.get(&page_at) {
            return Ok(&self.buffers.of(index)[from as usize..][..len]);
        }
        let at = page_at + from;
        let index = match self.reading.get(&at) {
            Some(&index) if self.covers(index, len) => index,
            _ => self.begin_read(at, len)?,
        };
        let result = self.await_read(index, at)?;
        self.arrived -= 1;
        if self.reading.get(&at) == Some(&index) {
            self.reading.remove(&at);
        }
        self.held = Some(index);
        result?;
        Ok(&self.buffers.of(index)[..len])
    }

    /// Waits for a read; returns its result.
    fn await_read(&mut self, index: usize, at: u64) -> io::Result<Result<(), Errno>> {
        loop {
            if let Use::Read(_, result) = self.uses[index] {
                return Ok(result);
            }
            if let Err(error) = self.reap(1) {
                // Only this call uses it, unless it was prefetched.
                if self.reading.get(&at) != Some(&index) {
                    self.uses[index] = Use::Abandoned;
                }
                return Err(error);
            }
        }
    }

    /// Waits for all writes. The last ones are submitted by the call that waits.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        self.queue_writes()?;
        while !self.writing.is_empty() || self.is_writing_entry() {
            self.reap(self.writing.len() + usize::from(self.is_writing_entry()))?;
        }
        self.check_failure()
    }

    fn check_failure(&self) -> io::Result<()> {
        self.first_failure.map_or(Ok(()), |error| Err(error.into()))
    }

    fn covers(&self, index: usize, len: usize) -> bool {
        matches!(self.uses[index], Use::Reading(read) | Use::Read(read, _) if read.len >= len)
    }

    fn begin_read(&mut self, at: u64, len: usize) -> io::Result<usize> {
        let index = self.take_buffer()?;
        let fd = types::Fd(self.direct.as_raw_fd());
        let pointer = self.buffers.address(index).cast_mut();
        let entry = opcode::Read::new(fd, pointer, len as u32).offset(at);
        let read = Read { at, len, hint: self.prefetches };
        self.queue(index, Use::Reading(read), entry.build())?;
        Ok(index)
    }

    /// A free buffer; waits for one. At most `depth` are written and `depth` prefetched, some are
    /// ready and one is held: if none is free, the kernel has one that was abandoned.
    fn take_buffer(&mut self) -> io::Result<usize> {
        loop {
            if let Some(index) = self.free.pop() {
                return Ok(index);
            }
            assert!(self.in_flight > 0, "a buffer becomes free: {self:?}");
            self.reap(1)?;
        }
    }

    fn put_buffer(&mut self, index: usize) {
        self.uses[index] = Use::Free;
        if index != self.entry_index() {
            self.free.push(index);
        }
    }

    fn release(&mut self) {
        if let Some(index) = self.held.take() {
            self.put_buffer(index);
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Errors are ignored here; `drain` returns them.
        let _ = self.give_writes();
        while self.in_flight > 0 {
            if self.reap(1).is_err() {
                // The kernel may still use them, so they are leaked.
                self.entry.iter_mut().for_each(Buffers::leak);
                return self.buffers.leak();
            }
        }
    }
}
