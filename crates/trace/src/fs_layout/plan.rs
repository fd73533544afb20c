//! Collects the regions that a superblock describes, and checks them against the size of the
//! volume.

use super::{FsLayout, LayoutError, Region};

/// Addresses stay below 2^63, as those of a trace do.
const BYTES_MAX: u64 = i64::MAX as u64;

/// A field of a file system with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {fs} is damaged: its {field} is {value}, {what}; check it with its own fsck, or name \
     another image"
)]
pub struct Damage {
    /// The file system.
    pub fs: &'static str,
    /// The field, as the file system calls it.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// Why it is invalid.
    pub what: &'static str,
}

/// A layout that is being built.
pub(super) struct Plan {
    fs: &'static str,
    /// Bytes of a block.
    block: u64,
    /// Blocks of the volume.
    blocks: u64,
    pieces: Vec<Region>,
}

impl Plan {
    /// An empty plan of a volume of `blocks` blocks of `block` bytes each.
    pub fn new(fs: &'static str, block: u64, blocks: u64) -> Result<Self, Damage> {
        if block.checked_mul(blocks).is_none_or(|bytes| bytes > BYTES_MAX) {
            let what = "more than 2^63 bytes";
            return Err(Damage { fs, field: "number of blocks", value: blocks, what });
        }
        Ok(Self { fs, block, blocks, pieces: Vec::new() })
    }

    /// The first byte of `block`, which must lie in the volume.
    pub fn byte(&self, field: &'static str, block: u64) -> Result<u64, Damage> {
        self.inside(field, block, 1)?;
        Ok(block * self.block)
    }

    /// An error unless `count` blocks from `first` lie in the volume.
    pub fn inside(&self, field: &'static str, first: u64, count: u64) -> Result<(), Damage> {
        if first.checked_add(count).is_some_and(|end| end <= self.blocks) {
            return Ok(());
        }
        Err(Damage { fs: self.fs, field, value: first, what: "beyond the end of the volume" })
    }

    /// Adds `count` blocks from `first` on, which `field` names; none if `count` is 0.
    pub fn add(
        &mut self,
        field: &'static str,
        (first, count): (u64, u64),
        label: String,
        group: &str,
    ) -> Result<(), Damage> {
        self.inside(field, first, count)?;
        if count > 0 {
            self.pieces.push(region(self.block, first, first + count, label, group));
        }
        Ok(())
    }

    /// Adds the bytes from `start` to `end`, for regions smaller than a block.
    pub fn add_bytes(
        &mut self,
        field: &'static str,
        (start, end): (u64, u64),
        label: String,
        group: &str,
    ) -> Result<(), Damage> {
        self.inside(field, start / self.block, (end - start).div_ceil(self.block))?;
        self.pieces.push(Region { start, end, label, group: group.to_owned() });
        Ok(())
    }

    /// The layout of the added regions, and of `rest` (first block, block after the last,
    /// label), in ascending order, wherever nothing was added.
    pub fn finish(
        self,
        rest: impl Iterator<Item = (u64, u64, String)>,
        rest_group: &str,
    ) -> Result<FsLayout, LayoutError> {
        let Self { fs, block, blocks, mut pieces } = self;
        pieces.sort_by_key(|piece| piece.start);
        let mut gaps = Vec::new();
        let mut covered = 0;
        let mut next = pieces.iter().peekable();
        for (first, end, label) in rest {
            let (mut at, end) = (covered.max(first * block), end * block);
            let mut gap = |from: u64, to: u64| {
                if from < to {
                    let (label, group) = (label.clone(), rest_group.to_owned());
                    gaps.push(Region { start: from, end: to, label, group });
                }
            };
            while let Some(piece) = next.next_if(|piece| piece.start < end) {
                gap(at, piece.start);
                at = at.max(piece.end);
            }
            gap(at, end);
            covered = at.max(end);
        }
        pieces.extend(gaps);
        pieces.sort_by_key(|piece| piece.start);
        pieces.dedup_by(|piece, before| {
            let same = before.end == piece.start && before.label == piece.label;
            if same {
                before.end = piece.end;
            }
            same
        });
        let source = format!("the superblock of {fs}: {blocks} blocks of {block} bytes");
        FsLayout::new(fs, source, pieces)
    }
}

fn region(block: u64, first: u64, end: u64, label: String, group: &str) -> Region {
    Region { start: first * block, end: end * block, label, group: group.to_owned() }
}
