//! ext4 (with ext3 and ext2): block groups whose bitmaps and inode tables stand where
//! their descriptors say, which with flexible groups is in the first of several; copies
//! of the superblock and the descriptors in some of them; a journal, which is a file. All
//! numbers have their low byte first.

use super::FsLayout;
use super::ext4_journal::{self, Extent};
use super::plan::{Damage, Plan};
use super::probe::{ProbeError, Volume, le16, le32};

const SUPERBLOCK: usize = 1024;
const MAGIC: u64 = 0xEF53;
/// Groups of the largest file system that is laid out: 32 TiB in groups of the usual
/// 128 MiB, of which the descriptors take 16 MiB.
const GROUPS_MAX: u64 = 1 << 18;
/// Bytes of descriptors that are read at once.
const READ_BYTES: usize = 1 << 20;

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
    name: &'static str,
    /// Bytes of a block.
    pub block: u64,
    blocks: u64,
    /// The block of the first group; 1 if blocks are so small that the boot sector has one
    /// of its own.
    first: u64,
    group_blocks: u64,
    groups: u64,
    pub group_inodes: u64,
    pub inode_bytes: u64,
    /// The journal's inode, from 1; 0 if there is none on this volume.
    pub journal: u64,
    descriptor_bytes: u64,
    /// Blocks kept beside the descriptors so that more fit in.
    reserved: u64,
    /// The first group of descriptors that stand in groups of their own.
    first_meta_group: u64,
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
    fn read<E>(head: &[u8]) -> Result<Self, ProbeError<E>> {
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

    fn group_start(&self, group: u64) -> u64 {
        self.first + group * self.group_blocks
    }

    /// The block of the superblock, or of its copy in `group` if there is one.
    fn superblock(&self, group: u64) -> Option<u64> {
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

    fn descriptors_per_block(&self) -> u64 {
        self.block / self.descriptor_bytes
    }

    /// Blocks of descriptors that stand behind each superblock.
    fn descriptor_blocks(&self) -> u64 {
        self.groups.div_ceil(self.descriptors_per_block()).min(self.first_meta_group)
    }

    /// Where block `number` of the descriptors is.
    fn descriptor_block(&self, number: u64) -> u64 {
        if number < self.first_meta_group {
            return SUPERBLOCK as u64 / self.block + 1 + number;
        }
        let group = number * self.descriptors_per_block();
        self.superblock(group).map_or(self.group_start(group), |at| at + 1)
    }

    /// Blocks of an inode table.
    fn table_blocks(&self) -> u64 {
        (self.group_inodes * self.inode_bytes).div_ceil(self.block)
    }
}

/// What the descriptor of a group says.
struct Descriptor {
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
}

/// The layout of the volume that begins with `head`.
pub(super) fn layout<E>(
    volume: &mut Volume<'_, E>,
    head: &[u8],
) -> Result<FsLayout, ProbeError<E>> {
    let sb = Super::read(head)?;
    let mut plan = Plan::new(sb.name, sb.block, sb.blocks)?;
    let descriptors = descriptors(volume, &sb, &plan)?;
    for (group, descriptor) in (0..).zip(&descriptors) {
        add_copies(&mut plan, &sb, group)?;
        add_tables(&mut plan, &sb, group, descriptor)?;
    }
    if sb.journal > 0 {
        let group = (sb.journal - 1) / sb.group_inodes;
        let place = (sb.journal - 1) % sb.group_inodes * sb.inode_bytes;
        let table = usize::try_from(group).ok().and_then(|group| descriptors.get(group));
        let Some(Descriptor { inode_table, .. }) = table else {
            return Err(sb.damage("s_journal_inum", sb.journal, "beyond the last inode").into());
        };
        let inode = plan.byte("bg_inode_table", *inode_table)? + place;
        for Extent { first, count } in ext4_journal::extents(volume, &sb, &plan, inode)? {
            let label = format!("{} journal", sb.name);
            plan.add("journal", (first, count), label.clone(), &label)?;
        }
    }
    let data = (0..sb.groups).map(|group| {
        let first = sb.group_start(group);
        let end = (first + sb.group_blocks).min(sb.blocks);
        (first, end, format!("{} group {group} data", sb.name))
    });
    Ok(plan.finish(data, &format!("{} data", sb.name))?)
}

/// The descriptors of all groups.
fn descriptors<E>(
    volume: &mut Volume<'_, E>,
    sb: &Super,
    plan: &Plan,
) -> Result<Vec<Descriptor>, ProbeError<E>> {
    let size = sb.descriptor_bytes as usize;
    let wide = size >= 64;
    let mut found = Vec::new();
    let blocks = sb.groups.div_ceil(sb.descriptors_per_block());
    let at_once = READ_BYTES as u64 / sb.block;
    let mut number = 0;
    while number < blocks {
        // Those of a group of their own stand alone.
        let count = match number < sb.first_meta_group {
            true => at_once.min(blocks.min(sb.first_meta_group) - number),
            false => 1,
        };
        let first = sb.descriptor_block(number);
        plan.inside("group descriptors", first, count)?;
        let bytes = volume.bytes(first * sb.block, (count * sb.block) as usize)?;
        let left = sb.groups as usize - found.len();
        found.extend(bytes.chunks_exact(size).take(left).map(|bytes| {
            let wide = |low: usize, high: usize| {
                let high = if wide { le32(bytes, high) << 32 } else { 0 };
                high | le32(bytes, low)
            };
            Descriptor {
                block_bitmap: wide(0x0, 0x20),
                inode_bitmap: wide(0x4, 0x24),
                inode_table: wide(0x8, 0x28),
            }
        }));
        number += count;
    }
    Ok(found)
}

/// Adds the superblock and the descriptors, or the copies of them, that `group` has.
fn add_copies(plan: &mut Plan, sb: &Super, group: u64) -> Result<(), Damage> {
    let name = sb.name;
    let at = sb.superblock(group);
    // Groups of descriptors that have a block in this group, for themselves.
    let own = group / sb.descriptors_per_block();
    let place = group % sb.descriptors_per_block();
    let is_own =
        own >= sb.first_meta_group && [0, 1, sb.descriptors_per_block() - 1].contains(&place);
    if let Some(at) = at {
        let kind = if group == 0 { "superblock" } else { "superblock copies" };
        let label = match group {
            0 => format!("{name} superblock"),
            _ => format!("{name} group {group} superblock copy"),
        };
        plan.add("superblock", (at, 1), label, &format!("{name} {kind}"))?;
        let (label, kind) = match group {
            0 => (format!("{name} group descriptors"), "group descriptors"),
            _ => (format!("{name} group {group} descriptors copy"), "descriptors copies"),
        };
        let blocks = (at + 1, sb.descriptor_blocks());
        plan.add("group descriptors", blocks, label, &format!("{name} {kind}"))?;
        let label = match group {
            0 => format!("{name} reserved descriptors"),
            _ => format!("{name} group {group} reserved descriptors"),
        };
        let reserved = (at + 1 + sb.descriptor_blocks(), sb.reserved);
        let kind = format!("{name} reserved descriptors");
        plan.add("s_reserved_gdt_blocks", reserved, label, &kind)?;
    }
    if is_own {
        let first = at.map_or(sb.group_start(group), |at| at + 1);
        let (label, kind) = match place {
            0 => (format!("{name} group {group} descriptors"), "group descriptors"),
            _ => (format!("{name} group {group} descriptors copy"), "descriptors copies"),
        };
        plan.add("group descriptors", (first, 1), label, &format!("{name} {kind}"))?;
    }
    Ok(())
}

/// Adds the bitmaps and the inode table of `group`.
fn add_tables(
    plan: &mut Plan,
    sb: &Super,
    group: u64,
    descriptor: &Descriptor,
) -> Result<(), Damage> {
    for (field, first, count, what) in [
        ("bg_block_bitmap", descriptor.block_bitmap, 1, "block bitmap"),
        ("bg_inode_bitmap", descriptor.inode_bitmap, 1, "inode bitmap"),
        ("bg_inode_table", descriptor.inode_table, sb.table_blocks(), "inode table"),
    ] {
        let name = sb.name;
        let label = format!("{name} group {group} {what}");
        plan.add(field, (first, count), label, &format!("{name} {what}s"))?;
    }
    Ok(())
}
