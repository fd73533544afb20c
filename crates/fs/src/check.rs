//! The check of a file system: every structure is read and compared with all others.

use std::collections::{BTreeMap, BTreeSet};

use prism_segments::Store;

use crate::error::{FsError, Result};
use crate::folder::decode;
use crate::fs::{Fs, ROOT, XATTR};
use crate::node::{DIRECT, FANOUT, HOLE, LEAF, Node, Pointer, RESERVED, SPLIT, XATTRS};
use crate::table::NodeEntry;
use crate::usage::{Usage, UsageTable};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, with the numbers of nodes and blocks.
    pub what: String,
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

/// A file as it was found.
struct FileFound {
    /// Names that lead to it.
    names: u32,
    /// Folders in it.
    folders: u32,
    /// The nodes of its tree.
    nodes: Vec<u32>,
    pointers: Vec<(u64, Pointer)>,
}

struct Check<'a, S> {
    fs: &'a mut Fs<S>,
    report: Report,
    files: BTreeMap<u32, FileFound>,
    usage: UsageTable,
    reserved: u64,
    addrs: BTreeSet<u32>,
    reached: BTreeSet<u32>,
}

impl<S: Store> Fs<S> {
    /// Reads everything and compares. Nothing may be dirty: callers check right after a mount or a
    /// checkpoint.
    ///
    /// # Errors
    /// Only if the device as a whole fails; what is damaged is in the report.
    pub fn check(&mut self) -> Result<Report> {
        let segments = self.usage.segments.len();
        let usage = UsageTable::new(vec![Usage::default(); segments], self.log.blocks_per_segment);
        let mut check = Check {
            fs: self,
            report: Report::default(),
            files: BTreeMap::new(),
            usage,
            reserved: 0,
            addrs: BTreeSet::new(),
            reached: BTreeSet::new(),
        };
        check.nodes()?;
        check.folders()?;
        check.links()?;
        check.data()?;
        check.space();
        Ok(check.report)
    }
}

impl<S: Store> Check<'_, S> {
    fn problem(&mut self, what: String) {
        self.report.problems.push(Problem { what });
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

    /// An address is used once.
    fn claim(&mut self, who: &str, addr: u32) {
        let blocks = self.fs.log.in_use.len() as u64 * u64::from(self.fs.log.blocks_per_segment);
        if u64::from(addr) >= blocks {
            self.problem(format!("{who}: block {addr} is outside of the device"));
        } else if !self.addrs.insert(addr) {
            self.problem(format!("{who}: block {addr} is used twice"));
        }
    }

    /// Reads all nodes, and the trees of all files.
    fn nodes(&mut self) -> Result<()> {
        for id in 1..self.fs.table.len() {
            let NodeEntry { addr, .. } = self.fs.table.get(id);
            if addr == HOLE {
                continue;
            }
            self.claim(&format!("node {id}"), addr);
            self.usage.add_meta(addr);
            let node = self.fs.node(id).cloned();
            if let Some(Node::Inode(_)) = self.noted(&format!("node {id}"), node)? {
                self.reached.insert(id);
                self.file(id)?;
            }
        }
        for (index, (addr, _)) in self.fs.table.blocks.clone().into_iter().enumerate() {
            if (Pointer { addr, ..Pointer::HOLE }).is_block() {
                self.claim(&format!("block {index} of the node table"), addr);
                self.usage.add_meta(addr);
            }
        }
        for id in 1..self.fs.table.len() {
            if self.fs.table.get(id).addr != HOLE && !self.reached.contains(&id) {
                self.problem(format!("node {id} belongs to no file"));
            }
        }
        Ok(())
    }

    fn file(&mut self, ino: u32) -> Result<()> {
        let inode = self.fs.inode(ino)?.clone();
        let mut file = FileFound { names: 0, folders: 0, nodes: Vec::new(), pointers: Vec::new() };
        for (at, &pointer) in inode.pointers.iter().enumerate() {
            let index = if at < XATTRS { XATTR + at as u64 } else { (at - XATTRS) as u64 };
            file.pointers.push((index, pointer));
        }
        if inode.attr.root != 0 {
            self.tree(ino, inode.attr.root, inode.attr.height, 0, &mut file)?;
        }
        file.pointers.retain(|(_, pointer)| pointer.addr != HOLE);
        let mut blocks = 0;
        for (_, pointer) in &file.pointers {
            self.reserved += u64::from(pointer.addr == RESERVED);
            blocks += u64::from(pointer.is_block() || pointer.addr == RESERVED);
            if pointer.is_block() {
                self.claim(&format!("file {ino}"), pointer.addr);
                self.usage.add(*pointer);
            }
            if pointer.addr == SPLIT && !inode.attr.is_dir() {
                self.problem(format!("file {ino} has a split bucket and is no folder"));
            }
        }
        if blocks != inode.attr.blocks {
            let counted = inode.attr.blocks;
            self.problem(format!("file {ino} has {blocks} blocks, its inode says {counted}"));
        }
        self.report.files += 1;
        self.files.insert(ino, file);
        Ok(())
    }

    fn tree(
        &mut self,
        ino: u32,
        id: u32,
        height: u32,
        first: u64,
        file: &mut FileFound,
    ) -> Result<()> {
        if !self.reached.insert(id) {
            self.problem(format!("node {id} of file {ino} is used twice"));
            return Ok(());
        }
        file.nodes.push(id);
        let node = self.fs.node(id).cloned();
        let below = (2..height).fold(LEAF as u64, |blocks, _| blocks * FANOUT as u64);
        match self.noted(&format!("file {ino}, node {id}"), node)? {
            Some(Node::Leaf { owner, pointers }) if height == 1 && owner == ino => {
                let indexed = pointers.iter().zip(first + DIRECT as u64..);
                file.pointers.extend(indexed.map(|(&pointer, index)| (index, pointer)));
            }
            Some(Node::Inner { owner, children }) if height > 1 && owner == ino => {
                for (&child, at) in children.iter().zip(0..).filter(|(child, _)| **child != 0) {
                    self.tree(ino, child, height - 1, first + at * below, file)?;
                }
            }
            Some(_) => self.problem(format!("node {id} of file {ino} has a wrong type or owner")),
            None => {}
        }
        Ok(())
    }

    /// Reads all folders from the uppermost one.
    fn folders(&mut self) -> Result<()> {
        let mut open = vec![ROOT];
        let mut seen = BTreeSet::from([ROOT]);
        while let Some(dir) = open.pop() {
            let Ok(attr) = self.fs.attr(dir) else { continue };
            let buckets: Vec<(u64, Pointer)> =
                self.files.get(&dir).map_or(Vec::new(), |file| file.pointers.clone());
            let mut entries = 0;
            for (index, pointer) in buckets.into_iter().filter(|(index, _)| *index < XATTR) {
                if !pointer.is_block() {
                    continue;
                }
                let bucket = self.fs.block((dir, index)).map(|block| block.expect("a block"));
                let bucket = bucket.and_then(|block| decode(&block));
                let who = format!("folder {dir}, bucket {index}");
                for entry in self.noted(&who, bucket)?.unwrap_or_default() {
                    entries += 1;
                    let name = String::from_utf8_lossy(&entry.name).into_owned();
                    let found = self.fs.find_entry(dir, &entry.name);
                    if found.as_ref().is_ok_and(|found| found.as_ref() != Some(&entry)) {
                        self.problem(format!("folder {dir}: {name:?} is in the wrong bucket"));
                    }
                    let Some(file) = self.files.get_mut(&entry.ino) else {
                        self.problem(format!("folder {dir}: {name:?} leads to no file"));
                        continue;
                    };
                    file.names += 1;
                    let child = self.fs.attr(entry.ino)?;
                    if u32::from(entry.kind) != child.mode >> 12 {
                        self.problem(format!("folder {dir}: {name:?} has a wrong type"));
                    }
                    if child.is_dir() {
                        if let Some(file) = self.files.get_mut(&dir) {
                            file.folders += 1;
                        }
                        if child.parent != dir || !seen.insert(entry.ino) {
                            self.problem(format!("folder {} has two parents", entry.ino));
                        } else {
                            open.push(entry.ino);
                        }
                    }
                }
            }
            if entries != attr.size {
                let counted = attr.size;
                self.problem(format!("folder {dir} has {entries} entries, its inode {counted}"));
            }
        }
        Ok(())
    }

    /// Compares links with names.
    fn links(&mut self) -> Result<()> {
        let counts: Vec<(u32, u32, u32)> =
            self.files.iter().map(|(ino, file)| (*ino, file.names, file.folders)).collect();
        for (ino, names, folders) in counts {
            let attr = self.fs.attr(ino)?;
            let links = match (attr.is_dir(), ino) {
                (true, ROOT) => 2 + folders,
                (true, _) if names > 0 => 1 + names + folders,
                _ => names,
            };
            let is_orphan = self.fs.orphans.contains(&ino);
            if attr.nlink != links || (links == 0) != is_orphan {
                let counted = attr.nlink;
                self.problem(format!("file {ino} has {links} links, its inode says {counted}"));
            }
        }
        Ok(())
    }

    /// Reads all blocks of files.
    fn data(&mut self) -> Result<()> {
        for (ino, file) in std::mem::take(&mut self.files) {
            let blocks = file.pointers.iter().filter(|(_, pointer)| pointer.is_block());
            let wanted: Vec<(u32, u32)> = blocks.map(|(_, at)| (at.addr, at.sum)).collect();
            self.report.blocks += wanted.len() as u64;
            for batch in wanted.chunks(1024) {
                if let Err(FsError::Damaged { .. }) = self.fs.log.read(batch, "data") {
                    for &at in batch {
                        let read = self.fs.log.read(&[at], "data");
                        self.noted(&format!("file {ino}"), read)?;
                    }
                }
            }
        }
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
                    "segment {segment} has {found:?}, but {counted:?} is counted"
                ));
            }
        }
    }
}
