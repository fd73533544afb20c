//! The format of a page: a header, followed by pieces of records.
//!
//! Page: hash (8) of what follows up to the bytes used, magic (4), bytes used (4), sequence number
//! of the program (8), pieces. Piece: hash (8) of what follows, sequence number of the call of its
//! record (8), length of the value or [`DELETED`] (4), offset of the piece in the value (4), its
//! length (4), length of the key (1), key, bytes of the value. Numbers are little endian, hashes
//! XxHash64.

use prism_base::codec::{load, save};
use twox_hash::XxHash64;

/// "PKV" and the version of the format.
const MAGIC: u32 = u32::from_le_bytes([b'P', b'K', b'V', FORMAT]);

/// The version of the format.
pub(super) const FORMAT: u8 = 1;

/// Bytes of a page before its first piece.
pub(super) const PAGE_HEADER: usize = 24;

/// Bytes of a piece before its key.
pub(super) const PIECE_HEADER: usize = 29;

/// The length of a value that was deleted: the piece is a tombstone.
pub(super) const DELETED: u32 = u32::MAX;

/// A part of a record, or all of it. Every piece has its key, so that pages can be read
/// independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// The sequence number of the record's call.
    pub(super) sequence: u64,
    /// Bytes of the whole value, or [`DELETED`].
    pub(super) len: u32,
    /// Offset of the piece in the value.
    pub(super) offset: u32,
    pub(super) key: &'a [u8],
    pub(super) part: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Bytes on flash.
    pub(super) fn size(&self) -> usize {
        piece_size(self.key.len(), self.part.len())
    }

    /// Appends the piece to a page.
    pub(super) fn encode(&self, page: &mut Vec<u8>) {
        let first = page.len();
        let (part, key) = (self.part.len() as u32, self.key.len() as u8);
        save(&(0u64, self.sequence, self.len, self.offset, part, key), page);
        page.extend_from_slice(self.key);
        page.extend_from_slice(self.part);
        let hash = XxHash64::oneshot(0, &page[first + 8..]);
        page[first..first + 8].copy_from_slice(&hash.to_le_bytes());
    }

    /// The piece at the beginning of `bytes`, if its hash is right.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut from = bytes;
        let (hash, sequence, len, offset): (u64, u64, u32, u32) = load(&mut from).ok()?;
        let (part_len, key_len): (u32, u8) = load(&mut from).ok()?;
        let (key, from) = from.split_at_checked(key_len.into())?;
        let part = from.get(..part_len as usize)?;
        let piece = Self { sequence, len, offset, key, part };
        (XxHash64::oneshot(0, &bytes[8..piece.size()]) == hash).then_some(piece)
    }
}

/// Bytes on flash of a piece.
pub(super) fn piece_size(key: usize, part: usize) -> usize {
    PIECE_HEADER + key + part
}

/// Begins a page.
pub(super) fn begin(page: &mut Vec<u8>) {
    page.clear();
    page.resize(PAGE_HEADER, 0);
}

/// Completes a page to `page_size` bytes.
pub(super) fn seal(page: &mut Vec<u8>, sequence: u64, page_size: usize) {
    let mut header = Vec::new();
    save(&(MAGIC, page.len() as u32, sequence), &mut header);
    page[8..PAGE_HEADER].copy_from_slice(&header);
    let hash = XxHash64::oneshot(0, &page[8..]);
    page[..8].copy_from_slice(&hash.to_le_bytes());
    page.resize(page_size, 0);
}

/// The sequence number of a page, and its pieces with their offsets; `None` if the store did not
/// write the page.
pub(super) fn open(page: &[u8]) -> Option<(u64, impl Iterator<Item = (u32, Piece<'_>)>)> {
    let (hash, magic, used, sequence): (u64, u32, u32, u64) = load(&mut &*page).ok()?;
    let body = page.get(..used as usize).filter(|body| body.len() >= PAGE_HEADER)?;
    if magic != MAGIC || XxHash64::oneshot(0, &body[8..]) != hash {
        return None;
    }
    let mut at = PAGE_HEADER;
    let pieces = std::iter::from_fn(move || {
        let piece = Piece::decode(body.get(at..)?)?;
        let first = at;
        at += piece.size();
        Some((first as u32, piece))
    });
    Some((sequence, pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_page_is_rejected() {
        let pieces = [
            Piece { sequence: 7, len: 3, offset: 0, key: b"key", part: b"abc" },
            Piece { sequence: 8, len: DELETED, offset: 0, key: b"k", part: b"" },
            Piece { sequence: 9, len: 900, offset: 70, key: b"long", part: &[5; 300] },
        ];
        let mut page = Vec::new();
        begin(&mut page);
        pieces.iter().for_each(|piece| piece.encode(&mut page));
        let used = page.len();
        seal(&mut page, 42, 512);
        let (sequence, found) = open(&page).unwrap();
        assert_eq!(sequence, 42);
        assert!(found.map(|(_, piece)| piece).eq(pieces));
        for byte in 0..used {
            page[byte] ^= 1;
            assert!(open(&page).is_none(), "byte {byte}");
            page[byte] ^= 1;
        }
        assert!(open(&[0; 512]).is_none() && open(&[0xFF; 512]).is_none() && open(&[]).is_none());
    }

    #[test]
    fn a_damaged_piece_is_rejected() {
        let piece = Piece { sequence: 1, len: 2, offset: 0, key: b"key", part: b"ab" };
        let mut bytes = Vec::new();
        piece.encode(&mut bytes);
        assert_eq!(Piece::decode(&bytes), Some(piece));
        for byte in 0..bytes.len() {
            bytes[byte] ^= 0x80;
            assert_eq!(Piece::decode(&bytes), None, "byte {byte}");
            bytes[byte] ^= 0x80;
        }
        assert_eq!(Piece::decode(&bytes[..bytes.len() - 1]), None);
    }
}
