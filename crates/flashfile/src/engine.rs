//! The engines that read and write the file: three of them, with one interface.
//!
//! Superblocks, records and page headers (*tables*) go through the page cache. Pages and entries of
//! the journal have calls of their own, so that they can bypass it.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, fadvise};

use crate::headers;
use crate::layout::{ALIGN, Region};
use crate::simulated::Session;
use crate::uring::Uring;

#[derive(Debug)]
pub(crate) enum Engine {
    /// Pages by io_uring and direct I/O.
    Uring(Box<Uring>),
    /// Everything through the page cache, synchronously.
    Portable(Portable),
    /// A file that loses power, in tests.
    Simulated(Session),
}

/// An ordinary file, on any system.
#[derive(Debug)]
pub(crate) struct Portable {
    pub(crate) file: File,
    buffer: Vec<u8>,
}

impl Portable {
    pub(crate) fn new(file: File) -> Self {
        Self { file, buffer: Vec::new() }
    }

    fn read(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        self.buffer.resize(len, 0);
        self.file.read_exact_at(&mut self.buffer, at)?;
        Ok(&self.buffer)
    }
}

impl Engine {
    pub(crate) fn len(&self) -> io::Result<u64> {
        match self {
            Self::Uring(uring) => Ok(uring.file().metadata()?.len()),
            Self::Portable(portable) => Ok(portable.file.metadata()?.len()),
            Self::Simulated(session) => session.len(),
        }
    }

    pub(crate) fn set_len(&mut self, len: u64) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.file().set_len(len),
            Self::Portable(portable) => portable.file.set_len(len),
            Self::Simulated(session) => session.set_len(len),
        }
    }

    /// Reads from the tables.
    pub(crate) fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.file().read_exact_at(bytes, at),
            Self::Portable(portable) => portable.file.read_exact_at(bytes, at),
            Self::Simulated(session) => session.read_at(at, bytes),
        }
    }

    /// Writes to the tables.
    pub(crate) fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.file().write_all_at(bytes, at),
            Self::Portable(portable) => portable.file.write_all_at(bytes, at),
            Self::Simulated(session) => session.write_at(at, bytes),
        }
    }

    /// Pages of page headers that are cached.
    pub(crate) fn headers_kept(&self) -> usize {
        match self {
            Self::Uring(_) | Self::Portable(_) => headers::KEPT,
            Self::Simulated(session) => session.headers_kept(),
        }
    }

    /// Limit of the bytes used of a log.
    pub(crate) fn log_max(&self) -> u64 {
        match self {
            Self::Uring(_) | Self::Portable(_) => u64::MAX,
            Self::Simulated(session) => session.log_max(),
        }
    }

    /// Reads `len` bytes of the page at `page_at`, from its byte `from` on.
    ///
    /// # Errors
    /// Also the error of an earlier write of that page.
    pub(crate) fn read_page(&mut self, page_at: u64, from: u64, len: usize) -> io::Result<&[u8]> {
        match self {
            Self::Uring(uring) => uring.read(page_at, from, len),
            Self::Portable(portable) => portable.read(page_at + from, len),
            Self::Simulated(session) => session.read(page_at + from, len),
        }
    }

    /// Writes a page, perhaps asynchronously: the write is complete after [`Engine::drain`].
    pub(crate) fn write_page(&mut self, page_at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.write(page_at, bytes),
            Self::Portable(portable) => portable.file.write_all_at(bytes, page_at),
            Self::Simulated(session) => session.write_at(page_at, bytes),
        }
    }

    /// Prefetches for [`Engine::read_page`]; returns whether it started a read.
    pub(crate) fn prefetch(&mut self, page_at: u64, from: u64, len: usize) -> bool {
        match self {
            Self::Uring(uring) => uring.prefetch(page_at, from, len),
            Self::Portable(portable) => {
                let len = NonZeroU64::new(len as u64);
                fadvise(&portable.file, page_at + from, len, Advice::WillNeed).is_ok()
            }
            Self::Simulated(_) => false,
        }
    }

    /// Waits until more than `known` prefetches are complete and not yet fetched, or none is in
    /// flight. Returns how many are complete.
    pub(crate) fn arrivals(&mut self, known: usize) -> usize {
        match self {
            Self::Uring(uring) => uring.arrivals(known),
            Self::Portable(_) | Self::Simulated(_) => 0,
        }
    }

    /// Whether no prefetch of the beginning of a page is in flight: it is complete, or was not
    /// started.
    pub(crate) fn has_arrived(&self, page_at: u64) -> bool {
        match self {
            Self::Uring(uring) => uring.has_arrived(page_at),
            Self::Portable(_) | Self::Simulated(_) => true,
        }
    }

    /// Writes an entry of the journal, perhaps asynchronously, as a page.
    pub(crate) fn write_entry(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.write_entry(at, bytes),
            Self::Portable(portable) => portable.file.write_all_at(bytes, at),
            Self::Simulated(session) => session.write_at(at, bytes),
        }
    }

    /// Writes zeros through the page cache, in large pieces.
    pub(crate) fn write_zeros(&mut self, region: Region) -> io::Result<()> {
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

    /// Waits until every page and entry is written.
    ///
    /// # Errors
    /// The error of the first write that failed.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.drain(),
            Self::Portable(_) | Self::Simulated(_) => Ok(()),
        }
    }

    /// Makes all completed writes durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.file().sync_data(),
            Self::Portable(portable) => portable.file.sync_data(),
            Self::Simulated(session) => session.sync(),
        }
    }

    /// Drops what the page cache has of a region, so that it is read from the disk: the kernel
    /// marks pages that it could not write as clean. To be called after a sync.
    pub(crate) fn forget_cached(&self, region: Region) -> io::Result<()> {
        let file = match self {
            Self::Uring(uring) => uring.file(),
            Self::Portable(portable) => &portable.file,
            Self::Simulated(_) => return Ok(()),
        };
        let start = region.start / ALIGN * ALIGN;
        let len = NonZeroU64::new(region.end().next_multiple_of(ALIGN) - start);
        Ok(fadvise(file, start, len, Advice::DontNeed)?)
    }
}
