//! The log on flash: summaries of chunks and their entries. docs/fs-format.md has the layout.

use twox_hash::XxHash3_64;

use crate::error::{FsError, Result};

/// Bytes of a block, the unit of all addresses.
pub const BLOCK: usize = 4096;
/// The version of the format.
pub const VERSION: u16 = 1;
/// Features that this program knows; none exist so far.
pub const FEATURES: u64 = 0;
/// Entries of a summary.
pub const ENTRIES: usize = 252;

const MAGIC: u32 = 0x4c53_4650;
const SEQ_MAX: u64 = 1 << 62;
const HEADER: usize = 64;
const ENTRY: usize = 16;

/// The content of a block.
pub type Block = Box<[u8; BLOCK]>;

/// A block of zeros.
#[must_use]
pub fn zeros() -> Block {
    vec![0; BLOCK].into_boxed_slice().try_into().expect("the length of a block")
}

/// A block with these bytes, as many as it has.
#[must_use]
pub fn block_of(bytes: &[u8]) -> Block {
    Box::<[u8]>::from(bytes).try_into().expect("the length of a block")
}

/// The checksum of a block.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    XxHash3_64::oneshot(bytes) as u32
}

/// What a payload block of a chunk is. The numbers are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A block of the file `id`.
    Data = 1,
    /// A block of the extended attributes of the file `id`.
    Xattr = 2,
    /// The node `id`.
    Node = 3,
    /// The node `id` is free; it has no payload.
    Free = 4,
    /// A block of the node table.
    Table = 5,
    /// A block of a checkpoint.
    Root = 6,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Data, Self::Xattr, Self::Node, Self::Free, Self::Table, Self::Root]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }

    /// Whether it has a payload block.
    #[must_use]
    pub fn has_payload(self) -> bool {
        self != Self::Free
    }
}

/// An entry of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// The file, node or number in a list.
    pub id: u32,
    /// The block of a file, in blocks; the number of blocks of a checkpoint.
    pub block: u32,
    /// The checksum of the payload.
    pub sum: u32,
}

/// The chunk ends a transaction.
pub const COMMIT: u16 = 1;
/// The chunk ends a checkpoint.
pub const CHECKPOINT: u16 = 2;
/// The checkpoint is that of an unmount.
pub const UNMOUNTED: u16 = 4;
/// The chunk is the first of a file system, or of a mount after a crash, which left out chunks
/// before it.
pub const RESUMED: u16 = 8;

/// The first block of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The file system.
    pub fs_id: u64,
    /// The number of the chunk; the numbers of a log have no gaps.
    pub seq: u64,
    /// All chunks up to this one were durable when this one was written.
    pub durable: u64,
    /// The checksum of the summary before.
    pub prev: u32,
    /// [`COMMIT`] and [`CHECKPOINT`].
    pub flags: u16,
    /// What the chunk has.
    pub entries: Vec<Entry>,
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Summary {
    /// Payload blocks of the chunk.
    #[must_use]
    pub fn payload(&self) -> u32 {
        self.entries.iter().filter(|entry| entry.kind.has_payload()).count() as u32
    }

    /// Writes it to a block, and returns its checksum.
    ///
    /// # Panics
    /// If it has more than [`ENTRIES`] entries.
    pub fn encode(&self, out: &mut [u8]) -> u32 {
        assert!(self.entries.len() <= ENTRIES, "a summary is one block");
        out.fill(0);
        put(out, 0, &MAGIC.to_le_bytes());
        put(out, 8, &self.fs_id.to_le_bytes());
        put(out, 16, &self.seq.to_le_bytes());
        put(out, 24, &self.durable.to_le_bytes());
        put(out, 32, &self.prev.to_le_bytes());
        put(out, 36, &(self.entries.len() as u16).to_le_bytes());
        put(out, 38, &self.flags.to_le_bytes());
        put(out, 40, &VERSION.to_le_bytes());
        put(out, 48, &FEATURES.to_le_bytes());
        for (entry, at) in self.entries.iter().zip((HEADER..).step_by(ENTRY)) {
            out[at] = entry.kind as u8;
            put(out, at + 4, &entry.id.to_le_bytes());
            put(out, at + 8, &entry.block.to_le_bytes());
            put(out, at + 12, &entry.sum.to_le_bytes());
        }
        let sum = checksum(&out[8..]);
        put(out, 4, &sum.to_le_bytes());
        sum
    }

    /// The summary in a block and its checksum; `None` if there is none.
    ///
    /// # Errors
    /// [`FsError::Version`] and [`FsError::Features`] if a newer program wrote it.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, u32)>> {
        let sum = u32_at(bytes, 4);
        if u32_at(bytes, 0) != MAGIC || checksum(&bytes[8..BLOCK]) != sum {
            return Ok(None);
        }
        let found = u16_at(bytes, 40);
        if found != VERSION {
            return Err(FsError::Version { found, known: VERSION });
        }
        let unknown = u64_at(bytes, 48) & !FEATURES;
        if unknown != 0 {
            return Err(FsError::Features(unknown));
        }
        let count = usize::from(u16_at(bytes, 36));
        let entry = |at: usize| {
            Some(Entry {
                kind: Kind::of(bytes[at])?,
                id: u32_at(bytes, at + 4),
                block: u32_at(bytes, at + 8),
                sum: u32_at(bytes, at + 12),
            })
        };
        let entries = (HEADER..).step_by(ENTRY).take(count.min(ENTRIES)).map(entry).collect();
        let Some(entries) = entries else { return Ok(None) };
        let (seq, durable) = (u64_at(bytes, 16), u64_at(bytes, 24));
        // No log has that many chunks, and none is durable before it is written.
        if seq > SEQ_MAX || durable >= seq {
            return Ok(None);
        }
        let summary = Self {
            fs_id: u64_at(bytes, 8),
            seq,
            durable,
            prev: u32_at(bytes, 32),
            flags: u16_at(bytes, 38),
            entries,
        };
        Ok(Some((summary, sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_as_it_was_written() {
        let entries = (0..ENTRIES as u32)
            .map(|id| Entry { kind: Kind::Node, id, block: id * 3, sum: !id })
            .collect();
        let summary =
            Summary { fs_id: 7, seq: 1 << 40, durable: 9, prev: 4, flags: COMMIT, entries };
        let mut block = zeros();
        let sum = summary.encode(&mut block[..]);
        assert_eq!(Summary::decode(&block[..]), Ok(Some((summary, sum))));
        for byte in 0..BLOCK {
            block[byte] ^= 1;
            assert_eq!(Summary::decode(&block[..]), Ok(None), "byte {byte}");
            block[byte] ^= 1;
        }
        // Numbers that no log has.
        for (at, number) in [(16, 1 << 63), (24, u64::MAX), (24, 1 << 40)] {
            let mut block = block.clone();
            put(&mut block[..], at, &u64::to_le_bytes(number));
            let sum = checksum(&block[8..]);
            put(&mut block[..], 4, &sum.to_le_bytes());
            assert_eq!(Summary::decode(&block[..]), Ok(None), "byte {at}");
        }
        // A newer version says so.
        block[40] = 2;
        let sum = checksum(&block[8..]);
        put(&mut block[..], 4, &sum.to_le_bytes());
        let error = Summary::decode(&block[..]).unwrap_err();
        assert_eq!(error, FsError::Version { found: 2, known: 1 });
    }
}
