//! The blocks of an ext4 journal: the extents of its inode, or the blocks that are mapped one
//! by one as in ext3, with the blocks of the mapping itself.

use super::ext4_superblock::Super;
use super::plan::Plan;
use super::volume::{ProbeError, Volume, le16, le32};

/// Consecutive blocks.
pub(super) struct Extent {
    /// The first block.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

/// The smallest number of bytes of an inode.
const INODE_BYTES: usize = 128;
/// The offset and length of its map of blocks.
const MAP: usize = 0x28;
const MAP_BYTES: usize = 60;
const FLAG_EXTENTS: u64 = 0x8_0000;
const EXTENT_MAGIC: u64 = 0xF30A;
/// Levels of an extent tree above its leaves.
const DEPTH_MAX: u64 = 5;
/// The most nodes of an extent tree that are read: a journal has few extents.
const NODES_MAX: u64 = 1024;
/// The most blocks mapped one by one that are followed: 4 GiB in blocks of 4 KiB.
const MAPPED_MAX: u64 = 1 << 20;
/// Blocks that the inode maps directly in ext3.
const DIRECT: usize = 12;

/// The blocks of the file whose inode is at the byte `inode`.
pub(super) fn extents<E>(
    volume: &mut Volume<'_, E>,
    sb: &Super,
    plan: &Plan,
    inode: u64,
) -> Result<Vec<Extent>, ProbeError<E>> {
    let inode = volume.bytes(inode, INODE_BYTES)?;
    let mut walk = Walk { volume, sb, plan, found: Vec::new() };
    if le32(&inode, 0x20) & FLAG_EXTENTS != 0 {
        walk.tree(&inode[MAP..MAP + MAP_BYTES])?;
    } else {
        let bytes = le32(&inode, 0x6C) << 32 | le32(&inode, 0x4);
        let mut left = bytes.div_ceil(sb.block).min(MAPPED_MAX);
        for (place, pointer) in inode[MAP..MAP + MAP_BYTES].chunks_exact(4).enumerate() {
            let levels = (place + 1).saturating_sub(DIRECT) as u32;
            walk.mapped(le32(pointer, 0), levels, &mut left)?;
        }
    }
    Ok(walk.found)
}

struct Walk<'a, 'v, E> {
    volume: &'a mut Volume<'v, E>,
    sb: &'a Super,
    plan: &'a Plan,
    found: Vec<Extent>,
}

impl<E> Walk<'_, '_, E> {
    fn block(&mut self, block: u64) -> Result<Vec<u8>, ProbeError<E>> {
        let at = self.plan.byte("journal", block)?;
        self.volume.bytes(at, self.sb.block as usize)
    }

    /// Adds `count` blocks from `first`, which may continue the extent before.
    fn push(&mut self, first: u64, count: u64) -> Result<(), ProbeError<E>> {
        self.plan.inside("journal", first, count)?;
        match self.found.last_mut() {
            Some(last) if last.first + last.count == first => last.count += count,
            _ => self.found.push(Extent { first, count }),
        }
        Ok(())
    }

    /// Follows the extent tree whose root is `root`.
    fn tree(&mut self, root: &[u8]) -> Result<(), ProbeError<E>> {
        let depth = le16(root, 6);
        if depth > DEPTH_MAX {
            let what = "more levels than an extent tree has";
            return Err(self.sb.damage("eh_depth", depth, what).into());
        }
        let mut open = Vec::new();
        self.node(root, depth, &mut open)?;
        let mut nodes = 1;
        while let Some((child, depth)) = open.pop() {
            nodes += 1;
            if nodes > NODES_MAX {
                let what = "or more, of more nodes than the extent tree of a journal has";
                return Err(self.sb.damage("journal", nodes, what).into());
            }
            let node = self.block(child)?;
            self.push(child, 1)?;
            self.node(&node, depth, &mut open)?;
        }
        Ok(())
    }

    /// Adds the extents of a node that has `depth` levels below it, or its children, each with
    /// its depth.
    fn node(
        &mut self,
        node: &[u8],
        depth: u64,
        children: &mut Vec<(u64, u64)>,
    ) -> Result<(), ProbeError<E>> {
        let (magic, entries) = (le16(node, 0), le16(node, 2));
        // The header is as long as an entry.
        let most = node.len() as u64 / 12 - 1;
        if magic != EXTENT_MAGIC || entries > most || le16(node, 6) != depth {
            let what = "in no head of the extent tree of the journal";
            return Err(self.sb.damage("eh_magic", magic, what).into());
        }
        for entry in node.chunks_exact(12).skip(1).take(entries as usize) {
            if depth == 0 {
                // Above 32768 the extent is allocated and not yet written.
                let count = le16(entry, 4);
                let count = if count > 32768 { count - 32768 } else { count };
                self.push(le16(entry, 6) << 32 | le32(entry, 8), count)?;
            } else {
                children.push((le16(entry, 8) << 32 | le32(entry, 4), depth - 1));
            }
        }
        Ok(())
    }

    /// Follows `pointer` over `levels` levels of pointer blocks to blocks of the file, of which
    /// `left` remain. A pointer of 0 is a hole.
    fn mapped(&mut self, pointer: u64, levels: u32, left: &mut u64) -> Result<(), ProbeError<E>> {
        if *left == 0 {
            return Ok(());
        }
        let covered = (self.sb.block / 4).saturating_pow(levels);
        if pointer == 0 {
            *left = left.saturating_sub(covered);
            return Ok(());
        }
        self.push(pointer, 1)?;
        if levels == 0 {
            *left -= 1;
            return Ok(());
        }
        let pointers = self.block(pointer)?;
        pointers
            .chunks_exact(4)
            .try_for_each(|pointer| self.mapped(le32(pointer, 0), levels - 1, left))
    }
}
