//! Damaged and hostile images and texts: probing ends with a valid layout or with an error, and
//! never panics.

use prism_testkit::cases;
use prism_trace::FsLayout;
use prism_trace::fs_layout::Region;
use proptest::prelude::*;

use super::image::Image;

fn images() -> [Image; 3] {
    [super::ext4::mkfs_4gib(), super::xfs::mkfs_4gib(), super::f2fs::mkfs_4gib()]
}

/// Checks what holds for every layout.
fn assert_whole(layout: &FsLayout) {
    let regions = layout.regions();
    assert!(!regions.is_empty() && regions.iter().all(|region| region.start < region.end));
    assert!(regions.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

/// Values at which fields break, in addition to random ones.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0..64u32).prop_map(|bit| 1 << bit),
        (0..64u32).prop_map(|bit| (1 << bit) - 1),
        0..100_000u64,
    ]
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn random_damage_to_images_gives_a_whole_layout_or_an_error(
        which in 0..3usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1..9usize, value()), 1..5),
    ) {
        let mut image = images()[which].clone();
        let places = image.places();
        for (place, width, value) in damage {
            image.le(*place.get(&places), &[(0, width, value)]);
        }
        if let Ok(layout) = image.probe() {
            assert_whole(&layout);
        }
    }

    #[test]
    fn random_noise_with_a_magic_number_gives_a_whole_layout_or_an_error(
        which in 0..3usize,
        mut head in prop::collection::vec(any::<u8>(), 4096),
    ) {
        let (at, magic): (usize, &[u8]) =
            [(0, &b"XFSB"[..]), (1024, b"\x10\x20\xf5\xf2"), (1024 + 0x38, b"\x53\xef")][which];
        head[at..at + magic.len()].copy_from_slice(magic);
        // The volume repeats its first bytes, so that the bytes that are read are not all zero.
        let probed = FsLayout::probe::<&str>(&mut |at, buffer| {
            for (byte, place) in buffer.iter_mut().zip(at..) {
                *byte = head[(place % 4096) as usize];
            }
            Ok(())
        });
        if let Ok(layout) = probed {
            assert_whole(&layout);
        }
    }

    #[test]
    fn random_layouts_are_read_back_as_written(
        pieces in prop::collection::vec((0..1u64 << 40, 1..1u64 << 40, "\\PC*", "[a-c]"), 1..20),
        name in any::<String>(),
        source in any::<String>(),
    ) {
        let mut at = 0;
        let regions = pieces.into_iter().map(|(gap, len, label, group)| {
            let start = at + gap;
            at = start + len;
            Region { start, end: at, label, group }
        });
        let layout = FsLayout::new(name, source, regions.collect()).unwrap();
        assert_whole(&layout);
        prop_assert_eq!(FsLayout::from_toml(&layout.to_toml()), Ok(layout));
    }

    #[test]
    fn random_damage_to_text_gives_a_whole_layout_or_an_error(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..8),
    ) {
        let text = super::xfs::mkfs_4gib().probe().unwrap().to_toml();
        let mut letters: Vec<char> = text.chars().collect();
        for (at, letter) in cuts {
            let at = at.index(letters.len());
            letters[at] = letter;
        }
        if let Ok(layout) = FsLayout::from_toml(&letters.into_iter().collect::<String>()) {
            assert_whole(&layout);
        }
    }
}
