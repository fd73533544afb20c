//! Making a file system, and mounting one: the newest checkpoint, and the transactions after it.

use std::collections::{BTreeMap, BTreeSet};

use prism_base::codec;
use prism_segments::Store;

use crate::commit::Checkpoint;
use crate::config::Config;
use crate::error::{FsError, Result};
use crate::format::{BLOCK, Block, CHECKPOINT, COMMIT, ENTRIES, Entry, Kind, UNMOUNTED, zeros};
use crate::fs::{Access, Fs, ROOT};
use crate::log::Log;
use crate::node::{Attr, HOLE, Node, Pointer, S_IFDIR, S_IFREG, Time};
use crate::repair::readable;
use crate::scan::{Chunk, DeviceScan, chunks_after, find, first_blocks};
use crate::table::{NodeEntry, NodeTable, PER_BLOCK};
use crate::usage::{Usage, UsageTable};

/// What a mount does about damage of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It fails.
    Refuse,
    /// It takes the newest state that is left of each file.
    Accept,
}

/// The seed of the hashes of names.
pub(crate) fn hash_seed(id: u64) -> u64 {
    id ^ 0x5bd1_e995_9e37_79b9
}

/// The state that a mount found, which is in memory.
pub(crate) struct Recovered {
    /// The number of its last chunk, and the checksum of the summary of that.
    pub end: u64,
    pub sum: u32,
    /// Files that changed after its checkpoint.
    pub changed: BTreeSet<u32>,
    /// Live blocks of each segment as of its checkpoint.
    pub live_before: Vec<u32>,
    /// Segments with chunks of which it consists.
    pub needed: BTreeSet<u32>,
    /// Nodes in chunks that do not belong to it.
    pub left_out: BTreeSet<u32>,
    /// Whether nothing was written after its checkpoint, and whether that is of an unmount.
    pub is_newest: bool,
    pub is_unmounted: bool,
    /// Whether chunks are missing that were durable.
    pub is_damaged: bool,
}

impl<S: Store> Fs<S> {
    /// Makes a file system on a device, whose content is lost, and mounts it. `id` is a number that
    /// no other file system has.
    ///
    /// # Errors
    /// [`FsError::Shape`] if the device is too small, and those of the store.
    pub fn format(store: S, id: u64, config: Config, now: Time) -> Result<Self> {
        let mut log = Log::new(store)?;
        let first = first_blocks(&mut log)?;
        // Above all chunks of what was there.
        let seqs = first.iter().filter_map(|(_, block)| Some(block.chunk()?.seq));
        log.seq = seqs.max().unwrap_or(0) + (1 << 32);
        log.fs_id = id;
        log.recovering = true;
        log.resumes = true;
        let mut fs = Self::empty(log, config, now)?;
        for (segment, _) in first {
            fs.log.free(segment)?;
        }
        fs.hash_seed = hash_seed(id);
        let attr = Attr {
            mode: S_IFDIR | 0o755,
            nlink: 2,
            generation: 1,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            parent: ROOT,
            ..Attr::default()
        };
        let root = fs.add_node(Node::inode(attr))?;
        assert_eq!(root, ROOT, "the first node");
        fs.checkpoint()?;
        Ok(fs)
    }

    /// Mounts the file system of a store. If the last mount did not end, what it made durable is
    /// there, and a checkpoint is made unless `access` forbids it.
    ///
    /// # Errors
    /// [`FsError::NotFormatted`]; [`FsError::Damaged`] or [`FsError::Inconsistent`] if the log is
    /// damaged; those of the store.
    pub fn mount(
        store: S,
        config: Config,
        now: Time,
        access: Access,
        damage: Damage,
    ) -> Result<Self> {
        let mut log = Log::new(store)?;
        let mut found = find(&mut log)?;
        log.fs_id = found.fs_id;
        let mut fs = Self::empty(log, config, now)?;
        fs.access = access;
        for &segment in &found.used {
            fs.log.in_use[segment as usize] = true;
        }
        let recovered = match fs.recover_from_checkpoint(&mut found, damage) {
            Ok(recovered) if damage == Damage::Accept && recovered.is_damaged => {
                fs.lost_changes = true;
                fs.recover_from_summaries(&mut found)?
            }
            Err(FsError::NoCheckpoint) if damage == Damage::Accept => {
                fs.accepted.insert("no checkpoint can be read".into());
                fs.recover_from_summaries(&mut found)?
            }
            recovered => recovered?,
        };
        if damage == Damage::Refuse
            && let Some(what) = fs.accepted.pop_first()
        {
            return Err(FsError::Inconsistent(what));
        }
        let Recovered { end, sum, is_newest, .. } = recovered;
        fs.log.durable = end;
        fs.log.prev = sum;
        fs.log.seq = found.seq_max.max(end) + 1;
        fs.log.recovering = fs.log.seq > end + 1;
        let is_clean = is_newest && fs.orphans.is_empty();
        fs.was_unmounted = is_newest && recovered.is_unmounted;
        fs.unmounted_at = fs.was_unmounted.then_some(fs.log.seq);
        if access == Access::ReadWrite {
            fs.free_unused(&found.used, &recovered.live_before, &recovered.needed)?;
            if !is_clean {
                fs.log.resumes = true;
                // What was found may be in a cache of the device only.
                fs.log.unsynced = true;
                fs.log.recovering = true;
                fs.log.sync()?;
                fs.write_again(recovered.left_out)?;
                fs.remove_orphans()?;
                fs.cut_after_ends(recovered.changed)?;
                fs.checkpoint()?;
            }
        }
        Ok(fs)
    }

    /// The newest state that a checkpoint and the transactions after it give.
    fn recover_from_checkpoint(
        &mut self,
        found: &mut DeviceScan,
        damage: Damage,
    ) -> Result<Recovered> {
        let (mut chunks, at) = self.find_checkpoint(found, damage)?;
        let live_before: Vec<u32> = self.usage.segments.iter().map(Usage::live).collect();
        let tail: Vec<Chunk> = chunks.drain(at..).collect();
        // Segments are freed when a newer checkpoint is durable.
        let mut live = (0..).zip(&live_before).filter(|(_, live)| **live > 0);
        let seq = tail[0].summary.seq;
        let is_old = live.any(|(segment, _)| found.was_freed(segment, seq));
        if is_old {
            self.accepted.insert(format!("a checkpoint after that of chunk {seq} is missing"));
        }
        let mut changed = BTreeSet::new();
        let (kept, applied) = self.roll_forward(&tail, found, &mut changed)?;
        let end = tail[kept - 1].summary.seq;
        let is_damaged = end < found.durable;
        if is_damaged {
            let what = format!("the log is damaged after chunk {end} of {}", found.durable);
            self.accepted.insert(what);
        }
        let torn = found.torn.iter().filter(|chunk| chunk.summary.seq > end);
        let left_out = tail[applied..].iter().chain(torn);
        let segment = |chunk: &Chunk| chunk.addr / self.log.blocks_per_segment;
        Ok(Recovered {
            end,
            sum: tail[kept - 1].sum,
            changed,
            live_before,
            needed: tail[..kept].iter().map(segment).chain(self.root_segment).collect(),
            left_out: left_out.flat_map(Chunk::nodes).map(|(entry, _)| entry.id).collect(),
            is_newest: found.seq_max <= seq && !found.has_gap,
            is_unmounted: tail[0].summary.flags & UNMOUNTED != 0,
            is_damaged: is_old || is_damaged,
        })
    }

    /// Writes nodes anew. Chunks that a mount leaves out stay on flash, with higher numbers than
    /// those of the state that it takes: a repair without a checkpoint would take their nodes.
    fn write_again(&mut self, nodes: BTreeSet<u32>) -> Result<()> {
        let len = self.table.len();
        for id in nodes.into_iter().filter(|id| *id < len) {
            if self.table.get(id).addr == HOLE {
                self.freed.insert(id);
                self.table.dirty.insert(id / PER_BLOCK as u32);
            } else {
                readable(self.node_mut(id).map(|_| ()))?;
            }
        }
        Ok(())
    }

    /// The newest checkpoint that is whole, which is loaded. Returns the chunks that may follow it,
    /// in order, and where in them its last chunk is.
    fn find_checkpoint(
        &mut self,
        found: &mut DeviceScan,
        damage: Damage,
    ) -> Result<(Vec<Chunk>, usize)> {
        let mut chunks: Vec<Chunk> = Vec::new();
        for (_, segment) in found.first.clone() {
            let (mut walked, after_gap) = self.walk(segment)?;
            for chunk in walked.iter().chain(&after_gap) {
                found.note(&chunk.summary);
            }
            match damage {
                Damage::Accept if !after_gap.is_empty() => {
                    found.has_gap = true;
                    walked.extend(after_gap);
                }
                _ => found.torn.extend(after_gap),
            }
            let ends = walked.iter().enumerate().rev();
            let ends: Vec<usize> = ends
                .filter(|(_, chunk)| chunk.summary.flags & CHECKPOINT != 0)
                .map(|(at, _)| at)
                .collect();
            let mut newest = None;
            for at in ends {
                if self.load_checkpoint(&walked[..=at])? {
                    newest = Some(walked[at].summary.seq);
                    break;
                }
                if damage == Damage::Refuse && walked[at].summary.seq <= found.durable {
                    let what = format!("a checkpoint is damaged: block {}", walked[at].addr);
                    return Err(FsError::Inconsistent(what));
                }
            }
            chunks.extend(walked);
            if let Some(seq) = newest {
                self.root_segment = Some(segment);
                chunks.sort_by_key(|chunk| chunk.summary.seq);
                let at = chunks.iter().position(|chunk| chunk.summary.seq == seq);
                return Ok((chunks, at.expect("it was walked")));
            }
        }
        Err(FsError::NoCheckpoint)
    }

    /// The chunks of a segment, up to the first block that is none, and those after that.
    pub(crate) fn walk(&mut self, segment: u32) -> Result<(Vec<Chunk>, Vec<Chunk>)> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut next = Some(segment * self.log.blocks_per_segment);
        while let Some(addr) = next {
            let Some((summary, sum)) = self.log.read_summary(addr)? else { break };
            let is_next = chunks.last().is_none_or(|last| summary.seq > last.summary.seq);
            if summary.fs_id != self.log.fs_id || !is_next {
                break;
            }
            next = self.log.next_chunk(addr, summary.payload());
            chunks.push(Chunk { addr, summary, sum });
        }
        let last = chunks.last().map_or(0, |last| last.summary.seq);
        let fs_id = self.log.fs_id;
        let after_gap = next.map(|addr| chunks_after(&mut self.log, fs_id, addr, last));
        Ok((chunks, after_gap.unwrap_or_default()))
    }

    /// Loads the checkpoint that ends with the last of these chunks; false if it is not whole.
    fn load_checkpoint(&mut self, chunks: &[Chunk]) -> Result<bool> {
        let mut roots: Vec<(u32, u32)> = Vec::new();
        for (entry, addr) in chunks.iter().flat_map(Chunk::entries) {
            if entry.kind == Kind::Root {
                if entry.id == 0 {
                    roots.clear();
                }
                roots.push((addr, entry.sum));
            }
        }
        let last = chunks.last().and_then(|chunk| chunk.summary.entries.last());
        if roots.is_empty() || last.is_none_or(|last| last.block as usize != roots.len()) {
            return Ok(false);
        }
        let blocks = match self.log.read(&roots, "checkpoint") {
            Ok(blocks) => blocks,
            Err(FsError::Damaged { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let bytes = blocks.iter().flat_map(|block| block.iter().copied()).collect::<Vec<u8>>();
        let Ok(checkpoint) = codec::load::<Checkpoint>(&mut &bytes[..]) else { return Ok(false) };
        if checkpoint.usage.len() != self.usage.segments.len() {
            let what = format!(
                "the device has {} segments, the file system was made for {}",
                self.usage.segments.len(),
                checkpoint.usage.len()
            );
            return Err(FsError::Shape(what));
        }
        // Blocks in which no node was yet have no address.
        let written: Vec<(u32, u32)> =
            checkpoint.table.iter().copied().filter(|block| block.0 != HOLE).collect();
        let mut blocks = match self.log.read(&written, "node table") {
            Ok(blocks) => blocks.into_iter(),
            Err(FsError::Damaged { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let block = |&(addr, _): &(u32, u32)| match addr {
            HOLE => zeros(),
            _ => blocks.next().expect("one for each address"),
        };
        let blocks: Vec<Block> = checkpoint.table.iter().map(block).collect();
        let max = Self::nodes_max(self.usage.segments.len(), self.log.blocks_per_segment);
        self.table = NodeTable::new(max, checkpoint.table, &blocks);
        self.usage = UsageTable::new(checkpoint.usage, self.log.blocks_per_segment);
        self.groups = checkpoint.groups.into_iter().map(f64::from_bits).collect();
        self.clock = checkpoint.clock;
        self.generation = checkpoint.generation;
        self.hash_seed = checkpoint.hash_seed;
        self.reserved = checkpoint.reserved;
        self.made = checkpoint.made;
        self.log.counts = checkpoint.counts;
        self.orphans = checkpoint.orphans.into_iter().collect();
        Ok(true)
    }

    /// Applies the transactions after a checkpoint, whose last chunk is the first of these. Returns
    /// how many chunks follow each other and are whole, and how many of them belong to transactions
    /// that are, and adds the files that they change to `changed`.
    fn roll_forward(
        &mut self,
        tail: &[Chunk],
        found: &DeviceScan,
        changed: &mut BTreeSet<u32>,
    ) -> Result<(usize, usize)> {
        let mut kept = 1;
        let mut applied = 1;
        for pair in tail.windows(2) {
            let [before, chunk] = pair else { break };
            let follows =
                chunk.summary.seq == before.summary.seq + 1 && chunk.summary.prev == before.sum;
            // What is durable is checked when it is read.
            if !follows || (chunk.summary.seq > found.durable && !self.is_whole(chunk)?) {
                break;
            }
            kept += 1;
            if chunk.summary.flags & COMMIT != 0 {
                for chunk in &tail[applied..kept] {
                    self.apply(chunk, changed)?;
                }
                applied = kept;
            }
        }
        // Chunks without the end of their transaction count as damage only if they are missing.
        Ok((kept, applied))
    }

    pub(crate) fn is_whole(&mut self, chunk: &Chunk) -> Result<bool> {
        let payload = chunk.entries().filter(|(entry, _)| entry.kind.has_payload());
        let wanted: Vec<(u32, u32)> = payload.map(|(entry, addr)| (addr, entry.sum)).collect();
        match self.log.read(&wanted, "chunk") {
            Ok(_) => Ok(true),
            Err(FsError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Applies what a chunk says about nodes, of which it has each once. Those before it are read
    /// together, and those in it.
    fn apply(&mut self, chunk: &Chunk, changed: &mut BTreeSet<u32>) -> Result<()> {
        let nodes: BTreeMap<u32, (Entry, u32)> =
            chunk.nodes().map(|(entry, addr)| (entry.id, (entry, addr))).collect();
        let ids = || nodes.keys().copied();
        self.prefetch_nodes(ids())?;
        for &(entry, addr) in nodes.values() {
            let node = NodeEntry { addr, sum: entry.sum };
            self.replace_node(
                entry.id,
                if entry.kind == Kind::Free { Default::default() } else { node },
            )?;
        }
        self.prefetch_nodes(ids())?;
        for id in ids() {
            match self.take_node(id)? {
                Some(Node::Inode(_)) => changed.insert(id),
                Some(Node::Leaf { owner, .. } | Node::Inner { owner, .. }) => changed.insert(owner),
                None => false,
            };
        }
        Ok(())
    }

    fn cut_after_ends(&mut self, files: BTreeSet<u32>) -> Result<()> {
        let files: Vec<u32> = files.into_iter().collect();
        for batch in files.chunks(ENTRIES) {
            self.prefetch_nodes(batch.iter().copied())?;
            batch.iter().try_for_each(|&ino| self.cut_after_end(ino))?;
        }
        Ok(())
    }

    /// Removes blocks after the end of a file. They were written while data before them waited, so
    /// the file that a crash leaves is shorter; they would come back when it grows.
    fn cut_after_end(&mut self, ino: u32) -> Result<()> {
        let cut = |fs: &mut Self| {
            let attr = fs.attr(ino)?;
            if attr.kind() != S_IFREG {
                return Ok(());
            }
            for index in fs.blocks_from(ino, attr.size.div_ceil(BLOCK as u64))? {
                fs.set_pointer((ino, index), Pointer::HOLE)?;
            }
            Ok(())
        };
        match cut(self) {
            // It may have been removed since; fsck finds what is damaged.
            Ok(())
            | Err(FsError::NotFound | FsError::Damaged { .. } | FsError::Inconsistent(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A node of which the log after the checkpoint has a new state or an old one; `None` if it
    /// does not exist, or cannot be read.
    fn logged_node(&mut self, id: u32) -> Result<Option<Node>> {
        if self.table.get(id).addr == HOLE {
            return Ok(None);
        }
        match self.node(id) {
            Ok(node) => Ok(Some(node.clone())),
            Err(error @ (FsError::Damaged { .. } | FsError::Inconsistent(_))) => {
                self.accepted.insert(format!("node {id} changed after the checkpoint: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A node changed: its old pointers are dead. The pointers of a state that cannot be read were
    /// never counted, unless the checkpoint has them: then the counts stay too high, and a repair
    /// counts anew.
    fn replace_node(&mut self, id: u32, entry: NodeEntry) -> Result<()> {
        for &pointer in self.logged_node(id)?.as_ref().map_or(&[][..], Node::pointers) {
            self.account(pointer, Pointer::HOLE);
        }
        self.nodes.remove(id);
        let old = self.table.set(id, entry);
        self.usage.remove_meta(old.addr);
        self.usage.add_meta(entry.addr);
        Ok(())
    }

    /// The pointers of the new state of a node are live. Returns that state.
    fn take_node(&mut self, id: u32) -> Result<Option<Node>> {
        let node = self.logged_node(id)?;
        for &pointer in node.as_ref().map_or(&[][..], Node::pointers) {
            self.account(Pointer::HOLE, pointer);
            self.clock = self.clock.max(u64::from(pointer.time) << 4);
        }
        self.orphans.remove(&id);
        if let Some(Node::Inode(inode)) = &node {
            self.generation = self.generation.max(inode.attr.generation);
            if inode.attr.nlink == 0 {
                self.orphans.insert(id);
            }
        }
        Ok(node)
    }

    /// Frees segments that neither the checkpoint nor the transactions after it need.
    fn free_unused(&mut self, used: &[u32], before: &[u32], needed: &BTreeSet<u32>) -> Result<()> {
        for &segment in used {
            let at = segment as usize;
            let is_dead = before[at] == 0 && self.usage.segments[at].live() == 0;
            if is_dead && !needed.contains(&segment) {
                self.usage.segments[at] = Usage::default();
                self.log.free(segment)?;
            }
        }
        Ok(())
    }
}
