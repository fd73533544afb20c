//! F2FS: two superblocks, then areas of whole segments: checkpoint, SIT, NAT, SSA and the main
//! area, each at the address in the superblock. All numbers are little-endian.

use super::FsLayout;
use super::plan::{Damage, Plan};
use super::volume::{ProbeError, le32, le64};

const SUPERBLOCK: usize = 1024;
const MAGIC: u64 = 0xF2F5_2010;
const NAME: &str = "F2FS";
/// The first of the devices that one file system may span; a path, empty if it is alone.
const DEVICE_PATH: usize = SUPERBLOCK + 2201;

/// An area: its name, its first block and its number of segments in the superblock.
struct Area {
    label: &'static str,
    field: &'static str,
    start: usize,
    segments: usize,
}

const AREAS: [Area; 5] = [
    Area { label: "F2FS checkpoint", field: "cp_blkaddr", start: 76, segments: 52 },
    Area { label: "F2FS SIT", field: "sit_blkaddr", start: 80, segments: 56 },
    Area { label: "F2FS NAT", field: "nat_blkaddr", start: 84, segments: 60 },
    Area { label: "F2FS SSA", field: "ssa_blkaddr", start: 88, segments: 64 },
    Area { label: "F2FS main area", field: "main_blkaddr", start: 92, segments: 68 },
];

/// Whether the first bytes of a volume have the superblock's magic number.
pub(super) fn is_here(head: &[u8]) -> bool {
    le32(head, SUPERBLOCK) == MAGIC
}

/// The layout that the superblock in the first bytes describes.
pub(super) fn layout<E>(head: &[u8]) -> Result<FsLayout, ProbeError<E>> {
    let field = |at: usize| le32(head, SUPERBLOCK + at);
    if head[DEVICE_PATH] != 0 {
        let what = "a part of an F2FS that spans several devices, which has no addresses of its \
                    own; describe the layout in TOML";
        return Err(ProbeError::Unsupported { what });
    }
    let damage = |field, value, what| Damage { fs: NAME, field, value, what };
    let (log_block, log_segment) = (field(16), field(20));
    if !(12..=16).contains(&log_block) {
        return Err(damage("log_blocksize", log_block, "not from 12 to 16").into());
    }
    if log_segment > 16 {
        return Err(damage("log_blocks_per_seg", log_segment, "more than 16").into());
    }
    let mut plan = Plan::new(NAME, 1 << log_block, le64(head, SUPERBLOCK + 36))?;
    plan.add("block_count", (0, 1), "F2FS superblock".into(), "F2FS superblock")?;
    plan.add("block_count", (1, 1), "F2FS superblock copy".into(), "F2FS superblock copy")?;
    // The bytes that align the areas to segments are written only by mkfs.
    let padding = (2, field(72).saturating_sub(2));
    plan.add("segment0_blkaddr", padding, "F2FS padding".into(), "F2FS padding")?;
    for area in AREAS {
        let blocks = (field(area.start), field(area.segments) << log_segment);
        plan.add(area.field, blocks, area.label.into(), area.label)?;
    }
    Ok(plan.finish(std::iter::empty(), "")?)
}
