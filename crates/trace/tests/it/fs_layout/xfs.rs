//! XFS.

use super::Names;
use super::image::{Image, check};

/// What `mkfs.xfs` 6.1 makes of 4 GiB.
pub fn mkfs_4gib() -> Image {
    let mut image = Image::new(4 << 30);
    image.put(0, b"XFSB");
    image.be(
        0,
        &[
            (4, 4, 4096),
            (8, 8, 1_048_576),
            (48, 8, 524_294),
            (84, 4, 262_144),
            (88, 4, 4),
            (96, 4, 16_384),
            (100, 2, 0xB4A5),
            (102, 2, 512),
            (124, 1, 18),
            (212, 4, 0xD),
        ],
    );
    for group in 0..4 {
        let start = group << 30;
        image.put(start + 512, b"XAGF");
        image.be(start + 512, &[(16, 4, 1), (20, 4, 2), (88, 4, 5)]);
        image.put(start + 1024, b"XAGI");
        image.be(start + 1024, &[(20, 4, 3), (328, 4, 4)]);
    }
    image
}

/// Every number is from the output of `xfs_info` and `xfs_db` (`sb 0`, `agf 0`, `agi 0`).
#[test]
fn what_xfs_db_prints_of_4_gib() {
    let layout = mkfs_4gib().probe().unwrap();
    assert_eq!(layout.name, "XFS");
    let sectors = [
        (0, "XFS AG 0 superblock"),
        (1, "XFS AG 0 AGF"),
        (2, "XFS AG 0 AGI"),
        (3, "XFS AG 0 AGFL"),
        (8, "XFS AG 0 B+tree roots"),
        (47, "XFS AG 0 B+tree roots"),
        (48, "XFS AG 0 data"),
        (2_097_151, "XFS AG 0 data"),
        (2_097_152, "XFS AG 1 superblock"),
        (2_097_155, "XFS AG 1 AGFL"),
        (6_291_456, "XFS AG 3 superblock"),
        (8_388_607, "XFS AG 3 data"),
    ];
    check(&layout, 512, &sectors);
    // logstart 524294 is block 6 of group 2 = 524294 >> 18, and the log has 16384 blocks.
    let blocks = [
        (524_293, "XFS AG 2 B+tree roots"),
        (524_294, "XFS log"),
        (540_677, "XFS log"),
        (540_678, "XFS AG 2 data"),
    ];
    check(&layout, 4096, &blocks);
    assert_eq!(layout.label(4 * 512), None, "the rest of the block of headers is not used");
    assert_eq!((layout.label(4 << 30), layout.group(1 << 30)), (None, Some("XFS superblock")));
}

/// Groups whose size is no power of two, large sectors, a reverse map, a short last group.
#[test]
fn block_numbers_are_of_groups_and_places() {
    let mut image = mkfs_4gib();
    let fields = [(84, 4, 200_000), (88, 4, 6), (102, 2, 4096), (212, 4, 2), (48, 8, 5 << 18 | 9)];
    image.be(0, &fields);
    image.be(0, &[(96, 4, 100)]);
    for group in 0..6 {
        let start = group * 200_000 * 4096;
        image.put(start + 4096, b"XAGF");
        image.be(start + 4096, &[(16, 4, 4), (20, 4, 5), (24, 4, 6)]);
        image.put(start + 8192, b"XAGI");
        image.be(start + 8192, &[(20, 4, 7)]);
    }
    let expected = [
        (200_003, "XFS AG 1 AGFL"),
        (200_004, "XFS AG 1 B+tree roots"),
        (200_007, "XFS AG 1 B+tree roots"),
        (200_008, "XFS AG 1 data"),
        (1_000_000, "XFS AG 5 superblock"),
        (1_000_008, "XFS AG 5 data"),
        (1_000_009, "XFS log"),
        (1_000_108, "XFS log"),
        (1_000_109, "XFS AG 5 data"),
        (1_048_575, "XFS AG 5 data"),
    ];
    check(&image.probe().unwrap(), 4096, &expected);
}

#[test]
fn an_external_log_and_the_old_version_have_fewer_fields() {
    let mut image = mkfs_4gib();
    image.be(0, &[(48, 8, 0), (100, 2, 0xB4A4), (212, 4, u64::MAX)]);
    let layout = image.probe().unwrap();
    assert!(layout.regions().iter().all(|region| region.label != "XFS log"));
    // The trees of free inodes and references came with version 5.
    let expected = [(3, "XFS AG 0 B+tree roots"), (4, "XFS AG 0 data"), (524_294, "XFS AG 2 data")];
    check(&layout, 4096, &expected);
}

#[test]
fn fields_that_cannot_be_right_are_named() {
    let check = |fields: &[(u64, usize, u64)], says: &str| {
        let mut image = mkfs_4gib();
        image.be(0, fields);
        let text = image.probe().unwrap_err().to_string();
        assert!(text.contains(says), "{text}");
    };
    check(&[(4, 4, 0)], "sb_blocksize is 0");
    check(&[(4, 4, 4095)], "sb_blocksize is 4095");
    check(&[(102, 2, 8192)], "sb_sectsize is 8192");
    check(&[(88, 4, 0)], "sb_agcount is 0");
    check(&[(88, 4, 70_000)], "sb_agcount is 70000");
    check(&[(84, 4, 0)], "sb_agblocks is 0");
    check(&[(124, 1, 17)], "sb_agblocks is 262144");
    check(&[(124, 1, 255)], "sb_agblocks is 262144");
    check(&[(8, 8, 786_432)], "sb_dblocks is 786432");
    check(&[(8, 8, 1_048_577)], "sb_dblocks is 1048577");
    check(&[(8, 8, 786_433)], "no space for its headers");
    check(&[(8, 8, u64::MAX)], "sb_dblocks");
    check(&[(48, 8, 4 << 18)], "sb_logstart is 1048576");
    check(&[(48, 8, u64::MAX)], "sb_logstart");
    check(&[(96, 4, u64::MAX)], "sb_logblocks is 524294, beyond the end");
    check(&[(48, 8, 524_293)], "\"XFS log\"");
    check(&[(512, 4, 7)], "agf_magicnum is 7");
    check(&[(1024, 4, 7)], "agi_magicnum is 7");
    check(&[(512 + 16, 4, 0)], "agf_bno_root is 0");
    check(&[(1024 + 20, 4, 262_144)], "agi_root is 262144");
}
