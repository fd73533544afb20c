//! Temporary space: bytes that are appended, and read again.

use std::io;

/// Bytes that are needed until the graph is made.
pub trait Scratch: Send + Sync {
    /// Appends bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Bytes that were appended.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes that were appended.
    ///
    /// # Errors
    /// The error of the system.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// Makes temporary space.
pub type NewScratch<'a> = &'a (dyn Fn() -> io::Result<Box<dyn Scratch>> + 'a);

/// Temporary space in memory.
#[derive(Debug, Default)]
pub struct InMemory(Vec<u8>);

impl InMemory {
    /// Empty temporary space, as [`NewScratch`] makes it.
    ///
    /// # Errors
    /// None.
    pub fn make() -> io::Result<Box<dyn Scratch>> {
        Ok(Box::<Self>::default())
    }
}

impl Scratch for InMemory {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        into.copy_from_slice(&self.0[at as usize..at as usize + into.len()]);
        Ok(())
    }
}

/// Bytes that are collected before they are appended.
const BUFFER: usize = 64 << 10;

/// Appends small records together.
pub(crate) struct Records {
    scratch: Box<dyn Scratch>,
    buffer: Vec<u8>,
}

impl Records {
    pub(crate) fn new(new: NewScratch<'_>) -> io::Result<Self> {
        Ok(Self { scratch: new()?, buffer: Vec::with_capacity(BUFFER) })
    }

    /// Appends a record, of at most 32 bytes.
    #[inline]
    pub(crate) fn push<const N: usize>(&mut self, record: [u8; N]) -> io::Result<()> {
        self.buffer.extend_from_slice(&record);
        if self.buffer.len() + 32 > BUFFER { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.scratch.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Bytes that were pushed.
    pub(crate) fn len(&self) -> u64 {
        self.scratch.len() + self.buffer.len() as u64
    }

    /// All bytes, in pieces of whole records of `record` bytes.
    pub(crate) fn read(
        &self,
        record: usize,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut piece = vec![0; (BUFFER / record * record).max(record) * 16];
        let mut at = 0;
        while at < self.scratch.len() {
            let len = (self.scratch.len() - at).min(piece.len() as u64) as usize;
            self.scratch.read_at(at, &mut piece[..len])?;
            take(&piece[..len])?;
            at += len as u64;
        }
        take(&self.buffer)
    }
}
