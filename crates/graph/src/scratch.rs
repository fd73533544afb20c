//! Temporary space: bytes that are appended, and read again.

use std::io;

use prism_base::vec_in_huge_pages;

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
/// Bytes of a piece in huge pages, and the number of pieces after which these are worth it: the
/// rest of the last huge page is not much next to all others.
const HUGE_PIECE: usize = 8 << 20;
const SMALL_PIECES: usize = 32;

/// The piece in which a byte is, and its place there.
fn piece_of(at: usize) -> (usize, usize) {
    let later = at.checked_sub(SMALL_PIECES * PIECE);
    later.map_or((at / PIECE, at % PIECE), |later| {
        (SMALL_PIECES + later / HUGE_PIECE, later % HUGE_PIECE)
    })
}

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
            let len = if self.pieces.len() > SMALL_PIECES { HUGE_PIECE } else { PIECE };
            if self.pieces.last().is_none_or(|piece| piece.len() == len) {
                self.pieces.push(match self.pieces.len() {
                    // The first piece is often the only one, and short.
                    0 => Vec::new(),
                    1..SMALL_PIECES => Vec::with_capacity(PIECE),
                    _ => vec_in_huge_pages(HUGE_PIECE),
                });
                continue;
            }
            let piece = self.pieces.last_mut().expect("it was pushed");
            let (now, later) = bytes.split_at(bytes.len().min(len - piece.len()));
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
            let (piece, place) = piece_of(at);
            let piece = &self.pieces[piece][place..];
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
/// Bytes that are appended without being collected.
const APPENDED_MIN: usize = 4 << 10;

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

    /// Appends whole records.
    pub(crate) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        if self.buffer.is_empty() && records.len() >= APPENDED_MIN {
            return self.scratch.append(records);
        }
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
        for i in 0..500_u32 {
            let some: Vec<u8> = (0..i * 300).map(|n| (n * 7 + i) as u8).collect();
            scratch.append(&some).unwrap();
            all.extend(some);
        }
        assert_eq!(scratch.len(), all.len() as u64);
        let huge = SMALL_PIECES * PIECE;
        assert!(all.len() > huge + 2 * HUGE_PIECE, "{}", all.len());
        let parts = [(0, all.len()), (PIECE - 3, 7), (5, 2 * PIECE), (all.len(), 0)];
        for (at, len) in parts.into_iter().chain([(huge - 3, 7), (huge + HUGE_PIECE - 1, 2)]) {
            let mut into = vec![0; len];
            scratch.read_at(at as u64, &mut into).unwrap();
            assert_eq!(into, all[at..at + len]);
        }
    }
}
