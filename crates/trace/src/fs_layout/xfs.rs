//! XFS: allocation groups of equal size, each with four sectors of headers and the roots of its
//! B+trees, and a log in one of them. All numbers are big-endian.

use super::FsLayout;
use super::plan::{Damage, Plan};
use super::volume::{ProbeError, Volume, be16, be32, be64};

const MAGIC: &[u8] = b"XFSB";
const NAME: &str = "XFS";
/// The most allocation groups: 64 PiB in groups of the usual 1 TiB.
const GROUPS_MAX: u64 = 1 << 16;
/// The headers at the start of each group, a sector each.
const HEADERS: [&str; 4] = ["superblock", "AGF", "AGI", "AGFL"];

/// Features of version 5 with additional trees.
const FINOBT: u64 = 1;
const RMAPBT: u64 = 2;
const REFLINK: u64 = 4;

/// Whether the first bytes of a volume are a superblock.
pub(super) fn is_here(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// The sizes in the superblock.
struct Sizes {
    block: u64,
    blocks: u64,
    sector: u64,
    groups: u64,
    group_blocks: u64,
    /// Bits of a block number that are its index in its group.
    group_bits: u64,
}

impl Sizes {
    fn read(head: &[u8]) -> Result<Self, Damage> {
        let sizes = Self {
            block: be32(head, 4),
            blocks: be64(head, 8),
            sector: be16(head, 102),
            groups: be32(head, 88),
            group_blocks: be32(head, 84),
            group_bits: head[124].into(),
        };
        let Self { block, blocks, sector, groups, group_blocks, group_bits } = sizes;
        let last = groups.wrapping_sub(1).wrapping_mul(group_blocks);
        for (right, field, value, what) in [
            (
                block.is_power_of_two() && (512..=65536).contains(&block),
                "sb_blocksize",
                block,
                "no power of two from 512 to 65536",
            ),
            (
                sector.is_power_of_two() && sector >= 512 && sector <= block,
                "sb_sectsize",
                sector,
                "no power of two from 512 to the size of a block",
            ),
            ((1..=GROUPS_MAX).contains(&groups), "sb_agcount", groups, "not from 1 to 65536"),
            (
                group_bits <= 32 && group_blocks > 0 && group_blocks <= 1 << group_bits.min(32),
                "sb_agblocks",
                group_blocks,
                "not what sb_agblklog allows",
            ),
            (
                blocks > last && blocks - last <= group_blocks,
                "sb_dblocks",
                blocks,
                "not what the groups hold",
            ),
        ] {
            if !right {
                return Err(Damage { fs: NAME, field, value, what });
            }
        }
        Ok(sizes)
    }

    /// The first block of group `number`, and the number of its blocks.
    fn group(&self, number: u64) -> (u64, u64) {
        let first = number * self.group_blocks;
        (first, self.group_blocks.min(self.blocks - first))
    }
}

/// The layout of the volume that begins with `head`.
pub(super) fn layout<E>(
    volume: &mut Volume<'_, E>,
    head: &[u8],
) -> Result<FsLayout, ProbeError<E>> {
    let sizes = Sizes::read(head)?;
    let mut plan = Plan::new(NAME, sizes.block, sizes.blocks)?;
    let version = be16(head, 100) & 15;
    let features = if version >= 5 { be32(head, 212) } else { 0 };
    let header_blocks = (sizes.sector * HEADERS.len() as u64).div_ceil(sizes.block);
    for number in 0..sizes.groups {
        let (first, blocks) = sizes.group(number);
        if blocks <= header_blocks {
            let what = "so few that the last group has no space for its headers";
            let (field, value) = ("sb_dblocks", sizes.blocks);
            return Err(Damage { fs: NAME, field, value, what }.into());
        }
        let start = plan.byte("sb_agblocks", first)?;
        for (name, at) in HEADERS.into_iter().zip(0..) {
            let sector = (start + at * sizes.sector, start + (at + 1) * sizes.sector);
            let group = format!("XFS {name}");
            plan.add_bytes("sb_agblocks", sector, format!("XFS AG {number} {name}"), &group)?;
        }
        for root in roots(volume, start, sizes.sector, features)? {
            if !(header_blocks..blocks).contains(&root.block) {
                let what = "outside of its group, or in the headers";
                let Root { field, block: value } = root;
                return Err(Damage { fs: NAME, field, value, what }.into());
            }
            let label = format!("XFS AG {number} B+tree roots");
            plan.add(root.field, (first + root.block, 1), label, "XFS B+tree roots")?;
        }
    }
    add_log(&mut plan, &sizes, head)?;
    let data = (0..sizes.groups).map(|number| {
        let (first, blocks) = sizes.group(number);
        // The rest of the header blocks is not used.
        (first + header_blocks, first + blocks, format!("XFS AG {number} data"))
    });
    Ok(plan.finish(data, "XFS data")?)
}

fn add_log(plan: &mut Plan, sizes: &Sizes, head: &[u8]) -> Result<(), Damage> {
    let (log, log_blocks) = (be64(head, 48), be32(head, 96));
    // An external log has no first block here.
    if log == 0 {
        return Ok(());
    }
    let (number, place) = (log >> sizes.group_bits, log & ((1 << sizes.group_bits) - 1));
    if number >= sizes.groups || place >= sizes.group_blocks {
        let what = "outside of every group";
        return Err(Damage { fs: NAME, field: "sb_logstart", value: log, what });
    }
    let first = sizes.group(number).0 + place;
    plan.add("sb_logblocks", (first, log_blocks), "XFS log".into(), "XFS log")
}

/// The root of a B+tree: a block of its group.
struct Root {
    field: &'static str,
    block: u64,
}

/// The roots of the trees of the group that begins at the byte `start`.
fn roots<E>(
    volume: &mut Volume<'_, E>,
    start: u64,
    sector: u64,
    features: u64,
) -> Result<Vec<Root>, ProbeError<E>> {
    let agf = volume.bytes(start + sector, 512)?;
    let agi = volume.bytes(start + 2 * sector, 512)?;
    for (bytes, magic, field) in [(&agf, b"XAGF", "agf_magicnum"), (&agi, b"XAGI", "agi_magicnum")]
    {
        if !bytes.starts_with(magic) {
            let what = "not the magic number";
            return Err(Damage { fs: NAME, field, value: be32(bytes, 0), what }.into());
        }
    }
    let always = u64::MAX;
    let all = [
        ("agf_bno_root", always, &agf, 16),
        ("agf_cnt_root", always, &agf, 20),
        ("agf_rmap_root", RMAPBT, &agf, 24),
        ("agf_refcount_root", REFLINK, &agf, 88),
        ("agi_root", always, &agi, 20),
        ("agi_free_root", FINOBT, &agi, 328),
    ];
    let present =
        all.into_iter().filter(|(_, feature, ..)| *feature == always || features & feature != 0);
    Ok(present.map(|(field, _, bytes, at)| Root { field, block: be32(bytes, at) }).collect())
}
