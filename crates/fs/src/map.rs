//! The map of a file: from the number of a block to where it is. The first blocks are in the inode,
//! the others in a tree whose height grows with the file.

use std::mem;
use std::ops::Range;

use prism_segments::Store;

use crate::data::FILE_MAX;
use crate::error::{FsError, Result};
use crate::format::BLOCK;
use crate::fs::{Fs, Key, XATTR};
use crate::node::{DIRECT, FANOUT, HOLE, Inode, LEAF, Node, Pointer, RESERVED, XATTRS};

/// Leaves that are read at the same time when a file is removed.
const PREFETCH: usize = 256;

/// Where a pointer is.
enum Slot {
    Inode(usize),
    Tree(u64),
}

/// What the tree has at a place.
enum LeafLookup {
    Leaf {
        id: u32,
        at: usize,
    },
    /// The child of a node is missing, below which there are this many blocks.
    NoChild {
        id: u32,
        child: usize,
        below: u64,
    },
    AfterTree,
}

fn slot(index: u64) -> Slot {
    if index >= XATTR {
        Slot::Inode((index - XATTR) as usize)
    } else if index < DIRECT as u64 {
        Slot::Inode(XATTRS + index as usize)
    } else {
        Slot::Tree(index - DIRECT as u64)
    }
}

/// Blocks below a node at this height; leaves are at 1.
pub(crate) fn reach(height: u32) -> u64 {
    (1..height).fold(LEAF as u64, |blocks, _| blocks.saturating_mul(FANOUT as u64))
}

fn takes_space(pointer: &Pointer) -> bool {
    pointer.is_block() || pointer.addr == RESERVED
}

impl<S: Store> Fs<S> {
    /// The leaf of a place in the tree, and the place in the leaf.
    fn leaf(&mut self, ino: u32, at: u64) -> Result<LeafLookup> {
        let attr = self.attr(ino)?;
        if attr.root == 0 || at >= reach(attr.height) {
            return Ok(LeafLookup::AfterTree);
        }
        let mut id = attr.root;
        for height in (2..=attr.height).rev() {
            let below = reach(height - 1);
            let child = (at / below) as usize % FANOUT;
            let Node::Inner { children, .. } = self.node(id)? else { return Err(wrong(id)) };
            let parent = mem::replace(&mut id, children[child]);
            if id == 0 {
                return Ok(LeafLookup::NoChild { id: parent, child, below });
            }
        }
        Ok(LeafLookup::Leaf { id, at: (at % LEAF as u64) as usize })
    }

    /// As [`Fs::leaf`]; nodes that are missing are added.
    fn leaf_mut(&mut self, ino: u32, at: u64) -> Result<(u32, usize)> {
        loop {
            let attr = self.attr(ino)?;
            if attr.root != 0 && at < reach(attr.height) {
                break;
            }
            let root = if attr.root == 0 {
                self.add_node(Node::leaf(ino))?
            } else {
                let mut node = Node::inner(ino);
                if let Node::Inner { children, .. } = &mut node {
                    children[0] = attr.root;
                }
                self.add_node(node)?
            };
            let attr = self.attr_mut(ino)?;
            attr.root = root;
            attr.height += 1;
        }
        let attr = self.attr(ino)?;
        let mut id = attr.root;
        for height in (2..=attr.height).rev() {
            let child = (at / reach(height - 1)) as usize % FANOUT;
            let Node::Inner { children, .. } = self.node(id)? else { return Err(wrong(id)) };
            let mut below = children[child];
            if below == 0 {
                let node = if height == 2 { Node::leaf(ino) } else { Node::inner(ino) };
                below = self.add_node(node)?;
                if let Node::Inner { children, .. } = self.node_mut(id)? {
                    children[child] = below;
                }
            }
            id = below;
        }
        Ok((id, (at % LEAF as u64) as usize))
    }

    /// Where a block of a file is.
    pub(crate) fn pointer(&mut self, (ino, index): Key) -> Result<Pointer> {
        match slot(index) {
            Slot::Inode(at) => Ok(self.inode(ino)?.pointers[at]),
            Slot::Tree(at) => match self.leaf(ino, at)? {
                LeafLookup::Leaf { id, at } => match self.node(id)? {
                    Node::Leaf { pointers, .. } => Ok(pointers[at]),
                    _ => Err(wrong(id)),
                },
                LeafLookup::NoChild { .. } | LeafLookup::AfterTree => Ok(Pointer::HOLE),
            },
        }
    }

    /// Sets where a block of a file is; the old one is dead. Returns that.
    pub(crate) fn set_pointer(&mut self, (ino, index): Key, new: Pointer) -> Result<Pointer> {
        let old = match slot(index) {
            Slot::Inode(at) => std::mem::replace(&mut self.inode_mut(ino)?.pointers[at], new),
            Slot::Tree(at) => {
                let (leaf, at) = self.leaf_mut(ino, at)?;
                match self.node_mut(leaf)? {
                    Node::Leaf { pointers, .. } => std::mem::replace(&mut pointers[at], new),
                    _ => return Err(wrong(leaf)),
                }
            }
        };
        self.account(old, new);
        let (before, after) = (u64::from(takes_space(&old)), u64::from(takes_space(&new)));
        if before != after {
            let blocks = &mut self.attr_mut(ino)?.blocks;
            *blocks = (*blocks + after).saturating_sub(before);
        }
        Ok(old)
    }

    /// One pointer replaces another.
    pub(crate) fn account(&mut self, old: Pointer, new: Pointer) {
        self.usage.remove(old);
        self.usage.add(new);
        self.reserved += u64::from(new.addr == RESERVED);
        self.reserved = self.reserved.saturating_sub((old.addr == RESERVED).into());
    }

    /// Removes the pointers to the blocks `begin..end` of a file, and nodes that become empty.
    pub(crate) fn remove_pointers(&mut self, ino: u32, begin: u64, end: u64) -> Result<()> {
        let mut all = u32::MAX;
        self.remove_some_pointers(ino, begin, end, &mut all)
    }

    /// As [`Fs::remove_pointers`], but looks at no more than `leaves` leaves, from which it
    /// subtracts those that it looked at.
    pub(crate) fn remove_some_pointers(
        &mut self,
        ino: u32,
        begin: u64,
        end: u64,
        leaves: &mut u32,
    ) -> Result<()> {
        if begin >= end {
            return Ok(());
        }
        self.drop_dirty(ino, begin, end);
        let direct = end.min(DIRECT as u64);
        if begin < direct {
            let range = XATTRS + begin as usize..XATTRS + direct as usize;
            if self.inode(ino)?.pointers[range.clone()].iter().any(|p| p.addr != HOLE) {
                let removed = self.inode_mut(ino)?.pointers[range].iter_mut().map(std::mem::take);
                let removed = removed.collect();
                self.removed(ino, removed)?;
            }
        }
        let attr = self.attr(ino)?;
        let begin = begin.saturating_sub(DIRECT as u64);
        let end = end.saturating_sub(DIRECT as u64).min(reach(attr.height));
        if attr.root != 0
            && begin < end
            && self.remove_below(ino, attr.root, attr.height, begin..end, leaves)?
        {
            let attr = self.attr_mut(ino)?;
            (attr.root, attr.height) = (0, 0);
        }
        Ok(())
    }

    /// Accounts for pointers that were removed from a file.
    fn removed(&mut self, ino: u32, removed: Vec<Pointer>) -> Result<()> {
        let blocks = removed.iter().filter(|pointer| takes_space(pointer)).count() as u64;
        removed.into_iter().for_each(|old| self.account(old, Pointer::HOLE));
        if blocks > 0 {
            let left = &mut self.attr_mut(ino)?.blocks;
            *left = left.saturating_sub(blocks);
        }
        Ok(())
    }

    /// Removes pointers below a node, in at most `leaves` leaves; true if the node was empty then,
    /// and is freed.
    fn remove_below(
        &mut self,
        ino: u32,
        id: u32,
        height: u32,
        Range { start: begin, end }: Range<u64>,
        leaves: &mut u32,
    ) -> Result<bool> {
        if height == 1 {
            *leaves = leaves.saturating_sub(1);
            let Node::Leaf { pointers, .. } = self.node(id)? else { return Err(wrong(id)) };
            let range = begin as usize..end as usize;
            if pointers[range.clone()].iter().any(|pointer| pointer.addr != HOLE) {
                let pointers = self.node_mut(id)?.pointers_mut();
                let removed = pointers[range].iter_mut().map(std::mem::take).collect();
                self.removed(ino, removed)?;
            }
            let is_empty = self.node(id)?.pointers().iter().all(|pointer| pointer.addr == HOLE);
            if is_empty {
                self.free_node(id);
            }
            return Ok(is_empty);
        }
        let below = reach(height - 1);
        let last = end.div_ceil(below);
        let mut prefetched = 0;
        for child in begin / below..last {
            let Node::Inner { children, .. } = self.node(id)? else { return Err(wrong(id)) };
            let next = children[child as usize];
            if next == 0 {
                continue;
            }
            if *leaves == 0 {
                return Ok(false);
            }
            if prefetched == 0 {
                let most = if height == 2 { PREFETCH.min(*leaves as usize) } else { 1 };
                let there = children[child as usize..last as usize].iter().copied();
                let wanted: Vec<u32> = there.filter(|id| *id != 0).take(most).collect();
                prefetched = wanted.len();
                self.prefetch_nodes(wanted.into_iter())?;
            }
            prefetched -= 1;
            let first = child * below;
            let (from, to) = (begin.saturating_sub(first), (end - first).min(below));
            if self.remove_below(ino, next, height - 1, from..to, leaves)?
                && let Node::Inner { children, .. } = self.node_mut(id)?
            {
                children[child as usize] = 0;
            }
        }
        let Node::Inner { children, .. } = self.node(id)? else { return Err(wrong(id)) };
        let is_empty = children.iter().all(|&child| child == 0);
        if is_empty {
            self.free_node(id);
        }
        Ok(is_empty)
    }

    /// The blocks of a file from `begin` on that are on flash.
    pub(crate) fn blocks_from(&mut self, ino: u32, begin: u64) -> Result<Vec<u64>> {
        let Inode { attr, pointers } = self.inode(ino)?;
        let (attr, direct) = (*attr, &pointers[XATTRS..]);
        let mut found: Vec<u64> =
            (0..).zip(direct).filter(|(_, pointer)| pointer.is_block()).map(|(at, _)| at).collect();
        let mut open = Vec::new();
        if attr.root != 0 {
            open.push((attr.root, attr.height, DIRECT as u64));
        }
        while let Some((id, height, first)) = open.pop() {
            match self.node(id)? {
                Node::Leaf { pointers, .. } => {
                    let blocks = (first..).zip(pointers.iter());
                    let blocks = blocks.filter(|(_, pointer)| pointer.is_block());
                    found.extend(blocks.map(|(at, _)| at));
                }
                Node::Inner { children, .. } if height > 1 => {
                    let below = reach(height - 1);
                    let all = (first..).step_by(below as usize).zip(children.iter());
                    let there = all.filter(|(first, child)| **child != 0 && first + below > begin);
                    open.extend(there.map(|(first, &child)| (child, height - 1, first)));
                }
                _ => return Err(wrong(id)),
            }
        }
        found.retain(|&at| at >= begin);
        Ok(found)
    }

    /// The pointers to the blocks from `index` on that are in one node, and the block after those;
    /// none if there is no such node, with the block after all that have none.
    pub(crate) fn pointers_from(&mut self, ino: u32, index: u64) -> Result<(&[Pointer], u64)> {
        let (id, pointers, last) = match slot(index) {
            Slot::Inode(at) => (ino, at..XATTRS + DIRECT, DIRECT as u64),
            Slot::Tree(at) => match self.leaf(ino, at)? {
                LeafLookup::Leaf { id, at } => (id, at..LEAF, index + (LEAF - at) as u64),
                LeafLookup::AfterTree => return Ok((&[], FILE_MAX / BLOCK as u64)),
                LeafLookup::NoChild { id, child, below } => {
                    let Node::Inner { children, .. } = self.node(id)? else {
                        return Err(wrong(id));
                    };
                    let holes = children[child..].iter().take_while(|child| **child == 0).count();
                    let end = (at / below + holes as u64) * below;
                    return Ok((&[], DIRECT as u64 + end));
                }
            },
        };
        let there = self.node(id)?.pointers().get(pointers).ok_or_else(|| wrong(id))?;
        Ok((there, last))
    }

    /// The first block at or after `index` that is not a hole, or that is one, below `end`.
    pub(crate) fn seek_block(
        &mut self,
        ino: u32,
        mut index: u64,
        end: u64,
        hole: bool,
    ) -> Result<Option<u64>> {
        while index < end {
            let (pointers, last) = self.pointers_from(ino, index)?;
            let blocks: Vec<bool> = pointers.iter().map(Pointer::is_block).collect();
            if blocks.is_empty() && !hole {
                let dirty = self.dirty.range((ino, index)..(ino, last)).next();
                if let Some((key, _)) = dirty {
                    return Ok(Some(key.1).filter(|at| *at < end));
                }
                index = last;
                continue;
            }
            for at in index..last.min(end) {
                let is_block = blocks.get((at - index) as usize).is_some_and(|is_block| *is_block);
                if (is_block || self.dirty_block((ino, at)).is_some()) != hole {
                    return Ok(Some(at));
                }
            }
            index = last;
        }
        Ok(None)
    }
}

fn wrong(id: u32) -> FsError {
    FsError::Inconsistent(format!("node {id} is not of the type that its parent needs"))
}
