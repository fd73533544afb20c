//! The node table: where each node is. It is in memory whole, 8 bytes a node, and goes to the log
//! in blocks when a checkpoint is made.

use std::collections::BTreeSet;

use crate::error::{FsError, Result};
use crate::format::{Block, put, u32_at, zeros};
use crate::node::{HOLE, RESERVED};

/// Entries of a block of the table.
pub const PER_BLOCK: usize = 512;

/// The address of a node, and its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeEntry {
    /// The address: [`HOLE`] if the node does not exist, [`RESERVED`] if it was not written yet.
    pub addr: u32,
    /// The checksum.
    pub sum: u32,
}

/// The table.
#[derive(Debug, Default)]
pub struct NodeTable {
    entries: Vec<NodeEntry>,
    /// Where its blocks are, and their checksums.
    pub blocks: Vec<(u32, u32)>,
    /// Blocks that changed since the last checkpoint.
    pub dirty: BTreeSet<u32>,
    used: usize,
    cursor: usize,
    max: usize,
    /// Nodes that were not written yet.
    pub new: u64,
}

impl NodeTable {
    /// A table for at most `max` nodes, from the blocks of a checkpoint.
    #[must_use]
    pub fn new(max: usize, addrs: Vec<(u32, u32)>, blocks: &[Block]) -> Self {
        let entry = |block: &Block, at: usize| NodeEntry {
            addr: u32_at(&block[..], at * 8),
            sum: u32_at(&block[..], at * 8 + 4),
        };
        let entries: Vec<_> = blocks
            .iter()
            .flat_map(|block| (0..PER_BLOCK).map(move |at| entry(block, at)))
            .collect();
        let used = entries.iter().filter(|entry| entry.addr != HOLE).count();
        // A damaged table may have entries of nodes that were not written.
        let new = entries.iter().filter(|entry| entry.addr == RESERVED).count() as u64;
        Self { entries, blocks: addrs, used, max, new, ..Self::default() }
    }

    /// Nodes that exist.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }

    /// Nodes for which there are entries.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Where a node is.
    #[must_use]
    pub fn get(&self, id: u32) -> NodeEntry {
        self.entries.get(id as usize).copied().unwrap_or_default()
    }

    /// The node is there from now on. Returns where it was.
    pub fn set(&mut self, id: u32, entry: NodeEntry) -> NodeEntry {
        while self.entries.len() <= id as usize {
            self.grow();
        }
        let old = std::mem::replace(&mut self.entries[id as usize], entry);
        self.used += usize::from(entry.addr != HOLE);
        self.used -= usize::from(old.addr != HOLE);
        self.new += u64::from(entry.addr == RESERVED);
        self.new -= u64::from(old.addr == RESERVED);
        self.dirty.insert(id / PER_BLOCK as u32);
        old
    }

    fn grow(&mut self) {
        self.entries.resize(self.entries.len() + PER_BLOCK, NodeEntry::default());
        self.blocks.push((HOLE, 0));
    }

    /// The number of a new node.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if there are too many.
    pub fn allocate(&mut self) -> Result<u32> {
        // A search through a table that is nearly full would be long.
        let few = self.entries.len() - self.used <= self.entries.len() / 8 + 1;
        if few && self.entries.len() + PER_BLOCK <= self.max {
            self.grow();
        }
        let len = self.entries.len();
        let places = (self.cursor..len).chain(0..self.cursor);
        // The number 0 is no node.
        let free = |at: &usize| *at > 0 && self.entries[*at].addr == HOLE;
        let id = { places }.find(free).ok_or(FsError::NoSpace)?;
        self.cursor = id + 1;
        self.set(id as u32, NodeEntry { addr: RESERVED, sum: 0 });
        Ok(id as u32)
    }

    /// A block of the table.
    #[must_use]
    pub fn block(&self, index: u32) -> Block {
        let mut block = zeros();
        let entries = &self.entries[index as usize * PER_BLOCK..][..PER_BLOCK];
        for (entry, at) in entries.iter().zip((0..).step_by(8)) {
            put(&mut block[..], at, &entry.addr.to_le_bytes());
            put(&mut block[..], at + 4, &entry.sum.to_le_bytes());
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_again_when_free() {
        let mut table = NodeTable::new(2 * PER_BLOCK, Vec::new(), &[]);
        let ids: BTreeSet<u32> = (0..1023).map(|_| table.allocate().unwrap()).collect();
        assert_eq!((ids.len(), ids.first(), table.new), (1023, Some(&1), 1023));
        assert_eq!(table.allocate(), Err(FsError::NoSpace));
        table.set(600, NodeEntry::default());
        assert_eq!((table.allocate(), table.used()), (Ok(600), 1023));
        table.set(7, NodeEntry { addr: 70, sum: 71 });
        let blocks = [table.block(0), table.block(1)];
        let again = NodeTable::new(1024, vec![(1, 1), (2, 2)], &blocks);
        assert_eq!((again.get(7).sum, again.used(), again.get(5000).addr), (71, 1023, HOLE));
    }
}
