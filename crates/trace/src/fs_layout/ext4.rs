//! ext4 (with ext3 and ext2): block groups with bitmaps and inode tables at the addresses in
//! their descriptors, which with flexible groups are in the first of several groups; copies of
//! the superblock and the descriptors in some groups; a journal, which is a file. All numbers
//! are little-endian.

use super::FsLayout;
use super::ext4_journal::{self, Extent};
use super::ext4_superblock::Super;
use super::plan::{Damage, Plan};
use super::volume::{ProbeError, Volume, le32};

/// Bytes of descriptors that are read at once.
const READ_BYTES: usize = 1 << 20;

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
        // A descriptor block in a group of its own is read alone.
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
    // The number of the descriptor block that this group has for itself and its neighbours.
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
