//! Recovery without a checkpoint: the node table is built from what all chunks say. A repair does
//! that if the last checkpoint is damaged; no mount does.
//!
//! Nodes in use are on flash, and so are the entries of their chunks: the newest entry of a node is
//! that of its present state. Older states and nodes that were freed may be there, too. The blocks
//! of the node table show most of them; of the others, those to which no folder leads were freed.

use std::collections::{BTreeMap, BTreeSet};

use prism_segments::Store;

use crate::check::Bits;
use crate::error::Result;
use crate::folder::decode;
use crate::format::{CHECKPOINT, COMMIT, Entry, Kind, RESUMED, zeros};
use crate::fs::{Fs, ROOT};
use crate::log::Counts;
use crate::node::{HOLE, Node, Pointer};
use crate::recover::{Recovered, hash_seed};
use crate::repair::readable;
use crate::scan::{Chunk, DeviceScan};
use crate::table::{NodeEntry, NodeTable, PER_BLOCK};
use crate::usage::{Usage, UsageTable};

/// What a chunk says about nodes.
struct ChunkNodes {
    seq: u64,
    sum: u32,
    prev: u32,
    addr: u32,
    /// Whether it ends a transaction or a checkpoint.
    is_end: bool,
    /// Whether it is the first of a mount after a crash.
    is_resumed: bool,
    nodes: Vec<(Entry, u32)>,
}

/// Blocks of the node table: by index the chunk, the address and the checksum.
type TableBlocks = BTreeMap<u32, (u64, u32, u32)>;

impl<S: Store> Fs<S> {
    /// The newest state of each node.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn recover_from_summaries(&mut self, found: &mut DeviceScan) -> Result<Recovered> {
        let segments = self.usage.segments.len();
        self.usage = UsageTable::new(vec![Usage::default(); segments], self.log.blocks_per_segment);
        self.nodes.retain(|_| false);
        self.blocks.retain(|_| false);
        self.orphans.clear();
        self.root_segment = None;
        self.log.counts = Counts::default();
        let (mut chunks, table) = self.all_chunks(found)?;
        let left_out = self.leave_out(&mut chunks, found.durable)?;
        let mut needed = BTreeSet::new();
        let doubtful = self.rebuild_table(&chunks, &table, &mut needed)?;
        drop(chunks);
        self.hash_seed = hash_seed(self.log.fs_id);
        self.forget_freed(&doubtful)?;
        self.accepted.insert("the newest state that is left of each file was taken".into());
        let changed = self.rebuild_counts()?;
        Ok(Recovered {
            end: found.durable,
            sum: 0,
            changed,
            live_before: self.usage.segments.iter().map(Usage::live).collect(),
            needed,
            left_out,
            is_newest: false,
            is_unmounted: false,
            is_damaged: false,
        })
    }

    /// What all chunks on the device say about nodes, in their order, and the newest blocks of the
    /// node table.
    fn all_chunks(&mut self, found: &mut DeviceScan) -> Result<(Vec<ChunkNodes>, TableBlocks)> {
        let mut chunks = Vec::new();
        let mut table = TableBlocks::new();
        for (_, segment) in found.first.clone() {
            let (walked, after_gap) = self.walk(segment)?;
            for chunk in walked.into_iter().chain(after_gap) {
                found.note(&chunk.summary);
                let seq = chunk.summary.seq;
                for (entry, addr) in chunk.entries().filter(|(e, _)| e.kind == Kind::Table) {
                    let newest = table.entry(entry.id).or_default();
                    *newest = (*newest).max((seq, addr, entry.sum));
                }
                chunks.push(ChunkNodes {
                    seq,
                    sum: chunk.sum,
                    prev: chunk.summary.prev,
                    addr: chunk.addr,
                    is_end: chunk.summary.flags & (COMMIT | CHECKPOINT) != 0,
                    is_resumed: chunk.summary.flags & RESUMED != 0,
                    nodes: chunk.nodes().collect(),
                });
            }
        }
        chunks.sort_unstable_by_key(|chunk| chunk.seq);
        Ok((chunks, table))
    }

    /// Removes chunks after those that were durable, unless they belong to transactions that are
    /// whole. Returns the nodes of those removed.
    fn leave_out(&mut self, chunks: &mut Vec<ChunkNodes>, durable: u64) -> Result<BTreeSet<u32>> {
        let first = chunks.partition_point(|chunk| chunk.seq <= durable);
        let last = chunks[..first].last().filter(|chunk| chunk.seq == durable);
        // The number and, if the chunk before is there, the checksum that the next one has.
        let mut next = Some((durable + 1, last.map(|chunk| chunk.sum)));
        let mut open: Vec<ChunkNodes> = Vec::new();
        let mut left_out: Vec<ChunkNodes> = Vec::new();
        for chunk in chunks.split_off(first) {
            if chunk.is_resumed {
                left_out.append(&mut open);
                next = Some((chunk.seq, None));
            }
            let follows = next.is_some_and(|(seq, sum)| {
                chunk.seq == seq && sum.is_none_or(|sum| sum == chunk.prev)
            });
            if !follows || !self.is_whole_at(chunk.addr)? {
                next = None;
                left_out.append(&mut open);
                left_out.push(chunk);
                continue;
            }
            next = Some((chunk.seq + 1, Some(chunk.sum)));
            let is_end = chunk.is_end;
            open.push(chunk);
            if is_end {
                chunks.append(&mut open);
            }
        }
        left_out.append(&mut open);
        Ok(left_out.iter().flat_map(|chunk| &chunk.nodes).map(|(entry, _)| entry.id).collect())
    }

    fn is_whole_at(&mut self, addr: u32) -> Result<bool> {
        match self.log.read_summary(addr)? {
            Some((summary, sum)) => self.is_whole(&Chunk { addr, summary, sum }),
            None => Ok(false),
        }
    }

    /// Makes the node table. Returns the nodes in blocks of it that were not found or are damaged,
    /// with the numbers of their chunks: some may have been freed long ago. Notes the segments of
    /// the entries that it takes.
    fn rebuild_table(
        &mut self,
        chunks: &[ChunkNodes],
        table: &TableBlocks,
        needed: &mut BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, u64>> {
        let max = Self::nodes_max(self.usage.segments.len(), self.log.blocks_per_segment);
        let known = table.range(..max.div_ceil(PER_BLOCK) as u32);
        let len = known.clone().last().map_or(1, |(index, _)| *index as usize + 1);
        let mut places = vec![(HOLE, 0); len];
        let mut blocks: Vec<_> = (0..len).map(|_| zeros()).collect();
        let mut seqs = vec![0; len];
        for (&index, &(seq, addr, sum)) in known {
            let read = readable(self.log.read(&[(addr, sum)], "node table"))?;
            if let Some(block) = read.and_then(|mut blocks| blocks.pop()) {
                let at = index as usize;
                (places[at], blocks[at], seqs[at]) = ((addr, sum), block, seq);
            }
        }
        self.table = NodeTable::new(max, places, &blocks);
        let mut doubtful = BTreeMap::new();
        for chunk in chunks {
            for (entry, addr) in &chunk.nodes {
                let seq = seqs.get(entry.id as usize / PER_BLOCK).copied().unwrap_or(0);
                if chunk.seq <= seq || !(1..max).contains(&(entry.id as usize)) {
                    continue;
                }
                needed.insert(chunk.addr / self.log.blocks_per_segment);
                let is_free = entry.kind == Kind::Free;
                let node = NodeEntry { addr: *addr, sum: entry.sum };
                self.table.set(entry.id, if is_free { NodeEntry::default() } else { node });
                if seq == 0 {
                    doubtful.insert(entry.id, chunk.seq);
                }
            }
        }
        self.table.dirty.extend(0..self.table.len() / PER_BLOCK as u32);
        Ok(doubtful)
    }

    /// Removes those of these nodes to which no folder leads. If a folder cannot be read, they may
    /// be in it: then only those are removed that have blocks of others or of newer ones.
    fn forget_freed(&mut self, doubtful: &BTreeMap<u32, u64>) -> Result<()> {
        if doubtful.is_empty() {
            return Ok(());
        }
        let (reached, all_were_read) = self.reached_nodes()?;
        let is_doubtful = |id: u32| !reached.has(id) && doubtful.contains_key(&id);
        let nodes = (1..self.table.len()).filter(|id| self.table.get(*id).addr != HOLE);
        let (mut nameless, others): (Vec<u32>, Vec<u32>) = nodes.partition(|id| is_doubtful(*id));
        nameless.sort_by_key(|id| std::cmp::Reverse(doubtful[id]));
        let mut claimed = Bits::new(self.blocks());
        if !all_were_read {
            for id in others {
                self.addrs_of(id)?.into_iter().for_each(|addr| claimed.add(addr));
            }
        }
        for id in nameless {
            let addrs = if all_were_read { Vec::new() } else { self.addrs_of(id)? };
            if all_were_read || addrs.iter().any(|addr| claimed.has(*addr)) {
                self.table.set(id, NodeEntry::default());
            }
            addrs.into_iter().for_each(|addr| claimed.add(addr));
        }
        Ok(())
    }

    /// Blocks of the device.
    fn blocks(&self) -> u64 {
        self.usage.segments.len() as u64 * u64::from(self.log.blocks_per_segment)
    }

    /// Where the pointers of a node lead.
    fn addrs_of(&mut self, id: u32) -> Result<Vec<u32>> {
        let pointers = readable(self.node(id).map(|node| node.pointers().to_vec()))?;
        let blocks = pointers.into_iter().flatten().filter(Pointer::is_block);
        Ok(blocks.map(|pointer| pointer.addr).filter(|addr| self.log.is_used(*addr)).collect())
    }

    /// The nodes of all files to which folders lead, and whether all folders could be read.
    fn reached_nodes(&mut self) -> Result<(Bits, bool)> {
        let len = self.table.len();
        let mut reached = Bits::new(len.into());
        let mut all_were_read = true;
        reached.insert(ROOT);
        let mut open = vec![ROOT];
        while let Some(id) = open.pop() {
            let mut next = Vec::new();
            match readable(self.node(id).cloned())? {
                Some(Node::Inode(inode)) => {
                    next.push(inode.attr.root);
                    if inode.attr.is_dir() {
                        let (files, were_read) = self.files_in(id)?;
                        next.extend(files);
                        all_were_read &= were_read;
                    }
                }
                Some(Node::Inner { children, .. }) => next.extend(children.iter()),
                Some(Node::Leaf { .. }) => {}
                // It may be a folder or a part of one.
                None => all_were_read = false,
            }
            open.extend(next.into_iter().filter(|&id| 0 < id && id < len && reached.insert(id)));
        }
        Ok((reached, all_were_read))
    }

    /// The files in a folder, and whether the whole folder could be read.
    fn files_in(&mut self, dir: u32) -> Result<(Vec<u32>, bool)> {
        let Some(buckets) = readable(self.buckets(dir))? else { return Ok((Vec::new(), false)) };
        let (mut files, mut were_read) = (Vec::new(), true);
        for index in buckets {
            let block = readable(self.block((dir, index)))?.flatten();
            match block.and_then(|block| decode(&block).ok()) {
                Some(entries) => files.extend(entries.into_iter().map(|entry| entry.ino)),
                None => were_read = false,
            }
        }
        Ok((files, were_read))
    }

    /// Computes what a checkpoint has besides the node table. Returns the files.
    fn rebuild_counts(&mut self) -> Result<BTreeSet<u32>> {
        let mut files = BTreeSet::new();
        (self.clock, self.generation) = (0, 0);
        self.groups.clear();
        for id in 1..self.table.len() {
            let exists = self.table.get(id).addr != HOLE;
            let node = if exists { readable(self.node(id))? } else { None };
            let Some(node) = node else { continue };
            let times = node.pointers().iter().map(|pointer| u64::from(pointer.time) << 4);
            let newest = times.max().unwrap_or(0);
            let attr = if let Node::Inode(inode) = node { Some(inode.attr) } else { None };
            self.clock = self.clock.max(newest);
            if let Some(attr) = attr {
                files.insert(id);
                self.generation = self.generation.max(attr.generation);
                if attr.nlink == 0 {
                    self.orphans.insert(id);
                }
            }
        }
        self.generation += 1;
        if let Some(root) = readable(self.attr(ROOT))? {
            self.made = root.btime.secs;
        }
        self.recount()?;
        Ok(files)
    }
}
