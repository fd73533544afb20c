//! Space: what is admitted, and cleaning, which copies the live blocks of victims.
//!
//! Cleaning makes live blocks dirty, and the next checkpoint writes them, by group as all others.
//! The old copies stay until that checkpoint is durable.

use prism_segments::Store;

use crate::config::Victim;
use crate::error::{FsError, Result};
use crate::format::{ENTRIES, Entry, Kind, block_of};
use crate::fs::{Access, Dirty, Fs, Key, Space, XATTR};
use crate::names::GROWTH;
use crate::node::{HOLE, Node, Pointer, XATTRS};

/// Dirty nodes and blocks of folders at which a transaction is written.
const DIRTY_META_MAX: usize = 4096;

/// Blocks that only renames to new names can use, which so work when other calls are refused, and
/// the part of a very small device that they are at most. Such a rename takes a block if the
/// bucket of the new name is full, and gives one back only if that of the old name becomes empty;
/// it is refused when it could need more than is left of them.
const FOR_RENAMES: u64 = 3 * GROWTH;
const FOR_RENAMES_PART: u64 = 16;

/// What lives in a segment.
#[derive(Default)]
struct Live {
    blocks: Vec<(Key, Pointer)>,
    nodes: Vec<u32>,
    /// Blocks of the node table.
    table: usize,
}

impl<S: Store> Fs<S> {
    /// Blocks that are used, also by what is not written yet.
    pub(crate) fn used_blocks(&self) -> u64 {
        self.usage.live() + self.new_blocks + self.table.new + self.reserved
    }

    /// Blocks that can be used: the rest is for cleaning, checkpoints and summaries.
    fn capacity(&self) -> u64 {
        let segments = self.usage.segments.len() as u64;
        let kept = 8 + segments / 64;
        (segments - kept) * u64::from(self.log.blocks_per_segment) * 15 / 16
    }

    /// Blocks that all calls but renames can use.
    pub(crate) fn capacity_of_files(&self) -> u64 {
        let capacity = self.capacity();
        capacity - FOR_RENAMES.min(capacity / FOR_RENAMES_PART)
    }

    /// Space for files and their metadata.
    #[must_use]
    pub fn space(&self) -> Space {
        let blocks = self.capacity_of_files();
        let used = self.used_blocks().saturating_sub(self.blocks_of_removals());
        let free = blocks.saturating_sub(used);
        let nodes = self.table.used() as u64;
        Space { blocks, free, nodes, nodes_free: free }
    }

    /// Blocks that a checkpoint would write at most, after `more` other blocks became dirty.
    fn pending(&self, more: u64) -> u64 {
        let blocks = (self.dirty.len() + self.dirty_meta.len()) as u64 + more;
        // Each block may need another node, but only blocks of holes one that does not exist yet;
        // each node may need another block of the table.
        let existing = self.table.used() as u64 + 2 * self.new_blocks;
        let nodes = self.dirty_nodes.len() as u64 + blocks.min(existing);
        let table = nodes.min(self.table.blocks.len() as u64) + self.table.dirty.len() as u64;
        let roots = u64::from(self.root_blocks());
        let all = blocks + nodes + table + roots + self.freed.len() as u64 / ENTRIES as u64;
        all + all / 64 + 16
    }

    fn free_blocks(&mut self) -> u64 {
        u64::from(self.log.free_segments()) * u64::from(self.log.blocks_per_segment)
            + u64::from(self.log.rest_of_head())
    }

    /// Prepares a call that may use `growth` blocks more: writes what has to be written before it,
    /// and cleans.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if they are not there; [`FsError::ReadOnly`]; those of the store.
    pub(crate) fn begin(&mut self, growth: u64) -> Result<()> {
        self.begin_within(self.capacity_of_files(), growth)
    }

    /// As [`Fs::begin`], for a rename to a new name, which works on a full device, too.
    pub(crate) fn begin_rename(&mut self, growth: u64) -> Result<()> {
        self.begin_within(self.capacity(), growth)
    }

    fn begin_within(&mut self, capacity: u64, growth: u64) -> Result<()> {
        if self.access == Access::ReadOnly || self.log.failure().is_some() {
            return Err(FsError::ReadOnly);
        }
        self.admit(capacity, growth)?;
        self.make_space(growth)?;
        if self.dirty.len() >= self.dirty_max() {
            self.write_groups()?;
        }
        if self.dirty_nodes.len() + self.dirty_meta.len() >= DIRTY_META_MAX {
            self.commit(&[])?;
        }
        if self.log.opened >= self.config.checkpoint_segments {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Refuses a call that would use more than `capacity`, also after pending removals.
    pub(crate) fn admit(&mut self, capacity: u64, growth: u64) -> Result<()> {
        if growth > 0 && self.used_blocks() + growth > capacity {
            self.finish_removals()?;
            if self.used_blocks() + growth > capacity {
                return Err(FsError::NoSpace);
            }
        }
        Ok(())
    }

    /// Cleans until there is space for what is dirty, `growth` blocks more, and cleaning itself.
    pub(crate) fn make_space(&mut self, growth: u64) -> Result<()> {
        let segment = u64::from(self.log.blocks_per_segment);
        let segments = self.usage.segments.len() as u64;
        // A victim, its nodes and its blocks of the table, and the rest of a segment. On large
        // devices more, so that cleaning begins with space for many victims.
        let kept = (segments / 128).max(4) * segment + 2 * growth;
        if self.free_blocks() >= self.pending(growth) + kept {
            return Ok(());
        }
        // What is removed need not be copied.
        self.finish_removals()?;
        if growth > 0 && self.cleaned_in_vain(growth) {
            return Err(FsError::NoSpace);
        }
        // Each checkpoint writes all dirty nodes, which are many if overwrites are anywhere: it has
        // to free many segments.
        let wanted = kept + (segments / 64).max(self.config.victims.into()) * segment;
        let mut gains = true;
        // Rounds may also move free space around for ever: the best of them has to get better.
        let (mut best, mut since_best) = (0, 0);
        while self.free_blocks() < self.pending(growth) + wanted {
            let before = self.free_blocks();
            let policy = if gains { self.config.victim } else { Victim::Greedy };
            let any = self.clean_round(policy, growth, wanted)?;
            let free = self.free_blocks();
            gains = free > before;
            since_best = if free > best { 0 } else { since_best + 1 };
            best = best.max(free);
            if !any || since_best > 8 {
                break;
            }
        }
        if growth > 0 && self.free_blocks() < self.pending(growth) + kept {
            self.in_vain = Some((self.used_blocks() + growth, self.log.counts.total()));
            return Err(FsError::NoSpace);
        }
        Ok(())
    }

    /// Whether cleaning found too little for so much a short time ago, and no space was given back
    /// since: a program that tries again and again would wear out the flash.
    fn cleaned_in_vain(&self, growth: u64) -> bool {
        self.in_vain.is_some_and(|(wanted, written)| {
            self.used_blocks() + growth >= wanted
                && self.log.counts.total() - written < u64::from(self.log.blocks_per_segment)
        })
    }

    /// Segments that can be cleaned, those first that are worth it most.
    fn victims(&self, policy: Victim) -> Vec<u32> {
        let (now, floor) = (self.ticks(), self.age_floor().max(1));
        let blocks = f64::from(self.log.blocks_per_segment);
        let score = |segment: u32| {
            let usage = &self.usage.segments[segment as usize];
            let used = f64::from(usage.live()) / blocks;
            match policy {
                Victim::Greedy => 1.0 - used,
                Victim::CostBenefit => {
                    let age = now.saturating_sub(usage.youngest).max(floor);
                    (1.0 - used) * f64::from(age) / (1.0 + used)
                }
                Victim::CostHotness => {
                    // Segments of nodes alone are as hot as any.
                    let hotness = usage.hotness(now, floor).unwrap_or(1.0).max(1e-12);
                    (1.0 - used) / (2.0 * used.max(1e-9) * hotness)
                }
            }
        };
        let can = |segment: &u32| {
            self.log.in_use[*segment as usize]
                && !self.log.is_head(*segment)
                && self.root_segment != Some(*segment)
                && !self.stuck.contains(segment)
                && f64::from(self.usage.segments[*segment as usize].live()) < blocks * 0.97
        };
        let all = (0..self.usage.segments.len() as u32).filter(can);
        let mut scored: Vec<(f64, u32)> = all.map(|segment| (score(segment), segment)).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.into_iter().map(|(_, segment)| segment).collect()
    }

    /// Segments without live blocks, which the next checkpoint frees.
    fn dead_segments(&self) -> u64 {
        let is_dead = |segment: &u32| {
            self.log.in_use[*segment as usize]
                && self.usage.segments[*segment as usize].live() == 0
                && !self.log.is_head(*segment)
        };
        (0..self.usage.segments.len() as u32).filter(is_dead).count() as u64
    }

    /// Cleans segments until `wanted` blocks would be free, or as many as what is free allows, and
    /// makes a checkpoint. False if there was nothing to free.
    fn clean_round(&mut self, policy: Victim, growth: u64, wanted: u64) -> Result<bool> {
        let segment = u64::from(self.log.blocks_per_segment);
        let mut freed = self.dead_segments();
        for victim in self.victims(policy) {
            if self.free_blocks() + freed * segment >= self.pending(growth) + wanted {
                break;
            }
            let live = u64::from(self.usage.segments[victim as usize].live());
            if self.free_blocks() < self.pending(live) + 16 {
                // Another one may fit, which is needed only if none did.
                if freed > 0 { break } else { continue }
            }
            self.load_live(victim)?;
            freed += 1;
            if self.dirty.len() >= self.dirty_max() {
                self.write_groups()?;
            }
        }
        if freed > 0 {
            self.checkpoint()?;
        }
        Ok(freed > 0)
    }

    /// Makes the live blocks of a segment dirty.
    fn load_live(&mut self, segment: u32) -> Result<()> {
        let mut at = segment * self.log.blocks_per_segment;
        let mut seq = 0;
        let mut live = Live::default();
        while let Some((summary, _)) = self.log.read_summary(at)? {
            if summary.fs_id != self.log.fs_id || summary.seq <= seq {
                break;
            }
            seq = summary.seq;
            let mut addr = at;
            for entry in &summary.entries {
                addr += u32::from(entry.kind.has_payload());
                self.find_live(entry, addr, &mut live);
            }
            match self.log.next_chunk(at, summary.payload()) {
                Some(next) => at = next,
                None => break,
            }
        }
        let usage = self.usage.segments[segment as usize];
        let found = live.blocks.len() + live.nodes.len() + live.table;
        let mut complete = found >= usage.live() as usize;
        for id in live.nodes {
            complete &= match self.node_mut(id) {
                Ok(_) => true,
                Err(FsError::Damaged { .. } | FsError::Inconsistent(_)) => false,
                Err(error) => return Err(error),
            };
        }
        for batch in live.blocks.chunks(1024) {
            complete &= self.load_blocks(batch)?;
        }
        if !complete {
            self.stuck.insert(segment);
        }
        Ok(())
    }

    /// Adds what an entry describes to `live` if it is still there.
    fn find_live(&mut self, entry: &Entry, addr: u32, live: &mut Live) {
        let Entry { kind, id, block, .. } = *entry;
        match kind {
            Kind::Xattr if block as usize >= XATTRS => {}
            Kind::Data | Kind::Xattr => {
                let first = if kind == Kind::Xattr { XATTR } else { 0 };
                let key = (id, first + u64::from(block));
                let is_inode =
                    self.table.get(id).addr != HOLE && matches!(self.node(id), Ok(Node::Inode(_)));
                if let (true, Ok(pointer)) = (is_inode, self.pointer(key))
                    && pointer.addr == addr
                {
                    live.blocks.push((key, pointer));
                }
            }
            Kind::Node if self.table.get(id).addr == addr => live.nodes.push(id),
            Kind::Table => {
                if self.table.blocks.get(id as usize).is_some_and(|block| block.0 == addr) {
                    self.table.dirty.insert(id);
                    live.table += 1;
                }
            }
            Kind::Node | Kind::Free | Kind::Root => {}
        }
    }

    /// Makes blocks dirty that are where these pointers say; false if one cannot be read.
    fn load_blocks(&mut self, batch: &[(Key, Pointer)]) -> Result<bool> {
        let missing: Vec<(Key, Pointer)> =
            batch.iter().copied().filter(|(key, _)| self.dirty_block(*key).is_none()).collect();
        let wanted: Vec<_> = missing.iter().map(|(_, at)| (at.addr, at.sum)).collect();
        let mut all = Vec::with_capacity(wanted.len());
        self.log.visit(&wanted, "data", |_, read| all.push(read.ok().map(block_of)))?;
        let mut complete = true;
        for ((key, pointer), block) in missing.into_iter().zip(all) {
            let Some(data) = block else {
                complete = false;
                continue;
            };
            let (writes, time) = (pointer.writes, pointer.time);
            let dirty = Dirty { data, writes, time, is_new: false, cleaned: true };
            let is_meta = key.1 >= XATTR || self.attr(key.0)?.has_metadata_blocks();
            let map = if is_meta { &mut self.dirty_meta } else { &mut self.dirty };
            map.insert(key, dirty);
        }
        Ok(complete)
    }
}
