//! Pages by io_uring with direct I/O.
//!
//! A [`Writer`] writes behind its callers: a page is copied to a buffer and submitted when enough
//! others are ready, and while the disk works, the next batch is assembled. Until a write is
//! complete, the page is read from its buffer. A drain submits all writes; no wait is for an
//! operation that was not submitted. `queue` has the operations of a thread in flight, from and to
//! its own buffers.
//!
//! Every operation has a buffer of its own, which is not accessed until the kernel is done with it.
//! The unsafe calls rely on that. `entry` has the entries of the journal.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, ThreadId};

use io_uring::{IoUring, opcode, types};
use prism_base::hash::FastMap;
use rustix::io::Errno;

use crate::buffers::Buffers;
use ring::errno_of;

mod commit;
mod entry;
mod queue;
mod ring;
#[cfg(test)]
mod tests;

pub(crate) use commit::CommitRing;
pub(crate) use queue::UringQueue;

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
}

/// Limit of writes submitted together; at most half of the depth, so that the disk has others
/// meanwhile. System calls and disk requests are the largest costs of a write, and neighbours that
/// are submitted together are merged into one request.
const WRITES_AT_ONCE: usize = 8;

/// Writes that are submitted together, at `depth`.
fn at_once(depth: usize) -> usize {
    WRITES_AT_ONCE.min(depth.div_ceil(2))
}

/// The pages that writers have in memory: reads of them must not go to the disk.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    count: AtomicUsize,
    /// By offset in the file: the writer.
    pages: Mutex<FastMap<u64, usize>>,
}

impl Behind {
    fn lock(&self) -> MutexGuard<'_, FastMap<u64, usize>> {
        self.pages.lock().expect("no thread panics while it holds the pages")
    }

    fn insert(&self, page_at: u64, writer: usize) {
        let mut pages = self.lock();
        pages.insert(page_at, writer);
        self.count.store(pages.len(), Ordering::SeqCst);
    }

    fn remove(&self, page_at: u64) {
        let mut pages = self.lock();
        pages.remove(&page_at);
        self.count.store(pages.len(), Ordering::SeqCst);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// The writer that has a page in memory.
    pub(crate) fn writer_of(&self, page_at: u64) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        self.lock().get(&page_at).copied()
    }
}

/// A file with pages being written.
pub(crate) struct Writer {
    ring: IoUring,
    /// The thread that has used the ring, as long as it is the only one.
    alone: Option<ThreadId>,
    /// Through the page cache.
    file: File,
    /// With direct I/O.
    direct: File,
    page_size: usize,
    /// Limit of writes in flight.
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
    /// Operations that are submitted, or will be with the next system call.
    in_flight: usize,
    failed: FastMap<u64, Errno>,
    first_failure: Option<Errno>,
    /// Its number, and the pages of all writers.
    number: usize,
    behind: Arc<Behind>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} operations in flight on {:?}", self.in_flight, self.direct)
    }
}

impl Writer {
    /// Takes the same file twice, opened with and without direct I/O.
    ///
    /// # Errors
    /// If the kernel has no io_uring for this process, or the file system no direct I/O.
    pub(crate) fn new(
        file: File,
        direct: File,
        page_size: usize,
        depth: usize,
        (number, behind): (usize, Arc<Behind>),
    ) -> io::Result<Self> {
        // One for each write in flight and each ready write, and one so that at least one is in
        // flight if none is free.
        let mut buffers = Buffers::new(depth + at_once(depth) + 1, page_size)?;
        // File systems report an unsuitable alignment only at the first transfer.
        direct.read_at(buffers.of_mut(0), 0)?;
        let count = buffers.count();
        Ok(Self {
            ring: ring::new(depth + 1, true)?,
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
            in_flight: 0,
            failed: FastMap::default(),
            first_failure: None,
            number,
            behind,
        })
    }

    /// Copies a page and starts to write it.
    pub(crate) fn write(&mut self, page_at: u64, bytes: &[u8]) -> io::Result<()> {
        assert!(bytes.len() == self.page_size, "a whole page is written");
        let at_once = at_once(self.depth);
        if self.ready.len() >= at_once {
            self.give_writes()?;
        }
        self.check_failure()?;
        let index = self.take_buffer()?;
        self.buffers.of_mut(index).copy_from_slice(bytes);
        self.uses[index] = Use::Writing { page_at };
        self.writing.insert(page_at, index);
        self.behind.insert(page_at, self.number);
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
        match result {
            Ok(()) => self.behind.remove(page_at),
            Err(error) => {
                self.failed.insert(page_at, error);
                self.first_failure.get_or_insert(error);
            }
        }
    }

    /// Copies bytes of a page that is being written; false if its write is complete.
    ///
    /// # Errors
    /// The error of the write.
    pub(crate) fn read(&self, page_at: u64, from: u64, into: &mut [u8]) -> io::Result<bool> {
        if let Some(&error) = self.failed.get(&page_at) {
            return Err(error.into());
        }
        let Some(&index) = self.writing.get(&page_at) else { return Ok(false) };
        into.copy_from_slice(&self.buffers.of(index)[from as usize..][..into.len()]);
        Ok(true)
    }

    /// Submits the writes that wait for others to be submitted with.
    pub(crate) fn submit_ready(&mut self) -> io::Result<()> {
        if self.ready.is_empty() && !self.is_writing_entry() {
            return Ok(());
        }
        self.give_writes()
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

    /// A free buffer; waits for one. At most `depth` are written and some are ready: if none is
    /// free, the kernel has one.
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
}

impl Drop for Writer {
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
