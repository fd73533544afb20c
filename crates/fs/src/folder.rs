//! Folders: entries in buckets by the hash of their names.
//!
//! A folder is a file whose blocks are the nodes of a binary tree: block n has the children
//! 2n + 1 and 2n + 2. A bucket that is full is split by the next bit of the hashes, after which
//! its pointer says so and its block is free. A lookup thus reads one block of the folder, however
//! many entries it has. Entries are listed in the order of their hashes, so a position in a list
//! stays valid while others come and go.

use prism_segments::Store;
use twox_hash::XxHash3_64;

use crate::error::{FsError, Result};
use crate::format::{BLOCK, put, u16_at, u32_at, u64_at};
use crate::fs::Fs;
use crate::node::{HOLE, Pointer, SPLIT};

/// Bits of a hash.
const BITS: u32 = 62;
/// Splits one below the other at most; names whose hashes have as many equal bits do not occur by
/// chance.
const DEPTH_MAX: u32 = 30;
const HEADER: usize = 8;
const ENTRY: usize = 14;

/// The longest name, in bytes.
pub const NAME_MAX: usize = 255;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The hash of the name, by which entries are ordered.
    pub hash: u64,
    /// The inode.
    pub ino: u32,
    /// Type bits of its mode, shifted right by 12.
    pub kind: u8,
    /// The name.
    pub name: Vec<u8>,
}

/// A bucket, and how many splits are above it.
#[derive(Clone, Copy)]
struct Bucket {
    index: u64,
    depth: u32,
}

fn bytes_of(entry: &DirEntry) -> usize {
    ENTRY + entry.name.len()
}

/// The entries of a bucket.
pub(crate) fn decode(block: &[u8; BLOCK]) -> Result<Vec<DirEntry>> {
    let wrong = || FsError::Inconsistent("a bucket of a folder has an impossible entry".into());
    let count = u16_at(block, 0);
    let mut at = HEADER;
    let mut entries = Vec::with_capacity(count.into());
    for _ in 0..count {
        let name_at = at + ENTRY;
        if name_at > BLOCK {
            return Err(wrong());
        }
        let len = usize::from(block[at + 13]);
        let name = block.get(name_at..name_at + len).ok_or_else(wrong)?;
        let (hash, ino, kind) = (u64_at(block, at), u32_at(block, at + 8), block[at + 12]);
        entries.push(DirEntry { hash, ino, kind, name: name.to_vec() });
        at = name_at + len;
    }
    Ok(entries)
}

pub(crate) fn encode(entries: &[DirEntry], block: &mut [u8; BLOCK]) {
    block.fill(0);
    put(block, 0, &(entries.len() as u16).to_le_bytes());
    let mut at = HEADER;
    for entry in entries {
        put(block, at, &entry.hash.to_le_bytes());
        put(block, at + 8, &entry.ino.to_le_bytes());
        block[at + 12] = entry.kind;
        block[at + 13] = entry.name.len() as u8;
        put(block, at + ENTRY, &entry.name);
        at += bytes_of(entry);
    }
}

impl<S: Store> Fs<S> {
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.hash_seed, name) >> (64 - BITS)
    }

    /// Whether a block of a folder is a bucket, a split bucket, or absent.
    fn is_split(&mut self, dir: u32, index: u64) -> Result<bool> {
        let key = (dir, index);
        Ok(self.dirty_block(key).is_none() && self.pointer(key)?.addr == SPLIT)
    }

    fn bucket(&mut self, dir: u32, hash: u64) -> Result<Bucket> {
        let mut bucket = Bucket { index: 0, depth: 0 };
        while self.is_split(dir, bucket.index)? {
            let bit = hash >> (BITS - 1 - bucket.depth) & 1;
            bucket = Bucket { index: 2 * bucket.index + 1 + bit, depth: bucket.depth + 1 };
            if bucket.depth > DEPTH_MAX {
                return Err(FsError::Inconsistent(format!("folder {dir} is split too often")));
            }
        }
        Ok(bucket)
    }

    /// The bucket in which an entry with this hash is looked for.
    pub(crate) fn bucket_of(&mut self, dir: u32, hash: u64) -> Result<u64> {
        Ok(self.bucket(dir, hash)?.index)
    }

    fn entries(&mut self, dir: u32, bucket: Bucket) -> Result<Vec<DirEntry>> {
        self.block((dir, bucket.index))?.map_or(Ok(Vec::new()), |block| decode(&block))
    }

    /// The entry of a name.
    pub(crate) fn find_entry(&mut self, dir: u32, name: &[u8]) -> Result<Option<DirEntry>> {
        let hash = self.hash(name);
        let bucket = self.bucket(dir, hash)?;
        let entries = self.entries(dir, bucket)?;
        Ok(entries.into_iter().find(|entry| entry.hash == hash && entry.name == name))
    }

    /// Adds an entry whose name is not there.
    pub(crate) fn add_entry(&mut self, dir: u32, name: &[u8], ino: u32, kind: u8) -> Result<()> {
        let hash = self.hash(name);
        let new = DirEntry { hash, ino, kind, name: name.to_vec() };
        loop {
            let bucket = self.bucket(dir, hash)?;
            let mut entries = self.entries(dir, bucket)?;
            if entries.iter().any(|entry| entry.hash == hash) {
                // A list could not say which of the two comes first.
                return Err(FsError::NoSpace);
            }
            let used: usize = entries.iter().map(bytes_of).sum();
            if HEADER + used + bytes_of(&new) <= BLOCK {
                entries.push(new);
                encode(&entries, self.block_mut((dir, bucket.index), false)?);
                break;
            }
            if bucket.depth == DEPTH_MAX {
                return Err(FsError::NoSpace);
            }
            self.split(dir, bucket, entries)?;
        }
        // The count of a damaged file system may be anything.
        let size = &mut self.attr_mut(dir)?.size;
        *size = size.saturating_add(1);
        Ok(())
    }

    fn split(&mut self, dir: u32, bucket: Bucket, entries: Vec<DirEntry>) -> Result<()> {
        let bit = |entry: &DirEntry| entry.hash >> (BITS - 1 - bucket.depth) & 1 == 1;
        let (ones, zeros): (Vec<_>, Vec<_>) = entries.into_iter().partition(bit);
        for (part, child) in [(zeros, 1), (ones, 2)] {
            if !part.is_empty() {
                encode(&part, self.block_mut((dir, 2 * bucket.index + child), false)?);
            }
        }
        self.set_bucket(dir, bucket.index, SPLIT)
    }

    /// The bucket has no block any more.
    fn set_bucket(&mut self, dir: u32, index: u64, addr: u32) -> Result<()> {
        self.take_dirty((dir, index));
        self.blocks.remove((dir, index));
        self.set_pointer((dir, index), Pointer { addr, ..Pointer::HOLE })?;
        Ok(())
    }

    /// Changes what a name stands for.
    pub(crate) fn set_entry(&mut self, dir: u32, name: &[u8], ino: u32, kind: u8) -> Result<()> {
        let hash = self.hash(name);
        let bucket = self.bucket(dir, hash)?;
        let mut entries = self.entries(dir, bucket)?;
        let entry = entries.iter_mut().find(|entry| entry.name == name).ok_or(FsError::NotFound)?;
        (entry.ino, entry.kind) = (ino, kind);
        encode(&entries, self.block_mut((dir, bucket.index), false)?);
        Ok(())
    }

    /// Removes an entry. Buckets that are empty are merged.
    pub(crate) fn remove_entry(&mut self, dir: u32, name: &[u8]) -> Result<()> {
        let hash = self.hash(name);
        let bucket = self.bucket(dir, hash)?;
        let mut entries = self.entries(dir, bucket)?;
        let at = entries.iter().position(|entry| entry.name == name).ok_or(FsError::NotFound)?;
        entries.swap_remove(at);
        let size = &mut self.attr_mut(dir)?.size;
        *size = size.saturating_sub(1);
        if !entries.is_empty() {
            encode(&entries, self.block_mut((dir, bucket.index), false)?);
            return Ok(());
        }
        let mut index = bucket.index;
        self.set_bucket(dir, index, HOLE)?;
        while index > 0 {
            let sibling = (dir, ((index - 1) ^ 1) + 1);
            if self.dirty_block(sibling).is_some() || self.pointer(sibling)?.addr != HOLE {
                break;
            }
            index = (index - 1) / 2;
            self.set_bucket(dir, index, HOLE)?;
        }
        Ok(())
    }

    /// Some entries of a folder, in the order of their hashes, from the hash `from` on; and the
    /// hash from which the list goes on, `None` at its end.
    ///
    /// # Errors
    /// [`FsError::NotDirectory`], and those of reads.
    pub fn list(&mut self, dir: u32, from: u64) -> Result<(Vec<DirEntry>, Option<u64>)> {
        if !self.attr(dir)?.is_dir() {
            return Err(FsError::NotDirectory);
        }
        let mut from = from;
        while from < 1 << BITS {
            let bucket = self.bucket(dir, from)?;
            let span = 1 << (BITS - bucket.depth);
            let end = (from / span + 1) * span;
            let mut entries = self.entries(dir, bucket)?;
            entries.retain(|entry| entry.hash >= from);
            entries.sort_by_key(|entry| entry.hash);
            let next = Some(end).filter(|end| *end < 1 << BITS);
            if !entries.is_empty() || next.is_none() {
                return Ok((entries, next));
            }
            from = end;
        }
        Ok((Vec::new(), None))
    }
}
