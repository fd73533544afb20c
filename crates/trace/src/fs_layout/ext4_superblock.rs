//! The superblock of ext4 (with ext3 and ext2), and what follows from it: where the groups,
//! the copies of the superblock and the descriptors of groups are.

use super::plan::Damage;
use super::volume::{ProbeError, le16, le32};

const SUPERBLOCK: usize = 1024;
const MAGIC: u64 = 0xEF53;
/// Groups of the largest file system that is laid out: 32 TiB in groups of the usual
/// 128 MiB, of which the descriptors take 16 MiB.
const GROUPS_MAX: u64 = 1 << 18;
const COMPAT_JOURNAL: u64 = 0x4;
const COMPAT_SPARSE_SUPER2: u64 = 0x200;
const INCOMPAT_JOURNAL_DEV: u64 = 0x8;
const INCOMPAT_META_BG: u64 = 0x10;
const INCOMPAT_EXTENTS: u64 = 0x40;
const INCOMPAT_64BIT: u64 = 0x80;
const RO_COMPAT_SPARSE_SUPER: u64 = 0x1;

/// Whether the first bytes of a volume have the superblock's magic number.
pub(super) fn is_here(head: &[u8]) -> bool {
    le16(head, SUPERBLOCK + 0x38) == MAGIC
}

/// What the superblock says.
pub(super) struct Super {
    /// ext4, ext3 or ext2.
    pub name: &'static str,
    /// Bytes of a block.
    pub block: u64,
    pub blocks: u64,
    /// The block of the first group; 1 if blocks are so small that the boot sector has one
    /// of its own.
    pub first: u64,
    pub group_blocks: u64,
    pub groups: u64,
    pub group_inodes: u64,
    pub inode_bytes: u64,
    /// The journal's inode, from 1; 0 if there is none on this volume.
    pub journal: u64,
    pub descriptor_bytes: u64,
    /// Blocks reserved after the descriptors for more of them.
    pub reserved: u64,
    /// The first descriptor block that is in a group of its own.
    pub first_meta_group: u64,
    copies: Copies,
}

/// Which groups have a copy of the superblock.
enum Copies {
    All,
    /// The first two, and the powers of 3, 5 and 7.
    Powers,
    These([u64; 2]),
}

impl Super {
    /// Reads and checks the superblock in the first bytes of a volume.
    pub fn read<E>(head: &[u8]) -> Result<Self, ProbeError<E>> {
        let head = &head[SUPERBLOCK..];
        let (compat, incompat) = (le32(head, 0x5C), le32(head, 0x60));
        if incompat & INCOMPAT_JOURNAL_DEV != 0 {
            let what = "the external journal of an ext4; name the device of the file system";
            return Err(ProbeError::Unsupported { what });
        }
        let has = |set: u64, bit: u64| set & bit != 0;
        let is_64bit = has(incompat, INCOMPAT_64BIT);
        let high = if is_64bit { le32(head, 0x150) << 32 } else { 0 };
        let (first, blocks, group_blocks) =
            (le32(head, 0x14), high | le32(head, 0x4), le32(head, 0x20));
        let name = match (has(incompat, INCOMPAT_EXTENTS) || is_64bit, has(compat, COMPAT_JOURNAL))
        {
            (true, _) => "ext4",
            (false, true) => "ext3",
            (false, false) => "ext2",
        };
        let copies = if has(compat, COMPAT_SPARSE_SUPER2) {
            Copies::These([le32(head, 0x24C), le32(head, 0x250)])
        } else if has(le32(head, 0x64), RO_COMPAT_SPARSE_SUPER) {
            Copies::Powers
        } else {
            Copies::All
        };
        let this = Self {
            name,
            block: 1024 << le32(head, 0x18).min(32),
            blocks,
            first,
            group_blocks,
            groups: blocks.saturating_sub(first).div_ceil(group_blocks.max(1)),
            group_inodes: le32(head, 0x28),
            inode_bytes: if le32(head, 0x4C) == 0 { 128 } else { le16(head, 0x58) },
            journal: if has(compat, COMPAT_JOURNAL) { le32(head, 0xE0) } else { 0 },
            descriptor_bytes: if is_64bit { le16(head, 0xFE) } else { 32 },
            reserved: le16(head, 0xCE),
            first_meta_group: if has(incompat, INCOMPAT_META_BG) {
                le32(head, 0x104)
            } else {
                u64::MAX
            },
            copies,
        };
        this.check()?;
        Ok(this)
    }

    fn check(&self) -> Result<(), Damage> {
        let size =
            |bytes: u64, low: u64| bytes.is_power_of_two() && (low..=self.block).contains(&bytes);
        for (right, field, value, what) in [
            (self.block <= 65536, "s_log_block_size", self.block, "bytes, more than 65536"),
            (self.first <= 1, "s_first_data_block", self.first, "neither 0 nor 1"),
            (self.group_blocks > 0, "s_blocks_per_group", 0, "which is none"),
            (
                (1..=GROUPS_MAX).contains(&self.groups),
                "number of groups",
                self.groups,
                "not from 1 to 262144, which are laid out",
            ),
            (self.group_inodes > 0, "s_inodes_per_group", 0, "which is none"),
            (
                size(self.inode_bytes, 128),
                "s_inode_size",
                self.inode_bytes,
                "no power of two from 128 to the size of a block",
            ),
            (
                size(self.descriptor_bytes, 32),
                "s_desc_size",
                self.descriptor_bytes,
                "no power of two from 32 to the size of a block",
            ),
        ] {
            if !right {
                return Err(Damage { fs: self.name, field, value, what });
            }
        }
        Ok(())
    }

    /// An error of this file system.
    pub fn damage(&self, field: &'static str, value: u64, what: &'static str) -> Damage {
        Damage { fs: self.name, field, value, what }
    }

    /// The first block of `group`.
    pub fn group_start(&self, group: u64) -> u64 {
        self.first + group * self.group_blocks
    }

    /// The block of the superblock, or of its copy in `group` if there is one.
    pub fn superblock(&self, group: u64) -> Option<u64> {
        let power = |base: u64| {
            let mut rest = group;
            while rest > 1 && rest.is_multiple_of(base) {
                rest /= base;
            }
            rest == 1
        };
        let is_here = match self.copies {
            _ if group == 0 => return Some(SUPERBLOCK as u64 / self.block),
            Copies::All => true,
            Copies::Powers => [3, 5, 7].into_iter().any(power),
            Copies::These(groups) => groups.contains(&group),
        };
        is_here.then(|| self.group_start(group))
    }

    /// Descriptors of groups in one block.
    pub fn descriptors_per_block(&self) -> u64 {
        self.block / self.descriptor_bytes
    }

    /// Descriptor blocks after each superblock.
    pub fn descriptor_blocks(&self) -> u64 {
        self.groups.div_ceil(self.descriptors_per_block()).min(self.first_meta_group)
    }

    /// Where block `number` of the descriptors is.
    pub fn descriptor_block(&self, number: u64) -> u64 {
        if number < self.first_meta_group {
            return SUPERBLOCK as u64 / self.block + 1 + number;
        }
        let group = number * self.descriptors_per_block();
        self.superblock(group).map_or(self.group_start(group), |at| at + 1)
    }

    /// Blocks of an inode table.
    pub fn table_blocks(&self) -> u64 {
        (self.group_inodes * self.inode_bytes).div_ceil(self.block)
    }
}
