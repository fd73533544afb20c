//! The check of a file system: every structure is read and compared with all others.
//!
//! Nodes are read in the order of their numbers and blocks of files in that of their addresses,
//! many at a time. Besides the caches, the check keeps in memory 24 bytes for each node, a bit for
//! each block of the device, the pointers of folders, and a limited number of other pointers.

mod folders;

use std::collections::BTreeMap;

use prism_segments::Store;

use crate::error::{FsError, Result};
use crate::fs::{Fs, ROOT, XATTR};
use crate::map::reach;
use crate::node::{Attr, DIRECT, HOLE, Inode, Node, Pointer, RESERVED, SPLIT, XATTRS};
use crate::usage::{Usage, UsageTable};

/// Nodes and blocks that are read at the same time.
const BATCH: u32 = 1024;
/// Blocks of files that are remembered before they are read: 48 MiB, for 16 GiB of them.
const WAITING: usize = 4 << 20;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, with the numbers of nodes and blocks.
    pub what: String,
    /// Whether no repair can help: a block of a file is damaged.
    pub is_unrepairable: bool,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is wrong, in the order in which it was found.
    pub problems: Vec<Problem>,
    /// Files, folders included.
    pub files: u64,
    /// Blocks of files that were read.
    pub blocks: u64,
}

/// An inode as it was found.
#[derive(Clone, Copy)]
struct InodeFacts {
    mode: u32,
    is_dir: bool,
    nlink: u32,
    parent: u32,
    /// Names that lead to it.
    names: u32,
    /// Folders in it.
    folders: u32,
    /// Whether it is a folder that was found below the uppermost one.
    seen: bool,
}

/// A block of a file that is to be read.
#[derive(Clone, Copy)]
struct QueuedBlock {
    addr: u32,
    sum: u32,
    ino: u32,
}

/// A set of numbers up to a largest one.
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub fn new(count: u64) -> Self {
        Self(vec![0; count.div_ceil(64) as usize])
    }

    pub fn has(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    pub fn add(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    /// Adds a number; false if it is in the set.
    pub fn insert(&mut self, number: u32) -> bool {
        let is_new = !self.has(number);
        self.add(number);
        is_new
    }
}

struct Check<'a, S> {
    fs: &'a mut Fs<S>,
    report: Report,
    /// By number.
    files: Vec<Option<InodeFacts>>,
    /// The pointers of folders.
    folders: BTreeMap<u32, Vec<(u64, Pointer)>>,
    waiting: Vec<QueuedBlock>,
    usage: UsageTable,
    reserved: u64,
    addrs: Bits,
    reached: Bits,
}

impl<S: Store> Fs<S> {
    /// Reads everything and compares. Nothing may be dirty: callers check right after a mount or a
    /// checkpoint.
    ///
    /// # Errors
    /// Only if the device as a whole fails; what is damaged is in the report.
    pub fn check(&mut self) -> Result<Report> {
        let segments = self.usage.segments.len();
        let per_segment = self.log.blocks_per_segment;
        let nodes = self.table.len();
        let mut check = Check {
            report: Report::default(),
            files: vec![None; nodes as usize],
            folders: BTreeMap::new(),
            waiting: Vec::new(),
            usage: UsageTable::new(vec![Usage::default(); segments], per_segment),
            reserved: 0,
            addrs: Bits::new(segments as u64 * u64::from(per_segment)),
            reached: Bits::new(nodes.into()),
            fs: self,
        };
        check.nodes()?;
        check.read_waiting()?;
        check.tree_of_folders()?;
        check.links();
        check.space();
        Ok(check.report)
    }
}

impl<S: Store> Check<'_, S> {
    fn problem(&mut self, what: String) {
        self.report.problems.push(Problem { what, is_unrepairable: false });
    }

    /// The result of a read; damage is noted.
    fn noted<T>(&mut self, who: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error @ FsError::Store(_)) => Err(error),
            Err(error) => {
                self.problem(format!("{who}: {error}"));
                Ok(None)
            }
        }
    }

    /// An address is used once. Returns false if it is not in a segment that is in use.
    fn claim(&mut self, who: impl Fn() -> String, addr: u32) -> bool {
        let is_used = self.fs.log.is_used(addr);
        if !self.fs.log.has(addr) {
            self.problem(format!("{}: block {addr} is outside of the device", who()));
        } else if !is_used {
            self.problem(format!("{}: block {addr} is in a segment that is free", who()));
        } else if !self.addrs.insert(addr) {
            self.problem(format!("{}: block {addr} is used twice", who()));
        }
        is_used
    }

    /// Reads all nodes, and the trees of all files.
    fn nodes(&mut self) -> Result<()> {
        let len = self.fs.table.len();
        for begin in (1..len).step_by(BATCH as usize) {
            let batch = begin..len.min(begin + BATCH);
            self.fs.prefetch_nodes(batch.clone())?;
            for id in batch {
                let addr = self.fs.table.get(id).addr;
                if addr == HOLE {
                    continue;
                }
                if !self.claim(|| format!("node {id}"), addr) {
                    continue;
                }
                self.usage.add_meta(addr);
                let node = self.fs.node(id).map(|node| match node {
                    Node::Inode(inode) => Some(Inode::clone(inode)),
                    _ => None,
                });
                if let Some(Some(inode)) = self.noted(&format!("node {id}"), node)? {
                    self.reached.insert(id);
                    self.file(id, &inode)?;
                }
            }
        }
        for (index, (addr, _)) in self.fs.table.blocks.clone().into_iter().enumerate() {
            if (Pointer { addr, ..Pointer::HOLE }).is_block()
                && self.claim(|| format!("block {index} of the node table"), addr)
            {
                self.usage.add_meta(addr);
            }
        }
        for id in 1..len {
            if self.fs.table.get(id).addr != HOLE && !self.reached.has(id) {
                self.problem(format!("node {id} belongs to no file"));
            }
        }
        Ok(())
    }

    fn file(&mut self, ino: u32, inode: &Inode) -> Result<()> {
        let attr = inode.attr;
        let Attr { mode, nlink, parent, .. } = attr;
        self.files[ino as usize] = Some(InodeFacts {
            mode,
            is_dir: attr.is_dir(),
            nlink,
            parent,
            names: 0,
            folders: 0,
            seen: ino == ROOT,
        });
        self.report.files += 1;
        let (xattrs, direct) = inode.pointers.split_at(XATTRS);
        let mut blocks = self.pointers(ino, attr, XATTR, xattrs)?;
        blocks += self.pointers(ino, attr, 0, direct)?;
        if attr.root != 0 {
            blocks += self.tree(ino, attr, attr.root, attr.height, DIRECT as u64)?;
        }
        if blocks != attr.blocks {
            let counted = attr.blocks;
            self.problem(format!("file {ino} has {blocks} blocks, its inode says {counted}"));
        }
        Ok(())
    }

    /// Takes the pointers of a file to its blocks from `first` on. Returns how many take a block.
    fn pointers(&mut self, ino: u32, attr: Attr, first: u64, pointers: &[Pointer]) -> Result<u64> {
        if self.waiting.len() + pointers.len() > WAITING {
            self.read_waiting()?;
        }
        let mut blocks = 0;
        for (index, &pointer) in (first..).zip(pointers) {
            let is_bucket = attr.is_dir() && index < XATTR;
            match pointer.addr {
                HOLE => continue,
                RESERVED => {
                    self.reserved += 1;
                    blocks += 1;
                }
                SPLIT if !is_bucket => {
                    self.problem(format!("file {ino} has a split bucket and is no folder"));
                }
                SPLIT => {}
                addr => {
                    blocks += 1;
                    if !self.claim(|| format!("file {ino}"), addr) {
                        continue;
                    }
                    self.usage.add(pointer);
                    if is_bucket {
                        // It is read when the tree of folders is.
                        self.folders.entry(ino).or_default().push((index, pointer));
                        continue;
                    }
                    self.waiting.push(QueuedBlock { addr, sum: pointer.sum, ino });
                }
            }
        }
        Ok(blocks)
    }

    /// Takes the nodes below a node, whose first block is `first`. Returns how many blocks they
    /// take.
    fn tree(&mut self, ino: u32, attr: Attr, id: u32, height: u32, first: u64) -> Result<u64> {
        if id >= self.fs.table.len() || !self.reached.insert(id) {
            self.problem(format!("node {id} of file {ino} is used twice or is none"));
            return Ok(0);
        }
        let node = self.fs.node(id).cloned();
        match self.noted(&format!("file {ino}, node {id}"), node)? {
            Some(Node::Leaf { owner, pointers }) if height == 1 && owner == ino => {
                self.pointers(ino, attr, first, &pointers[..])
            }
            Some(Node::Inner { owner, children }) if height > 1 && owner == ino => {
                let below = reach(height - 1);
                self.fs.prefetch_nodes(children.iter().copied().filter(|child| *child != 0))?;
                let mut blocks = 0;
                for (&child, at) in children.iter().zip(0..).filter(|(child, _)| **child != 0) {
                    blocks += self.tree(ino, attr, child, height - 1, first + at * below)?;
                }
                Ok(blocks)
            }
            Some(_) => {
                self.problem(format!("node {id} of file {ino} has a wrong type or owner"));
                Ok(0)
            }
            None => Ok(0),
        }
    }

    /// Reads the blocks of files that wait, in the order of their addresses.
    fn read_waiting(&mut self) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable_by_key(|block| block.addr);
        self.report.blocks += waiting.len() as u64;
        let mut wanted = Vec::new();
        for batch in waiting.chunks(BATCH as usize) {
            wanted.clear();
            wanted.extend(batch.iter().map(|block| (block.addr, block.sum)));
            // How many of each file are damaged, and what the first of them is.
            let mut damaged: BTreeMap<u32, (u64, FsError)> = BTreeMap::new();
            self.fs.log.visit(&wanted, "data", |at, read| {
                if let Err(error) = read {
                    damaged.entry(batch[at].ino).or_insert((0, error)).0 += 1;
                }
            })?;
            for (ino, (count, error)) in damaged {
                let what = match count {
                    1 => format!("file {ino}: {error}"),
                    _ => format!("file {ino}: {error}, as are {} blocks after it", count - 1),
                };
                self.report.problems.push(Problem { what, is_unrepairable: true });
            }
        }
        waiting.clear();
        self.waiting = waiting;
        Ok(())
    }

    fn space(&mut self) {
        if self.reserved != self.fs.reserved {
            let (found, counted) = (self.reserved, self.fs.reserved);
            self.problem(format!("{found} blocks are reserved, the checkpoint says {counted}"));
        }
        for segment in 0..self.usage.segments.len() {
            let found = self.usage.segments[segment];
            let counted = self.fs.usage.segments[segment];
            let found = Usage { youngest: counted.youngest, ..found };
            if found != counted {
                self.problem(format!(
                    "segment {segment} has {} live blocks of files and {} others, {} and {} are \
                     counted, or their times or writes are counted wrongly",
                    found.data, found.meta, counted.data, counted.meta
                ));
            }
        }
    }
}
