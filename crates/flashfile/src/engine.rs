//! The engines that read and write the file: three of them, with one interface, for several
//! threads.
//!
//! Superblocks, records and page headers (*tables*) go through the page cache. Pages and entries of
//! the journal have calls of their own, so that they can bypass it.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

use crate::block_device;
use crate::buffers::Aligned;
use crate::headers;
use crate::layout::{ALIGN, Region};
use crate::simulated::Session;
use crate::uring::{Behind, Writer};

#[derive(Debug)]
pub(crate) enum Engine {
    /// Pages by io_uring and direct I/O.
    Uring(Box<Direct>),
    /// Everything through the page cache, synchronously.
    Portable(File),
    /// A file that loses power, in tests.
    Simulated(Mutex<Session>),
}

/// Writers that threads use at once, so that one which waits for the disk does not keep others.
const WRITERS: usize = 4;

/// A file with direct I/O.
#[derive(Debug)]
pub(crate) struct Direct {
    /// Through the page cache.
    pub(crate) file: File,
    /// With direct I/O.
    pub(crate) direct: File,
    writers: Vec<Mutex<Writer>>,
    behind: Arc<Behind>,
    page_size: u64,
    /// Memory for reads into memory that is not aligned.
    pool: Mutex<Vec<Aligned>>,
}

const UNPOISONED: &str = "no thread panics while it holds a part of the engine";

impl Direct {
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
        let behind = Arc::new(Behind::default());
        let writer = |number| {
            let behind = (number, Arc::clone(&behind));
            let writer =
                Writer::new(file.try_clone()?, direct.try_clone()?, page_size, depth, behind);
            writer.map(Mutex::new)
        };
        let writers = (0..WRITERS).map(writer).collect::<io::Result<_>>()?;
        let (page_size, pool) = (page_size as u64, Mutex::default());
        Ok(Self { file, direct, writers, behind, page_size, pool })
    }

    fn writer(&self, number: usize) -> MutexGuard<'_, Writer> {
        self.writers[number].lock().expect(UNPOISONED)
    }

    /// A writer that no other thread uses now, if there is one.
    fn idle_writer(&self) -> MutexGuard<'_, Writer> {
        for writer in &self.writers {
            match writer.try_lock() {
                Ok(writer) => return writer,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Poisoned(_)) => panic!("{UNPOISONED}"),
            }
        }
        self.writer(0)
    }

    /// Whether a page is being written, so that it must not be read from the disk.
    pub(crate) fn is_behind(&self, page_at: u64) -> bool {
        self.behind.writer_of(page_at).is_some()
    }

    /// Reads bytes of pages; `first` is where the first of these pages begins.
    fn read(&self, first: u64, at: u64, into: &mut [u8]) -> io::Result<()> {
        let end = at + into.len() as u64;
        let mut pages = (first..end).step_by(self.page_size as usize);
        if !pages.any(|page_at| self.is_behind(page_at)) {
            return self.read_disk(at, into);
        }
        let mut rest = into;
        let mut at = at;
        while !rest.is_empty() {
            let page_at = first + (at - first) / self.page_size * self.page_size;
            let len = rest.len().min((page_at + self.page_size - at) as usize);
            let (part, next) = rest.split_at_mut(len);
            let writer = self.behind.writer_of(page_at);
            let copied = writer.map(|w| self.writer(w).read(page_at, at - page_at, part));
            if !copied.transpose()?.unwrap_or(false) {
                self.read_disk(at, part)?;
            }
            (rest, at) = (next, at + len as u64);
        }
        Ok(())
    }

    fn read_disk(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        if is_aligned(into.as_ptr() as usize as u64) && is_aligned(into.len() as u64 | at) {
            return self.direct.read_exact_at(into, at);
        }
        let start = at / ALIGN * ALIGN;
        let len = ((at + into.len() as u64).next_multiple_of(ALIGN) - start) as usize;
        let known = self.pool.lock().expect(UNPOISONED).pop().filter(|known| known.len() >= len);
        let mut memory = known.map_or_else(|| Aligned::new(len), Ok)?;
        let within = (at - start) as usize;
        let read = self.direct.read_exact_at(&mut memory.as_mut()[..len], start);
        if read.is_ok() {
            into.copy_from_slice(&memory.as_ref()[within..within + into.len()]);
        }
        let mut pool = self.pool.lock().expect(UNPOISONED);
        if pool.len() < 16 {
            pool.push(memory);
        }
        read
    }
}

/// Whether a number of bytes, or an address, suits direct I/O.
pub(crate) fn is_aligned(bytes: u64) -> bool {
    bytes.is_multiple_of(ALIGN)
}

/// Whether the disk could not read a sector: what buffered reads return, and direct ones.
pub(crate) fn is_unreadable(error: &io::Error) -> bool {
    let errors = [Errno::IO, Errno::NODATA, Errno::ILSEQ].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|number| errors.contains(&number))
}

impl Engine {
    fn session(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
        session.lock().expect(UNPOISONED)
    }

    /// The file through the page cache; `None` for a simulated one.
    fn file(&self) -> Option<&File> {
        match self {
            Self::Uring(direct) => Some(&direct.file),
            Self::Portable(file) => Some(file),
            Self::Simulated(_) => None,
        }
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        match self {
            Self::Simulated(session) => Self::session(session).len(),
            Self::Uring(_) | Self::Portable(_) => self.file().map_or(Ok(0), block_device::len),
        }
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        match self {
            Self::Uring(direct) => block_device::set_len(&direct.file, len),
            Self::Portable(file) => block_device::set_len(file, len),
            Self::Simulated(session) => Self::session(session).set_len(len),
        }
    }

    /// Reads from the tables.
    pub(crate) fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Uring(direct) => direct.file.read_exact_at(bytes, at),
            Self::Portable(file) => file.read_exact_at(bytes, at),
            Self::Simulated(session) => Self::session(session).read_at(at, bytes),
        }
    }

    /// Reads tables that are stored twice. Pages that the disk cannot read become zeros, as which
    /// no table is valid, so that their second copies are used. Returns where these begin.
    pub(crate) fn read_copies(&self, at: u64, bytes: &mut [u8]) -> io::Result<Vec<u64>> {
        let mut unreadable = Vec::new();
        match self.read_at(at, bytes) {
            Err(error) if is_unreadable(&error) => {}
            read => return read.map(|()| unreadable),
        }
        for (at, piece) in (at..).step_by(ALIGN as usize).zip(bytes.chunks_mut(ALIGN as usize)) {
            match self.read_at(at, piece) {
                Err(error) if is_unreadable(&error) => {
                    piece.fill(0);
                    unreadable.push(at);
                }
                read => read?,
            }
        }
        Ok(unreadable)
    }

    /// Writes to the tables.
    pub(crate) fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Uring(direct) => direct.file.write_all_at(bytes, at),
            Self::Portable(file) => file.write_all_at(bytes, at),
            Self::Simulated(session) => Self::session(session).write_at(at, bytes),
        }
    }

    /// Pages of page headers that are cached.
    pub(crate) fn headers_kept(&self) -> usize {
        match self {
            Self::Uring(_) | Self::Portable(_) => headers::KEPT,
            Self::Simulated(session) => Self::session(session).headers_kept(),
        }
    }

    /// Limit of the bytes used of a log.
    pub(crate) fn log_max(&self) -> u64 {
        match self {
            Self::Uring(_) | Self::Portable(_) => u64::MAX,
            Self::Simulated(session) => Self::session(session).log_max(),
        }
    }

    /// Reads bytes of the page at `page_at` and those after it, from its byte `from` on.
    ///
    /// # Errors
    /// Also the error of an earlier write of such a page.
    pub(crate) fn read_pages(&self, page_at: u64, from: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Uring(direct) => direct.read(page_at, page_at + from, into),
            Self::Portable(file) => file.read_exact_at(into, page_at + from),
            Self::Simulated(session) => Self::session(session).read_at(page_at + from, into),
        }
    }

    /// Writes a page, perhaps asynchronously: the write is complete after [`Engine::drain`].
    pub(crate) fn write_page(&self, page_at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Uring(direct) => direct.idle_writer().write(page_at, bytes),
            Self::Portable(file) => file.write_all_at(bytes, page_at),
            Self::Simulated(session) => Self::session(session).write_at(page_at, bytes),
        }
    }

    /// Writes an entry of the journal, perhaps asynchronously, as a page.
    pub(crate) fn write_entry(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Uring(direct) => direct.writer(0).write_entry(at, bytes),
            Self::Portable(file) => file.write_all_at(bytes, at),
            Self::Simulated(session) => Self::session(session).write_at(at, bytes),
        }
    }

    /// Writes zeros through the page cache, in large pieces.
    pub(crate) fn write_zeros(&self, region: Region) -> io::Result<()> {
        const PIECE: u64 = 4 << 20;
        let zeros = vec![0; PIECE.min(region.len) as usize];
        let mut at = region.start;
        while at < region.end() {
            let len = PIECE.min(region.end() - at);
            self.write_at(at, &zeros[..len as usize])?;
            at += len;
        }
        Ok(())
    }

    /// Whether pages are being written whose program has returned.
    pub(crate) fn is_writing_behind(&self) -> bool {
        matches!(self, Self::Uring(direct) if !direct.behind.is_empty())
    }

    /// Waits until every page and entry is written whose write was begun before.
    ///
    /// # Errors
    /// The error of the first write that failed.
    pub(crate) fn drain(&self) -> io::Result<()> {
        match self {
            Self::Uring(direct) => {
                // All of them are submitted before the first is waited for, and all are waited
                // for, also if one fails.
                let mut drained = Ok(());
                for number in 0..WRITERS {
                    drained = drained.and(direct.writer(number).submit_ready());
                }
                for number in 0..WRITERS {
                    drained = drained.and(direct.writer(number).drain());
                }
                drained
            }
            Self::Portable(_) | Self::Simulated(_) => Ok(()),
        }
    }

    /// Makes all completed writes durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            Self::Uring(direct) => direct.file.sync_data(),
            Self::Portable(file) => file.sync_data(),
            Self::Simulated(session) => Self::session(session).sync(),
        }
    }

    /// Drops what the page cache has of a region, so that it is read from the disk. The kernel
    /// marks pages that it could not write as clean. To be called after a sync.
    pub(crate) fn forget_cached(&self, region: Region) -> io::Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        let start = region.start / ALIGN * ALIGN;
        let len = NonZeroU64::new(region.end().next_multiple_of(ALIGN) - start);
        Ok(fadvise(file, start, len, Advice::DontNeed)?)
    }

    /// Asks the page cache to read a part of the tables, which is needed soon.
    pub(crate) fn read_table_ahead(&self, at: u64, len: u64) {
        if let Self::Uring(direct) = self {
            let _ = fadvise(&direct.file, at, NonZeroU64::new(len), Advice::WillNeed);
        }
    }

    /// Asks the page cache to read a region ahead.
    pub(crate) fn read_ahead(&self, region: Region) {
        if let Self::Portable(file) = self {
            let _ = fadvise(file, region.start, NonZeroU64::new(region.len), Advice::WillNeed);
        }
    }
}
