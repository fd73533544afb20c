//! ext4, ext3 and ext2.

use prism_trace::fs_layout::ProbeError;

use super::Names;
use super::image::{Image, check};

const SUPER: u64 = 1024;
const EXTENT_HEAD: [(u64, usize, u64); 3] = [(0, 2, 0xF30A), (4, 2, 4), (6, 2, 0)];

/// Where the descriptor of a group says its block bitmap, inode bitmap and inode table are.
fn descriptor(image: &mut Image, at: u64, places: [u64; 3]) {
    for (field, place) in places.into_iter().enumerate() {
        image.le(at, &[(4 * field as u64, 4, place)]);
    }
}

/// What `mkfs.ext4` 1.47 makes of 4 GiB: flexible groups of 16, descriptors of 64 bytes,
/// a journal in one extent.
pub fn mkfs_4gib() -> Image {
    let mut image = Image::new(4 << 30);
    image.le(
        SUPER,
        &[
            (0x4, 4, 1_048_576),
            (0x18, 4, 2),
            (0x20, 4, 32_768),
            (0x28, 4, 8192),
            (0x38, 2, 0xEF53),
            (0x4C, 4, 1),
            (0x58, 2, 256),
            (0x5C, 4, 0x3C),
            (0x60, 4, 0x2C2),
            (0x64, 4, 0x46B),
            (0xCE, 2, 511),
            (0xE0, 4, 8),
            (0xFE, 2, 64),
        ],
    );
    for group in 0..32 {
        let (turn, first) = (group % 16, if group < 16 { 513 } else { 524_288 });
        let table = first + 32 + 512 * turn;
        descriptor(&mut image, 4096 + 64 * group, [first + turn, first + 16 + turn, table]);
    }
    let map = 545 * 4096 + 7 * 256 + 0x28;
    image.le(map - 8, &[(0, 4, 0x8_0000)]);
    image.le(map, &EXTENT_HEAD);
    image.le(map, &[(2, 2, 1), (12, 4, 0), (16, 2, 16_384), (20, 4, 491_520)]);
    image
}

/// Every number is from the output of `dumpe2fs`, and of `debugfs -R "stat <8>"`.
#[test]
fn what_dumpe2fs_prints_of_4_gib() {
    let layout = mkfs_4gib().probe().unwrap();
    assert_eq!(layout.name, "ext4");
    let expected = [
        (0, "ext4 superblock"),
        (1, "ext4 group descriptors"),
        (2, "ext4 reserved descriptors"),
        (512, "ext4 reserved descriptors"),
        (513, "ext4 group 0 block bitmap"),
        (514, "ext4 group 1 block bitmap"),
        (529, "ext4 group 0 inode bitmap"),
        (530, "ext4 group 1 inode bitmap"),
        (545, "ext4 group 0 inode table"),
        (1056, "ext4 group 0 inode table"),
        (1057, "ext4 group 1 inode table"),
        (1568, "ext4 group 1 inode table"),
        (8736, "ext4 group 15 inode table"),
        (8743, "ext4 group 0 data"),
        (32_767, "ext4 group 0 data"),
        (32_768, "ext4 group 1 superblock copy"),
        (32_769, "ext4 group 1 descriptors copy"),
        (32_770, "ext4 group 1 reserved descriptors"),
        (33_280, "ext4 group 1 reserved descriptors"),
        (33_281, "ext4 group 1 data"),
        (65_535, "ext4 group 1 data"),
        (65_536, "ext4 group 2 data"),
        (98_304, "ext4 group 3 superblock copy"),
        (491_519, "ext4 group 14 data"),
        (491_520, "ext4 journal"),
        (507_903, "ext4 journal"),
        (507_904, "ext4 group 15 data"),
        (524_288, "ext4 group 16 block bitmap"),
        (524_303, "ext4 group 31 block bitmap"),
        (524_304, "ext4 group 16 inode bitmap"),
        (524_319, "ext4 group 31 inode bitmap"),
        (524_320, "ext4 group 16 inode table"),
        (524_832, "ext4 group 17 inode table"),
        (532_000, "ext4 group 31 inode table"),
        (532_511, "ext4 group 31 inode table"),
        (532_512, "ext4 group 16 data"),
        (1_015_808, "ext4 group 31 data"),
        (1_048_575, "ext4 group 31 data"),
    ];
    check(&layout, 4096, &expected);
    assert_eq!(layout.label(4 << 30), None);
    assert_eq!(layout.group(1057 * 4096), Some("ext4 inode tables"));
    assert_eq!(layout.group(32_769 * 4096), Some("ext4 descriptors copies"));
    let copies = (0..32)
        .filter(|group| layout.group(group * 32_768 * 4096) == Some("ext4 superblock copies"));
    assert_eq!(copies.collect::<Vec<u64>>(), [1, 3, 5, 7, 9, 25, 27]);
}

/// What `mkfs.ext3 -b 1024` makes of 8 MiB, by `dumpe2fs` and `debugfs`:
/// `(0-11):562-573, (IND):574, (12-267):575-830, (DIND):831, (IND):832, (268-523):833-1088,
/// (IND):1089, (524-779):1090-1345, (IND):1346, (780-1023):1347-1590`.
fn mkfs_ext3() -> Image {
    let mut image = Image::new(8 << 20);
    image.le(
        SUPER,
        &[
            (0x4, 4, 8192),
            (0x14, 4, 1),
            (0x20, 4, 8192),
            (0x28, 4, 2048),
            (0x38, 2, 0xEF53),
            (0x4C, 4, 1),
            (0x58, 2, 256),
            (0x5C, 4, 0x3C),
            (0x60, 4, 0x2),
            (0x64, 4, 0x3),
            (0xCE, 2, 31),
            (0xE0, 4, 8),
        ],
    );
    descriptor(&mut image, 2048, [34, 35, 36]);
    let inode = 36 * 1024 + 7 * 256;
    image.le(inode, &[(4, 4, 1 << 20)]);
    let mut list = |at: u64, first: u64, count: u64| {
        (0..count).for_each(|turn| image.le(at, &[(4 * turn, 4, first + turn)]));
    };
    list(inode + 0x28, 562, 12);
    list(574 * 1024, 575, 256);
    list(832 * 1024, 833, 256);
    list(1089 * 1024, 1090, 256);
    list(1346 * 1024, 1347, 244);
    image.le(inode + 0x28, &[(48, 4, 574), (52, 4, 831)]);
    image.le(831 * 1024, &[(0, 4, 832), (4, 4, 1089), (8, 4, 1346)]);
    image
}

#[test]
fn the_journal_of_ext3_is_mapped_block_by_block() {
    let layout = mkfs_ext3().probe().unwrap();
    assert_eq!(layout.name, "ext3");
    let expected = [
        (1, "ext3 superblock"),
        (2, "ext3 group descriptors"),
        (3, "ext3 reserved descriptors"),
        (33, "ext3 reserved descriptors"),
        (34, "ext3 group 0 block bitmap"),
        (35, "ext3 group 0 inode bitmap"),
        (36, "ext3 group 0 inode table"),
        (547, "ext3 group 0 inode table"),
        (561, "ext3 group 0 data"),
        (562, "ext3 journal"),
        (831, "ext3 journal"),
        (1590, "ext3 journal"),
        (1591, "ext3 group 0 data"),
        (8191, "ext3 group 0 data"),
    ];
    check(&layout, 1024, &expected);
    assert_eq!(layout.label(0), None, "the boot sector is not the file system's");
    let journal = layout.regions().iter().filter(|region| region.label == "ext3 journal");
    assert_eq!(journal.map(|region| (region.end - region.start) / 1024).sum::<u64>(), 1029);
}

#[test]
fn without_a_journal_it_is_ext2() {
    let mut image = mkfs_ext3();
    image.le(SUPER, &[(0x5C, 4, 0x38)]);
    let layout = image.probe().unwrap();
    assert_eq!(layout.name, "ext2");
    check(&layout, 1024, &[(562, "ext2 group 0 data")]);
}

/// `mkfs.ext4 -b 1024 -O meta_bg,^resize_inode,^flex_bg,^has_journal` on 256 MiB: 32 groups,
/// the descriptors of each 16 in the first, the second and the last of them.
#[test]
fn descriptors_in_groups_of_their_own() {
    let mut image = Image::new(256 << 20);
    image.le(
        SUPER,
        &[
            (0x4, 4, 262_144),
            (0x14, 4, 1),
            (0x20, 4, 8192),
            (0x28, 4, 2048),
            (0x38, 2, 0xEF53),
            (0x4C, 4, 1),
            (0x58, 2, 256),
            (0x5C, 4, 0x28),
            (0x60, 4, 0xD2),
            (0x64, 4, 0x46B),
            (0xFE, 2, 64),
        ],
    );
    let copies = [0, 1, 3, 5, 7, 9, 25, 27];
    for group in 0..32u64 {
        let own = u64::from([0, 1, 15].contains(&(group % 16)));
        let before = own + u64::from(copies.contains(&group));
        let first = 1 + 8192 * group + before;
        let table = if group < 16 { 2 } else { 131_073 };
        descriptor(&mut image, table * 1024 + group % 16 * 64, [first, first + 1, first + 2]);
    }
    let layout = image.probe().unwrap();
    let expected = [
        (1, "ext4 superblock"),
        (2, "ext4 group 0 descriptors"),
        (8193, "ext4 group 1 superblock copy"),
        (8194, "ext4 group 1 descriptors copy"),
        (122_881, "ext4 group 15 descriptors copy"),
        (131_073, "ext4 group 16 descriptors"),
        (131_074, "ext4 group 16 block bitmap"),
        (131_075, "ext4 group 16 inode bitmap"),
        (131_076, "ext4 group 16 inode table"),
        (131_587, "ext4 group 16 inode table"),
        (131_588, "ext4 group 16 data"),
        (139_265, "ext4 group 17 descriptors copy"),
        (139_266, "ext4 group 17 block bitmap"),
        (204_801, "ext4 group 25 superblock copy"),
        (204_802, "ext4 group 25 block bitmap"),
        (253_953, "ext4 group 31 descriptors copy"),
        (254_467, "ext4 group 31 inode table"),
        (254_468, "ext4 group 31 data"),
        (262_143, "ext4 group 31 data"),
    ];
    check(&layout, 1024, &expected);
}

/// An extent tree with a level below its root, and an extent that is not yet written.
#[test]
fn the_journal_may_have_a_deeper_tree() {
    let mut image = mkfs_4gib();
    let (map, node) = (545 * 4096 + 7 * 256 + 0x28, 70_000 * 4096);
    image.le(map, &[(6, 2, 1), (16, 4, 70_000), (20, 2, 0)]);
    image.le(node, &EXTENT_HEAD);
    image.le(node, &[(2, 2, 2), (16, 2, 100), (20, 4, 80_000)]);
    image.le(node, &[(24 + 4, 2, 32_768 + 50), (24 + 8, 4, 90_000)]);
    let layout = image.probe().unwrap();
    let journal = layout.regions().iter().filter(|region| region.label == "ext4 journal");
    let blocks = journal.map(|region| (region.start / 4096, region.end / 4096));
    assert_eq!(blocks.collect::<Vec<_>>(), [(70_000, 70_001), (80_000, 80_100), (90_000, 90_050)]);
}

#[test]
fn copies_may_be_everywhere_or_in_two_groups() {
    let copies = |fields: &[(u64, usize, u64)]| {
        let mut image = mkfs_4gib();
        image.le(SUPER, &[(0xCE, 2, 0)]);
        image.le(SUPER, fields);
        let layout = image.probe().unwrap();
        let has_copy =
            |group: &u64| layout.group(group * 32_768 * 4096) == Some("ext4 superblock copies");
        (0..32).filter(has_copy).collect::<Vec<u64>>()
    };
    assert_eq!(copies(&[(0x5C, 4, 0x23C), (0x24C, 4, 1), (0x250, 4, 31)]), [1, 31]);
    let mut image = mkfs_4gib();
    image.le(SUPER, &[(0x64, 4, 0x46A)]);
    let text = image.probe().unwrap_err().to_string();
    // In this image the journal is where the copy of group 15 would be.
    assert!(text.contains("\"ext4 group 15 superblock copy\""), "{text}");
}

#[test]
fn fields_that_cannot_be_right_are_named() {
    let check = |fields: &[(u64, usize, u64)], says: &str| {
        let mut image = mkfs_4gib();
        fields.iter().for_each(|&(at, width, value)| image.le(0, &[(at, width, value)]));
        let text = image.probe().unwrap_err().to_string();
        assert!(text.contains(says), "{text}");
    };
    let table = 4096 + 8;
    let map = 545 * 4096 + 7 * 256 + 0x28;
    check(&[(SUPER + 0x18, 4, 7)], "s_log_block_size is 131072");
    check(&[(SUPER + 0x18, 4, u64::MAX)], "s_log_block_size");
    check(&[(SUPER + 0x14, 4, 2)], "s_first_data_block is 2");
    check(&[(SUPER + 0x20, 4, 0)], "s_blocks_per_group is 0");
    check(&[(SUPER + 0x20, 4, 1)], "number of groups is 1048576");
    check(&[(SUPER + 0x4, 4, 0)], "number of groups is 0");
    check(&[(SUPER + 0x28, 4, 0)], "s_inodes_per_group is 0");
    check(&[(SUPER + 0x28, 4, u64::MAX)], "bg_inode_table is 545, beyond the end");
    check(&[(SUPER + 0x58, 2, 100)], "s_inode_size is 100");
    check(&[(SUPER + 0xFE, 2, 24)], "s_desc_size is 24");
    check(&[(SUPER + 0x150, 4, u64::MAX)], "number of groups");
    check(&[(SUPER + 0xE0, 4, 262_145)], "s_journal_inum is 262145, beyond the last inode");
    check(&[(table, 4, 1_048_576)], "bg_inode_table is 1048576, beyond the end");
    check(&[(table + 0x20, 4, 1)], "bg_inode_table is 4294967841");
    check(&[(table, 4, 546)], "\"ext4 group 1 inode table\" starts at byte 4329472, inside of");
    check(&[(map, 2, 0)], "eh_magic is 0");
    check(&[(map + 2, 2, 5)], "eh_magic");
    check(&[(map + 6, 2, 6)], "eh_depth is 6");
    check(&[(map + 6, 2, 1), (map + 16, 8, 0)], "eh_magic is 0");
    check(&[(map + 20, 4, 1_048_570)], "journal is 1048570, beyond the end");
}

#[test]
fn an_external_journal_is_no_file_system() {
    let mut image = mkfs_4gib();
    image.le(SUPER, &[(0x60, 4, 8)]);
    assert!(matches!(image.probe(), Err(ProbeError::Unsupported { .. })));
}
