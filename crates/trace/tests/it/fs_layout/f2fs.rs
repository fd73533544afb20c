//! F2FS.

use prism_trace::fs_layout::ProbeError;

use super::Names;
use super::image::{ENDS, Image, check};

const SUPER: u64 = 1024;

/// What `mkfs.f2fs` 1.15 makes of 4 GiB.
pub fn mkfs_4gib() -> Image {
    let mut image = Image::new(4 << 30);
    image.le(
        SUPER,
        &[
            (0, 4, 0xF2F5_2010),
            (16, 4, 12),
            (20, 4, 9),
            (36, 8, 1_048_576),
            (52, 4, 2),
            (56, 4, 2),
            (60, 4, 10),
            (64, 4, 4),
            (68, 4, 2029),
            (72, 4, 512),
            (76, 4, 512),
            (80, 4, 1536),
            (84, 4, 2560),
            (88, 4, 7680),
            (92, 4, 9728),
        ],
    );
    image
}

/// Every number is from the output of `fsck.f2fs -d 1`: addresses of blocks, and segments
/// of 512 blocks.
#[test]
fn what_fsck_prints_of_4_gib() {
    let layout = mkfs_4gib().probe().unwrap();
    let expected = [
        (0, "F2FS superblock"),
        (1, "F2FS superblock copy"),
        (2, "F2FS padding"),
        (511, "F2FS padding"),
        (512, "F2FS checkpoint"),
        (1535, "F2FS checkpoint"),
        (1536, "F2FS SIT"),
        (2559, "F2FS SIT"),
        (2560, "F2FS NAT"),
        (7679, "F2FS NAT"),
        (7680, "F2FS SSA"),
        (9727, "F2FS SSA"),
        (9728, "F2FS main area"),
        (1_048_575, "F2FS main area"),
    ];
    check(&layout, 4096, &expected);
    assert_eq!((layout.name.as_str(), layout.label(4 << 30)), ("F2FS", None));
}

#[test]
fn fields_that_cannot_be_right_are_named() {
    let check = |fields: &[(u64, usize, u64)], says: &str| {
        let mut image = mkfs_4gib();
        image.le(SUPER, fields);
        let text = image.probe().unwrap_err().to_string();
        assert!(text.contains(says), "{text}");
    };
    check(&[(16, 4, 11)], "log_blocksize is 11");
    check(&[(16, 4, 64)], "log_blocksize is 64");
    check(&[(20, 4, 17)], "log_blocks_per_seg is 17");
    check(&[(36, 8, u64::MAX)], "number of blocks is 18446744073709551615, more than 2^63");
    check(&[(36, 8, 0)], "block_count");
    check(&[(68, 4, 2030)], "main_blkaddr is 9728, beyond the end");
    check(&[(80, 4, 1535)], "\"F2FS SIT\" starts at byte 6287360, inside of \"F2FS checkpoint\"");
    check(&[(2201, 4, 0x7665_642F)], "spans several devices");
}

#[test]
fn what_is_no_file_system_or_too_short_is_refused() {
    assert_eq!(Image::new(1 << 20).probe(), Err(ProbeError::Unknown));
    assert_eq!(Image::new(4095).probe(), Err(ProbeError::Read { offset: 0, error: ENDS }));
}
