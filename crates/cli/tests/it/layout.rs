//! `prism trace layout`: converts an image to text, which can be read like the image.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{folder, path, quiet, refused_in_a_line, sample};

/// A sparse image of 4 GiB with the superblock of F2FS.
fn image(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(4 << 30).unwrap();
    for (at, value) in [
        (0, 0xF2F5_2010u32),
        (16, 12),
        (20, 9),
        (36, 1_048_576),
        (52, 2),
        (56, 2),
        (60, 10),
        (64, 4),
        (68, 2029),
        (72, 512),
        (76, 512),
        (80, 1536),
        (84, 2560),
        (88, 7680),
        (92, 9728),
    ] {
        file.write_all_at(&value.to_le_bytes(), 1024 + at).unwrap();
    }
}

/// The lines that list regions.
fn regions(text: &str) -> Vec<&str> {
    text.lines().skip_while(|line| !line.starts_with("regions")).collect()
}

#[test]
fn an_image_gives_the_layout_that_is_shipped() {
    let folder = folder();
    let [disk, out] = &["disk.img", "out.toml"].map(|name| path(&folder, name));
    image(Path::new(disk));
    assert_eq!(quiet(&["trace", "layout", disk, "-o", out]), "");
    let written = std::fs::read_to_string(out).unwrap();
    assert!(written.contains("read from disk.img"), "{written}");
    let shipped = std::fs::read_to_string(sample("layouts/f2fs-4GiB.toml")).unwrap();
    assert_eq!(regions(&written), regions(&shipped));
    // The text is a layout as well, and standard output the default.
    assert_eq!(quiet(&["trace", "layout", out]), written);
}

#[test]
fn files_without_a_layout_are_refused() {
    let folder = folder();
    let at = |name: &str| path(&folder, name);
    std::fs::write(at("zeros"), [0; 8192]).unwrap();
    std::fs::write(at("short"), [0; 10]).unwrap();
    std::fs::write(at("words"), "these are words").unwrap();
    for (name, says) in [
        ("zeros", "no superblock of ext4, XFS or F2FS"),
        ("short", "ends before that"),
        ("words", "line 1"),
        ("none", "there is no such file"),
        (".", "this is a folder"),
    ] {
        refused_in_a_line(&["trace", "layout", &at(name), "-o", &at("out")], &[says]);
        assert!(!folder.path().join("out").exists(), "{name}");
    }
}
