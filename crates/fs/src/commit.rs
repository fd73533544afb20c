//! Writing: groups of hotness, transactions and checkpoints.

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::codec;
use prism_flash::FlashError;
use prism_segments::{Store, Syncer};

use crate::config::Deferral;
use crate::error::{FsError, Result};
use crate::format::{BLOCK, CHECKPOINT, COMMIT, ENTRIES, Kind, UNMOUNTED, zeros};
use crate::fs::{Access, Dirty, Fs, Key, XATTR};
use crate::hotness::{nearest, quantize};
use crate::log::{Counts, Syncing, Target};
use crate::node::{Node, Pointer};
use crate::table::NodeEntry;
use crate::usage::Usage;

/// What a checkpoint stores besides the node table.
#[derive(Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Checkpoint {
    pub table: Vec<(u32, u32)>,
    pub usage: Vec<Usage>,
    pub groups: Vec<u64>,
    pub clock: u64,
    pub generation: u64,
    pub hash_seed: u64,
    pub reserved: u64,
    pub made: i64,
    pub counts: Counts,
    pub orphans: Vec<u32>,
}

/// An fsync that has begun.
#[must_use]
pub struct Fsync {
    sync: Option<(Syncing, Syncer)>,
    lost: Option<FsError>,
}

/// An fsync after its wait for the device.
#[derive(Debug)]
#[must_use]
pub struct Fsynced {
    sync: Option<(Syncing, std::result::Result<(), FlashError>)>,
    lost: Option<FsError>,
}

impl Fsync {
    /// Waits for the device, without the file system.
    pub fn wait(self) -> Fsynced {
        let Self { sync, lost } = self;
        Fsynced { sync: sync.map(|(sync, syncer)| (sync, syncer())), lost }
    }
}

impl<S: Store> Fs<S> {
    /// Blocks that fit into a whole segment.
    fn whole_segment(&self) -> usize {
        let blocks = self.log.blocks_per_segment as usize;
        // Chunks are padded to pages.
        let chunk = self.log.padded(ENTRIES as u32 + 1) as usize;
        blocks / chunk * ENTRIES + (blocks % chunk).saturating_sub(1)
    }

    /// Dirty blocks of files at which groups are written.
    pub(crate) fn dirty_max(&self) -> usize {
        let all = self.usage.segments.len() * self.log.blocks_per_segment as usize;
        let segments = match self.config.deferral {
            Deferral::WholeSegments => self.config.groups as usize + 1,
            Deferral::None => 1,
        };
        (segments * self.whole_segment()).min(all / 32).max(8)
    }

    /// Hotness of a dirty block. A block that was never overwritten has that of its file.
    fn hotness(&mut self, key: Key) -> f64 {
        let (now, floor) = (self.ticks(), self.age_floor().max(1));
        let age = |time: u32| f64::from(now.saturating_sub(time).max(floor));
        let dirty = &self.dirty[&key];
        if dirty.writes > 0 || dirty.cleaned {
            return (f64::from(dirty.writes) + 0.5) / age(dirty.time);
        }
        self.attr(key.0).map_or(0.0, |attr| f64::from(attr.writes) / age(attr.time))
    }

    /// Dirty blocks of files by group.
    fn grouped(&mut self) -> Vec<Vec<Key>> {
        let (now, floor) = (self.ticks(), self.age_floor());
        let count = self.config.groups.clamp(1, 16) as usize;
        let in_segments = self.usage.segments.iter().filter_map(|usage| usage.hotness(now, floor));
        let mut in_segments: Vec<f64> = in_segments.collect();
        quantize(&mut self.groups, &mut in_segments, count, &self.config);
        let keys: Vec<Key> = self.dirty.keys().copied().collect();
        let mut groups = vec![Vec::new(); count];
        // New blocks of a file are equally hot.
        let (mut hotness, mut group) = (f64::NAN, 0);
        for key in keys {
            let next = if count > 1 { self.hotness(key) } else { 0.0 };
            if next != hotness {
                (hotness, group) = (next, nearest(&self.groups, next, self.config.distance));
            }
            groups[group].push(key);
        }
        groups
    }

    /// Writes the groups that fill segments; the others too if they are not deferred, or if
    /// memory is full of them.
    pub(crate) fn write_groups(&mut self) -> Result<()> {
        let whole = self.whole_segment();
        for group in self.grouped() {
            for keys in group.chunks_exact(whole) {
                self.write_blocks(keys, Target::Whole)?;
                self.log.close_whole()?;
            }
        }
        if self.config.deferral == Deferral::None || self.dirty.len() >= self.dirty_max() {
            let keys: Vec<Key> = self.grouped().concat();
            self.write_blocks(&keys, Target::Shared)?;
        }
        self.log.emit(0)
    }

    fn write_blocks(&mut self, keys: &[Key], target: Target) -> Result<()> {
        keys.iter().try_for_each(|&key| self.write_block(key, target))
    }

    /// Writes a dirty block. If the map of its file was damaged since the block was changed, the
    /// block is lost, which the next fsync reports; the others are written all the same.
    fn write_block(&mut self, key: Key, target: Target) -> Result<()> {
        let Some(dirty) = self.take_dirty(key) else { return Ok(()) };
        match self.append_block(key, &dirty, target) {
            Ok(true) => {
                self.blocks.insert(key, dirty.data);
                Ok(())
            }
            Ok(false) => {
                // So there are no more blocks than once were dirty. If they were freed, each thread
                // of a mount would get memory of its own for the next ones.
                if self.spare.len() < self.dirty_max() {
                    self.spare.push(dirty.data);
                }
                Ok(())
            }
            Err(error @ (FsError::Damaged { .. } | FsError::Inconsistent(_))) => {
                self.lost.get_or_insert(error);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Appends a block; true if it should stay in the cache.
    fn append_block(&mut self, key: Key, dirty: &Dirty, target: Target) -> Result<bool> {
        // What has to be read is read before anything is appended.
        self.pointer(key)?;
        let is_xattr = key.1 >= XATTR;
        let kind = if is_xattr { Kind::Xattr } else { Kind::Data };
        let index = if is_xattr { key.1 - XATTR } else { key.1 };
        let (addr, sum) = self.log.push(target, kind, key.0, index as u32, &dirty.data)?;
        let (writes, time) = (dirty.writes, dirty.time);
        self.set_pointer(key, Pointer { addr, sum, writes, time })?;
        let attr = self.attr(key.0)?;
        if attr.disk_size < attr.size {
            // The transaction that has the block has the new size, too.
            self.inode_mut(key.0)?;
        }
        let is_file = !is_xattr && !attr.has_metadata_blocks();
        match (dirty.cleaned, is_file) {
            (true, _) => self.log.counts.cleaned += 1,
            (false, true) => self.log.counts.data += 1,
            (false, false) => self.log.counts.folders += 1,
        }
        // An append to the file changes its last block again.
        let is_last = attr.size / BLOCK as u64 == index && !attr.size.is_multiple_of(BLOCK as u64);
        Ok(self.config.caches_written || !is_file || is_last)
    }

    /// Whether a transaction would write anything, for these files.
    fn has_changes(&self, files: &[u32]) -> bool {
        let of_file = |&ino: &u32| self.dirty.range((ino, 0)..(ino + 1, 0)).next().is_some();
        !self.dirty_nodes.is_empty()
            || !self.dirty_meta.is_empty()
            || !self.freed.is_empty()
            || files.iter().any(of_file)
    }

    /// Appends a transaction: the data of these files, and all metadata.
    pub(crate) fn commit(&mut self, files: &[u32]) -> Result<()> {
        let with_next = std::mem::take(&mut self.with_next);
        for ino in files.iter().copied().chain(with_next) {
            let keys: Vec<Key> =
                self.dirty.range((ino, 0)..(ino + 1, 0)).map(|(key, _)| *key).collect();
            self.write_blocks(&keys, Target::Shared)?;
        }
        if !self.has_changes(&[]) {
            return self.log.emit(0);
        }
        let keys: Vec<Key> = self.dirty_meta.keys().copied().collect();
        self.write_blocks(&keys, Target::Shared)?;
        self.write_nodes()?;
        for id in std::mem::take(&mut self.freed) {
            self.log.push_free(id)?;
        }
        self.log.emit(COMMIT)
    }

    fn write_nodes(&mut self) -> Result<()> {
        let mut nodes: Vec<_> = std::mem::take(&mut self.dirty_nodes).into_iter().collect();
        nodes.sort_unstable_by_key(|(id, _)| *id);
        for (id, mut node) in nodes {
            if let Node::Inode(inode) = &mut node {
                inode.attr.disk_size = self.size_on_disk(id, inode.attr.size, inode.attr.disk_size);
                if inode.attr.disk_size < inode.attr.size {
                    self.sizes.insert(id, inode.attr.size);
                } else {
                    self.sizes.remove(&id);
                }
            }
            let bytes = node.encode(id);
            let (addr, sum) = self.log.push(Target::Shared, Kind::Node, id, 0, &bytes)?;
            let old = self.table.set(id, NodeEntry { addr, sum });
            self.usage.remove_meta(old.addr);
            self.usage.add_meta(addr);
            self.log.counts.nodes += 1;
            self.nodes.insert(id, node);
        }
        Ok(())
    }

    /// The size of a file as of a transaction: without the data after the last size that were not
    /// written yet, so that a crash shows no zeros instead of them.
    fn size_on_disk(&self, ino: u32, size: u64, before: u64) -> u64 {
        let before = before.min(size);
        let begin = before / BLOCK as u64;
        let waiting = self.dirty.range((ino, begin)..(ino, XATTR)).next();
        waiting.map_or(size, |(key, _)| before.max(key.1 * BLOCK as u64).min(size))
    }

    /// Makes the data of files and all metadata durable.
    ///
    /// # Errors
    /// Those of the store; the file system is read-only from then on.
    pub fn fsync(&mut self, files: &[u32]) -> Result<()> {
        if self.access == Access::ReadOnly {
            return Ok(());
        }
        self.append_changes(files)?;
        self.log.sync()?;
        self.lost.take().map_or(Ok(()), Err)
    }

    /// Begins what [`Fs::fsync`] does. The caller runs [`Fsync::wait`], during which other calls
    /// can go on, and then [`Fs::end_fsync`].
    ///
    /// # Errors
    /// As [`Fs::fsync`].
    pub fn begin_fsync(&mut self, files: &[u32]) -> Result<Fsync> {
        if self.access == Access::ReadOnly {
            return Ok(Fsync { sync: None, lost: None });
        }
        self.append_changes(files)?;
        let sync = self.log.begin_sync()?;
        // What others lose until it ends is reported to them.
        Ok(Fsync { sync, lost: self.lost.take() })
    }

    /// Ends an fsync.
    ///
    /// # Errors
    /// As [`Fs::fsync`].
    pub fn end_fsync(&mut self, fsync: Fsynced) -> Result<()> {
        if let Some((sync, ended)) = fsync.sync {
            self.log.end_sync(sync, ended)?;
        }
        fsync.lost.map_or(Ok(()), Err)
    }

    /// Appends the data of files and all metadata to the log.
    fn append_changes(&mut self, files: &[u32]) -> Result<()> {
        if self.has_changes(files) {
            self.make_space(0)?;
            self.commit(files)?;
        }
        Ok(())
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// As [`Fs::fsync`].
    pub fn sync(&mut self) -> Result<()> {
        let files: std::collections::BTreeSet<u32> = self.dirty.keys().map(|key| key.0).collect();
        self.fsync(&files.into_iter().collect::<Vec<_>>())
    }

    /// Blocks of a checkpoint.
    pub(crate) fn root_blocks(&self) -> u32 {
        let bytes = 256 + self.table.blocks.len() * 8 + self.usage.segments.len() * 28;
        (bytes + self.orphans.len() * 4 + 8 * self.groups.len()).div_ceil(BLOCK) as u32
    }

    /// Writes everything and a checkpoint, from which a mount begins. Segments without live blocks
    /// are free after it, and not before.
    ///
    /// # Errors
    /// As [`Fs::fsync`].
    pub fn checkpoint(&mut self) -> Result<()> {
        self.write_checkpoint(0)
    }

    fn write_checkpoint(&mut self, flags: u16) -> Result<()> {
        let whole = self.whole_segment();
        let groups = self.grouped();
        for keys in groups.iter().flat_map(|group| group.chunks_exact(whole)) {
            self.write_blocks(keys, Target::Whole)?;
            self.log.close_whole()?;
        }
        let rest: Vec<Key> = groups.concat();
        self.write_blocks(&rest, Target::Shared)?;
        self.commit(&[])?;
        // So a block of the node table is never newer than what is durable: a repair without a
        // checkpoint relies on it.
        self.log.sync()?;
        if self.table.dirty.is_empty() {
            // A block of the table shows that there was a checkpoint, if it is damaged.
            self.table.dirty.insert(0);
        }
        for index in std::mem::take(&mut self.table.dirty) {
            let block = self.table.block(index);
            let (addr, sum) = self.log.push(Target::Shared, Kind::Table, index, 0, &block)?;
            let old = std::mem::replace(&mut self.table.blocks[index as usize], (addr, sum));
            self.usage.remove_meta(old.0);
            self.usage.add_meta(addr);
            self.log.counts.table += 1;
        }
        self.write_root(flags)?;
        self.log.sync()?;
        self.log.checkpoint_is_durable();
        self.unmounted_at = (flags & UNMOUNTED != 0).then_some(self.log.seq);
        self.checkpoint_at = self.now;
        self.free_dead()
    }

    fn write_root(&mut self, flags: u16) -> Result<()> {
        let blocks = self.root_blocks();
        for (usage, in_use) in self.usage.segments.iter_mut().zip(&self.log.in_use) {
            // Pointers of a damaged file system may lead to segments that are free.
            if !in_use {
                *usage = Usage::default();
            }
        }
        self.log.counts.roots += u64::from(blocks);
        let checkpoint = Checkpoint {
            table: self.table.blocks.clone(),
            usage: self.usage.segments.clone(),
            groups: self.groups.iter().map(|group| group.to_bits()).collect(),
            clock: self.clock,
            generation: self.generation,
            hash_seed: self.hash_seed,
            reserved: self.reserved,
            made: self.made,
            counts: self.log.counts,
            orphans: self.orphans.iter().copied().collect(),
        };
        let mut bytes = Vec::new();
        codec::save(&checkpoint, &mut bytes);
        let count = bytes.len().div_ceil(BLOCK) as u32;
        assert!(count <= blocks, "a checkpoint of {} bytes", bytes.len());
        let segment = self.log.reserve(blocks)?;
        for (chunk, index) in bytes.chunks(BLOCK).zip(0..) {
            let mut block = zeros();
            block[..chunk.len()].copy_from_slice(chunk);
            self.log.push(Target::Shared, Kind::Root, index, count, &block)?;
        }
        self.log.emit(CHECKPOINT | flags)?;
        self.root_segment = Some(segment);
        Ok(())
    }

    /// Frees the segments without live blocks; a durable checkpoint does not need them.
    fn free_dead(&mut self) -> Result<()> {
        for segment in 0..self.usage.segments.len() as u32 {
            let is_dead = self.log.in_use[segment as usize]
                && self.usage.segments[segment as usize].live() == 0;
            if is_dead && !self.log.is_head(segment) && self.root_segment != Some(segment) {
                self.usage.segments[segment as usize] = Usage::default();
                self.stuck.remove(&segment);
                self.log.free(segment)?;
            }
        }
        Ok(())
    }

    /// Does what is due: a checkpoint after some time, and data that wait for too long. Callers
    /// call it every few seconds.
    ///
    /// # Errors
    /// As [`Fs::fsync`].
    pub fn tick(&mut self) -> Result<()> {
        if self.access == Access::ReadOnly || self.log.failure().is_some() {
            return Ok(());
        }
        if self.dirty.is_empty() {
            self.spare = Vec::new();
        }
        let dirty = !self.dirty.is_empty() || self.has_changes(&[]) || self.log.unsynced;
        let age = self.now.secs - self.checkpoint_at.secs;
        if dirty && age >= self.config.checkpoint_seconds {
            self.make_space(0)?;
            return self.checkpoint();
        }
        if dirty && self.has_changes(&[]) {
            self.append_changes(&[])?;
            // A block that was lost is reported to the next fsync.
            self.log.sync()?;
        }
        Ok(())
    }

    /// Removes files without links, and makes a checkpoint.
    ///
    /// # Errors
    /// As [`Fs::fsync`].
    pub fn unmount(&mut self) -> Result<()> {
        if self.access == Access::ReadOnly {
            return Ok(());
        }
        if let Some(error) = self.log.failure() {
            return Err(error.clone());
        }
        self.remove_orphans()?;
        if !self.dirty.is_empty()
            || self.has_changes(&[])
            || !self.log.is_durable()
            || self.unmounted_at != Some(self.log.seq)
        {
            self.make_space(0)?;
            self.write_checkpoint(UNMOUNTED)?;
        }
        Ok(())
    }
}
