//! The index: an ordered map in memory from keys to the addresses of their records.
//!
//! It contains exactly the keys with a record on flash: for each, the newest record and the number
//! of pieces of older values still on flash. A tombstone is needed as long as that number is not 0.
//! Memory: the key and about 120 bytes for a value of one piece, 16 bytes for each further piece.

use std::collections::BTreeMap;

use crate::kv::page::{DELETED, piece_size};

/// The address of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceAddress {
    pub(super) block: u32,
    pub(super) page: u32,
    /// The byte of the page at which the piece begins.
    pub(super) at: u32,
    /// Bytes of the value in the piece.
    pub(super) part: u32,
}

/// A record on flash.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) sequence: u64,
    /// Bytes of the value, or [`DELETED`].
    pub(super) len: u32,
    /// Its pieces, in the order of the value.
    pub(super) places: Box<[PieceAddress]>,
}

/// The newest record of a key while it is not completely on flash.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) sequence: u64,
    /// `None` for a deletion.
    pub(super) value: Option<Vec<u8>>,
}

/// The state of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// The newest record that is completely on flash.
    pub(super) stored: Option<Stored>,
    pub(super) waiting: Option<Box<Waiting>>,
    /// Pieces of other values of this key on flash.
    pub(super) dead: u32,
}

impl Entry {
    /// Bytes of the newest value, or [`DELETED`].
    pub(super) fn newest_len(&self) -> Option<u32> {
        match (&self.waiting, &self.stored) {
            (Some(waiting), _) => {
                Some(waiting.value.as_ref().map_or(DELETED, |value| value.len() as u32))
            }
            (None, stored) => stored.as_ref().map(|stored| stored.len),
        }
    }

    /// Bytes of the value that a get returns, if there is one.
    pub(super) fn visible(&self) -> Option<usize> {
        self.newest_len().filter(|&len| len != DELETED).map(|len| len as usize)
    }
}

/// The map.
pub(super) type Index = BTreeMap<Box<[u8]>, Entry>;

/// Replaces `origin` by `parts`; returns whether it was there.
pub(super) fn exchange(
    places: &mut Vec<PieceAddress>,
    origin: PieceAddress,
    parts: &[PieceAddress],
) -> bool {
    let Some(found) = places.iter().position(|place| *place == origin) else { return false };
    places.splice(found..=found, parts.iter().copied());
    true
}

/// Bytes on flash of all pieces of a record with a key of `key` bytes.
pub(super) fn bytes_of(key: usize, places: &[PieceAddress]) -> u64 {
    places.iter().map(|place| piece_size(key, place.part as usize) as u64).sum()
}
