//! Pages by io_uring, past the page cache: writes go on behind the caller, and many reads are
//! under way at once.
//!
//! Every operation has a buffer of its own, which nobody touches until the kernel is done
//! with it. That is what the unsafe call here rests on.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use io_uring::{IoUring, opcode, squeue, types};
use prism_base::hash::FastMap;
use rustix::io::Errno;

use crate::buffers::Buffers;

/// What a buffer is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    /// The kernel writes it to the file.
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

/// Reads ahead that are given to the kernel together.
const HINTS_AT_ONCE: usize = 4;

/// A read that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    at: u64,
    len: usize,
    /// How many hints had come before.
    hint: u64,
}

/// A file with pages under way.
pub(crate) struct Uring {
    ring: IoUring,
    /// Through the page cache.
    file: File,
    /// Past it.
    direct: File,
    page_size: usize,
    /// Writes, and beside them reads, that may be under way.
    depth: usize,
    buffers: Buffers,
    uses: Vec<Use>,
    free: Vec<usize>,
    /// By where they stand in the file.
    writing: FastMap<u64, usize>,
    reading: FastMap<u64, usize>,
    hints: u64,
    /// Reads that are done and not yet given to their callers.
    arrived: usize,
    /// Operations that the kernel has, or gets with the next call.
    under_way: usize,
    /// Those of them that it gets with the next call.
    queued: usize,
    failed: FastMap<u64, Errno>,
    first_failure: Option<Errno>,
    /// The buffer that the last read gave to its caller.
    held: Option<usize>,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} operations under way on {:?}", self.under_way, self.direct)
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
        // One for each write and each read ahead, one for a read that was not announced or is
        // held, and one so that at least one is under way if none is free.
        let mut buffers = Buffers::new(2 * depth + 2, page_size)?;
        // File systems say only at the first transfer which alignment they want.
        direct.read_at(buffers.of_mut(0), 0)?;
        let count = buffers.count();
        let ring = IoUring::new((2 * depth + 1).next_power_of_two() as u32)?;
        Ok(Self {
            ring,
            file,
            direct,
            page_size,
            depth,
            buffers,
            uses: vec![Use::Free; count],
            free: (0..count).rev().collect(),
            writing: FastMap::default(),
            reading: FastMap::default(),
            hints: 0,
            arrived: 0,
            under_way: 0,
            queued: 0,
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
        while self.writing.len() >= self.depth {
            self.reap(true)?;
        }
        self.check_failure()?;
        self.forget_reads(page_at);
        let index = self.take_buffer()?;
        self.buffers.of_mut(index).copy_from_slice(bytes);
        let fd = types::Fd(self.direct.as_raw_fd());
        let pointer = self.buffers.address(index);
        let entry = opcode::Write::new(fd, pointer, self.page_size as u32).offset(page_at);
        self.queue(index, Use::Writing { page_at }, entry.build())?;
        self.writing.insert(page_at, index);
        self.submit()?;
        self.reap(false)
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
            if let Err(error) = self.reap(true) {
                // Nobody knows of it but this call, unless it was announced.
                if self.reading.get(&at) != Some(&index) {
                    self.uses[index] = Use::Abandoned;
                }
                return Err(error);
            }
        }
    }

    /// Begins a read that is going to be asked for; whether there was room for it.
    pub(crate) fn prefetch(&mut self, page_at: u64, from: u64, len: usize) -> bool {
        self.hints += 1;
        let at = page_at + from;
        if self.writing.contains_key(&page_at) || self.reading.contains_key(&at) {
            return true;
        }
        if self.reading.len() >= self.depth {
            self.forget_stale();
        }
        let room = self.reading.len() < self.depth && !self.free.is_empty();
        let room = room && !self.failed.contains_key(&page_at);
        match room.then(|| self.begin_read(at, len)) {
            Some(Ok(index)) => {
                self.reading.insert(at, index);
                // A call into the kernel for each costs more than it gains.
                self.queued < HINTS_AT_ONCE.min(self.depth) || self.submit().is_ok()
            }
            Some(Err(_)) | None => false,
        }
    }

    /// Waits until more than `known` reads have come that nobody has asked for yet, or no other
    /// is on its way; how many have come. What goes wrong is told by the read itself.
    pub(crate) fn arrivals(&mut self, known: usize) -> usize {
        self.take_completions();
        while self.arrived <= known && self.arrived < self.reading.len() {
            if self.reap(true).is_err() {
                break;
            }
        }
        self.arrived
    }

    /// Whether no read ahead that begins there is on its way, as far as is known.
    pub(crate) fn has_arrived(&self, at: u64) -> bool {
        let index = self.reading.get(&at);
        index.is_none_or(|&index| !matches!(self.uses[index], Use::Reading(_)))
    }

    /// Waits for all writes.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        while !self.writing.is_empty() {
            self.reap(true)?;
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
    /// and one is held: if none is free, the kernel has one that was abandoned.
    fn take_buffer(&mut self) -> io::Result<usize> {
        loop {
            if let Some(index) = self.free.pop() {
                return Ok(index);
            }
            assert!(self.under_way > 0, "a buffer comes back: {self:?}");
            self.reap(true)?;
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

    /// Gives up what was read ahead of a page that is about to change.
    fn forget_reads(&mut self, page_at: u64) {
        if self.reading.is_empty() {
            return;
        }
        let page = page_at..page_at + self.page_size as u64;
        self.forget(|read| page.contains(&read.at));
    }

    /// Gives up what was read ahead long ago, and nobody has asked for.
    fn forget_stale(&mut self) {
        /// Hints after which one is stale, in depths.
        const STALE: u64 = 4;
        let oldest = self.hints.saturating_sub(STALE * self.depth as u64);
        self.forget(|read| read.hint < oldest);
    }

    fn forget(&mut self, which: impl Fn(Read) -> bool) {
        for index in 0..self.uses.len() {
            match self.uses[index] {
                Use::Reading(read) if which(read) => self.uses[index] = Use::Abandoned,
                Use::Read(read, _) if which(read) && self.held != Some(index) => {
                    self.arrived -= 1;
                    self.put_buffer(index);
                }
                _ => continue,
            }
            self.reading.retain(|_, &mut other| other != index);
        }
    }

    /// Puts an operation on buffer `index` into the ring, for the next call into the kernel.
    fn queue(&mut self, index: usize, what: Use, entry: squeue::Entry) -> io::Result<()> {
        let entry = entry.user_data(index as u64);
        loop {
            // SAFETY: the buffer is a part of a mapping that nothing else has, and which neither
            // moves nor goes before the operation is done: `uses` says so, and `drop` waits. It
            // is long enough, and the file descriptor is open as long as the ring.
            #[allow(unsafe_code, reason = "the kernel is given an address")]
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_ok() {
                break;
            }
            if let Err(error) = self.submit() {
                self.put_buffer(index);
                return Err(error);
            }
        }
        self.uses[index] = what;
        self.under_way += 1;
        self.queued += 1;
        Ok(())
    }

    /// Gives to the kernel what was queued.
    fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => {
                    self.queued = 0;
                    return Ok(());
                }
                Err(error) if is_passing(&error) => self.take_completions(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes in what is done; `wait` for at least one.
    fn reap(&mut self, wait: bool) -> io::Result<()> {
        if wait && self.under_way > 0 && self.ring.completion().is_empty() {
            match self.ring.submit_and_wait(1) {
                Ok(_) => self.queued = 0,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.take_completions();
        Ok(())
    }

    fn take_completions(&mut self) {
        while let Some(done) = {
            let next = self.ring.completion().next();
            next.map(|entry| (entry.user_data() as usize, entry.result()))
        } {
            self.under_way -= 1;
            self.completed(done.0, done.1);
        }
    }

    fn completed(&mut self, index: usize, result: i32) {
        match self.uses[index] {
            Use::Writing { page_at } => {
                self.writing.remove(&page_at);
                if let Err(error) = self.finish_write(index, page_at, result) {
                    self.failed.insert(page_at, error);
                    self.first_failure.get_or_insert(error);
                }
                self.put_buffer(index);
            }
            Use::Reading(read) => {
                self.uses[index] = Use::Read(read, self.finish_read(index, read, result));
                self.arrived += 1;
            }
            Use::Abandoned => self.put_buffer(index),
            Use::Free | Use::Read(..) => unreachable!("the kernel had no such buffer"),
        }
    }

    /// What the kernel did of a write; the rest of a short one is written here, which also
    /// says why it was short.
    fn finish_write(&self, index: usize, page_at: u64, result: i32) -> Result<(), Errno> {
        let Some(done) = bytes_done(result)? else {
            return errno_of(self.file.write_all_at(self.buffers.of(index), page_at));
        };
        if done == self.page_size {
            return Ok(());
        }
        errno_of(self.file.write_all_at(&self.buffers.of(index)[done..], page_at + done as u64))
    }

    fn finish_read(&mut self, index: usize, read: Read, result: i32) -> Result<(), Errno> {
        let done = bytes_done(result)?.unwrap_or(0);
        if done == read.len {
            return Ok(());
        }
        let rest = &mut self.buffers.of_mut(index)[done..read.len];
        errno_of(self.file.read_exact_at(rest, read.at + done as u64))
    }
}

/// Whether a call into the ring fails only for now.
fn is_passing(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INTR | Errno::AGAIN | Errno::BUSY))
}

/// Bytes transferred; `None` if the operation has to be done again.
fn bytes_done(result: i32) -> Result<Option<usize>, Errno> {
    if result >= 0 {
        return Ok(Some(result as usize));
    }
    match Errno::from_raw_os_error(-result) {
        Errno::INTR | Errno::AGAIN => Ok(None),
        error => Err(error),
    }
}

fn errno_of(result: io::Result<()>) -> Result<(), Errno> {
    // A file that ends too early has no number of its own.
    result.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

impl Drop for Uring {
    fn drop(&mut self) {
        while self.under_way > 0 {
            if self.reap(true).is_err() {
                // The kernel may still use them; leaking is what is left.
                return self.buffers.leak();
            }
        }
    }
}
