//! Blocks of files in memory: dirty ones, and those that were read recently.

use std::ops::Range;

use prism_segments::Store;

use crate::error::Result;
use crate::format::{BLOCK, Block, block_of, zeros};
use crate::fs::{Dirty, Fs, Key, XATTR};
use crate::node::HOLE;

impl<S: Store> Fs<S> {
    pub(crate) fn dirty_block(&self, key: Key) -> Option<&Dirty> {
        self.dirty.get(&key).or_else(|| self.dirty_meta.get(&key))
    }

    /// A block of a file that is in memory.
    pub(crate) fn known_block(&mut self, key: Key) -> Option<&Block> {
        let dirty = self.dirty.get(&key).or_else(|| self.dirty_meta.get(&key));
        match dirty {
            Some(dirty) => Some(&dirty.data),
            None => self.blocks.get(key),
        }
    }

    /// A block of a file; `None` for a hole.
    pub(crate) fn block(&mut self, key: Key) -> Result<Option<Block>> {
        if let Some(block) = self.known_block(key) {
            return Ok(Some(block.clone()));
        }
        let pointer = self.pointer(key)?;
        if !pointer.is_block() {
            return Ok(None);
        }
        let block = self.log.read(&[(pointer.addr, pointer.sum)], "data")?.pop().expect("one");
        self.blocks.insert(key, block.clone());
        Ok(Some(block))
    }

    /// Appends bytes of a block of a file to `to`; zeros for a hole.
    pub(crate) fn read_block(
        &mut self,
        key: Key,
        range: Range<usize>,
        to: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(block) = self.known_block(key) {
            to.extend_from_slice(&block[range]);
        } else if let Some(block) = self.block(key)? {
            to.extend_from_slice(&block[range]);
        } else {
            to.resize(to.len() + range.len(), 0);
        }
        Ok(())
    }

    /// Reads blocks of a file together, so that [`Fs::block`] finds them in memory.
    pub(crate) fn prefetch(&mut self, ino: u32, begin: u64, end: u64) -> Result<()> {
        let (mut keys, mut wanted) = (Vec::new(), Vec::new());
        for index in begin..end {
            let key = (ino, index);
            if self.dirty_block(key).is_none() && self.blocks.get(key).is_none() {
                let pointer = self.pointer(key)?;
                if pointer.is_block() {
                    keys.push(key);
                    wanted.push((pointer.addr, pointer.sum));
                }
            }
        }
        if wanted.len() > 1 {
            let blocks = self.log.read(&wanted, "data")?;
            keys.into_iter().zip(blocks).for_each(|(key, block)| self.blocks.insert(key, block));
        }
        Ok(())
    }

    /// A block of a file, to change it. The content is what the file has there, or zeros if
    /// `keep` is false.
    pub(crate) fn block_mut(&mut self, key: Key, keep: bool) -> Result<&mut [u8; BLOCK]> {
        let dirty = self.dirty_mut(key, |fs| {
            let data = if keep { fs.block(key)? } else { None };
            Ok(data.unwrap_or_else(zeros))
        })?;
        Ok(&mut dirty.data)
    }

    /// Replaces a block of a file.
    pub(crate) fn put_block(&mut self, key: Key, data: &[u8; BLOCK]) -> Result<()> {
        let mut is_first = false;
        let dirty = self.dirty_mut(key, |fs| {
            is_first = true;
            Ok(match fs.spare.pop() {
                Some(mut block) => {
                    *block = *data;
                    block
                }
                None => block_of(data),
            })
        })?;
        if !is_first {
            dirty.data.copy_from_slice(data);
        }
        Ok(())
    }

    /// A block of a file as a dirty one; `content` makes it if it is not yet dirty.
    fn dirty_mut(
        &mut self,
        key: Key,
        content: impl FnOnce(&mut Self) -> Result<Block>,
    ) -> Result<&mut Dirty> {
        let ticks = self.ticks();
        let is_meta = key.1 >= XATTR || self.attr(key.0)?.has_metadata_blocks();
        let map = if is_meta { &self.dirty_meta } else { &self.dirty };
        if !map.contains_key(&key) {
            let pointer = self.pointer(key)?;
            let data = content(self)?;
            let (is_new, is_block) = (pointer.addr == HOLE, pointer.is_block());
            let writes = pointer.writes.saturating_add(is_block.into());
            self.new_blocks += u64::from(is_new);
            *self.new_of_file.entry(key.0).or_default() += u64::from(is_new);
            self.blocks.remove(key);
            let dirty = Dirty { data, writes, time: ticks, is_new, cleaned: false };
            let map = if is_meta { &mut self.dirty_meta } else { &mut self.dirty };
            return Ok(map.entry(key).or_insert(dirty));
        }
        let map = if is_meta { &mut self.dirty_meta } else { &mut self.dirty };
        let dirty = map.get_mut(&key).expect("it is there");
        dirty.writes = dirty.writes.saturating_add(1);
        (dirty.time, dirty.cleaned) = (ticks, false);
        Ok(dirty)
    }

    /// Forgets a dirty block.
    pub(crate) fn take_dirty(&mut self, key: Key) -> Option<Dirty> {
        let dirty = self.dirty.remove(&key).or_else(|| self.dirty_meta.remove(&key))?;
        if dirty.is_new {
            self.new_blocks -= 1;
            let of_file = self.new_of_file.entry(key.0).or_default();
            *of_file -= 1;
            if *of_file == 0 {
                self.new_of_file.remove(&key.0);
            }
        }
        Some(dirty)
    }

    /// Forgets what is in memory of the blocks `begin..end` of a file.
    pub(crate) fn drop_dirty(&mut self, ino: u32, begin: u64, end: u64) {
        for is_meta in [false, true] {
            let map = if is_meta { &self.dirty_meta } else { &self.dirty };
            let keys: Vec<Key> = map.range((ino, begin)..(ino, end)).map(|(key, _)| *key).collect();
            for key in keys {
                self.take_dirty(key);
            }
        }
        self.forget_clean(ino, begin, end);
    }

    /// Forgets clean blocks, by number or by walking over what the cache may hold. It holds none
    /// after the size of a file. That of a folder is the number of entries, and says nothing.
    fn forget_clean(&mut self, ino: u32, begin: u64, end: u64) {
        let size = self.attr(ino).ok().filter(|attr| !attr.is_dir());
        let size = size.map_or(u64::MAX, |attr| attr.size);
        let end = end.min(size / BLOCK as u64 + 1).max(begin);
        if end - begin > self.blocks.len() as u64 {
            self.blocks.retain(|key| key.0 != ino || key.1 < begin || key.1 >= end);
        } else {
            for index in begin..end {
                self.blocks.remove((ino, index));
            }
        }
    }
}
