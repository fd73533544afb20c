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

/// Temporary space in memory: in pieces, so that nothing moves when it grows.
#[derive(Debug, Default)]
pub struct InMemory {
    pieces: Vec<Vec<u8>>,
    len: u64,
}

/// Bytes of a piece.
const PIECE: usize = 256 << 10;

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
    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
                // The first piece is often the only one, and short.
                let capacity = if self.pieces.is_empty() { 0 } else { PIECE };
                self.pieces.push(Vec::with_capacity(capacity));
            }
            let piece = self.pieces.last_mut().expect("it was pushed");
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - piece.len()));
            piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let (mut at, mut into) = (at as usize, into);
        while !into.is_empty() {
            let piece = &self.pieces[at / PIECE][at % PIECE..];
            let len = piece.len().min(into.len());
            let (now, later) = into.split_at_mut(len);
            now.copy_from_slice(&piece[..len]);
            (at, into) = (at + len, later);
        }
        Ok(())
    }
}

/// The number at a place of a record.
#[inline]
pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight"))
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
        Ok(Self::of(new()?))
    }

    /// Those in `scratch`, and more after them.
    pub(crate) fn of(scratch: Box<dyn Scratch>) -> Self {
        Self { scratch, buffer: Vec::with_capacity(BUFFER) }
    }

    /// Appends a record, of at most 32 bytes.
    #[inline]
    pub(crate) fn push<const N: usize>(&mut self, record: [u8; N]) -> io::Result<()> {
        self.buffer.extend_from_slice(&record);
        if self.buffer.len() + 32 > BUFFER { self.flush() } else { Ok(()) }
    }

    /// Appends whole records.
    pub(crate) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(records);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
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

    /// All bytes, in pieces of whole records of `record` bytes, after the last one was flushed. A
    /// record may have been pushed in parts, between which a flush can be.
    pub(crate) fn read(
        &self,
        record: usize,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.read_part(record, (0, 1), take)
    }

    /// As [`Records::read`], a part of all records: the number of the part, and of how many.
    pub(crate) fn read_part(
        &self,
        record: usize,
        (part, parts): (u64, u64),
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        assert!(self.buffer.is_empty(), "records are flushed before they are read");
        let records = self.scratch.len() / record as u64;
        let begin = |part: u64| records * part / parts * record as u64;
        let mut piece = vec![0; (BUFFER / record * record).max(record) * 16];
        let (mut at, end) = (begin(part), begin(part + 1));
        while at < end {
            let len = (end - at).min(piece.len() as u64) as usize;
            self.scratch.read_at(at, &mut piece[..len])?;
            take(&piece[..len])?;
            at += len as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_appended() {
        let (mut scratch, mut all) = (InMemory::default(), Vec::new());
        for i in 0..40_u32 {
            let some: Vec<u8> = (0..i * 1000).map(|n| (n * 7 + i) as u8).collect();
            scratch.append(&some).unwrap();
            all.extend(some);
        }
        assert_eq!(scratch.len(), all.len() as u64);
        for (at, len) in [(0, all.len()), (PIECE - 3, 7), (5, 2 * PIECE), (all.len(), 0)] {
            let mut into = vec![0; len];
            scratch.read_at(at as u64, &mut into).unwrap();
            assert_eq!(into, all[at..at + len]);
        }
    }
}
