//! The state of a mounted file system, and access to its nodes.

use std::collections::{BTreeMap, BTreeSet};

use prism_base::{FastMap, Nanos};
use prism_segments::Store;

use crate::config::Config;
use crate::error::{FsError, Result};
use crate::format::{BLOCK, Block};
use crate::log::{Counts, Log};
use crate::node::{Attr, HOLE, Inode, Node, RESERVED, Time};
use crate::recent::Recent;
use crate::table::{NodeEntry, NodeTable, PER_BLOCK};
use crate::usage::UsageTable;

/// The inode of the uppermost folder.
pub const ROOT: u32 = 1;
/// The first number of blocks of extended attributes; blocks of files are below.
pub(crate) const XATTR: u64 = 1 << 32;

/// A block of a file: the inode, and the number of the block.
pub(crate) type Key = (u32, u64);

/// A block that differs from flash, or has to move.
#[derive(Debug)]
pub(crate) struct Dirty {
    pub data: Block,
    pub writes: u32,
    pub time: u32,
    /// Whether it takes a block that nothing took before.
    pub is_new: bool,
    /// Whether only cleaning moves it.
    pub cleaned: bool,
}

/// Whether a mount may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes.
    ReadWrite,
    /// Reads only; nothing on the device changes.
    ReadOnly,
}

/// Space, in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Blocks that can be used by files and their metadata.
    pub blocks: u64,
    /// Blocks of these that are free.
    pub free: u64,
    /// Nodes that exist.
    pub nodes: u64,
    /// Nodes that can be made.
    pub nodes_free: u64,
}

/// A file system that is mounted.
pub struct Fs<S> {
    pub(crate) log: Log<S>,
    pub(crate) usage: UsageTable,
    pub(crate) table: NodeTable,
    pub(crate) nodes: Recent<u32, Node>,
    pub(crate) dirty_nodes: FastMap<u32, Node>,
    /// Nodes that were freed since the last transaction.
    pub(crate) freed: BTreeSet<u32>,
    pub(crate) blocks: Recent<Key, Block>,
    /// Unused memory: new memory costs more than a copy into it.
    pub(crate) spare: Vec<Block>,
    /// Changed blocks of files.
    pub(crate) dirty: BTreeMap<Key, Dirty>,
    /// Changed blocks of folders, links and attributes, which belong to each transaction.
    pub(crate) dirty_meta: BTreeMap<Key, Dirty>,
    /// Dirty blocks that take new blocks, in all and by file.
    pub(crate) new_blocks: u64,
    pub(crate) new_of_file: FastMap<u32, u64>,
    /// Blocks reserved by fallocate.
    pub(crate) reserved: u64,
    pub(crate) groups: Vec<f64>,
    /// Blocks written by callers.
    pub(crate) clock: u64,
    pub(crate) generation: u64,
    pub(crate) hash_seed: u64,
    /// Files without links: they are open, or not yet removed whole.
    pub(crate) orphans: BTreeSet<u32>,
    pub(crate) references: FastMap<u32, u64>,
    /// Files without names of which only parts were removed so far, and the blocks that they still
    /// have; they are among the orphans.
    pub(crate) removals: BTreeMap<u32, u64>,
    /// Files whose data go with the next transaction.
    pub(crate) with_next: BTreeSet<u32>,
    /// The segment of the last checkpoint.
    pub(crate) root_segment: Option<u32>,
    /// Segments that cleaning cannot empty, because blocks in it are damaged.
    pub(crate) stuck: BTreeSet<u32>,
    /// Blocks that were to be used, and written in all, when cleaning found too little space.
    pub(crate) in_vain: Option<(u64, u64)>,
    /// Sizes of files whose data at the end were not written yet, so that their inodes on flash
    /// have smaller ones.
    pub(crate) sizes: FastMap<u32, u64>,
    /// Why data that were acknowledged could not be written; the next fsync reports it.
    pub(crate) lost: Option<FsError>,
    /// What was wrong with the log when it was mounted.
    pub(crate) accepted: BTreeSet<String>,
    /// Whether the mount before this one ended by an unmount.
    pub(crate) was_unmounted: bool,
    /// Whether changes that were durable may be lost, because a part of the log is damaged.
    pub(crate) lost_changes: bool,
    /// The chunk that will follow the checkpoint of an unmount, if that is the newest.
    pub(crate) unmounted_at: Option<u64>,
    pub(crate) checkpoint_at: Time,
    pub(crate) made: i64,
    pub(crate) config: Config,
    pub(crate) access: Access,
    pub(crate) now: Time,
}

/// The node in a block whose checksum is right, with the size that its file has by now.
fn decode(bytes: &[u8], id: u32, sizes: &FastMap<u32, u64>) -> Result<Node> {
    let mut node = Node::decode(bytes.try_into().expect("the length of a block"), id)?;
    if let (Node::Inode(inode), Some(&size)) = (&mut node, sizes.get(&id)) {
        inode.attr.size = size;
    }
    Ok(node)
}

impl<S: Store> Fs<S> {
    /// An empty state over a log, whose numbers are not yet set.
    pub(crate) fn empty(log: Log<S>, config: Config, now: Time) -> Result<Self> {
        let shape = log.blocks_per_segment;
        let segments = log.in_use.len();
        if segments < Self::SEGMENTS_MIN as usize {
            let what = format!(
                "a file system needs {} segments, the device has {segments}; make it larger",
                Self::SEGMENTS_MIN
            );
            return Err(FsError::Shape(what));
        }
        if segments as u64 * u64::from(shape) >= u64::from(u32::MAX - 1) {
            return Err(FsError::Shape("a file system has at most 16 TiB".into()));
        }
        let cached = (config.cache_bytes / BLOCK as u64) as usize;
        let max = Self::nodes_max(segments, shape);
        if max < PER_BLOCK {
            let what = format!("segments of {shape} blocks are too small for {segments} of them");
            return Err(FsError::Shape(what));
        }
        Ok(Self {
            usage: UsageTable::new(vec![Default::default(); segments], shape),
            table: NodeTable::new(max, Vec::new(), &[]),
            nodes: Recent::new(cached),
            dirty_nodes: FastMap::default(),
            freed: BTreeSet::new(),
            blocks: Recent::new(cached),
            spare: Vec::new(),
            dirty: BTreeMap::new(),
            dirty_meta: BTreeMap::new(),
            new_blocks: 0,
            new_of_file: FastMap::default(),
            reserved: 0,
            groups: Vec::new(),
            clock: 0,
            generation: 1,
            hash_seed: 0,
            orphans: BTreeSet::new(),
            references: FastMap::default(),
            removals: BTreeMap::new(),
            with_next: BTreeSet::new(),
            root_segment: None,
            stuck: BTreeSet::new(),
            in_vain: None,
            sizes: FastMap::default(),
            lost: None,
            accepted: BTreeSet::new(),
            lost_changes: false,
            was_unmounted: false,
            unmounted_at: None,
            checkpoint_at: now,
            made: now.secs,
            log,
            config,
            access: Access::ReadWrite,
            now,
        })
    }

    /// The fewest segments.
    pub const SEGMENTS_MIN: u32 = 20;

    /// Nodes whose table a checkpoint can list, which has to fit a segment.
    pub(crate) fn nodes_max(segments: usize, blocks_per_segment: u32) -> usize {
        let blocks = u64::from(blocks_per_segment);
        let usable = blocks.saturating_sub(8 + blocks / 64);
        let fixed = 4096 + segments as u64 * 28;
        let bytes = (usable * BLOCK as u64).saturating_sub(fixed);
        let most = (segments as u64 * blocks).next_multiple_of(PER_BLOCK as u64);
        (bytes / 8 * PER_BLOCK as u64).min(most) as usize
    }

    /// The time of the calls that follow.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Lets time pass on a device with timing, which goes on with writes and erases.
    pub fn pass(&mut self, time: Nanos) {
        self.log.pass(time);
    }

    /// The time of writes, in units of the pointers.
    pub(crate) fn ticks(&self) -> u32 {
        (self.clock >> 4) as u32
    }

    /// The least age, in the same units.
    pub(crate) fn age_floor(&self) -> u32 {
        let blocks = self.usage.segments.len() as u64 * u64::from(self.log.blocks_per_segment);
        (blocks * u64::from(self.config.age_floor) / 100 / 16) as u32
    }

    /// What was written, by cause.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.log.counts
    }

    /// Why a write failed, if one did: the file system is read-only since then.
    #[must_use]
    pub fn failure(&self) -> Option<&FsError> {
        self.log.failure()
    }

    /// The number of the file system.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.log.fs_id
    }

    /// When it was made, in seconds since 1970.
    #[must_use]
    pub fn made(&self) -> i64 {
        self.made
    }

    /// Whether the newest chunk that was found is the checkpoint of an unmount. Otherwise the mount
    /// before this one ended with its process or a loss of power, or the end of the log is damaged:
    /// the file system has what was durable.
    #[must_use]
    pub fn was_unmounted(&self) -> bool {
        self.was_unmounted
    }

    /// Whether a mount with [`Damage::Accept`](crate::Damage) found a damaged part of the log after
    /// the last checkpoint: files that changed in that part may have an older state.
    #[must_use]
    pub fn lost_changes(&self) -> bool {
        self.lost_changes
    }

    /// Live blocks of each segment.
    #[must_use]
    pub fn segment_use(&self) -> Vec<u32> {
        self.usage.segments.iter().map(crate::usage::Usage::live).collect()
    }

    /// Blocks of a segment.
    #[must_use]
    pub fn blocks_per_segment(&self) -> u32 {
        self.log.blocks_per_segment
    }

    /// Bytes of memory: of the node table, and of caches at most.
    #[must_use]
    pub fn memory(&self) -> (u64, u64) {
        (u64::from(self.table.len()) * 8, 2 * self.config.cache_bytes)
    }

    /// The store, at the end. What was not synced is lost unless [`Fs::unmount`] was called.
    pub fn into_store(self) -> S {
        self.log.into_store()
    }

    /// The store.
    pub fn store(&mut self) -> &mut S {
        self.log.store()
    }

    /// Reads nodes together, so that [`Fs::node`] finds those in memory that can be read.
    pub(crate) fn prefetch_nodes(&mut self, ids: impl Iterator<Item = u32>) -> Result<()> {
        let mut wanted: Vec<(NodeEntry, u32)> = Vec::new();
        for id in ids {
            let entry = self.table.get(id);
            let is_written = !matches!(entry.addr, HOLE | RESERVED);
            if is_written && !self.dirty_nodes.contains_key(&id) && self.nodes.get(id).is_none() {
                wanted.push((entry, id));
            }
        }
        wanted.sort_unstable_by_key(|(entry, _)| entry.addr);
        let places: Vec<(u32, u32)> =
            wanted.iter().map(|(entry, _)| (entry.addr, entry.sum)).collect();
        let Self { log, nodes, sizes, .. } = self;
        log.visit(&places, "node", |at, read| {
            let (_, id) = wanted[at];
            if let Ok(node) = read.and_then(|bytes| decode(bytes, id, sizes)) {
                nodes.insert(id, node);
            }
        })
    }

    fn load(&mut self, id: u32) -> Result<Node> {
        let NodeEntry { addr, sum } = self.table.get(id);
        if addr == HOLE {
            return Err(FsError::NotFound);
        }
        let block = self.log.read(&[(addr, sum)], "node")?.pop().expect("one block");
        decode(&block[..], id, &self.sizes)
    }

    /// A node.
    pub(crate) fn node(&mut self, id: u32) -> Result<&Node> {
        if self.dirty_nodes.contains_key(&id) {
            return Ok(&self.dirty_nodes[&id]);
        }
        if self.nodes.get(id).is_none() {
            let node = self.load(id)?;
            self.nodes.insert(id, node);
        }
        Ok(self.nodes.get(id).expect("just added"))
    }

    /// A node that the next transaction writes.
    pub(crate) fn node_mut(&mut self, id: u32) -> Result<&mut Node> {
        if !self.dirty_nodes.contains_key(&id) {
            let node = match self.nodes.remove(id) {
                Some(node) => node,
                None => self.load(id)?,
            };
            self.dirty_nodes.insert(id, node);
        }
        Ok(self.dirty_nodes.get_mut(&id).expect("just added"))
    }

    /// Adds a node, and returns its number.
    pub(crate) fn add_node(&mut self, node: Node) -> Result<u32> {
        let id = self.table.allocate()?;
        self.freed.remove(&id);
        self.dirty_nodes.insert(id, node);
        Ok(id)
    }

    /// Frees a node whose pointers were removed.
    pub(crate) fn free_node(&mut self, id: u32) {
        let old = self.table.set(id, NodeEntry::default());
        self.usage.remove_meta(old.addr);
        self.dirty_nodes.remove(&id);
        self.nodes.remove(id);
        self.sizes.remove(&id);
        self.freed.insert(id);
    }

    pub(crate) fn inode(&mut self, ino: u32) -> Result<&Inode> {
        match self.node(ino)? {
            Node::Inode(inode) => Ok(inode),
            _ => Err(FsError::NotFound),
        }
    }

    pub(crate) fn inode_mut(&mut self, ino: u32) -> Result<&mut Inode> {
        self.inode(ino)?;
        match self.node_mut(ino)? {
            Node::Inode(inode) => Ok(inode),
            _ => Err(FsError::NotFound),
        }
    }

    /// Attributes as they are stored.
    pub(crate) fn attr(&mut self, ino: u32) -> Result<Attr> {
        Ok(self.inode(ino)?.attr)
    }

    pub(crate) fn attr_mut(&mut self, ino: u32) -> Result<&mut Attr> {
        Ok(&mut self.inode_mut(ino)?.attr)
    }
}
