//! Pages by io_uring, past the page cache: writes go on behind the caller, several of them given
//! to the kernel at once, and many reads are in flight.
//!
//! A write goes to the kernel when enough others wait for that, and has its buffer before: while
//! the disk works the next ones are put together. Until it is done its buffer serves reads. A drain
//! gives everything to the kernel; nothing waits for what it was not given.
//!
//! Every operation has a buffer of its own, which nobody touches until the kernel is done
//! with it. That is what the unsafe call in `ring` rests on. `ahead` has the reads that are
//! begun by hints.

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
mod ring;
#[cfg(test)]
mod tests;

/// What a buffer is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    /// The kernel writes it to the file, or is going to.
    Writing {
        page_at: u64,
    },
    /// The kernel reads into it.
    Reading(Read),
    /// It was read, with this result.
    Read(Read, Result<(), Errno>),
    /// The kernel reads into it, and nobody wants it any more.
    Abandoned,
}

/// Writes that are given to the kernel together, at most; no more than half of the depth, so that
/// the disk has others meanwhile. A call into the kernel for each, and a call of the disk, cost
/// more than anything else in a write; and neighbours that are given together become one request
/// to the disk.
const WRITES_AT_ONCE: usize = 8;

/// Writes that are given to the kernel together, at `depth`.
fn at_once(depth: usize) -> usize {
    WRITES_AT_ONCE.min(depth.div_ceil(2))
}

/// A read that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    at: u64,
    len: usize,
    /// How many hints had come before.
    hint: u64,
}

/// A file with pages in flight.
pub(crate) struct Uring {
    ring: IoUring,
    /// The only one that has used the ring, as long as there is only one.
    alone: Option<ThreadId>,
    /// Through the page cache.
    file: File,
    /// Past it.
    direct: File,
    page_size: usize,
    /// Writes, and beside them reads, that may be in flight.
    depth: usize,
    buffers: Buffers,
    uses: Vec<Use>,
    free: Vec<usize>,
    /// Of writes that the kernel gets next.
    ready: Vec<usize>,
    /// By where they stand in the file, those that are ready too.
    writing: FastMap<u64, usize>,
    reading: FastMap<u64, usize>,
    hints: u64,
    /// Reads that are done and not yet given to their callers.
    arrived: usize,
    /// Operations that the kernel has, or gets with the next call.
    in_flight: usize,
    failed: FastMap<u64, Errno>,
    first_failure: Option<Errno>,
    /// The buffer that the last read gave to its caller.
    held: Option<usize>,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} operations in flight on {:?}", self.in_flight, self.direct)
    }
}

impl Uring {
    /// Takes the same file twice, through the page cache and past it.
    ///
    /// # Errors
    /// If the kernel has no io_uring for this process, or the file system no direct I/O.
    pub(crate) fn new(
        file: File,
        direct: File,
        page_size: usize,
        depth: usize,
    ) -> io::Result<Self> {
        // One for each write and each read ahead and those that are ready, one for a read that was
        // not announced or is held, and one so that at least one is in flight if none is free.
        let mut buffers = Buffers::new(2 * depth + at_once(depth) + 2, page_size)?;
        // File systems say only at the first transfer which alignment they want.
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
            uses: vec![Use::Free; count],
            free: (0..count).rev().collect(),
            ready: Vec::new(),
            writing: FastMap::default(),
            reading: FastMap::default(),
            hints: 0,
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

    /// Copies a page and begins to write it.
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

    /// Gives the writes that are ready to the kernel, which never has more than `depth`.
    fn give_writes(&mut self) -> io::Result<()> {
        while self.writing.len() > self.depth {
            // As many as are given together. To wait for one alone was slower at random and no
            // faster in order, although the disk has more then.
            self.reap(at_once(self.depth))?;
        }
        let fd = types::Fd(self.direct.as_raw_fd());
        for index in std::mem::take(&mut self.ready) {
            let Use::Writing { page_at } = self.uses[index] else {
                unreachable!("what is ready is written")
            };
            let pointer = self.buffers.address(index);
            let entry = opcode::Write::new(fd, pointer, self.page_size as u32).offset(page_at);
            if let Err(error) = self.queue(index, Use::Writing { page_at }, entry.build()) {
                self.written(page_at, errno_of(Err(error)));
            }
        }
        self.submit()
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

    /// Waits for a read; how it went.
    fn await_read(&mut self, index: usize, at: u64) -> io::Result<Result<(), Errno>> {
        loop {
            if let Use::Read(_, result) = self.uses[index] {
                return Ok(result);
            }
            if let Err(error) = self.reap(1) {
                // Nobody knows of it but this call, unless it was announced.
                if self.reading.get(&at) != Some(&index) {
                    self.uses[index] = Use::Abandoned;
                }
                return Err(error);
            }
        }
    }

    /// Waits for all writes.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        self.give_writes()?;
        while !self.writing.is_empty() {
            self.reap(self.writing.len())?;
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
        let read = Read { at, len, hint: self.hints };
        self.queue(index, Use::Reading(read), entry.build())?;
        Ok(index)
    }

    /// A buffer that is free; waits for one. At most `depth` are written and as many read ahead,
    /// some are ready and one is held: if none is free, the kernel has one that was abandoned.
    fn take_buffer(&mut self) -> io::Result<usize> {
        loop {
            if let Some(index) = self.free.pop() {
                return Ok(index);
            }
            assert!(self.in_flight > 0, "a buffer comes back: {self:?}");
            self.reap(1)?;
        }
    }

    fn put_buffer(&mut self, index: usize) {
        self.uses[index] = Use::Free;
        self.free.push(index);
    }

    fn release(&mut self) {
        if let Some(index) = self.held.take() {
            self.put_buffer(index);
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Who wants to know drains.
        let _ = self.give_writes();
        while self.in_flight > 0 {
            if self.reap(1).is_err() {
                // The kernel may still use them; leaking is what is left.
                return self.buffers.leak();
            }
        }
    }
}
