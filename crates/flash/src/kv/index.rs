//! Where everything stands: an ordered map in memory, key by key.
//!
//! It knows of every key of which a record stands on flash, and of no other: beside the newest
//! record of a key it counts how many pieces of older values still stand. A tombstone is
//! needed exactly as long as there is one. Memory: about 120 bytes and the key itself for a
//! key whose value is one piece, 16 bytes for each piece more.

use std::collections::BTreeMap;

use crate::kv::page::{DELETED, piece_size};

/// Where a piece stands.
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

/// What is known of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// The newest record that is completely on flash.
    pub(super) stored: Option<Stored>,
    pub(super) waiting: Option<Box<Waiting>>,
    /// Pieces of other values of this key that stand on flash.
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

/// Puts `parts` where `origin` was; whether it was there.
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
