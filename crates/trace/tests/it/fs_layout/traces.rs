//! The shipped layouts fit the real traces that begin with mkfs of the same file systems: every
//! write of metadata is where the layout has metadata.

use std::collections::BTreeSet;

use prism_trace::fs_layout::Region;
use prism_trace::{Flags, Format, FsLayout, Op};

use crate::common::{Whole, data, options, read};

fn layout(name: &str) -> FsLayout {
    let bytes = data(&format!("layouts/{name}-4GiB.toml"));
    FsLayout::from_toml(std::str::from_utf8(&bytes).unwrap()).unwrap()
}

/// Where the writes of a phase go, those of metadata or the others.
fn groups<'a>(whole: &Whole, layout: &'a FsLayout, phase: &str, meta: Kind) -> BTreeSet<&'a str> {
    let phase = whole.symbols.get(phase).expect("the phase is in the trace");
    let writes = whole.records.iter().filter(|record| record.phase == phase);
    let writes = writes.filter(|record| record.op == Op::Write);
    let is_meta = |flags: Flags| if flags.has(Flags::META) { Kind::Meta } else { Kind::Other };
    let writes = writes.filter(|record| is_meta(record.flags) == meta);
    let mut groups = BTreeSet::new();
    for record in writes {
        // Neighbours are merged into one request.
        let end = record.offset + record.len;
        let is_touched = |region: &&Region| region.start < end && region.end > record.offset;
        let touched: Vec<&Region> = layout.regions().iter().filter(is_touched).collect();
        let named = |region: &&Region| region.end.min(end) - region.start.max(record.offset);
        let is_whole = touched.iter().map(named).sum::<u64>() == record.len;
        groups.extend(touched.iter().map(|region| region.group.as_str()));
        groups.extend((!is_whole).then_some("nowhere"));
    }
    groups
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Meta,
    Other,
}

fn trace(name: &str) -> Whole {
    read(options(Format::Ftrace), &data(&format!("{name}.ftrace.zst"))).expect("it is whole")
}

#[test]
fn ext4() {
    let layout = layout("ext4");
    let whole = trace("ext4-sqlite-wal");
    let check = |phase: &str, meta: Kind, expected: &[&str]| {
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(groups(&whole, &layout, phase, meta), expected, "{phase}");
    };
    check("app", Kind::Meta, &["ext4 journal"]);
    check("app", Kind::Other, &["ext4 data"]);
    // The content of the journal is written to its final place; directories are data.
    let home = [
        "ext4 block bitmaps",
        "ext4 data",
        "ext4 group descriptors",
        "ext4 inode bitmaps",
        "ext4 inode tables",
        "ext4 journal",
        "ext4 superblock",
    ];
    check("sync", Kind::Meta, &home);
    check("umount", Kind::Meta, &["ext4 journal", "ext4 superblock"]);
    let made = groups(&whole, &layout, "mkfs", Kind::Other);
    assert!(made.contains("ext4 superblock copies") && !made.contains("nowhere"), "{made:?}");
}

#[test]
fn f2fs() {
    let layout = layout("f2fs");
    for name in ["f2fs-rocksdb", "f2fs-leveldb"] {
        let whole = trace(name);
        let groups = |phase, kind| groups(&whole, &layout, phase, kind);
        assert_eq!(groups("app", Kind::Other), ["F2FS main area"].into(), "{name}");
        let meta = groups("app", Kind::Meta);
        let known = ["F2FS NAT", "F2FS SIT", "F2FS SSA", "F2FS checkpoint"].into();
        assert!(meta.is_subset(&known) && meta.contains("F2FS checkpoint"), "{name}: {meta:?}");
        let made = groups("mkfs", Kind::Other);
        assert!(made.contains("F2FS superblock copy") && !made.contains("nowhere"), "{made:?}");
    }
}

#[test]
fn shipped_layouts_are_those_of_the_hand_built_superblocks() {
    for (name, image) in [
        ("ext4", super::ext4::mkfs_4gib()),
        ("xfs", super::xfs::mkfs_4gib()),
        ("f2fs", super::f2fs::mkfs_4gib()),
    ] {
        assert_eq!(layout(name).regions(), image.probe().unwrap().regions(), "{name}");
    }
}
