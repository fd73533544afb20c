//! The repair of a file system: what cannot be read is cut off, what has no name gets one in
//! `lost+found`, and everything that follows from something else is computed again.
//!
//! Blocks of files that are damaged stay: they are reported until the file is removed, and never
//! read as something else.

use std::collections::{BTreeMap, BTreeSet};

use prism_segments::Store;

use crate::check::Problem;
use crate::error::{FsError, Result};
use crate::folder::{DirEntry, decode};
use crate::fs::{Fs, ROOT, XATTR};
use crate::names::NewFile;
use crate::node::{Attr, HOLE, Node, Pointer, RESERVED, S_IFDIR, SPLIT, XATTRS};
use crate::table::NodeEntry;
use crate::usage::{Usage, UsageTable};

const LOST_FOUND: &[u8] = b"lost+found";

/// `None` for what is damaged; an error if the device as a whole failed.
pub(crate) fn readable<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error @ FsError::Store(_)) => Err(error),
        Err(_) => Ok(None),
    }
}

impl<S: Store> Fs<S> {
    /// Repairs what can be repaired, and returns what was wrong before and is not any more. That
    /// begins with the damage of the log that [`Damage::Accept`](crate::Damage) has accepted.
    ///
    /// # Errors
    /// Those of the store, and [`FsError::NoSpace`].
    pub fn repair(&mut self) -> Result<Vec<Problem>> {
        let problem = |what| Problem { what, is_unrepairable: false };
        let accepted = std::mem::take(&mut self.accepted).into_iter().map(problem);
        let before = self.check()?.problems;
        if before.iter().all(|problem| problem.is_unrepairable) {
            return Ok(accepted.collect());
        }
        self.repair_nodes()?;
        // What folders lose is taken from counts, which have to be right before.
        self.recount()?;
        self.repair_folders()?;
        self.recount()?;
        self.repair_names()?;
        self.checkpoint()?;
        let after: BTreeSet<String> =
            self.check()?.problems.into_iter().map(|problem| problem.what).collect();
        let before = before.into_iter().filter(|problem| !after.contains(&problem.what));
        Ok(accepted.chain(before).collect())
    }

    fn forget_node(&mut self, id: u32) {
        self.table.set(id, NodeEntry::default());
        self.dirty_nodes.remove(&id);
        self.nodes.remove(id);
        self.freed.insert(id);
    }

    /// Removes nodes that cannot be read or that no file has.
    fn repair_nodes(&mut self) -> Result<()> {
        for id in 1..self.table.len() {
            let exists = self.table.get(id).addr != HOLE;
            if exists && readable(self.node(id).map(|_| ()))?.is_none() {
                self.forget_node(id);
            }
        }
        if !self.attr(ROOT).is_ok_and(|attr| attr.is_dir()) {
            self.forget_node(ROOT);
            self.freed.remove(&ROOT);
            let (mode, now) = (S_IFDIR | 0o755, self.now);
            let attr = Attr { mode, nlink: 2, parent: ROOT, generation: 1, ..Attr::default() };
            let attr = Attr { atime: now, mtime: now, ctime: now, btime: now, ..attr };
            self.table.set(ROOT, NodeEntry { addr: RESERVED, sum: 0 });
            self.dirty_nodes.insert(ROOT, Node::inode(attr));
        }
        let mut reached = BTreeSet::new();
        let of_nodes = (1..self.table.len()).map(|id| self.table.get(id).addr);
        let of_table = self.table.blocks.iter().map(|block| block.0);
        let mut addrs: BTreeSet<u32> = of_nodes.chain(of_table).collect();
        for id in 1..self.table.len() {
            if self.inode(id).is_ok() {
                reached.insert(id);
                self.repair_tree(id, &mut reached, &mut addrs)?;
            }
        }
        for id in 1..self.table.len() {
            if self.table.get(id).addr != HOLE && !reached.contains(&id) {
                self.forget_node(id);
            }
        }
        Ok(())
    }

    /// Cuts off the nodes of a file that are missing or not its own, and pointers to blocks that
    /// another file has.
    fn repair_tree(
        &mut self,
        ino: u32,
        reached: &mut BTreeSet<u32>,
        addrs: &mut BTreeSet<u32>,
    ) -> Result<()> {
        let mut blocks = self.repair_pointers(ino, ino, addrs)?;
        let attr = self.attr(ino)?;
        let mut open = Vec::new();
        if attr.root != 0 {
            if self.is_node_of(ino, attr.root, attr.height) && reached.insert(attr.root) {
                open.push((attr.root, attr.height));
            } else {
                let attr = self.attr_mut(ino)?;
                (attr.root, attr.height) = (0, 0);
            }
        }
        while let Some((id, height)) = open.pop() {
            if height == 1 {
                blocks += self.repair_pointers(ino, id, addrs)?;
                continue;
            }
            let Node::Inner { children, .. } = self.node(id)?.clone() else { continue };
            for (at, &child) in children.iter().enumerate().filter(|(_, child)| **child != 0) {
                if self.is_node_of(ino, child, height - 1) && reached.insert(child) {
                    open.push((child, height - 1));
                } else if let Node::Inner { children, .. } = self.node_mut(id)? {
                    children[at] = 0;
                }
            }
        }
        if self.attr(ino)?.blocks != blocks {
            self.attr_mut(ino)?.blocks = blocks;
        }
        Ok(())
    }

    fn is_node_of(&mut self, ino: u32, id: u32, height: u32) -> bool {
        match self.node(id) {
            Ok(Node::Leaf { owner, .. }) => height == 1 && *owner == ino,
            Ok(Node::Inner { owner, .. }) => height > 1 && *owner == ino,
            _ => false,
        }
    }

    /// Clears pointers of a node of a file that lead outside or where another one leads, and split
    /// buckets of what is no folder. Returns how many take a block.
    fn repair_pointers(&mut self, ino: u32, id: u32, addrs: &mut BTreeSet<u32>) -> Result<u64> {
        let is_dir = self.attr(ino)?.is_dir();
        let pointers = self.node(id)?.pointers().to_vec();
        let mut blocks = 0;
        for (at, pointer) in pointers.into_iter().enumerate() {
            let is_block = pointer.is_block();
            let is_bucket = is_dir && (id != ino || at >= XATTRS);
            if pointer.addr == SPLIT && !is_bucket
                || is_block && !(self.log.is_used(pointer.addr) && addrs.insert(pointer.addr))
            {
                self.node_mut(id)?.pointers_mut()[at] = Pointer::HOLE;
                continue;
            }
            blocks += u64::from(is_block || pointer.addr == RESERVED);
        }
        Ok(blocks)
    }

    /// Removes entries and buckets that cannot be right, and adds those in a wrong bucket again.
    fn repair_folders(&mut self) -> Result<()> {
        for dir in 1..self.table.len() {
            if !self.attr(dir).is_ok_and(|attr| attr.is_dir()) {
                continue;
            }
            let mut kept: BTreeMap<Vec<u8>, DirEntry> = BTreeMap::new();
            let mut changed = false;
            for index in self.buckets(dir)? {
                let block = readable(self.block((dir, index)))?.flatten();
                let entries = block.and_then(|block| decode(&block).ok());
                changed |= entries.is_none();
                for mut entry in entries.unwrap_or_default() {
                    let Ok(child) = self.attr(entry.ino) else {
                        changed = true;
                        continue;
                    };
                    let found = self.find_entry(dir, &entry.name);
                    changed |= found != Ok(Some(entry.clone()));
                    changed |= u32::from(entry.kind) != child.mode >> 12;
                    entry.kind = (child.mode >> 12) as u8;
                    kept.insert(entry.name.clone(), entry);
                }
            }
            let counted = self.attr(dir)?.size;
            if !changed && counted == kept.len() as u64 {
                continue;
            }
            // The folder is built again.
            self.remove_pointers(dir, 0, XATTR)?;
            self.attr_mut(dir)?.size = 0;
            for (name, entry) in kept {
                self.add_entry(dir, &name, entry.ino, entry.kind)?;
            }
        }
        Ok(())
    }

    /// The buckets of a folder that have blocks.
    pub(crate) fn buckets(&mut self, dir: u32) -> Result<Vec<u64>> {
        let mut open = vec![0];
        let mut buckets = Vec::new();
        while let Some(index) = open.pop() {
            let pointer = self.pointer((dir, index))?;
            if pointer.addr == SPLIT {
                open.extend([2 * index + 1, 2 * index + 2].iter().filter(|&&at| at < XATTR));
            } else if pointer.is_block() {
                buckets.push(index);
            }
        }
        Ok(buckets)
    }

    /// Computes anew what segments hold. Nodes that cannot be read have no pointers.
    pub(crate) fn recount(&mut self) -> Result<()> {
        let before = std::mem::take(&mut self.usage.segments);
        let usage = |old: &Usage| Usage { youngest: old.youngest, ..Usage::default() };
        let fresh = before.iter().map(usage).collect();
        self.usage = UsageTable::new(fresh, self.log.blocks_per_segment);
        self.reserved = 0;
        for id in 1..self.table.len() {
            let addr = self.table.get(id).addr;
            if addr != HOLE {
                self.usage.add_meta(addr);
                let pointers = readable(self.node(id).map(|node| node.pointers().to_vec()))?;
                for pointer in pointers.into_iter().flatten() {
                    self.account(Pointer::HOLE, pointer);
                }
            }
        }
        for (addr, _) in self.table.blocks.clone() {
            self.usage.add_meta(addr);
        }
        Ok(())
    }

    /// Names that lead to each file, and folders in each folder; each folder has one parent.
    fn count_names(&mut self) -> Result<BTreeMap<u32, (u32, u32)>> {
        let mut counts: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for ino in 1..self.table.len() {
            if self.inode(ino).is_ok() {
                counts.entry(ino).or_default();
            }
        }
        let mut seen = BTreeSet::from([ROOT]);
        for dir in 1..self.table.len() {
            if !self.attr(dir).is_ok_and(|attr| attr.is_dir()) {
                continue;
            }
            let mut from = Some(0);
            while let Some(hash) = from {
                let (entries, next) = self.list(dir, hash)?;
                for entry in entries {
                    if self.attr(entry.ino)?.is_dir() {
                        if !seen.insert(entry.ino) {
                            self.remove_entry(dir, &entry.name)?;
                            continue;
                        }
                        counts.entry(dir).or_default().1 += 1;
                        if self.attr(entry.ino)?.parent != dir {
                            self.attr_mut(entry.ino)?.parent = dir;
                        }
                    }
                    counts.entry(entry.ino).or_default().0 += 1;
                }
                from = next;
            }
        }
        Ok(counts)
    }

    /// Files without names get one, and links are counted anew.
    fn repair_names(&mut self) -> Result<()> {
        let counts = self.count_names()?;
        let nameless: Vec<u32> = counts
            .iter()
            .filter(|(ino, (names, _))| **ino != ROOT && *names == 0)
            .map(|(ino, _)| *ino)
            .collect();
        for ino in nameless {
            let attr = self.attr(ino)?;
            if attr.nlink == 0 {
                // It was removed while it was open.
                self.orphans.insert(ino);
                continue;
            }
            let dir = match self.find_entry(ROOT, LOST_FOUND)? {
                Some(entry) => entry.ino,
                None => {
                    let mode = S_IFDIR | 0o700;
                    let new = NewFile { mode, uid: 0, gid: 0, rdev: 0, umask: 0 };
                    // The attributes of the folder above may be damaged.
                    self.make_with(ROOT, LOST_FOUND, new, &Vec::new())?
                }
            };
            let name = format!("#{ino}");
            self.add_entry(dir, name.as_bytes(), ino, (attr.mode >> 12) as u8)?;
            if attr.is_dir() {
                self.attr_mut(ino)?.parent = dir;
            }
        }
        for (ino, (names, folders)) in self.count_names()? {
            let attr = self.attr(ino)?;
            let links = match (attr.is_dir(), ino) {
                (true, ROOT) => 2 + folders,
                (true, _) if names > 0 => 2 + folders,
                _ => names,
            };
            if attr.nlink != links {
                self.attr_mut(ino)?.nlink = links;
            }
        }
        self.remove_orphans()
    }
}
